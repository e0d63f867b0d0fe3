//! Tables in Markdown.

/// Returns `text` as the cell of a table in Markdown: no part of it ends the cell, or counts as HTML.
pub(crate) fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ").replace('|', "\\|");
    // Every second part is code between backticks, which is shown as it is.
    let parts = line.split('`').enumerate().map(|(nth, part)| {
        if nth % 2 == 0 {
            part.replace('<', "\\<")
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("`")
}
