//! The rules that hold for any Kubernetes object, whoever owns it. Pure: no client, no clock, no kind of anybody's.
//!
//! An object is read, compared with the wish of its owner, and patched; each step has its files here, and an owner
//! adds only the ownership and the wish:
//!
//! - Who is it? [`Key`] and [`GroupVersionKind`]; [`qualified_name`] checks the parts of names.
//! - How are its metadata read? [`Metadata`], of a typed object and of JSON alike. Is it selected? [`selector`].
//! - How is its status read? [`condition`]; [`health`] for the kinds that Kubernetes itself has. Is that news? [`message`].
//! - How is a field read that others write? [`lenient`]. How is a mistake in a text told? [`Mistake`].
//! - Who wrote a field? [`last_writer`], [`managed_fields`]. Whose is the object, and which form is it to have? [`ownership`].
//! - Does it differ from its manifest? [`drift`]; where, [`difference`], [`comparison`]. Which fields does it keep when that is applied? [`retain`]. And when it is
//!   replaced? [`replacement`]. Which values is another cluster to fill in itself? [`allocated`].
//! - How is it changed, and not if it has changed meanwhile? [`patch`]. Was the same written before? [`wanted`]. How is a
//!   write decided? [`write`](mod@write). How is it sent as YAML? [`yaml`]. Which [`digest`] has it?
//! - Is it kept away, or driven out? [`taint`], and for a condition, [`condition_taint`]. Does who holds a [`lease`] live?
//! - Which addresses may it have? [`ip`].
//! - How much does it need? [`quantity`], and [`amounts`] of several resources. How much of a cluster is in use? [`usage`].
//! - Which kinds does a flag name? [`apis`]. Which rights does an object of RBAC grant? [`grant`].
//! - Who refers to whom? [`reverse_index`].
//! - How is a kind declared as a type? [`resource`], and for the API with its [`schema`].

pub mod allocated;
pub mod amounts;
pub mod apis;
pub mod comparison;
pub mod condition;
pub mod condition_taint;
pub mod difference;
pub mod digest;
pub mod drift;
pub mod fields;
pub mod grant;
pub mod health;
pub mod ip;
mod key;
mod kind;
pub mod last_writer;
pub mod lease;
pub mod lenient;
pub mod managed_fields;
pub mod message;
pub mod metadata;
mod mistake;
pub mod ownership;
pub mod patch;
pub mod qualified_name;
pub mod quantity;
pub mod replacement;
pub mod resource;
pub mod retain;
pub mod reverse_index;
pub mod schema;
pub mod selector;
pub mod taint;
pub mod usage;
pub mod wanted;
pub mod write;
pub mod yaml;

pub use key::Key;
pub use kind::{GroupVersionKind, api_version, group, group_kind, kind};
pub use metadata::Metadata;
pub use mistake::Mistake;
pub use resource::Scope;
