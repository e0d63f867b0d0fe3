//! The real kubectl against the embedded server.

mod with_tools;
