//! Objects as text: those that are printed, and those of a file.

use std::io::Read;
use std::path::Path;
use std::{fs, io};

use clap::ValueEnum;
use karmada_api::Remedy;
use kube::Resource;
use objects::Mistake;
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;

/// A form of output for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Yaml,
}

/// Returns `object` in a format for programs.
pub(crate) fn text(object: &impl Serialize, format: Format) -> Result<String, Error> {
    match format {
        Format::Json => json(object),
        Format::Yaml => yaml(object),
    }
}

/// Returns `object` as JSON.
fn json(object: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(object);
    text.map(|text| text + "\n")
        .map_err(|error| Error::Unusable(format!("cannot write JSON: {error}")))
}

/// Returns `object` as YAML.
fn yaml(object: &impl Serialize) -> Result<String, Error> {
    let text = serde_saphyr::to_string(object);
    text.map_err(|error| Error::Unusable(format!("cannot write YAML: {error}")))
}

/// Reads the Remedies in the file `path`, or on standard input for `-`.
pub(crate) fn remedies(path: &Path) -> Result<Vec<Remedy>, Error> {
    read(path, |documents| all_remedies(&documents))
}

fn all_remedies(documents: &[Value]) -> Result<Vec<Remedy>, String> {
    if documents.is_empty() {
        return Err("it has no Remedy".to_owned());
    }
    documents.iter().map(remedy).collect()
}

/// Reads the objects in the file `path`, or on standard input for `-`.
pub(crate) fn objects(path: &Path) -> Result<Vec<Value>, Error> {
    read(path, Ok)
}

/// Reads the one object in the file `path`, or on standard input for `-`.
pub(crate) fn object(path: &Path) -> Result<Value, Error> {
    read(path, |documents| match <[Value; 1]>::try_from(documents) {
        Ok([object]) if is_text(&object, "kind") && is_text(&object, "apiVersion") => Ok(object),
        Ok(_) => Err("the object has no apiVersion or kind".to_owned()),
        Err(documents) => Err(format!("it has {} objects, and not one", documents.len())),
    })
}

/// Reads the reports of clusters from the file `path`, or from standard input for `-`: of a binding, or as a list.
pub(crate) fn items(path: &Path) -> Result<Vec<Value>, Error> {
    read(path, |mut documents| {
        let document = documents.pop().unwrap_or_default();
        let of_binding = document.pointer("/status/aggregatedStatus");
        match of_binding.unwrap_or(&document) {
            Value::Array(items) if documents.is_empty() => Ok(items.clone()),
            _ => Err("it is no list, and no binding with status.aggregatedStatus".to_owned()),
        }
    })
}

fn is_text(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(Value::is_string)
}

/// Reads the result of `of` for the documents in the file `path`, those of lists each by itself.
fn read<T>(path: &Path, of: impl FnOnce(Vec<Value>) -> Result<T, String>) -> Result<T, Error> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().read_to_string(&mut text)
    } else {
        fs::read_to_string(path).map(|read| {
            text = read;
            text.len()
        })
    };
    let name = path.display();
    read.map_err(|error| Error::Unusable(format!("cannot read {name}: {error}")))?;
    let found = documents(&text).and_then(of);
    found.map_err(|problem| Error::Unusable(format!("{name}: {problem}")))
}

/// Reads the objects of a manifest that is shipped with the program.
pub(crate) fn shipped(text: &str) -> Result<Vec<Value>, Error> {
    let read = values(text);
    read.map_err(|problem| Error::Unusable(format!("cannot read a manifest: {problem}")))
}

/// Reads every document of a text, as kubectl does.
fn values(text: &str) -> Result<Vec<Value>, String> {
    let documents = objects::yaml::documents(text)?.into_iter();
    let values = documents.map(|json| serde_json::from_str(&json));
    let values: Result<_, serde_json::Error> = values.collect();
    values.map_err(|error| Mistake::from(&error).to_string())
}

fn documents(text: &str) -> Result<Vec<Value>, String> {
    let documents = values(text)?;
    let mut found = Vec::new();
    for mut document in documents.into_iter().filter(|document| !document.is_null()) {
        let is_list = document.get("kind").and_then(Value::as_str) == Some("List");
        match document.get_mut("items") {
            Some(Value::Array(items)) if is_list => found.append(items),
            _ if is_list => {}
            _ => found.push(document),
        }
    }
    Ok(found)
}

fn remedy(document: &Value) -> Result<Remedy, String> {
    let version = Remedy::api_version(&());
    if document["kind"] != *Remedy::kind(&()) || document["apiVersion"] != *version {
        return Err(format!("an object is no Remedy of {version}"));
    }
    let Some(name) = document["metadata"]["name"].as_str() else {
        return Err("a Remedy has no metadata.name".to_owned());
    };
    let remedy: Remedy =
        serde_json::from_value(document.clone()).map_err(|error| error.to_string())?;
    // A match under a misspelt name would leave a Remedy that acts at once.
    let known = serde_json::to_value(&remedy.spec).map_err(|error| error.to_string())?;
    match unknown_field(&document["spec"], &known, "spec") {
        Some(field) => Err(format!("Remedy {name} has the unknown field {field}")),
        None => Ok(remedy),
    }
}

/// Returns the path of a field of `given` that `known`, which was made from it, has lost.
fn unknown_field(given: &Value, known: &Value, path: &str) -> Option<String> {
    match given {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match known.get(name) {
                Some(known) => unknown_field(value, known, &path),
                // An absent field and one that is null are the same.
                None => (!value.is_null()).then_some(path),
            }
        }),
        Value::Array(elements) => elements.iter().enumerate().find_map(|(index, element)| {
            unknown_field(element, &known[index], &format!("{path}[{index}]"))
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedies(text: &str) -> Result<Vec<Remedy>, String> {
        documents(text).and_then(|documents| all_remedies(&documents))
    }

    const REMEDY: &str =
        "apiVersion: remedy.karmada.io/v1alpha1\nkind: Remedy\nmetadata: {name: r}\n";

    /// The remedies of every document and list are read.
    #[test]
    fn every_document_is_read() {
        let sample = include_str!("../../manifests/samples/remedy-dns.yaml");
        let text = format!("{sample}\n---\n{REMEDY}spec: {{actions: [TrafficControl]}}\n---\n");
        let found = remedies(&text).unwrap();
        assert_eq!(found.len(), 2);
        let json = serde_json::json!({ "kind": "List", "items": found });
        assert_eq!(remedies(&json.to_string()).unwrap(), found);
    }

    /// The mistake in a file is said in a line.
    #[test]
    fn file_error_is_one_line() {
        for (text, problem) in [
            ("", "it has no Remedy"),
            (
                "kind: Pod\napiVersion: v1",
                "an object is no Remedy of remedy.karmada.io/v1alpha1",
            ),
            (
                &format!("{REMEDY}spec: {{decisionMatch: []}}"),
                "Remedy r has the unknown field spec.decisionMatch",
            ),
            (
                &format!("{REMEDY}spec: {{decisionMatches: [{{condition: x}}]}}"),
                "Remedy r has the unknown field spec.decisionMatches[0].condition",
            ),
            (
                "kind: Remedy\napiVersion: remedy.karmada.io/v1alpha1\nspec: {}",
                "a Remedy has no metadata.name",
            ),
        ] {
            assert_eq!(remedies(text).unwrap_err(), problem, "{text}");
        }
    }
}
