//! The metrics of this program.

use karmada_runtime::metrics::Registry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// The members that were reached; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reachable(Family<MemberLabels, Gauge>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MemberLabels {
    member: String,
}

impl Reachable {
    /// Registers `member_reachable{member}`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self(registry.register(
            "member_reachable",
            "1 for a member that was reached when it was tried last, 0 for one that was not",
            Family::default(),
        ))
    }

    /// Notes whether a member was reached.
    pub(crate) fn note(&self, member: &str, reached: bool) {
        let labels = MemberLabels {
            member: member.to_owned(),
        };
        self.0.get_or_create(&labels).set(i64::from(reached));
    }

    /// Forgets a member.
    pub(crate) fn forget(&self, member: &str) {
        let labels = MemberLabels {
            member: member.to_owned(),
        };
        self.0.remove(&labels);
    }
}
