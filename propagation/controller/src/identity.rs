//! The names of the program.

use karmada_runtime::program::Identity;

/// The program's name.
pub const NAME: &str = "propagation-controller";

/// The names by which users know the program.
pub const IDENTITY: Identity = Identity {
    name: NAME,
    product: "karmada",
    lease_namespace: "karmada-system",
};
