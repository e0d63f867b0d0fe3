//! Installation and removal as docs/install.md describes them, with the real kubectl.

mod page;
mod snapshot;
mod with_tools;
