//! The metrics of templates.

use std::collections::BTreeSet;

use karmada_runtime::metrics::Registry;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;

use crate::index::TemplateKey;

/// Templates in a state that a gauge counts.
#[derive(Debug, Default)]
pub(crate) struct CountedTemplates {
    templates: Mutex<BTreeSet<TemplateKey>>,
    count: Gauge,
}

impl CountedTemplates {
    /// Counts the templates of kinds that nobody interprets who can be asked.
    pub(crate) fn uninterpreted(registry: &mut Registry) -> Self {
        let help = "Templates that a policy selects and that are left alone, because a script that interprets their kind cannot be read";
        Self::register(registry, "uninterpreted_templates", help)
    }

    /// Counts the templates that no binding can be named after.
    pub(crate) fn unnamed(registry: &mut Registry) -> Self {
        let help = "Templates that are not propagated, because the names that their binding may have are those of other bindings";
        Self::register(registry, "unnamed_templates", help)
    }

    /// Registers the gauge.
    pub(crate) fn register(registry: &mut Registry, name: &str, help: &str) -> Self {
        Self {
            templates: Mutex::default(),
            count: registry.register(name, help, Gauge::default()),
        }
    }

    /// Notes whether a template is in that state.
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
