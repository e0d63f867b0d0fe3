//! The finalizer of a Work, where Karmada's rights allow no patch.

use karmada_api::Work;
use karmada_api::names::WORK_FINALIZER;
use kube::api::DynamicObject;
use kube::{Api, Client};
use objects::write::{Guard, ObjectRef, Write};
use serde_json::json;

/// Returns the write that removes our finalizer from a Work that was read as `known`; `None` if it is gone. Karmada grants
/// its agents no patch of Works.
pub(crate) async fn replacement(
    target: &'static str,
    client: &Client,
    known: &Work,
) -> kube::Result<Option<Write>> {
    let ObjectRef {
        resource, key, uid, ..
    } = ObjectRef::of(known, &());
    // With all its fields, those that we do not know among them.
    let works: Api<DynamicObject> = Api::namespaced_with(client.clone(), &key.namespace, &resource);
    let found = works.get_opt(&key.name).await?;
    let Some(mut work) = found.filter(|found| found.metadata.uid == uid) else {
        return Ok(None);
    };
    if let Some(finalizers) = &mut work.metadata.finalizers {
        finalizers.retain(|name| name != WORK_FINALIZER);
    }
    let write = Write::replace(target, ObjectRef::of(&work, &resource), json!(work));
    Ok(Some(write.guarded(Guard::Version)))
}
