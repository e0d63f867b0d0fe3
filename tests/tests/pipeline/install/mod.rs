//! Installation and removal as docs/install.md and docs/uninstall.md describe them, with the real kubectl.

pub(crate) mod page;
pub(crate) mod renewal;
pub(crate) mod snapshot;
mod with_tools;
