//! The reports of the copies of a template from their members.

use serde_json::{Map, Value};

use super::reflect::number;

/// The reported state of a template's copy in one member.
#[derive(Clone, Copy, Debug)]
pub struct MemberStatus<'a> {
    /// The cluster.
    pub cluster: &'a str,
    /// Its status as [`reflect`](fn@super::reflect) returned it, if there is one yet.
    pub status: Option<&'a Value>,
    /// The generation of the template from which its manifest was made last.
    pub manifest_generation: i64,
}

/// Returns `true` if a member's controller has seen the newest manifest.
pub(super) fn is_observed(member: &MemberStatus<'_>) -> bool {
    number(member.status, "resourceTemplateGeneration") >= member.manifest_generation
        && number(member.status, "observedGeneration") >= number(member.status, "generation")
        && member.status.is_some()
}

pub(super) fn statuses<'a>(members: &[MemberStatus<'a>]) -> impl Iterator<Item = &'a Value> {
    members.iter().filter_map(|member| member.status)
}

pub(super) fn sums(members: &[MemberStatus<'_>], names: &[&str]) -> Map<String, Value> {
    let mut sums = Map::new();
    for name in names {
        let numbers = statuses(members).map(|status| number(Some(status), name));
        let sum = numbers.fold(0_i64, i64::saturating_add);
        sums.insert((*name).to_owned(), sum.into());
    }
    sums
}

pub(super) fn text<'a>(part: &'a Value, name: &str) -> Option<&'a str> {
    part.get(name).and_then(Value::as_str)
}

/// Returns the smallest of the times; RFC 3339 in UTC without fractions sorts as text.
pub(super) fn earliest<'a>(members: &[MemberStatus<'a>], name: &str) -> Option<&'a str> {
    times(members, name).min()
}

pub(super) fn latest<'a>(members: &[MemberStatus<'a>], name: &str) -> Option<&'a str> {
    times(members, name).max()
}

fn times<'a>(members: &[MemberStatus<'a>], name: &str) -> impl Iterator<Item = &'a str> {
    let times = statuses(members).filter_map(move |status| text(status, name));
    times.filter(|time| !time.is_empty())
}
