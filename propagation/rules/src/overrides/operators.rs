//! One function for each kind of overrider.

use std::fmt;

use json_patch::jsonptr::Pointer;
use karmada_api::overrides::{
    CommandArgsOverrider, FieldOverrider, ImageOverrider, LabelAnnotationOverrider,
    PlaintextOverrider,
};
use objects::patch::{self, from_the_start, operation};
use objects::{kind, metadata};
use serde_json::{Value, json};

use super::text::Language;

/// Changes a part of an image, or of every container's image.
pub(super) fn image(overrider: &ImageOverrider, manifest: &mut Value) -> Result<(), String> {
    if let Some(predicate) = &overrider.predicate {
        let path = &predicate.path;
        return match at(path, manifest) {
            Some(Value::String(image)) => {
                *image = overridden_image(image, overrider)
                    .map_err(|reason| format!("{path}: {reason}"))?;
                Ok(())
            }
            _ => Err(format!("there is no image at {path}")),
        };
    }
    for container in containers(manifest) {
        if let Some(Value::String(image)) = container.get_mut("image") {
            *image = overridden_image(image, overrider)?;
        }
    }
    Ok(())
}

fn overridden_image(image: &str, overrider: &ImageOverrider) -> Result<String, String> {
    // The value in place of an image may be anything, as a path says where to look.
    let mut parts = Image::parse(image).ok_or("the text there is no image")?;
    let value = overrider.value.as_deref().unwrap_or_default();
    match overrider.component.as_str() {
        "Registry" => parts.registry = operated(&overrider.operator, &parts.registry, value)?,
        "Repository" => parts.repository = operated(&overrider.operator, &parts.repository, value)?,
        "Tag" => {
            let current = if parts.tag.is_empty() {
                &parts.digest
            } else {
                &parts.tag
            };
            let new = operated(&overrider.operator, current, value)?;
            // A text that is neither changes nothing, as in Karmada.
            if is_digest(&new) {
                (parts.tag, parts.digest) = (String::new(), new);
            } else if overrider.operator == "remove" || is_tag(&new) {
                (parts.tag, parts.digest) = (new, String::new());
            }
        }
        other => return Err(format!("`{other}` is no part of an image")),
    }
    Ok(parts.to_string())
}

/// Returns `true` for the tag of an image (distribution, `reference.TagRegexp`).
fn is_tag(text: &str) -> bool {
    text.starts_with(is_word)
        && text.len() <= 128
        && text.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns `true` for the digest of an image (distribution, `reference.DigestRegexp`).
fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else {
        return false;
    };
    algorithm.starts_with(|c: char| c.is_ascii_alphabetic())
        && algorithm
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_+.".contains(c))
        && hex.len() >= 32
        && hex.chars().all(|c| c.is_ascii_hexdigit())
}

fn operated(operator: &str, current: &str, value: &str) -> Result<String, String> {
    match operator {
        "add" => Ok(format!("{current}{value}")),
        "replace" => Ok(value.to_owned()),
        "remove" => Ok(String::new()),
        other => Err(unknown_operator(other)),
    }
}

fn unknown_operator(operator: &str) -> String {
    format!("`{operator}` is no operator that is known")
}

/// The parts of an image's name; those that it does not have are empty.
struct Image {
    registry: String,
    repository: String,
    tag: String,
    digest: String,
}

impl Image {
    fn parse(image: &str) -> Option<Self> {
        if image.is_empty() || image.contains(char::is_whitespace) {
            return None;
        }
        let (name, digest) = image.split_once('@').unwrap_or((image, ""));
        // A colon before the last slash belongs to the port of the registry.
        let last = name.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match name.get(last..)?.split_once(':') {
            Some((end, tag)) => (name.get(..last + end.len())?, tag),
            None => (name, ""),
        };
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
                (first, rest)
            }
            _ => ("", name),
        };
        Some(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.to_owned(),
            digest: digest.to_owned(),
        })
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.registry.is_empty() {
            write!(f, "{}/", self.registry)?;
        }
        f.write_str(&self.repository)?;
        if !self.tag.is_empty() {
            write!(f, ":{}", self.tag)?;
        }
        if !self.digest.is_empty() {
            write!(f, "@{}", self.digest)?;
        }
        Ok(())
    }
}

