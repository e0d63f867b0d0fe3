//! Tables in Markdown.

/// Returns `text` as the cell of a table in Markdown.
pub(crate) fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}
