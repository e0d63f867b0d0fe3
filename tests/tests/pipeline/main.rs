//! The pipeline's tests. All of them are one binary, so that libtest runs tests of every module
//! side by side.

mod admission;
mod api;
mod brakes;
mod clusters;
mod conformance;
mod control_plane;
mod fleet_wide;
mod gateway;
mod image;
mod ingresses;
mod install;
mod karmada_address;
mod kubectl;
mod leadership;
mod manifests;
mod namespaces;
mod node_cache;
mod outage;
mod page;
mod placement;
mod policies;
mod propagation;
mod quorum;
mod real_parts;
mod remedies;
mod rights;
mod sandbox;
mod sequences;
mod writes;
