//! Access to the API of the member cluster, and what is written there.

use std::path::PathBuf;

use karmada_runtime::client::{self, Source};

/// Access to the API of the member cluster.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Member cluster")]
pub(super) struct MemberArgs {
    /// Kubeconfig of the member cluster; without it the pod's own service account, if this is a pod.
    #[arg(long, env = "KARMADA_MEMBER_KUBECONFIG", value_name = "PATH")]
    member_kubeconfig: Option<PathBuf>,
    /// Write this node's vote as a condition of its Node object, whenever the vote changes.
    #[arg(long, env = "KARMADA_NODE_CONDITION")]
    pub(super) node_condition: bool,
}

/// How to reach the API of the member cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// As this kubeconfig says.
    Kubeconfig(PathBuf),
    /// With the pod's service account.
    Pod,
}

impl MemberArgs {
    /// The API of the member cluster, if there is a way to it. `in_pod`: whether this process runs in a
    /// pod.
    pub(super) fn api(&self, in_pod: bool) -> Option<Member> {
        match &self.member_kubeconfig {
            Some(path) => Some(Member::Kubeconfig(path.clone())),
            None => in_pod.then_some(Member::Pod),
        }
    }
}

impl Member {
    /// A client of it; nothing is sent yet.
    pub(crate) async fn connect(&self) -> Result<kube::Client, client::Error> {
        match self {
            Self::Kubeconfig(path) => {
                let source = Source {
                    kubeconfig: Some(path.clone()),
                    ..Source::default()
                };
                client::connect(&source, crate::NAME).await
            }
            Self::Pod => client::connect_as_pod(crate::NAME),
        }
    }
}
