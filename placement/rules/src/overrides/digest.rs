//! The sum of the overrides in a cluster, by its labels.

use fleet_api::MemberCluster;
use objects::Metadata;

use super::snapshot::SnapshotView;
use super::variables::labels;
use crate::hash::of_rules;

/// Returns the digest of the effect of overrides in a cluster, or `None` without any: it is another one once other rules
/// are for the cluster, or a label that they name has another value. A binding names its overrides, and not these.
pub(crate) fn digest<'a>(
    overrides: impl IntoIterator<Item = &'a SnapshotView<'a>>,
    cluster: &MemberCluster,
) -> Option<String> {
    let overrides = overrides.into_iter().map(|one| {
        let rules = one.rules(cluster).map(|(place, rule)| {
            let values = rule.patches.iter().filter_map(|one| one.value.as_ref());
            let keys = values.flat_map(labels);
            let labels: Vec<_> = keys.map(|key| cluster.metadata.label(key)).collect();
            (place, labels)
        });
        // The hash, for a name may be used again.
        (one.hash(), rules.collect::<Vec<_>>())
    });
    let overrides: Vec<_> = overrides.collect();
    if overrides.is_empty() {
        return None;
    }
    of_rules(&overrides).ok()
}
