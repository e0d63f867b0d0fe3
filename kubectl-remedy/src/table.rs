//! Tables as kubectl prints them.

use std::fmt;

/// The space between two columns.
const GAP: usize = 3;

/// Rows of cells under their titles, which are the first row.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these titles.
    pub(crate) fn new<'a>(titles: impl IntoIterator<Item = &'a str>) -> Self {
        let titles = titles.into_iter().map(ToOwned::to_owned);
        Self {
            rows: vec![titles.collect()],
        }
    }

    /// Appends a row. An empty cell is shown as `<none>`.
    pub(crate) fn push(&mut self, mut cells: Vec<String>) {
        for cell in &mut cells {
            if cell.is_empty() {
                cell.push_str("<none>");
            }
        }
        self.rows.push(cells);
    }

    /// Returns `true` if it has no row but the titles.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Returns the width of each column.
    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(row.len().max(widths.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| {
                let width = width + GAP;
                format!("{cell:width$}")
            });
            writeln!(f, "{}", cells.collect::<String>().trim_end())?;
        }
        Ok(())
    }
}

/// Returns `values` in one line; empty if there are none.
pub(crate) fn listed(values: &[impl ToString]) -> String {
    let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns are as wide as their widest cell and lines end with their last.
    #[test]
    fn columns_fit_widest_cell() {
        let mut table = Table::new(["NAME", "ACTIONS"]);
        assert!(table.is_empty());
        table.push(vec!["member1".to_owned(), String::new()]);
        assert_eq!(table.to_string(), "NAME      ACTIONS\nmember1   <none>\n");
        assert!(!table.is_empty());
    }
}
