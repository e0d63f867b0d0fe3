//! Declared signals on a real Prometheus, and on the health service that gRPC has in Go, as `check` and agents try them.

use std::{fs, net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use pipeline_tests::{
    agents,
    control_plane::ApiKind,
    fleet::isolated,
    grpc_health::GrpcHealth,
    programs::{self, Binary, Profile},
    prometheus::Prometheus,
    test_name,
};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use super::kinds::{Probed, declaring, each_fails_alone, query};

/// The limit until a server says something else.
const LIMIT: Duration = Duration::from_mins(1);

/// Tries these probes, and returns the report.
async fn check(probes: &[(&str, Value)]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("signals.yaml");
    let probes = probes.iter().map(|(name, probe)| (*name, probe));
    fs::write(&file, declaring(probes))?;
    let mut command = Command::new(programs::path(Binary::Agent, Profile::Debug)?);
    let output = command.arg("check").arg(file).output().await?;
    ensure!(output.stderr.is_empty(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Checks that the signal `name` has a line that begins so.
fn says(report: &str, name: &str, text: &str) -> Result<()> {
    let start = format!("{name} ({name}): {text}");
    let said = report.lines().any(|line| line.starts_with(&start));
    ensure!(said, "nothing begins with {start:?}:\n{report}");
    Ok(())
}

/// Waits until the last value of a job is too old, which Prometheus still finds when nobody says how old it may be.
async fn outdated(prometheus: &Prometheus, probe: &[(&str, Value)]) -> Result<()> {
    let looking = async {
        while says(&check(probe).await?, "gone", "no vote: the answer is empty").is_err() {}
        anyhow::Ok(())
    };
    timeout(LIMIT, looking)
        .await
        .context("its last value stays")??;
    let found = prometheus.query("up").await?;
    ensure!(found.contains(r#""job":"gone""#), "{found}");
    Ok(())
}

/// A value that holds or does not is a vote. Neither NaN is one, nor an empty answer, nor an error of any status, whose text
/// is told; nor is the last value of a job that was removed, even after a restart. Cases S1, S2, S3 and S4.
#[test]
fn prometheus_votes_by_fresh_values() {
    isolated(test_name!(), async || {
        let server = SocketAddr::from(([127, 0, 0, 1], 9090));
        let mut prometheus = Prometheus::start(server, &["kept", "gone"]).await?;
        let both = [("both", query(server, "count(up) - 1"))];
        let scraped = async {
            while says(&check(&both).await?, "both", "succeeds").is_err() {}
            anyhow::Ok(())
        };
        timeout(LIMIT, scraped)
            .await
            .context("nothing is scraped")??;

        let gone = [("gone", query(server, r#"up{job="gone"}"#))];
        says(&check(&gone).await?, "gone", "succeeds")?;
        let report = check(&[
            ("zero", query(server, r#"up{job="kept"} - 1"#)),
            ("nan", query(server, r#"0 * up{job="kept"} / 0"#)),
            ("empty", query(server, "nowhere")),
            ("compared", query(server, r#"up{job="kept"} == 0"#)),
            ("several", query(server, "up")),
            ("ambiguous", query(server, "up + on() up")),
            ("malformed", query(server, "up{")),
        ])
        .await?;
        let warning = "warning: the query may end in a comparison without bool";
        for (name, text) in [
            ("zero", "fails: not-holding from 127.0.0.1:9090: 0 is not"),
            ("nan", "no vote: the value is NaN"),
            ("empty", "no vote: the answer is empty"),
            ("compared", "no vote: the answer is empty"),
            ("compared", warning),
            ("several", "no vote: the answer has 2 series"),
            (
                "ambiguous",
                "no vote: status 422 Unprocessable Entity: execution: ",
            ),
            ("malformed", "no vote: status 400 Bad Request: bad_data: "),
        ] {
            says(&report, name, text)?;
        }
        let slow = "sum_over_time((vector(time()) + vector(time()))[3h:1ms])";
        let report = check(&[("slow", query(server, slow))]).await?;
        says(
            &report,
            "slow",
            "no vote: status 503 Service Unavailable: timeout: ",
        )?;

        prometheus.reload(&["kept"])?;
        outdated(&prometheus, &gone).await?;
        prometheus.restart().await?;
        outdated(&prometheus, &gone).await
    });
}

/// A server says of each service how it is, and that it does not know one; of itself it says that it serves, whatever its
/// services do. While it hangs, each probe is late. Cases S5, S6 and S7.
#[test]
fn grpc_votes_by_services() {
    isolated(test_name!(), async || {
        let address = SocketAddr::from(([127, 0, 0, 1], 9000));
        let services = ["shop=SERVING", "stopped=NOT_SERVING"];
        let server = GrpcHealth::start(address, &services).await?;
        let probe = |service: &str| json!({ "grpc": { "address": address, "service": service } });
        let probes = [
            ("shop", probe("shop")),
            ("stopped", probe("stopped")),
            ("unknown", probe("nothing")),
            ("whole", probe("")),
        ];
        let report = check(&probes).await?;
        for (name, text) in [
            ("shop", "succeeds"),
            ("stopped", "fails: not-serving from 127.0.0.1:9000: "),
            ("unknown", "fails: unknown-service from 127.0.0.1:9000: "),
            ("whole", "succeeds"),
            (
                "whole",
                "warning: without a service most servers say SERVING",
            ),
        ] {
            says(&report, name, text)?;
        }
        server.pause()?;
        let report = check(&probes).await?;
        for (name, _) in &probes {
            says(&report, name, "fails: timeout from 127.0.0.1:9000: ")?;
        }
        server.resume()?;
        says(&check(&probes).await?, "shop", "succeeds")
    });
}

/// As with servers of ours: each alone fails, nobody can tell how it is, and it works again. Case S11.
#[test]
fn real_servers_fail_alone() {
    isolated(test_name!(), async || {
        let fleet = agents::fleet(ApiKind::Embedded).await?;
        let all = vec![Probed::by_grpc(1).await?, Probed::by_prometheus(2).await?];
        each_fails_alone(&fleet, all).await
    });
}
