//! The finalizer of a Work, where Karmada's rights allow no patch.

use karmada_api::Work;
use karmada_api::names::WORK_FINALIZER;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client};

/// Removes our finalizer from a Work that was read as `known`. Karmada grants its agents no patch of Works.
pub(crate) async fn replace(client: &Client, known: &Work) -> kube::Result<()> {
    let namespace = known.metadata.namespace.as_deref().unwrap_or_default();
    let kind = ApiResource::erase::<Work>(&());
    // With all its fields, those that we do not know among them.
    let works: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let name = known.metadata.name.as_deref().unwrap_or_default();
    let mut work = works.get(name).await?;
    if work.metadata.uid == known.metadata.uid
        && let Some(finalizers) = &mut work.metadata.finalizers
    {
        finalizers.retain(|name| name != WORK_FINALIZER);
        let parameters = PostParams::default();
        works.replace(name, &parameters, &work).await?;
    }
    Ok(())
}
