//! The members: whether each is ready, whether the way to it is open, and how old its Kubernetes is.

use futures::{StreamExt, stream};
use jiff::Timestamp;
use karmada_api::ClusterView;
use karmada_api::cluster_view::PUSH;
use karmada_api::condition::TRUE;
use karmada_api::remedy::DRAIN;
use karmada_runtime::client::Validity;
use karmada_runtime::error::Chain;
use karmada_runtime::members::{AccessError, ConnectError, MemberAccess};
use kube::api::ListParams;
use kube::{Api, Client};
use objects::Metadata;
use objects::condition::find;
use propagation_rules::cluster::READY;

use super::report::{Finding, Section};
use crate::error::Error;
use crate::lists::list;

/// The number of Secrets that are read at a time.
const AT_A_TIME: usize = 8;
/// The number of minor versions by which a member may be behind the control plane without a word, as a node may be
/// (<https://kubernetes.io/releases/version-skew-policy/>).
const SKEW: i64 = 3;

/// The known state of the credentials for a member.
#[derive(Debug)]
enum Credentials {
    /// Nobody needs any: the member comes to the control plane.
    Unneeded,
    /// Nobody is given any.
    Unnamed,
    /// The caller may not read them.
    Hidden,
    /// They cannot be used, for this reason.
    Unusable(String),
    /// They can be used, as long as this.
    Usable(Option<Validity>),
}

