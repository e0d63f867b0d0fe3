//! The findings of a check, one line each.

use std::fmt;

use anstyle::{AnsiColor, Style};

/// The findings about one subject.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    verdict: Verdict,
    text: String,
    /// A hint at the next step.
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Doubtful,
    Bad,
}

impl Finding {
    pub(super) fn good(text: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Good,
            text: text.into(),
            hint: None,
        }
    }

    pub(super) fn doubtful(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Doubtful,
            text: text.into(),
            hint: Some(hint.into()),
        }
    }

    pub(super) fn bad(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Bad,
            text: text.into(),
            hint: Some(hint.into()),
        }
    }
}

impl Section {
    /// Returns `true` if something is wrong.
    pub(super) fn fails(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.verdict == Verdict::Bad)
    }
}

impl Verdict {
    fn mark(self) -> char {
        match self {
            Self::Good => '✓',
            Self::Doubtful => '‼',
            Self::Bad => '×',
        }
    }

    fn style(self) -> Style {
        let colour = match self {
            Self::Good => AnsiColor::Green,
            Self::Doubtful => AnsiColor::Yellow,
            Self::Bad => AnsiColor::Red,
        };
        colour.on_default()
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for finding in &self.findings {
            finding.fmt(f)?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verdict,
            text,
            hint,
        } = self;
        let (style, mark) = (verdict.style(), verdict.mark());
        writeln!(f, "{style}{mark}{style:#} {text}")?;
        match hint {
            Some(hint) => writeln!(f, "    {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A finding is a line with a mark and a bad one fails its section.
    #[test]
    fn bad_finding_fails_section() {
        let mut section = Section {
            title: "rights",
            findings: vec![Finding::good("read"), Finding::doubtful("write", "ask")],
        };
        assert!(!section.fails());
        section.findings.push(Finding::bad("list", "ask"));
        assert!(section.fails());
        let shown = anstream::adapter::strip_str(&section.to_string()).to_string();
        assert_eq!(
            shown,
            "rights\n✓ read\n‼ write\n    ask\n× list\n    ask\n\n"
        );
    }
}
