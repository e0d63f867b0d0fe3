//! The flags for the API of the member cluster.

use std::path::PathBuf;

use karmada_runtime::client::{self, ClientError, Source};
use karmada_runtime::program::Program;

/// The flags for the API of the member cluster.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Member cluster")]
pub(super) struct MemberArgs {
    /// Kubeconfig of the member cluster [default: in a pod, its service account; otherwise none].
    #[arg(long, env = "KARMADA_MEMBER_KUBECONFIG", value_name = "PATH")]
    member_kubeconfig: Option<PathBuf>,
    /// Write this node's vote to a condition of its Node object whenever the vote changes.
    #[arg(long, env = "KARMADA_NODE_CONDITION")]
    pub(super) node_condition: bool,
}

/// The credentials for the API of the member cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// A kubeconfig.
    Kubeconfig(PathBuf),
    /// The pod's service account.
    Pod,
}

impl MemberArgs {
    /// Returns the credentials for the member cluster, if there are any.
    pub(super) fn api(&self, in_pod: bool) -> Option<Member> {
        match &self.member_kubeconfig {
            Some(path) => Some(Member::Kubeconfig(path.clone())),
            None => in_pod.then_some(Member::Pod),
        }
    }
}

impl Member {
    /// Creates a client. It sends nothing yet.
    pub(crate) async fn connect(&self, program: &mut Program) -> Result<kube::Client, ClientError> {
        match self {
            Self::Kubeconfig(path) => {
                let source = Source {
                    kubeconfig: Some(path.clone()),
                    ..Source::default()
                };
                program.connect("member", &source).await
            }
            Self::Pod => client::connect_as_pod(crate::identity::NAME),
        }
    }
}
