//! The estimators of clusters, which know the room that single nodes and quotas leave.
//!
//! ```text
//! binding → question → estimator of each cluster that may get it → propagation_rules::schedule::Estimates
//! ```
//!
//! `message` has the question in the estimators' language; `connection` says where an estimator is, and connects to it.
//! Whoever does not answer in time is unknown to the decision at hand, and not asked again for a while. Whoever refuses a
//! question is asked the next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use karmada_api::{ClusterView, ResourceBindingSpec};
use karmada_runtime::error::{Chain, LastError};
use karmada_runtime::metrics::Registry;
use karmada_runtime::panics::caught;
use kube::Client;
use objects::Metadata;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use propagation_rules::schedule::{Assumed, Estimates};
use tokio::sync::MutexGuard;
use tokio::time::{Instant, timeout};
use tonic::transport::Channel;

pub(crate) use self::args::EstimatorArgs;
use self::connection::{Connector, EstimatorError};
use self::question::Question;

mod args;
mod connection;
mod message;
mod question;
#[cfg(test)]
pub(crate) mod tests;

/// The time for which an estimator that gave no answer is not asked: decisions do not wait for one that is dead.
const PAUSE: Duration = Duration::from_secs(10);

/// The estimators of all clusters.
#[derive(Debug)]
pub(crate) struct Estimators {
    args: EstimatorArgs,
    connector: Connector,
    links: Mutex<BTreeMap<String, Link>>,
    turn: tokio::sync::Mutex<()>,
    answers: Answers,
}

/// The state of one estimator.
#[derive(Debug, Default)]
struct Link {
    channel: Option<Channel>,
    asked_after: Option<Instant>,
    error: LastError,
}

/// Which estimators answered; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(Family<MemberLabels, Gauge>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MemberLabels {
    member: String,
}

impl Answers {
    /// Registers `estimator_answers{member}`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self(registry.register(
            "estimator_answers",
            "1 for a member whose estimator answered when it was asked last, 0 for one whose did not, with --enable-scheduler-estimator",
            Family::default(),
        ))
    }

    fn note(&self, member: &str, answered: bool) {
        let gauge = self.0.get_or_create(&labels(member));
        gauge.set(i64::from(answered));
    }
}

impl Estimators {
    /// Creates the estimators; `client` reads where they are.
    pub(crate) fn new(args: EstimatorArgs, client: Client, answers: Answers) -> Self {
        Self {
            connector: Connector::new(&args, client),
            links: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            answers,
            args,
        }
    }

    /// Waits for the turn to ask, where a decision on an answer changes the next question.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Asks for how many replicas of the binding, or sets of its Pods, the clusters have room besides those that are
    /// `assumed` to be there. All answer at the same time, and none that fails takes the answer of another away.
    pub(crate) async fn ask(
        &self,
        spec: &ResourceBindingSpec,
        clusters: &[&ClusterView],
        assumed: Option<&Assumed>,
    ) -> Estimates {
        let asked = clusters.iter().filter(|cluster| self.args.asks(cluster));
        let asked = asked.map(|cluster| cluster.metadata.name());
        let questions = asked.filter_map(|cluster| {
            let assumed = assumed.map_or(&[][..], |assumed| assumed.workloads_in(cluster));
            let question = Question::about(spec, cluster, assumed).transpose()?;
            Some(question.map(|question| (cluster, question)))
        });
        let questions = match questions.collect::<Result<Vec<_>, _>>() {
            Ok(questions) => questions,
            Err(error) => {
                tracing::warn!(template = spec.resource.name, %error, "Requirements not understood");
                return Estimates::default();
            }
        };
        let answers = questions.into_iter().map(async |(cluster, question)| {
            let answer = self.answer(cluster, question).await;
            Some((cluster.to_owned(), answer?))
        });
        join_all(answers).await.into_iter().flatten().collect()
    }

    /// Forgets the estimators of clusters that are gone.
    pub(crate) fn retain<'a>(&self, clusters: impl Iterator<Item = &'a str>) {
        let clusters: BTreeSet<_> = clusters.collect();
        let mut links = self.links.lock();
        links.retain(|cluster, _| {
            let stays = clusters.contains(&**cluster);
            if !stays {
                self.answers.0.remove(&labels(cluster));
            }
            stays
        });
    }

    /// Returns the answer of one estimator, or `None` if it gives none.
    async fn answer(&self, cluster: &str, question: Question) -> Option<i32> {
        let known = {
            let links = self.links.lock();
            let link = links.get(cluster);
            let pause = link.and_then(|link| link.asked_after);
            if pause.is_some_and(|until| Instant::now() < until) {
                return None;
            }
            link.and_then(|link| link.channel.clone())
        };
        let asked = async {
            let channel = match known {
                Some(channel) => channel,
                None => self.connector.connect(cluster).await?,
            };
            let replicas = question.send(channel.clone()).await?;
            Ok((channel, replicas))
        };
        let answered = match timeout(self.args.timeout(), caught(asked)).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(panicked)) => Err(EstimatorError::from(panicked)),
            Err(_) => Err(EstimatorError::Timeout(self.args.timeout())),
        };
        self.note(cluster, answered)
    }

    fn note(&self, cluster: &str, answered: Result<(Channel, i32), EstimatorError>) -> Option<i32> {
        self.answers.note(cluster, answered.is_ok());
        let mut links = self.links.lock();
        let link = links.entry(cluster.to_owned()).or_default();
        match answered {
            Ok((channel, replicas)) => {
                link.channel = Some(channel);
                link.asked_after = None;
                link.error.clear();
                Some(replicas)
            }
            Err(error) => {
                // It is looked for anew: it may be somewhere else by now.
                link.channel = None;
                // The next question is another one, and may be that of another team.
                let pauses = !error.is_refusal();
                link.asked_after = pauses.then(|| Instant::now() + PAUSE);
                let error = Chain(&error).to_string();
                if link.error.replace(&error) {
                    tracing::warn!(cluster, error, "Estimator does not answer");
                }
                None
            }
        }
    }
}

fn labels(cluster: &str) -> MemberLabels {
    MemberLabels {
        member: cluster.to_owned(),
    }
}
