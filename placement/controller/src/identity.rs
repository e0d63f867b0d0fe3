//! The names of the program.

use karmada_runtime::program::Identity;

/// The program's name.
pub const NAME: &str = "placement-controller";

/// The namespace of the lease, and of the profiles of clusters on the hub.
pub(crate) const NAMESPACE: &str = "fleet-system";

/// The names by which users know the program.
pub const IDENTITY: Identity = Identity {
    name: NAME,
    product: "karmada",
    // That of KubeFleet's programs, which a hub has.
    lease_namespace: NAMESPACE,
};
