//! The propagation: whether every policy selects something, and that is where it is to be.

use super::report::{Finding, Section};
use crate::propagation::{Remark, Survey};

/// The number of remarks of one sort that are shown.
const SHOWN: usize = 5;

/// Checks policies, their templates, and bindings; `None` if the API serves no policies.
pub(super) fn section(survey: Option<Survey>) -> Section {
    Section {
        title: "Propagation",
        findings: survey.map_or_else(
            || vec![Finding::good("the API serves no policies")],
            findings,
        ),
    }
}

fn findings(survey: Survey) -> Vec<Finding> {
    let (policies, bindings) = survey.counts();
    if policies == 0 && bindings == 0 {
        return vec![Finding::good("there are no policies")];
    }
    let sorts = [
        (
            survey.policies(),
            format!("every one of {policies} policies selects something"),
        ),
        (
            survey.kinds(),
            "every kind that they select may be propagated".to_owned(),
        ),
        (
            survey.without_policy(),
            "every object of these kinds is propagated".to_owned(),
        ),
        (
            survey.bindings(),
            format!("every one of {bindings} bindings is scheduled, and applied where it is"),
        ),
    ];
    let findings = sorts.into_iter();
    findings
        .flat_map(|(remarks, well)| shown(remarks, well))
        .collect()
}

/// Returns remarks of one sort, the wrong ones first, or that all is `well`.
fn shown(mut remarks: Vec<Remark>, well: String) -> Vec<Finding> {
    if remarks.is_empty() {
        return vec![Finding::good(well)];
    }
    remarks.sort_by_key(|remark| !remark.is_wrong);
    let rest = remarks.split_off(remarks.len().min(SHOWN));
    let mut findings: Vec<_> = remarks.into_iter().map(finding).collect();
    if let Some(next) = rest.first() {
        let more = Remark {
            text: format!("… and {} more of these", rest.len()),
            ..next.clone()
        };
        findings.push(finding(more));
    }
    findings
}

fn finding(remark: Remark) -> Finding {
    if remark.is_wrong {
        Finding::bad(remark.text, remark.next)
    } else {
        Finding::doubtful(remark.text, remark.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(name: &str, is_wrong: bool) -> Remark {
        Remark {
            text: name.to_owned(),
            next: format!("kubectl get {name}"),
            is_wrong,
        }
    }

    /// Of many remarks the wrong ones are shown, and the others are counted.
    #[test]
    fn wrong_remarks_come_first() {
        let mut remarks: Vec<_> = (0..8).map(|i| remark(&format!("idle{i}"), false)).collect();
        remarks.push(remark("broken", true));
        let findings = shown(remarks, "well".to_owned());
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        let lines = lines
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string());
        let lines: Vec<String> = lines
            .map(|line| line.lines().next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(
            lines,
            [
                "× broken",
                "‼ idle0",
                "‼ idle1",
                "‼ idle2",
                "‼ idle3",
                "‼ … and 4 more of these"
            ]
        );
        assert_eq!(
            shown(Vec::new(), "well".to_owned()),
            [Finding::good("well")]
        );
    }
}
