//! The names of the program.

use karmada_runtime::program::Identity;

/// The program's name.
pub const NAME: &str = "placement-agent";

/// The names by which users know the program.
pub const IDENTITY: Identity = Identity {
    name: NAME,
    product: "karmada",
    // That of KubeFleet's programs, which a member has.
    lease_namespace: "fleet-system",
};
