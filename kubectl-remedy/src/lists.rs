//! The objects of a kind, listed page by page.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use kube::api::{ListParams, ObjectList};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use traffic::ClusterKind;

use crate::error::Error;

/// The number of objects in a page of a list. A cluster may have 100 kB.
const PAGE: u32 = 500;

/// Returns the objects of one namespace, or of all.
pub(crate) fn scoped<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Selects the objects of this name, in any namespace.
pub(crate) fn by_name(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}

/// Reads the objects that `api` and `selected` cover.
pub(crate) async fn list<K>(api: Api<Decoded<K>>, selected: ListParams) -> Result<Store<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + Default + DeserializeOwned + Debug,
{
    list_mapped(api, &K::plural(&()), selected, |object| object).await
}

/// Reads the objects that `api` and `selected` cover, and keeps the result of `make` for each.
pub(crate) async fn list_mapped<S, K>(
    api: Api<Decoded<S>>,
    plural: &str,
    selected: ListParams,
    make: impl Fn(Decoded<S>) -> Decoded<K>,
) -> Result<Store<K>, Error>
where
    S: Resource + Clone + DeserializeOwned + Debug,
    K: Resource + Clone + Default,
{
    let mut store = Store::default();
    let read = list_each(&api, selected, |object| {
        drop(store.observe(Event::InitApply(make(object))));
    });
    let read = read.await;
    read.map_err(|source| Error::request(format!("list {plural}"), source))?;
    Ok(store)
}

/// Returns the result of a read; nothing on a hub that does not serve the objects.
pub(crate) async fn served<T: Default>(
    kind: ClusterKind,
    read: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match read.await {
        Err(Error::Request {
            source: kube::Error::Api(status),
            ..
        }) if kind == ClusterKind::MemberCluster && status.code == 404 => Ok(T::default()),
        read => read,
    }
}

/// Returns the objects that were read; `None` if the API does not have the kind.
///
/// # Errors
/// Fails if the API has it, and the user no right to it: there may be objects.
pub(crate) async fn if_served<K, T>(
    client: &Client,
    read: Result<T, Error>,
) -> Result<Option<T>, Error>
where
    K: Resource<DynamicType = ()>,
{
    match read {
        // An API says so of a kind that it does not have, too.
        Err(error) if is_unavailable(&error) => {
            if serves::<K>(client).await? {
                Err(error)
            } else {
                Ok(None)
            }
        }
        read => read.map(Some),
    }
}

/// Returns `true` if the API has the kind, which it tells everybody.
pub(crate) async fn serves<K>(client: &Client) -> Result<bool, Error>
where
    K: Resource<DynamicType = ()>,
{
    let version = K::api_version(&());
    match client.list_api_group_resources(&version).await {
        Ok(served) => {
            let mut served = served.resources.iter();
            Ok(served.any(|one| one.name == K::plural(&())))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(source) => Err(Error::request(
            format!("list the kinds of {version}"),
            source,
        )),
    }
}

/// Returns `true` if the API does not have the kind, or the user no right to it.
pub(crate) fn is_unavailable(error: &Error) -> bool {
    matches!(error, Error::Request { source: kube::Error::Api(status), .. } if [403, 404].contains(&status.code))
}

/// Lists the objects that `api` and `selected` cover, and passes each to `take`.
pub(crate) async fn list_each<K>(
    api: &Api<K>,
    selected: ListParams,
    take: impl FnMut(K),
) -> kube::Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    pages(selected, |page| async move { api.list(&page).await }, take).await
}

/// Lists the metadata of all objects of `api`, and passes each to `take`.
pub(crate) async fn list_each_metadata<K>(
    api: &Api<K>,
    take: impl FnMut(PartialObjectMeta<K>),
) -> kube::Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let all = ListParams::default();
    pages(
        all,
        |page| async move { api.list_metadata(&page).await },
        take,
    )
    .await
}

/// Requests a list page by page, and passes each object to `take`: the text of a page is let go before the next.
async fn pages<T, Page>(
    selected: ListParams,
    request: impl Fn(ListParams) -> Page,
    mut take: impl FnMut(T),
) -> kube::Result<()>
where
    T: Clone,
    // Named, unlike that of an `AsyncFn`, so that a server may run the whole on any of its threads.
    Page: Future<Output = kube::Result<ObjectList<T>>>,
{
    let mut page = selected.limit(PAGE);
    loop {
        let list = request(page.clone()).await?;
        list.items.into_iter().for_each(&mut take);
        match list.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => page = page.continue_token(&next),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use embedded_apiserver::ApiServer;
    use k8s_openapi::api::networking::v1::IngressClass;
    use kube::api::PostParams;
    use serde_json::{from_value, json};

    use super::*;

    /// A list of several pages is read whole.
    #[tokio::test]
    async fn every_page_is_read() {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let classes: Api<IngressClass> = Api::all(client.clone());
        let count = usize::try_from(2 * PAGE + 1).unwrap();
        for number in 0..count {
            let class = json!({ "metadata": { "name": format!("c{number}") } });
            let class = from_value(class).unwrap();
            classes
                .create(&PostParams::default(), &class)
                .await
                .unwrap();
        }
        let read: Store<IngressClass> =
            list(Api::all(client), ListParams::default()).await.unwrap();
        assert_eq!(read.iter().count(), count);
    }
}
