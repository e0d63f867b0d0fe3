//! The rest of a drain, shown while somebody waits: a bar for each step on a terminal, lines elsewhere.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};

use crate::answer::Answer;
use crate::terminal;

/// The width of a bar.
const WIDTH: usize = 20;

/// The longest text behind a bar.
const LONGEST: usize = 60;

/// The rest of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// The step.
    pub(super) step: &'static str,
    /// The rest, each in words.
    pub(super) items: Vec<String>,
}

/// The steps as they were shown last.
#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    /// The most that was left of each step.
    totals: BTreeMap<&'static str, usize>,
    shown: Vec<String>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self::on(io::stderr().is_terminal())
    }

    fn on(is_terminal: bool) -> Self {
        Self {
            is_terminal,
            totals: BTreeMap::new(),
            shown: Vec::new(),
        }
    }

    /// Shows the rest, unless that is shown already.
    pub(super) fn show(&mut self, steps: &[Left]) {
        for line in self.next(steps) {
            terminal::print_error(&line);
        }
    }

    /// Lets the lines stand: something else was printed below.
    pub(super) fn restart(&mut self) {
        self.shown.clear();
    }

    /// Returns the lines that follow those which are shown.
    fn next(&mut self, steps: &[Left]) -> Vec<String> {
        let lines: Vec<String> = steps.iter().map(|left| self.line(left)).collect();
        let mut new: Vec<String> = if self.is_terminal && lines != self.shown {
            lines.clone()
        } else {
            let new = lines.iter().filter(|line| !self.shown.contains(line));
            new.cloned().collect()
        };
        if self.is_terminal
            && !self.shown.is_empty()
            && let Some(first) = new.first_mut()
        {
            // In place of those that stand there.
            let rows = self.shown.len();
            first.insert_str(0, &format!("\x1b[{rows}A\x1b[J"));
        }
        self.shown = lines;
        new
    }

    fn line(&mut self, left: &Left) -> String {
        let Left { step, items } = left;
        let total = self.totals.entry(*step).or_default();
        *total = (*total).max(items.len());
        let (total, done) = (*total, *total - items.len());
        let holdup = items.first();
        let holdup = holdup.map_or_else(String::new, |item| format!("  {item}"));
        if self.is_terminal {
            let filled = (WIDTH * done).checked_div(total).unwrap_or(WIDTH);
            // A line that is broken would be two.
            let holdup: String = holdup.chars().take(LONGEST).collect();
            let bar = "#".repeat(filled) + &"-".repeat(WIDTH - filled);
            format!("{step:10} [{bar}] {done}/{total}{holdup}")
        } else {
            format!("{step}: {done} of {total} done{holdup}")
        }
    }
}

/// Prints the rest, if there is any.
pub(super) fn report(cluster: &str, left: &[Left]) -> Answer {
    let items: Vec<_> = left.iter().flat_map(|left| &left.items).collect();
    for item in &items {
        terminal::print_error(&format!("{cluster}: {item}"));
    }
    items.is_empty().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(items: &[&str]) -> [Left; 1] {
        let items = items.iter().map(|item| (*item).to_owned()).collect();
        [Left {
            step: "traffic",
            items,
        }]
    }

    /// On a terminal a bar takes the place of the former one; elsewhere each change is a line.
    #[test]
    fn change_is_shown_once() {
        let mut lines = Progress::on(false);
        assert_eq!(lines.next(&left(&["a", "b"])), ["traffic: 0 of 2 done  a"]);
        assert_eq!(lines.next(&left(&["a", "b"])), [""; 0]);
        assert_eq!(lines.next(&left(&[])), ["traffic: 2 of 2 done"]);

        let mut bars = Progress::on(true);
        let first = bars.next(&left(&["a", "b"]));
        assert_eq!(first, ["traffic    [--------------------] 0/2  a"]);
        assert_eq!(bars.next(&left(&["a", "b"])), [""; 0]);
        let second = bars.next(&left(&["b"]));
        assert_eq!(
            second,
            ["\x1b[1A\x1b[Jtraffic    [##########----------] 1/2  b"]
        );
        bars.restart();
        let third = bars.next(&left(&["b"]));
        assert_eq!(third, ["traffic    [##########----------] 1/2  b"]);
    }

    /// A step of which nothing was ever left is done.
    #[test]
    fn empty_step_is_done() {
        let line = Progress::on(true).next(&left(&[]));
        assert_eq!(line, ["traffic    [####################] 0/0"]);
    }
}
