//! What is true of any Kubernetes object, whoever owns it. Pure: no client, no clock, no kind of anybody's.
//!
//! - Who it is: [`Key`] and [`GroupVersionKind`], [`qualified_name`].
//! - What its metadata say: [`Metadata`]; what selects it: [`selector`].
//! - What its status says: [`condition`], and [`health`] for the kinds that Kubernetes itself has.
//! - How the fields that others write are read: [`lenient`].
//! - How it is changed: [`patch`].
//! - Who wrote it: [`last_writer`], [`managed_fields`]; whose it is: [`ownership`].
//! - What differs from its manifest: [`drift`]; what it keeps when that is written: [`retain`].
//! - Its values: [`quantity`], and [`amounts`] of several resources.
//! - Who refers to whom: [`reverse_index`].

pub mod amounts;
pub mod condition;
pub mod drift;
pub mod health;
mod key;
mod kind;
pub mod last_writer;
pub mod lenient;
pub mod managed_fields;
pub mod metadata;
pub mod ownership;
pub mod patch;
pub mod qualified_name;
pub mod quantity;
pub mod retain;
pub mod reverse_index;
pub mod selector;

pub use key::Key;
pub use kind::{GroupVersionKind, api_version, group_kind, kind};
pub use metadata::Metadata;