/// Checks every member.
pub(super) async fn section(client: &Client, now: Timestamp) -> Result<Section, Error> {
    let own = client.apiserver_version().await;
    let own = own.map_err(|source| Error::request("get the version of the API", source))?;
    let clusters = list::<ClusterView>(Api::all(client.clone()), ListParams::default()).await?;
    let clusters: Vec<&ClusterView> = clusters.iter().map(|(_, cluster)| &**cluster).collect();
    let credentials = stream::iter(&clusters).map(|cluster| credentials(client, cluster));
    let credentials: Vec<Result<Credentials, Error>> =
        credentials.buffered(AT_A_TIME).collect().await;
    let mut findings = Vec::new();
    let mut hidden = 0;
    for (cluster, credentials) in clusters.into_iter().zip(credentials) {
        let credentials = credentials?;
        hidden += usize::from(matches!(credentials, Credentials::Hidden));
        findings.extend(member(cluster, &credentials, &own.git_version, now));
        findings.extend(drained(cluster));
    }
    if hidden > 0 {
        findings.push(Finding::doubtful(
            format!("you may not read the Secrets of {hidden} members: when their credentials end is not known"),
            "ask somebody who may; `member_credentials_expiry_timestamp_seconds` of the execution-controller tells, too",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::doubtful("there are no members", "join a cluster"));
    }
    Ok(Section {
        title: "Members",
        findings,
    })
}

async fn credentials(client: &Client, cluster: &ClusterView) -> Result<Credentials, Error> {
    if cluster.spec.sync_mode != PUSH {
        return Ok(Credentials::Unneeded);
    }
    match MemberAccess::read(client, cluster).await {
        Ok((access, _)) => Ok(Credentials::Usable(access.validity())),
        Err(ConnectError::Unread(kube::Error::Api(status))) if status.code == 403 => {
            Ok(Credentials::Hidden)
        }
        Err(ConnectError::Access(AccessError::NoSecret)) => Ok(Credentials::Unnamed),
        Err(ConnectError::Unread(source)) => Err(Error::request("get a member's Secret", source)),
        Err(error) => Ok(Credentials::Unusable(Chain(&error).to_string())),
    }
}

/// Returns the findings about a member that somebody has drained.
fn drained(cluster: &ClusterView) -> Option<Finding> {
    let mut taints = cluster.spec.taints.iter();
    taints.any(|taint| taint.key == DRAIN).then(|| {
        let name = cluster.metadata.name();
        Finding::doubtful(
            format!("{name} is drained: nothing new comes there"),
            format!("`kubectl remedy uncordon {name}` takes that back"),
        )
    })
}

/// Returns the findings about a member, whose control plane has the version `own`.
fn member(
    cluster: &ClusterView,
    credentials: &Credentials,
    own: &str,
    now: Timestamp,
) -> Vec<Finding> {
    let name = cluster.metadata.name();
    let version = &cluster.status.kubernetes_version;
    let mut findings = Vec::new();
    let hint = format!("kubectl describe cluster/{name}");
    match find(&cluster.status.conditions, READY) {
        None => findings.push(Finding::doubtful(
            format!("{name}: nobody has asked whether it is ready"),
            "start the cluster-controller, or Karmada's controllers, or its agent if it pulls",
        )),
        Some(ready) if ready.status != TRUE => findings.push(Finding::bad(
            format!("{name} is not ready: {}: {}", ready.reason, ready.message),
            hint,
        )),
        Some(_) => {}
    }
    let renew = "give its Secret a new token, before what is applied there gets stuck";
    let mut end = String::new();
    match credentials {
        Credentials::Unneeded | Credentials::Hidden | Credentials::Usable(None) => {}
        Credentials::Unnamed => findings.push(Finding::doubtful(
            format!("{name} names no secretRef: nothing can be applied there"),
            format!("kubectl get cluster/{name} -o jsonpath={{.spec}}"),
        )),
        Credentials::Unusable(problem) => findings.push(Finding::bad(
            format!("{name} cannot be reached: {problem}"),
            format!("kubectl get cluster/{name} -o jsonpath={{.spec}}"),
        )),
        Credentials::Usable(Some(validity)) if validity.until <= now => {
            findings.push(Finding::bad(
                format!("{name}: its credentials ended at {}", validity.until),
                renew,
            ));
        }
        Credentials::Usable(Some(validity)) if validity.ends_soon(now) => {
            findings.push(Finding::doubtful(
                format!("{name}: its credentials end at {}", validity.until),
                renew,
            ));
        }
        Credentials::Usable(Some(validity)) => {
            end = format!(", its credentials end at {}", validity.until);
        }
    }
    let behind = minor(own).zip(minor(version)).map(|(own, its)| own - its);
    if let Some(behind) = behind.filter(|behind| *behind > SKEW) {
        findings.push(Finding::doubtful(
            format!("{name} runs Kubernetes {version}, {behind} minor versions behind the control plane ({own})"),
            "it may refuse kinds, and drop fields, that it does not know",
        ));
    }
    if findings.is_empty() {
        let facts = [cluster.spec.sync_mode.as_str(), version];
        let facts: Vec<&str> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
        let text = format!("{name} is ready: {}{end}", facts.join(", "));
        findings.push(Finding::good(text.trim_end_matches(": ")));
    }
    findings
}

/// Returns the minor version of a version such as `v1.36.1`, if it is one of Kubernetes 1.
pub(super) fn minor(version: &str) -> Option<i64> {
    let rest = version.trim_start_matches('v').strip_prefix("1.")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    const OWN: &str = "v1.36.1";

    fn ready() -> Value {
        json!([{ "type": "Ready", "status": "True" }])
    }

    fn usable(from: &str, until: &str) -> Credentials {
        Credentials::Usable(Some(Validity {
            from: Some(from.parse().unwrap()),
            until: until.parse().unwrap(),
        }))
    }

    /// Returns the only line about a member.
    fn line(conditions: &Value, version: &str, credentials: &Credentials) -> String {
        let cluster = json!({ "metadata": { "name": "m1" }, "spec": { "syncMode": "Push" },
            "status": { "kubernetesVersion": version, "conditions": conditions } });
        let cluster: ClusterView = from_value(cluster).unwrap();
        let now = "2026-11-20T08:00:00Z".parse().unwrap();
        let shown = member(&cluster, credentials, OWN, now);
        assert_eq!(shown.len(), 1, "{shown:?}");
        let shown = anstream::adapter::strip_str(&shown[0].to_string()).to_string();
        shown.lines().next().unwrap_or_default().to_owned()
    }

    /// A member that somebody has drained is told of, and one with another taint is not.
    #[test]
    fn drained_member_is_told() {
        for (key, expected) in [(DRAIN, true), ("gpu", false)] {
            let cluster = json!({ "metadata": { "name": "m1" },
                "spec": { "taints": [{ "key": key, "effect": "NoSchedule" }] } });
            let found = drained(&from_value(cluster).unwrap());
            assert_eq!(found.is_some(), expected, "{key}");
        }
    }

    /// A member is well while it is ready, and not much older than the control plane.
    #[test]
    fn ready_member_is_well() {
        let away = json!([{ "type": "Ready", "status": "False",
            "reason": "ClusterNotReachable", "message": "no route" }]);
        for (conditions, version, expected) in [
            (ready(), "v1.33.2+k3s1", "✓ m1 is ready: Push, v1.33.2+k3s1"),
            (ready(), "", "✓ m1 is ready: Push"),
            (
                away,
                OWN,
                "× m1 is not ready: ClusterNotReachable: no route",
            ),
            (json!([]), OWN, "‼ m1: nobody has asked whether it is ready"),
            (
                ready(),
                "v1.32.0",
                "‼ m1 runs Kubernetes v1.32.0, 4 minor versions behind the control plane (v1.36.1)",
            ),
        ] {
            assert_eq!(line(&conditions, version, &Credentials::Hidden), expected);
        }
    }

    /// The way to a member stays open until its credentials end.
    #[test]
    fn end_of_credentials_is_told() {
        for (credentials, expected) in [
            (
                usable("2026-11-01T00:00:00Z", "2027-11-01T00:00:00Z"),
                "✓ m1 is ready: Push, v1.36.1, its credentials end at 2027-11-01T00:00:00Z",
            ),
            (
                usable("2026-11-01T00:00:00Z", "2026-11-20T20:00:00Z"),
                "‼ m1: its credentials end at 2026-11-20T20:00:00Z",
            ),
            (
                usable("2026-11-01T00:00:00Z", "2026-11-20T07:00:00Z"),
                "× m1: its credentials ended at 2026-11-20T07:00:00Z",
            ),
            (
                Credentials::Unnamed,
                "‼ m1 names no secretRef: nothing can be applied there",
            ),
            (
                Credentials::Unusable("the Secret a/m1 has no `token`".to_owned()),
                "× m1 cannot be reached: the Secret a/m1 has no `token`",
            ),
        ] {
            assert_eq!(line(&ready(), OWN, &credentials), expected);
        }
    }

    /// A member of another numbering is not measured.
    #[test]
    fn minor_version_is_read() {
        for (version, expected) in [
            ("v1.36.1", Some(36)),
            ("1.9", Some(9)),
            ("v1.29+", Some(29)),
            ("v2.0", None),
            ("", None),
        ] {
            assert_eq!(minor(version), expected, "{version}");
        }
    }
}
