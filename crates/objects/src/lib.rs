//! What is true of any Kubernetes object, whoever owns it. Pure: no client, no clock, no kind of anybody's.
//!
//! - Who it is: [`Key`] and [`GroupVersionKind`], [`qualified_name`].
//! - Who wrote it: [`last_writer`].
//! - Its values: [`quantity`], and [`amounts`] of several resources.
//! - Who refers to whom: [`reverse_index`].

pub mod amounts;
mod key;
pub mod last_writer;
pub mod qualified_name;
pub mod quantity;
pub mod reverse_index;

pub use key::{GroupVersionKind, Key};
