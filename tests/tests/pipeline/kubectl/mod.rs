//! The real kubectl against both servers.

mod with_tools;
