//! The needs of the developer's commands and the tests, and how the machine gets them. It compiles
//! in seconds, so that `cargo xtask` starts soon.
//!
//! - [`Tool`] is a third-party program: its name, its version and the file in which it is found.
//! - [`build`] makes the missing ones with Go, from the `go.mod` files beside this crate.
//! - [`definitions`] of others' kinds come from their Go modules.
//! - [`cargo`] runs cargo in this workspace and finds the results.
//! - [`resolvers`] builds programs that look names up as pods do.
//! - [`namespaces`], [`chromium`] and [`haproxy`] say whether the machine has the rest, and how to get it.

pub mod cargo;
pub mod chromium;
pub mod definitions;
pub mod haproxy;
pub mod namespaces;
pub mod resolvers;

mod go;
mod tool;

pub use self::go::build;
pub use self::tool::{Tool, ToolsError, cache};

/// Returns the end of a text of many lines.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn short_text_stays_whole() {
        assert_eq!(last_lines("a\nb\n", 3), "a\nb");
        assert_eq!(last_lines("a\nb\nc\nd\n", 2), "c\nd");
        assert_eq!(last_lines("", 2), "");
    }
}
