//! The notices of other clients that undo our writes.

use std::sync::Arc;

use karmada_api::Work;
use karmada_runtime::commit::{Notices, Obstacle};
use objects::write::Write;

use crate::events::Events;
use crate::reason::Reason;

/// Returns the notices of writes that another client undoes, on all objects that these are about.
pub(crate) fn notices(events: Arc<Events>) -> Notices {
    Box::new(move |write, obstacle| {
        let Obstacle::Contested(manager) = obstacle else {
            return;
        };
        let reason = if is_of_work(write) {
            Reason::WorkContested
        } else {
            Reason::BindingContested
        };
        let what = named(write);
        let note = format!(
            "{manager} undoes every write to {what}; this controller writes again after growing pauses, up to 5 minutes"
        );
        for object in &write.about {
            events.warning(object.clone(), reason, note.clone());
        }
    })
}

fn is_of_work(write: &Write) -> bool {
    write.object.resource.kind == Work::KIND
}

/// Returns the name of a write in Events, with its fields.
fn named(write: &Write) -> String {
    let kind = if is_of_work(write) { "work" } else { "binding" };
    let key = &write.object.key;
    let fields = write.wanted.iter().flat_map(|wanted| &wanted.paths);
    let fields = fields.map(|field| {
        let dotted = field.trim_start_matches('/').replace('/', ".");
        dotted.replace("~1", "/").replace("~0", "~")
    });
    let fields: Vec<_> = fields.collect();
    if fields.is_empty() {
        return format!("{kind}({key})");
    }
    format!("{} of {kind}({key})", fields.join(", "))
}
