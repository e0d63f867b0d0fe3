//! The names by which this program is known.

use karmada_runtime::program;

/// The program's name.
pub const NAME: &str = "cluster-health-agent";

/// The names by which users know the program.
pub const IDENTITY: program::Identity = program::Identity {
    name: NAME,
    product: "karmada",
    lease_namespace: "karmada-system",
};
