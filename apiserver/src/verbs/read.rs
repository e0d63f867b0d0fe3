//! `get` and `list`.

use std::ops::Bound;
use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::answer;
use crate::call::Call;
use crate::error::{ApiError, Cause};
use crate::request::{Form, Query, unsupported};
use crate::selector::Selector;
use crate::store::{Collection, Forgotten, Object};
use crate::table;
use crate::write::as_value;

pub(super) fn get(call: &Call) -> Result<Response<Body>, ApiError> {
    let asked = call.query.version()?.unwrap_or_default();
    let found = {
        let state = call.server.state();
        if asked > state.version {
            return Err(ApiError::too_large_version(asked, state.version));
        }
        state.find(&call.kind.collection(), &call.key()).cloned()
    };
    let object = found.ok_or_else(|| ApiError::not_found(call.kind.resource(), call.name()))?;
    if call.form == Form::Objects {
        let text = call.kind.text(&object.text).into_owned();
        return Ok(answer::json(StatusCode::OK, text, &[]));
    }
    Ok(call.show(StatusCode::OK, &as_value(&call.kind, &object)?, &[]))
}

/// What of a list to show.
#[derive(Debug, Default)]
struct Page {
    /// As of which version; none for now.
    at: Option<u64>,
    /// The key after which it begins.
    after: Option<String>,
    limit: Option<usize>,
}

impl Page {
    fn new(query: &Query, now: u64) -> Result<Self, ApiError> {
        let asked = query.version()?;
        let match_ = query.text("resourceVersionMatch");
        check_match(query, match_, asked)?;
        let limit = query.number("limit")?.unwrap_or_default();
        let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
        if let Some(token) = query.text("continue") {
            if asked.is_some_and(|asked| asked > 0) {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let (at, after) = token
                .split_once('/')
                .and_then(|(at, after)| Some((at.parse().ok()?, after.to_owned())))
                .ok_or_else(|| ApiError::bad_request("continue key is not valid"))?;
            return Ok(Self {
                at: Some(at),
                after: Some(after),
                limit,
            });
        }
        let asked = asked.unwrap_or_default();
        if asked > now {
            return Err(ApiError::too_large_version(asked, now));
        }
        let at = (match_ == Some("Exact")).then_some(asked);
        Ok(Self {
            at,
            after: None,
            limit,
        })
    }
}

fn check_match(query: &Query, match_: Option<&str>, asked: Option<u64>) -> Result<(), ApiError> {
    let forbidden = |why: &str| {
        let cause = Cause::forbidden("resourceVersionMatch", why);
        Err(ApiError::invalid_options("ListOptions", &[cause]))
    };
    if query.choice("sendInitialEvents").is_some() {
        let cause = Cause::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        );
        return Err(ApiError::invalid_options("ListOptions", &[cause]));
    }
    match match_ {
        Some(_) if query.text("continue").is_some() => {
            forbidden("resourceVersionMatch is forbidden when continue is provided")
        }
        Some(_) if asked.is_none() => {
            forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        Some("Exact") if asked == Some(0) => {
            forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        None | Some("Exact" | "NotOlderThan") => Ok(()),
        Some(other) => Err(unsupported(
            "ListOptions",
            "resourceVersionMatch",
            other,
            &["Exact", "NotOlderThan", ""],
        )),
    }
}

/// What a list holds.
#[derive(Debug)]
struct List {
    version: u64,
    objects: Vec<Arc<Object>>,
    continue_: Option<String>,
    remaining: Option<usize>,
}

pub(super) fn list(call: &Call, stale: Option<u64>) -> Result<Response<Body>, ApiError> {
    let selector = Selector::new(&call.kind, &call.path, &call.query)?;
    let list = {
        let mut stored = call.server.state();
        let now = stored.version;
        let mut page = Page::new(&call.query, now)?;
        let collection = stored.collection(&call.kind.collection());
        if let (Some(versions), None) = (stale, page.at) {
            let at_least = call.query.version()?.unwrap_or_default();
            let at = now
                .saturating_sub(versions)
                .max(collection.oldest())
                .max(at_least);
            page.at = Some(at);
        }
        select(collection, &selector, &page, now)?
    };
    Ok(show(call, &list))
}

fn select(
    collection: &Collection,
    selector: &Selector,
    page: &Page,
    now: u64,
) -> Result<List, ApiError> {
    let version = page.at.unwrap_or(now);
    let past;
    let objects = match page.at {
        Some(at) if at < now => {
            past = collection
                .at(at)
                .map_err(|Forgotten { oldest }| forgotten(page, at, oldest))?;
            &past
        }
        Some(at) if at > now => return Err(ApiError::too_large_version(at, now)),
        _ => &collection.objects,
    };
    let start = match &page.after {
        Some(after) => Bound::Excluded(after.clone()),
        None => Bound::Included(selector.prefix().to_owned()),
    };
    let mut matching = (objects.range((start, Bound::Unbounded)))
        .map(|(_, object)| object)
        .filter(|object| selector.matches(object));
    let Some(limit) = page.limit else {
        let objects = matching.cloned().collect();
        return Ok(List {
            version,
            objects,
            continue_: None,
            remaining: None,
        });
    };
    let objects: Vec<_> = matching.by_ref().take(limit).cloned().collect();
    let remaining = matching.count();
    let last = objects.last().filter(|_| remaining > 0);
    Ok(List {
        version,
        continue_: last.map(|last| format!("{version}/{}", last.key)),
        remaining: (last.is_some() && !selector.selects()).then_some(remaining),
        objects,
    })
}

fn forgotten(page: &Page, at: u64, oldest: u64) -> ApiError {
    if page.after.is_some() {
        return ApiError::expired(
            "The provided continue parameter is too old to display a consistent list result. You \
             must start a new list without the continue parameter.",
        );
    }
    ApiError::expired(format!("too old resource version: {at} ({oldest})"))
}

fn show(call: &Call, list: &List) -> Response<Body> {
    let mut metadata = json!({"resourceVersion": list.version.to_string()});
    if let Some(continue_) = &list.continue_ {
        metadata["continue"] = json!(continue_);
    }
    if let Some(remaining) = list.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    let kind = &call.kind;
    let text = if call.form == Form::Objects {
        // Put together as text: what is stored is text already.
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
            // The items of built-in kinds do not repeat the types of the list.
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
    answer::json(StatusCode::OK, text, &[])
}
