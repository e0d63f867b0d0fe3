//! Field managers: `metadata.managedFields`, and the server-side apply that is based on it.
//!
//! A `writer` makes a change. Whatever it is, [`record()`] compares the object before and after it, and gives each
//! field that differs to the writer; an [`apply()`] says beforehand which fields it wants, and meets a conflict where
//! one of them belongs to somebody else. Both work on the list of an object's `fields`, each `entry` of which is
//! the fields of one manager.
//!
//! The rules are those of `k8s.io/apimachinery/pkg/util/managedfields`, except that all managers
//! are assumed to use the current version of the object.

mod apply;
mod entry;
mod fields;
mod record;
mod writer;

pub(super) use self::apply::apply;
pub(crate) use self::record::record;
pub(crate) use self::writer::{Writer, manager_of};
