//! Which tests run.

use clap::Args;

/// The tests of a run.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Run the tests that have one of these in their names, and build only their packages; without any, all tests
    pub(super) names: Vec<String>,
    /// Run the tests on real parts, too: kube-apiserver, etcd, kubectl, CoreDNS, ExternalDNS, Traefik, HAProxy, Helm, Prometheus, Chromium, Python
    #[arg(long)]
    pub(super) real: bool,
    /// Run the long tests, too, which wait for minutes; with `--real`, every story on real APIs
    #[arg(long)]
    pub(super) long: bool,
}
