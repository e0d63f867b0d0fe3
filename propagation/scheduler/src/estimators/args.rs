//! The flags of estimators.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use karmada_api::ClusterView;
use karmada_runtime::args::duration;

/// The flags of estimators.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct EstimatorArgs {
    /// Ask the estimator of each cluster, too, for how many replicas it has room.
    #[arg(long, env = "KARMADA_ENABLE_SCHEDULER_ESTIMATOR", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) enable_scheduler_estimator: bool,
    /// Do not ask the estimators of clusters of mode Pull.
    #[arg(long, env = "KARMADA_DISABLE_SCHEDULER_ESTIMATOR_IN_PULL_MODE", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    disable_scheduler_estimator_in_pull_mode: bool,
    /// Time that an estimator has to answer, and to be connected to before.
    #[arg(long, env = "KARMADA_SCHEDULER_ESTIMATOR_TIMEOUT", default_value = "3s", value_name = "DURATION", value_parser = duration)]
    scheduler_estimator_timeout: Duration,
    /// Namespace of the estimators' Services.
    #[arg(
        long,
        env = "KARMADA_SCHEDULER_ESTIMATOR_SERVICE_NAMESPACE",
        default_value = "karmada-system",
        value_name = "NAMESPACE"
    )]
    pub(super) scheduler_estimator_service_namespace: String,
    /// Prefix of the names of the estimators' Services, before `-` and the name of the cluster.
    #[arg(
        long,
        env = "KARMADA_SCHEDULER_ESTIMATOR_SERVICE_PREFIX",
        default_value = "karmada-scheduler-estimator",
        value_name = "PREFIX"
    )]
    pub(super) scheduler_estimator_service_prefix: String,
    /// Port of the estimators' Services.
    #[arg(
        long,
        env = "KARMADA_SCHEDULER_ESTIMATOR_PORT",
        default_value_t = 10352,
        value_name = "PORT"
    )]
    pub(super) scheduler_estimator_port: u16,
    /// Certificate that estimators are shown. It is read at each connection.
    #[arg(
        long,
        env = "KARMADA_SCHEDULER_ESTIMATOR_CERT_FILE",
        value_name = "PATH",
        requires = "scheduler_estimator_key_file"
    )]
    pub(super) scheduler_estimator_cert_file: Option<PathBuf>,
    /// Private key of that certificate.
    #[arg(
        long,
        env = "KARMADA_SCHEDULER_ESTIMATOR_KEY_FILE",
        value_name = "PATH",
        requires = "scheduler_estimator_cert_file"
    )]
    pub(super) scheduler_estimator_key_file: Option<PathBuf>,
    /// Certificates of the authorities by which estimators are verified. Without, and without --insecure-skip-estimator-verify, they are asked in plaintext.
    #[arg(long, env = "KARMADA_SCHEDULER_ESTIMATOR_CA_FILE", value_name = "PATH")]
    pub(super) scheduler_estimator_ca_file: Option<PathBuf>,
    /// Use TLS and do not verify estimators.
    #[arg(long, env = "KARMADA_INSECURE_SKIP_ESTIMATOR_VERIFY", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(super) insecure_skip_estimator_verify: bool,
}

impl EstimatorArgs {
    /// Returns `true` if the estimator of the cluster is to be asked.
    pub(super) fn asks(&self, cluster: &ClusterView) -> bool {
        !(self.disable_scheduler_estimator_in_pull_mode && cluster.spec.sync_mode == "Pull")
    }

    pub(super) fn timeout(&self) -> Duration {
        self.scheduler_estimator_timeout
    }
}
