//! Objects of kinds that are known from manifests only: written where they differ, and deleted.

use karmada_runtime::error::Chain;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::core::TypeMeta;
use kube::{Api, Client};
use objects::Metadata;
use objects::drift::contains;
use objects::managed_fields::Managers;
use objects::write::{ObjectRef, Write};
use serde_json::Value;

use crate::args::DryRun;
use crate::error::Error;
use crate::identity::NAME;
use crate::send::{apply, send};

/// Our own writes.
const MANAGERS: Managers = Managers {
    ours: NAME,
    predecessors: &[],
};

/// A write, the lesser first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Written {
    Unchanged,
    Configured,
    Created,
}

/// Returns the error of a request about a cluster that attempted to do `attempt`.
#[expect(
    clippy::needless_pass_by_value,
    reason = "it is how `map_err` passes it"
)]
pub(crate) fn refused(attempt: impl AsRef<str>, source: kube::Error) -> Error {
    let hint = match &source {
        kube::Error::Api(status) if status.code == 403 => {
            "; docs/kubectl-remedy.md names the manifest with the rights"
        }
        _ => "",
    };
    let attempt = attempt.as_ref();
    Error::Unusable(format!("cannot {attempt}: {}{hint}", Chain(&source)))
}

/// Writes an object unless it is there as it should be, and returns it.
pub(crate) async fn write(client: &Client, wanted: &Value) -> Result<(Written, Value), Error> {
    let found = read(client, wanted).await?;
    if let Some(found) = found.as_ref().filter(|found| is_as(found, wanted)) {
        return Ok((Written::Unchanged, found.clone()));
    }
    let object = reference(wanted)?;
    let path = api(client, &object).resource_url().to_owned();
    let written: Value = apply(client, &path, &object.key.name, wanted, DryRun::None)
        .await
        .map_err(|source| refused(attempt("write", &object), source))?;
    let change = match found {
        Some(_) => Written::Configured,
        None => Written::Created,
    };
    Ok((change, written))
}

/// Writes objects in turn. Returns the most that was written, and the uid of each.
pub(crate) async fn write_all(
    client: &Client,
    objects: &[Value],
) -> Result<(Written, Vec<String>), Error> {
    let (mut most, mut uids) = (Written::Unchanged, Vec::new());
    for object in objects {
        let (written, object) = write(client, object).await?;
        most = most.max(written);
        let uid = object["metadata"]["uid"].as_str();
        uids.push(uid.unwrap_or_default().to_owned());
    }
    Ok((most, uids))
}

/// Reads the object of the kind and name of `wanted`.
pub(crate) async fn read(client: &Client, wanted: &Value) -> Result<Option<Value>, Error> {
    let object = reference(wanted)?;
    let found = api(client, &object).get_opt(&object.key.name).await;
    let found = found.map_err(|source| refused(attempt("get", &object), source))?;
    Ok(found.and_then(|found| serde_json::to_value(found).ok()))
}

/// Deletes the object of the kind and name of `object`. Returns `true` if it was there.
pub(crate) async fn delete(client: &Client, object: &Value) -> Result<bool, Error> {
    let write = Write::delete("object", reference(object)?);
    match send::<Value>(client, &write, DryRun::None).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(source) => Err(refused(attempt("delete", &write.object), source)),
    }
}

/// Returns `true` if an object has everything that is wanted, and nothing more of us.
fn is_as(found: &Value, wanted: &Value) -> bool {
    if found["kind"] == "Work" {
        return is_same_work(found, wanted);
    }
    contains(found, wanted, None) && !MANAGERS.own_more_than(found, wanted)
}

/// Returns `true` if a Work has the wanted manifests. Karmada's webhook adds labels and annotations to them, and nothing else.
fn is_same_work(found: &Value, wanted: &Value) -> bool {
    contains(found, wanted, None) && unmarked_manifests(found) == unmarked_manifests(wanted)
}

/// Returns the manifests of a Work without their labels and annotations.
fn unmarked_manifests(work: &Value) -> Vec<Value> {
    let manifests = work["spec"]["workload"]["manifests"].as_array();
    let mut manifests = manifests.cloned().unwrap_or_default();
    for manifest in &mut manifests {
        objects::fields::remove(manifest, "/metadata", &["labels", "annotations"]);
    }
    manifests
}

/// Returns the reference to an object.
fn reference(object: &Value) -> Result<ObjectRef, Error> {
    let types = TypeMeta {
        api_version: object["apiVersion"].as_str().unwrap_or_default().to_owned(),
        kind: object["kind"].as_str().unwrap_or_default().to_owned(),
    };
    let kind = GroupVersionKind::try_from(&types)
        .map_err(|error| Error::Unusable(format!("a manifest has no kind: {error}")))?;
    let resource = ApiResource::from_gvk(&kind);
    Ok(ObjectRef::named::<DynamicObject>(object.key(), &resource))
}

/// Returns the API of an object.
fn api(client: &Client, ObjectRef { resource, key, .. }: &ObjectRef) -> Api<DynamicObject> {
    if key.namespace.is_empty() {
        Api::all_with(client.clone(), resource)
    } else {
        Api::namespaced_with(client.clone(), &key.namespace, resource)
    }
}

/// Returns the attempt at something with an object, in words.
fn attempt(done: &str, ObjectRef { resource, key, .. }: &ObjectRef) -> String {
    format!("{done} {} {key}", resource.kind)
}
