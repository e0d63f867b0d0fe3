//! The kinds of objects: built-in ones, and those of `CustomResourceDefinition`s.
//!
//! `kind` has the names of a kind and the rules for its objects; `builtin` lists those that are always served, and
//! `custom` makes those that a definition describes. The `registry` finds a kind by the path of a request.
//!
//! Beyond schemas, `rules` refuses objects, `warnings` lets them pass with a word, and `builtin` fills in
//! its defaults. `services` gives Services their addresses, `events` converts Events between their two groups,
//! `selectable` reads the fields by which objects are selected, and `text` edits their stored text without parsing
//! it.

mod builtin;
mod custom;
mod events;
mod kind;
mod registry;
mod rules;
mod selectable;
mod services;
mod text;
mod warnings;

pub(crate) use self::builtin::complete;
pub(crate) use self::custom::{Definition, INSTANCES_FINALIZER, establish};
#[cfg(test)]
pub(crate) use self::kind::Storage;
pub(crate) use self::kind::{CollectionId, Column, DEFINITIONS, Kind, Selectable};
pub(crate) use self::registry::Registry;
pub(crate) use self::rules::{validate, validate_change};
pub(crate) use self::services::{ClusterIps, assign_cluster_ip, refuse_node_ports};
pub(crate) use self::text::with_types_first;
pub(crate) use self::warnings::warnings;
