//! `get` and `list`.

use std::ops::Bound;
use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::ApiError;
use crate::request::{Form, ListOptions};
use crate::response::{self, Body};
use crate::selector::Selector;
use crate::store::{Collection, Object, State};
use crate::table;
use crate::write::as_value;

pub(super) fn get(call: &Call) -> Result<Response<Body>, ApiError> {
    let requested = call.query.version();
    let requested = requested.map_err(|why| ApiError::of_store(&why))?;
    let found = {
        let state = call.server.state();
        check_reached(requested.unwrap_or_default(), state.version)?;
        state.find(&call.kind.collection(), &call.key()).cloned()
    };
    let object = found.ok_or_else(|| ApiError::not_found(call.kind.resource(), call.name()))?;
    if call.form == Form::Objects {
        let text = call.kind.text(&object.text).into_owned();
        return Ok(response::json(StatusCode::OK, text, &[]));
    }
    Ok(call.show(StatusCode::OK, &as_value(&call.kind, &object)?, &[]))
}

/// Checks that the server has reached a version.
fn check_reached(requested: u64, now: u64) -> Result<(), ApiError> {
    if requested > now {
        return Err(ApiError::too_large_version(requested, now));
    }
    Ok(())
}

/// The part of a list that a request selects.
#[derive(Debug)]
struct Page {
    /// The version to list at, or `None` for the latest.
    at: Option<u64>,
    /// The key after which the page starts.
    after: Option<String>,
    limit: Option<usize>,
}

impl Page {
    fn new(options: &ListOptions, now: u64) -> Result<Self, ApiError> {
        let requested = options.version.unwrap_or_default();
        if let Some(token) = &options.continue_ {
            let (at, after) = read_token(token)?;
            if requested > 0 {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            return Ok(Self {
                at,
                after: Some(after),
                limit: options.limit,
            });
        }
        check_reached(requested, now)?;
        Ok(Self {
            at: options.is_exact.then_some(requested),
            after: None,
            // kube-apiserver serves version 0 from its watch cache, which ignores limits.
            limit: options.limit.filter(|_| options.version != Some(0)),
        })
    }
}

/// Returns the token of the next page: its version (none to continue at the latest) and the key
/// before it.
fn token(at: Option<u64>, after: &str) -> String {
    let at = at.map(|at| at.to_string()).unwrap_or_default();
    format!("{at}/{after}")
}

fn read_token(token: &str) -> Result<(Option<u64>, String), ApiError> {
    const WRONG: &str = "invalid continue token: continue key is not valid: it is of no list";
    let (at, after) = (token.split_once('/')).ok_or_else(|| ApiError::bad_request(WRONG))?;
    let at = match at {
        "" => None,
        at => Some(at.parse().map_err(|_| ApiError::bad_request(WRONG))?),
    };
    Ok((at, after.to_owned()))
}

#[derive(Debug)]
pub(super) struct List {
    version: u64,
    pub(super) objects: Vec<Arc<Object>>,
    continue_: Option<String>,
    remaining: Option<usize>,
}

pub(super) fn list(call: &Call, stale: Option<u64>) -> Result<Response<Body>, ApiError> {
    let list = find(call, &mut call.server.state(), stale)?;
    Ok(show(call, &list))
}

/// Returns the objects that a request lists, out of date by `stale` versions.
pub(super) fn find(call: &Call, stored: &mut State, stale: Option<u64>) -> Result<List, ApiError> {
    let selector = Selector::new(&call.kind, &call.path, &call.query)?;
    let options = ListOptions::read(&call.query, false)?;
    let now = stored.version;
    let mut page = Page::new(&options, now)?;
    let collection = stored.collection(&call.kind.collection());
    if let (Some(versions), None) = (stale, page.at) {
        let at = now.saturating_sub(versions);
        let at_least = options.version.unwrap_or_default();
        // Never older than the history, or than the client accepts.
        page.at = Some(at.max(collection.oldest()).max(at_least));
    }
    select(collection, &selector, &page, now)
}

fn select(
    collection: &Collection,
    selector: &Selector,
    page: &Page,
    now: u64,
) -> Result<List, ApiError> {
    let version = page.at.unwrap_or(now);
    check_reached(version, now)?;
    let past;
    let objects = if version < now {
        past = collection.at(version).map_err(|_| too_old(page))?;
        &past
    } else {
        &collection.objects
    };
    let start = match &page.after {
        Some(after) => Bound::Excluded(after.clone()),
        None => Bound::Included(selector.prefix().to_owned()),
    };
    let mut matching = (objects.range((start, Bound::Unbounded)))
        .map(|(_, object)| object)
        .filter(|object| selector.matches(object));
    let limit = page.limit.unwrap_or(usize::MAX);
    let objects: Vec<_> = matching.by_ref().take(limit).cloned().collect();
    let remaining = matching.count();
    let last = objects.last().filter(|_| remaining > 0);
    Ok(List {
        version,
        continue_: last.map(|last| token(Some(version), &last.key)),
        // With a selector, kube-apiserver does not know the remaining count without reading on.
        remaining: (last.is_some() && !selector.selects()).then_some(remaining),
        objects,
    })
}

fn too_old(page: &Page) -> ApiError {
    match &page.after {
        Some(after) => ApiError::expired_page(token(None, after)),
        None => ApiError::expired("The resourceVersion for the provided list is too old."),
    }
}

pub(super) fn show(call: &Call, list: &List) -> Response<Body> {
    let mut metadata = json!({"resourceVersion": list.version.to_string()});
    if list.continue_.is_some() || call.kind.custom {
        metadata["continue"] = list.continue_.as_deref().unwrap_or_default().into();
    }
    if let Some(remaining) = list.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    let kind = &call.kind;
    let text = if call.form == Form::Objects {
        // Concatenated from stored text: parsing every object only to serialize it again would
        // dominate the cost of a list.
        let size: usize = list
            .objects
            .iter()
            .map(|object| object.text.len() + 1)
            .sum();
        let mut text = String::with_capacity(size + 200);
        let (api_version, list_kind) = (kind.api_version(), &kind.list_kind);
        let begin = format!(
            r#"{{"apiVersion":"{api_version}","kind":"{list_kind}","metadata":{metadata},"items":["#
        );
        text.push_str(&begin);
        for (index, object) in list.objects.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            let whole = kind.text(&object.text);
            // Items of built-in kinds do not repeat the types of the list, as Go omits the empty
            // `TypeMeta`.
            match kind.without_types(&whole).filter(|_| !kind.custom) {
                Some(rest) => {
                    text.push('{');
                    text.push_str(rest);
                }
                None => text.push_str(&whole),
            }
        }
        text.push_str("]}");
        text
    } else {
        let objects = list
            .objects
            .iter()
            .filter_map(|object| as_value(kind, object).ok());
        let objects: Vec<Value> = objects.collect();
        if call.form == Form::Table {
            let now = call.server.now();
            table::table(kind, &objects, &metadata, call.include, now).to_string()
        } else {
            table::partial_list(&json!({"metadata": metadata, "items": objects})).to_string()
        }
    };
    response::json(StatusCode::OK, text, &[])
}
