//! `delete` of an object and of a collection.

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::read;
use crate::body;
use crate::call::Call;
use crate::clock;
use crate::collector;
use crate::deletion::{self, Propagation};
use crate::error::{ApiError, Cause};
use crate::metadata;
use crate::request::is_dry_run;
use crate::response::{self, Body};
use crate::store::{NAMESPACES, State};

/// `DeleteOptions`, from the body or, if that is empty, from the query.
#[derive(Debug, Default)]
struct DeleteOptions {
    dry_run: bool,
    propagation: Option<Propagation>,
    uid: Option<String>,
    version: Option<String>,
}

impl DeleteOptions {
    fn new(call: &Call) -> Result<Self, ApiError> {
        if call.body.is_empty() {
            let query = &call.query;
            query.number("gracePeriodSeconds")?;
            return Ok(Self {
                dry_run: query.dry_run().map_err(refused)?,
                propagation: propagation(
                    query.text("propagationPolicy"),
                    query.choice("orphanDependents"),
                )?,
                ..Self::default()
            });
        }
        let (options, _) = body::parse(&call.content_type, &call.body)?;
        let kind = options["kind"].as_str();
        if !options.is_object() || kind.is_some_and(|kind| kind != "DeleteOptions") {
            return Err(ApiError::bad_request(
                "decoded object cannot be converted to DeleteOptions",
            ));
        }
        if !matches!(
            options["gracePeriodSeconds"],
            Value::Null | Value::Number(_)
        ) {
            return Err(ApiError::bad_request(
                "json: cannot unmarshal into gracePeriodSeconds: it is not a number",
            ));
        }
        let dry_run = options["dryRun"].as_array().map(Vec::as_slice);
        let dry_run = is_dry_run(dry_run.unwrap_or_default()).map_err(refused)?;
        let preconditions = &options["preconditions"];
        Ok(Self {
            dry_run: dry_run || call.query.dry_run().map_err(refused)?,
            propagation: propagation(
                options["propagationPolicy"].as_str(),
                options["orphanDependents"].as_bool(),
            )?,
            uid: preconditions["uid"].as_str().map(str::to_owned),
            version: preconditions["resourceVersion"].as_str().map(str::to_owned),
        })
    }

    fn check(&self, call: &Call, object: &Value) -> Result<(), ApiError> {
        let name = metadata::text(object, "name");
        let (uid, version) = (
            metadata::text(object, "uid"),
            metadata::text(object, "resourceVersion"),
        );
        if let Some(requested) = self.uid.as_deref().filter(|requested| *requested != uid) {
            let why = format!(
                "the UID in the precondition ({requested}) does not match the UID in record ({uid}). \
                 The object might have been deleted and then recreated"
            );
            return Err(ApiError::conflict(call.kind.qualified(), name, &why));
        }
        if let Some(requested) = self
            .version
            .as_deref()
            .filter(|requested| *requested != version)
        {
            let why = format!(
                "the ResourceVersion in the precondition ({requested}) does not match the \
                 ResourceVersion in record ({version}). The object might have been modified"
            );
            return Err(ApiError::conflict(call.kind.qualified(), name, &why));
        }
        Ok(())
    }
}

fn propagation(
    policy: Option<&str>,
    orphans: Option<bool>,
) -> Result<Option<Propagation>, ApiError> {
    if policy.is_some() && orphans.is_some() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        let policy = policy.unwrap_or_default();
        return Err(refused(Cause::invalid("propagationPolicy", policy, why)));
    }
    match (policy, orphans) {
        (None | Some(""), None) => Ok(None),
        (_, Some(true)) | (Some("Orphan"), _) => Ok(Some(Propagation::Orphan)),
        (_, Some(false)) | (Some("Background"), _) => Ok(Some(Propagation::Background)),
        (Some("Foreground"), _) => Ok(Some(Propagation::Foreground)),
        (Some(other), _) => Err(refused(Cause::unsupported(
            "propagationPolicy",
            other,
            &["Foreground", "Background", "Orphan", "nil"],
        ))),
    }
}

fn refused(cause: Cause) -> ApiError {
    ApiError::invalid_options("DeleteOptions", &[cause])
}

pub(super) fn delete(call: &Call) -> Result<Response<Body>, ApiError> {
    let options = DeleteOptions::new(call)?;
    if call.kind.is_namespace()
        && NAMESPACES.contains(&call.name())
        && call.name() != "kube-node-lease"
    {
        // The `NamespaceLifecycle` admission plugin protects these three.
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden(call.kind.resource(), call.name(), why));
    }
    let now = clock::seconds(call.server.now());
    let mut state = call.server.state();
    let (object, is_gone) = delete_one(call, &options, &mut state, &call.key(), &now)?;
    if !options.dry_run {
        collector::settle(&mut state, &now)?;
    }
    drop(state);
    if !is_gone || call.kind.storage.returns_deleted {
        let object = call.kind.to_served(object);
        return Ok(call.show(StatusCode::OK, &object, &[]));
    }
    let mut details = json!({
        "name": call.name(), "kind": call.kind.plural, "uid": metadata::text(&object, "uid"),
    });
    if !call.kind.group.is_empty() {
        details["group"] = json!(call.kind.group);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    });
    Ok(response::json(StatusCode::OK, status.to_string(), &[]))
}

fn delete_one(
    call: &Call,
    options: &DeleteOptions,
    state: &mut State,
    key: &str,
    now: &str,
) -> Result<(Value, bool), ApiError> {
    let found = state
        .find(&call.kind.collection(), key)
        .cloned()
        .ok_or_else(|| not_found(call, key))?;
    let object = found.value()?;
    options.check(call, &object)?;
    if options.dry_run {
        return Ok(
            match deletion::marked(&call.kind, &object, options.propagation, now) {
                Some(marked) => (marked, false),
                None => (object, true),
            },
        );
    }
    deletion::delete(state, &call.kind, key, options.propagation, now)?
        .ok_or_else(|| not_found(call, key))
}

fn not_found(call: &Call, key: &str) -> ApiError {
    let name = key.rsplit('/').next().unwrap_or(key);
    ApiError::not_found(call.kind.resource(), name)
}

pub(super) fn delete_collection(call: &Call) -> Result<Response<Body>, ApiError> {
    if call.kind.is_namespace() {
        return Err(ApiError::method_not_allowed());
    }
    let options = DeleteOptions::new(call)?;
    let now = clock::seconds(call.server.now());
    let mut state = call.server.state();
    let list = read::find(call, &mut state, None)?;
    for object in &list.objects {
        // An object of an older page may be gone already.
        if state.find(&call.kind.collection(), &object.key).is_some() {
            delete_one(call, &options, &mut state, &object.key, &now)?;
        }
    }
    if !options.dry_run {
        collector::settle(&mut state, &now)?;
    }
    drop(state);
    Ok(read::show(call, &list))
}
