//! The pipeline's tests. All of them are one binary, so that libtest runs tests of every module side by
//! side, and each in a network namespace of its own.
//!
//! - Stored objects: `api`, `policies`, `admission`, `control_plane`, `conformance`.
//! - A verdict and its agents: `leadership`, `karmada_address`, `node_cache`, `outage`, `resolvers`, `reachability`.
//! - From a verdict to traffic: `remedies`, `gateway`, `gateway_api`, `http_routes`, `external_dns`, `east_west`, `load`, `drain`, `brakes`, `writes`.
//! - A workload and its clusters: `propagation`, `placement`, `clusters`, `pull`; and as KubeFleet places it: `placements`.
//! - Installation and commands: `install`, `manifests`, `charts`, `image`, `rights`, `confinement`, `kubectl`; and secrets, which nobody reads: `secrecy`.
//! - Alerts: `monitoring`; and whether they fire, and their runbooks help: `drills`.
//! - The sandbox: `sandbox`; in a browser, in a binary of its own: `page`.
//! - Faults that every program survives: `late_watches`.
//! - The laboratory itself: `namespaces`, `real_parts`, `sequences`.

mod admission;
mod api;
mod brakes;
mod charts;
mod clusters;
mod confinement;
mod conformance;
mod control_plane;
mod drain;
mod drills;
mod east_west;
mod external_dns;
mod gateway;
mod gateway_api;
mod http_routes;
mod image;
mod install;
mod karmada_address;
mod kubectl;
mod late_watches;
mod leadership;
mod load;
mod manifests;
mod monitoring;
mod namespaces;
mod node_cache;
mod outage;
mod placement;
mod placements;
mod policies;
mod propagation;
mod pull;
mod reachability;
mod real_parts;
mod remedies;
mod resolvers;
mod rights;
mod sandbox;
mod scheduling;
mod secrecy;
mod sequences;
mod service_network;
mod signals;
mod soak;
mod writes;
