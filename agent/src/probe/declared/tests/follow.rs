use std::fs;
use std::path::PathBuf;

use health::quorum::Quorum;
use health::report::Terms;
use health::signal::{PerTarget, Voters};
use health::threshold::{Thresholds, Vote};
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::Registry;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::super::file::Defaults;
use super::super::follow::{Follower, Shared};
use super::*;
use crate::vote::Votes;

/// A follower of a file, with its messages to the rest of the agent.
struct Following {
    folder: tempfile::TempDir,
    follower: Follower,
    votes: watch::Receiver<Votes>,
    declared: watch::Receiver<Option<PerTarget<Terms>>>,
    metrics: Registry,
}

impl Following {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (changed, votes) = watch::channel(crate::vote::on_dns(None));
        let (announced, declared) = watch::channel(None);
        let shared = Shared {
            defaults: Defaults {
                thresholds: Thresholds {
                    period: PERIOD,
                    failure: 2 * PERIOD,
                    success: 2 * PERIOD,
                    silence: 2 * PERIOD,
                    max_hold: 2 * PERIOD,
                },
                timeout: SHORT,
                quorum: Quorum {
                    min_answering: 50,
                    failure: 80,
                },
            },
            member: None,
            leadership: Leadership::always(),
            votes: changed,
            declared: announced,
        };
        let mut metrics = Registry::default();
        let path = folder.path().join("signals.yaml");
        Self {
            follower: Follower::new(path, node(), shared, &mut metrics),
            folder,
            votes,
            declared,
            metrics,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("signals.yaml")
    }

    /// Writes the file, and lets the follower look.
    async fn write(&mut self, text: &str) {
        fs::write(self.path(), text).unwrap();
        self.follower.look().await;
    }

    /// Returns the names and the conditions of the declared signals, or `None` while they are unknown.
    fn declared(&self) -> Option<Vec<(&'static str, &'static str)>> {
        let declared = self.declared.borrow();
        let targets = declared.as_ref()?.iter().map(|(target, _)| target.signal);
        Some(targets.map(|it| (it.name, it.condition)).collect())
    }

    /// Returns the signals that this node votes on.
    fn voted(&self) -> Vec<&'static str> {
        let votes = self.votes.borrow();
        votes.iter().map(|(target, _)| target.signal.name).collect()
    }

    fn exposition(&self) -> String {
        self.metrics.encode().unwrap()
    }
}

fn tcp(name: &str, condition: &str, server: SocketAddr) -> String {
    format!("- {{name: {name}, condition: {condition}, probe: {{tcp: {{address: '{server}'}}}}}}\n")
}

/// A signal begins with its declaration, is changed by it, and ends with it, or with the `ConfigMap` as a whole.
#[tokio::test]
async fn signals_come_and_go() {
    let (_listener, server) = listener().await;
    let mut following = Following::start();
    following.follower.look().await;
    // Nothing is declared, and that is known: the conditions of former signals may go.
    assert_eq!(following.declared(), Some(Vec::new()));

    let a = tcp("a", "AReady", server);
    let b = tcp("b", "BReady", server);
    following.write(&format!("signals:\n{a}{b}")).await;
    let both = vec![("a", "AReady"), ("b", "BReady")];
    assert_eq!(following.declared(), Some(both));
    assert_eq!(following.voted(), ["coredns-detector", "a", "b"]);
    let series = r#"signal_vote{signal="b",vote="healthy"}"#;
    assert!(following.exposition().contains(series));

    let other = tcp("a", "OtherReady", server);
    following.write(&format!("signals:\n{other}")).await;
    let one = vec![("a", "OtherReady")];
    assert_eq!(following.declared(), Some(one));
    assert_eq!(following.voted(), ["coredns-detector", "a"]);
    assert!(!following.exposition().contains("signal=\"b\""));

    fs::remove_file(following.path()).unwrap();
    following.follower.look().await;
    assert_eq!(following.declared(), Some(Vec::new()));
    assert_eq!(following.voted(), ["coredns-detector"]);
    assert!(!following.exposition().contains("signal=\"a\""));
}

/// A wrong file changes nothing: the last good one counts, and before there was one nothing is known.
#[tokio::test]
async fn wrong_file_changes_nothing() {
    let (_listener, server) = listener().await;
    let mut following = Following::start();
    following.write("signals: [").await;
    assert_eq!(following.declared(), None);
    let good = format!("signals:\n{}", tcp("a", "AReady", server));
    following.write(&good).await;
    let declared = following.declared();
    assert!(following.exposition().contains("signals_file_invalid 0"));
    for wrong in ["signals: {}", "signals: [{name: a}]", "signal: []"] {
        following.write(wrong).await;
        assert_eq!(following.declared(), declared, "{wrong}");
        assert_eq!(following.voted(), ["coredns-detector", "a"]);
        assert!(following.exposition().contains("signals_file_invalid 1"));
    }
    fs::remove_file(following.path()).unwrap();
    fs::create_dir(following.path()).unwrap();
    following.follower.look().await;
    assert_eq!(following.declared(), declared);
}

fn is_healthy(votes: &Votes) -> bool {
    let vote = votes.iter().find(|(target, _)| target.signal.name == "a");
    matches!(vote, Some((_, Some(Vote::Healthy))))
}

/// Another signal that comes or goes does not cost one its vote.
#[tokio::test]
async fn vote_outlives_other_changes() {
    let (_listener, server) = listener().await;
    let mut following = Following::start();
    let [a, b] = [("a", "AReady"), ("b", "BReady")].map(|(name, condition)| {
        tcp(name, condition, server).replace("probe:", "period: 1s, successThreshold: 1s, probe:")
    });
    following.write(&format!("signals:\n{a}")).await;
    let voted = following.votes.wait_for(is_healthy);
    drop(timeout(AMPLE, voted).await.unwrap().unwrap());
    following.write(&format!("signals:\n{a}{b}")).await;
    assert!(is_healthy(&following.votes.borrow()));
    // A change of its own begins its vote anew.
    let slower = a.replace("successThreshold: 1s", "successThreshold: 1h");
    following.write(&format!("signals:\n{slower}{b}")).await;
    assert!(!is_healthy(&following.votes.borrow()));
}

/// A signal that the leader alone probes is probed by nobody else, and one vote is all that counts.
#[tokio::test(start_paused = true)]
async fn leader_alone_asks() {
    let mut following = Following::start();
    let url = "http://127.99.99.99:1";
    let probe = format!("{{prometheus: {{url: '{url}', query: up, holds: 'value > 0'}}}}");
    let text = format!("signals: [{{name: p, condition: PReady, probe: {probe}}}]");
    following.write(&text).await;
    {
        let declared = following.declared.borrow();
        let (target, _) = declared.as_ref().unwrap().iter().next().unwrap();
        assert_eq!(target.signal.voters, Voters::Leader);
    }
    sleep(4 * PERIOD).await;
    let internal = r#"signal_probe_rounds_total{signal="p",result="internal"}"#;
    let exposition = following.exposition();
    let rounds = exposition.lines().find(|line| line.starts_with(internal));
    assert!(
        rounds.is_some_and(|line| !line.ends_with(" 0")),
        "{exposition}"
    );
}
