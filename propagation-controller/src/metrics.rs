//! The metrics of templates.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::index::TemplateKey;

/// The templates that a policy selects and that are not propagated, because others interpret their kind.
#[derive(Debug, Default)]
pub(crate) struct Uninterpreted {
    templates: Mutex<BTreeSet<TemplateKey>>,
    count: Gauge,
}

impl Uninterpreted {
    /// Registers `uninterpreted_templates`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "uninterpreted_templates",
            "Templates that a policy selects and that are left alone, because a script or webhook interprets their kind",
            metrics.count.clone(),
        );
        metrics
    }

    /// Notes whether a template is one of them.
    pub(crate) fn note(&self, template: &TemplateKey, is_one: bool) {
        let mut templates = self.templates.lock();
        if is_one {
            templates.insert(template.clone());
        } else {
            templates.remove(template);
        }
        self.count
            .set(i64::try_from(templates.len()).unwrap_or(i64::MAX));
    }
}