/// Adds words to a container's `command` or `args`, or removes them.
pub(super) fn words(
    field: &str,
    overrider: &CommandArgsOverrider,
    manifest: &mut Value,
) -> Result<(), String> {
    for container in containers(manifest) {
        if container.get("name").and_then(Value::as_str) != Some(&overrider.container_name) {
            continue;
        }
        let current = container.get(field).and_then(Value::as_array);
        let mut words: Vec<Value> = current.cloned().unwrap_or_default();
        match overrider.operator.as_str() {
            "add" => words.extend(overrider.value.iter().map(|word| json!(word))),
            "remove" => {
                let removed = &overrider.value;
                words.retain(|word| !removed.iter().any(|removed| word == removed));
            }
            other => return Err(unknown_operator(other)),
        }
        // Karmada leaves an empty list, too, where there was none.
        if let Some(container) = container.as_object_mut() {
            container.insert(field.to_owned(), words.into());
        }
    }
    Ok(())
}

/// Returns the containers of a workload, without the init containers; none of other kinds. As for Karmada, a kind of the
/// same name in another group, such as Kruise's, is one, too.
fn containers(manifest: &mut Value) -> impl Iterator<Item = &mut Value> {
    let path = match kind(manifest) {
        "Pod" => Some("/spec/containers"),
        "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" | "Job" => {
            Some("/spec/template/spec/containers")
        }
        _ => None,
    };
    path.and_then(|path| manifest.pointer_mut(path)?.as_array_mut())
        .into_iter()
        .flatten()
}

/// Changes labels or annotations. Those that are not there are neither replaced nor removed.
pub(super) fn entries(
    field: &str,
    overrider: &LabelAnnotationOverrider,
    manifest: &mut Value,
) -> Result<(), String> {
    let operator = overrider.operator.as_str();
    if !["add", "replace", "remove"].contains(&operator) {
        return Err(unknown_operator(operator));
    }
    metadata::edit(manifest, field, |map| {
        for (key, value) in &overrider.value {
            match operator {
                "remove" => {
                    map.remove(key);
                }
                "replace" if !map.contains_key(key) => {}
                _ => {
                    map.insert(key.clone(), value.as_str().into());
                }
            }
        }
    });
    Ok(())
}

/// Changes a text that is JSON or YAML.
pub(super) fn field(overrider: &FieldOverrider, manifest: &mut Value) -> Result<(), String> {
    let path = &overrider.field_path;
    let Some(Value::String(text)) = at(path, manifest) else {
        return Err(format!("there is no text at {path}"));
    };
    // Of both, which Karmada refuses where it has its webhook, it applies the first.
    let (language, patches) = match (&*overrider.yaml, &*overrider.json) {
        ([], []) => return Ok(()),
        ([], json) => (Language::Json, json),
        (yaml, _) => (Language::Yaml, yaml),
    };
    let operations = patches
        .iter()
        .map(|patch| operation(&patch.operator, &patch.sub_path, patch.value.as_ref()));
    let operations = operations.collect::<Result<Vec<_>, _>>()?;
    *text = language
        .changed(text, &operations)
        .map_err(|problem| format!("the text at {path} {problem}"))?;
    Ok(())
}

/// Changes a manifest at places given by JSON pointers.
pub(super) fn plaintext(
    overriders: &[PlaintextOverrider],
    manifest: &mut Value,
) -> Result<(), String> {
    let operations = overriders.iter().map(|overrider| {
        operation(
            &overrider.operator,
            &overrider.path,
            overrider.value.as_ref(),
        )
    });
    let operations = operations.collect::<Result<Vec<_>, _>>()?;
    patch::apply(&operations, manifest).map_err(|error| error.to_string())
}

/// Returns the value at a path, whose places in lists may be counted from the end.
fn at<'m>(path: &str, manifest: &'m mut Value) -> Option<&'m mut Value> {
    let path = from_the_start(Pointer::parse(path).ok()?, false, manifest);
    manifest.pointer_mut(path.as_str())
}
