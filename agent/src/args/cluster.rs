//! The flags for the object that stands for this member cluster.

use karmada_runtime::client::{Claims, Source};
use karmada_runtime::program::StartError;
use traffic::ClusterKind;

use crate::flag_values::expanded;

/// The flags for the object that stands for this member cluster.
#[derive(clap::Args, Debug)]
pub(super) struct ClusterArgs {
    /// Name of this member cluster's Cluster object [default: that of the cluster in whose namespace the account of the kubeconfig's token is: NAME for karmada-es-NAME]. With --detectors=reachability a name that all agents of the gateways share [default: gateway].
    #[arg(long, env = "KARMADA_CLUSTER_NAME", value_name = "NAME", value_parser = cluster_name)]
    cluster_name: Option<String>,
    /// Kind of that object: `Cluster`, or `MemberCluster` on the hub of a KubeFleet [default: Cluster; without a name, what the namespace of that account belongs to].
    #[arg(long, env = "KARMADA_CLUSTER_KIND", value_name = "KIND")]
    cluster_kind: Option<ClusterKind>,
}

/// The name of the group of agents on the nodes of gateways.
const GATEWAY: &str = "gateway";

impl ClusterArgs {
    /// Returns the name that agents on the nodes of gateways share.
    ///
    /// # Errors
    /// Fails if a kind is given that gateways do not report on.
    pub(super) fn gateway(self) -> Result<String, StartError> {
        if self.cluster_kind == Some(ClusterKind::MemberCluster) {
            let problem = "reachability is reported on each Cluster, and not on MemberClusters: leave --cluster-kind out";
            return Err(StartError::Config(problem.to_owned()));
        }
        Ok(self.cluster_name.unwrap_or_else(|| GATEWAY.to_owned()))
    }

    /// Returns the kind and the name of the object: those that are given, or by the account of the token in `source`.
    ///
    /// # Errors
    /// Fails if no name is given and the token is of no account of a cluster, or of one of another kind.
    pub(super) fn identify(self, source: &Source) -> Result<(ClusterKind, String), StartError> {
        if let Some(name) = self.cluster_name {
            return Ok((self.cluster_kind.unwrap_or_default(), name));
        }
        let token = source.token()?;
        let claims = token.as_deref().and_then(Claims::of);
        let namespace = claims.as_ref().and_then(Claims::namespace);
        let found = namespace.and_then(ClusterKind::of_namespace);
        let Some((kind, name)) = found else {
            let problem = match namespace {
                Some(namespace) => format!("is of an account in {namespace}"),
                None => "is not there, or of no service account".to_owned(),
            };
            return Err(StartError::Config(format!(
                "the cluster is not known, for the token of the kubeconfig {problem}: name it with --cluster-name, or use a token of an account in karmada-es-NAME"
            )));
        };
        if self.cluster_kind.is_some_and(|given| given != kind) {
            return Err(StartError::Config(format!(
                "--cluster-kind is not that of {name}, to which the account of the kubeconfig's token belongs: leave it out, or name the cluster with --cluster-name"
            )));
        }
        Ok((kind, name.to_owned()))
    }
}

fn cluster_name(text: &str) -> Result<String, String> {
    expanded(text)?;
    karmada_runtime::args::cluster_name(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    use super::*;

    /// Returns a kubeconfig with a token of an account in this namespace, and its folder.
    fn source(namespace: &str) -> (tempfile::TempDir, Source) {
        let folder = tempfile::tempdir().unwrap();
        let subject = format!("system:serviceaccount:{namespace}:cluster-health-agent");
        let claims = URL_SAFE_NO_PAD.encode(json!({ "sub": subject }).to_string());
        fs::write(folder.path().join("token"), format!("e30.{claims}.c2ln")).unwrap();
        let kubeconfig = json!({
            "current-context": "k",
            "contexts": [{ "name": "k", "context": { "cluster": "k", "user": "k" } }],
            "clusters": [{ "name": "k", "cluster": { "server": "https://203.0.113.7" } }],
            "users": [{ "name": "k", "user": { "tokenFile": "token" } }],
        });
        let path = folder.path().join("kubeconfig");
        fs::write(&path, kubeconfig.to_string()).unwrap();
        let source = Source {
            kubeconfig: Some(path),
            ..Source::default()
        };
        (folder, source)
    }

    /// Returns the cluster of an agent with a token of an account in this namespace.
    fn identified(
        namespace: &str,
        name: Option<&str>,
        kind: Option<ClusterKind>,
    ) -> Result<(ClusterKind, String), String> {
        let (_folder, source) = source(namespace);
        let args = ClusterArgs {
            cluster_name: name.map(ToOwned::to_owned),
            cluster_kind: kind,
        };
        args.identify(&source).map_err(|error| error.to_string())
    }

    /// Members' manifests are alike: the account of the token tells the cluster, unless a flag does.
    #[test]
    fn account_names_its_cluster() {
        use ClusterKind::{Cluster, MemberCluster};
        for (namespace, name, kind, expected) in [
            ("karmada-es-m1", None, None, (Cluster, "m1")),
            ("karmada-es-m1", None, Some(Cluster), (Cluster, "m1")),
            ("fleet-member-m1", None, None, (MemberCluster, "m1")),
            ("karmada-es-m1", Some("m2"), None, (Cluster, "m2")),
            (
                "elsewhere",
                Some("m2"),
                Some(MemberCluster),
                (MemberCluster, "m2"),
            ),
        ] {
            let (kind, name) = identified(namespace, name, kind).unwrap();
            assert_eq!((kind, &*name), expected, "{namespace}");
        }
        for (namespace, kind, part) in [
            ("karmada-system", None, "an account in karmada-system"),
            ("karmada-es-", None, "--cluster-name"),
            ("karmada-es-m1", Some(MemberCluster), "--cluster-kind"),
        ] {
            let error = identified(namespace, None, kind).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_clusters_name_is_a_label_of_at_most_48_characters() {
        let long = "a".repeat(48);
        for good in ["member1", "1", "a-b", &long] {
            assert_eq!(cluster_name(good), Ok(good.to_owned()));
        }
        let too_long = "a".repeat(49);
        for bad in ["", "-a", "a-", "Member", "a.b", "a/b", "ä", &too_long] {
            assert!(cluster_name(bad).is_err(), "{bad}");
        }
    }
}
