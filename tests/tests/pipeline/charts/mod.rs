//! The Helm charts: they render the same objects as the kustomizations, an API server admits them, and no value is without
//! effect. `cargo xtask charts` runs these.
//!
//! - `rendering` runs helm and kustomize, and compares their output; `scenarios` has the values and the manifests that are
//!   to be alike. `values` finds the values in a chart's schema.

mod rendering;
mod scenarios;
mod values;
mod with_tools;
