//! `CustomResourceDefinition`s: the kinds they define, and the fields that the server writes into
//! them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::kind::{Column, Kind, Selectable, Storage};
use crate::error::Cause;
use crate::names;
use crate::schema::Schema;

/// The finalizer that holds a definition until its objects are gone.
pub(crate) const INSTANCES_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The kinds of a definition, one per served version.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) kinds: Vec<Kind>,
}

impl Definition {
    /// Compiles a definition.
    ///
    /// # Errors
    /// Returns one cause per schema that does not compile.
    pub(crate) fn read(definition: &Value) -> Result<Self, Vec<Cause>> {
        let spec = &definition["spec"];
        let versions = spec["versions"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let stored = (versions.iter().find(|version| version["storage"] == true))
            .map(|version| text(&version["name"]))
            .unwrap_or_default();
        let mut causes = Vec::new();
        let mut kinds = Vec::new();
        for (index, version) in versions.iter().enumerate() {
            if version["served"] != true {
                continue;
            }
            match schema(version) {
                Ok(schema) => kinds.push(kind(spec, version, &stored, schema)),
                Err(why) => causes.push(Cause {
                    reason: "FieldValueInvalid",
                    message: format!("Invalid value: {why}"),
                    field: format!("spec.versions[{index}].schema.openAPIV3Schema"),
                }),
            }
        }
        if !causes.is_empty() {
            return Err(causes);
        }
        Ok(Self {
            group: text(&spec["group"]),
            plural: text(&spec["names"]["plural"]),
            kinds,
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// Returns the schema of a version. The servers of a process share it, so that tests with a server each compile it
/// only once.
fn schema(version: &Value) -> Result<Arc<Schema>, String> {
    static COMPILED: LazyLock<Mutex<HashMap<Value, Arc<Schema>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock();
    if let Some(schema) = compiled.get(version) {
        return Ok(Arc::clone(schema));
    }
    let schema = Arc::new(compile(version)?);
    compiled.insert(version.clone(), Arc::clone(&schema));
    Ok(schema)
}

fn compile(version: &Value) -> Result<Schema, String> {
    match &version["schema"]["openAPIV3Schema"] {
        Value::Null => Err("schemas are required".to_owned()),
        document if document["type"] != "object" => {
            Err("type: must be object at the root".to_owned())
        }
        document => {
            let schema = Schema::new(document.clone())?;
            Ok(schema.with_status(version["subresources"]["status"].is_object()))
        }
    }
}

fn kind(spec: &Value, version: &Value, stored: &str, schema: Arc<Schema>) -> Kind {
    let names = &spec["names"];
    let name = text(&version["name"]);
    let is_stored = name == stored;
    let columns = version["additionalPrinterColumns"]
        .as_array()
        .into_iter()
        .flatten();
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    Kind {
        group: text(&spec["group"]),
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        has_status: version["subresources"]["status"].is_object(),
        columns: columns.map(column).collect(),
        schema,
        custom: true,
        storage: Storage {
            version: (!is_stored).then(|| stored.to_owned()),
            generation: true,
            selectable: fields
                .map(|field| Selectable::path(text(&field["jsonPath"]).trim_start_matches('.')))
                .collect(),
            ..Storage::default()
        },
        version: name,
    }
}

fn column(column: &Value) -> Column {
    Column {
        name: text(&column["name"]),
        type_: text(&column["type"]),
        description: text(&column["description"]),
        priority: column["priority"].as_i64().unwrap_or_default(),
        json_path: text(&column["jsonPath"]),
    }
}

/// Fills in names that default to others.
pub(super) fn complete(definition: &mut Value) {
    let kind = text(&definition["spec"]["names"]["kind"]);
    if let Some(names) = definition
        .pointer_mut("/spec/names")
        .and_then(Value::as_object_mut)
    {
        names
            .entry("singular")
            .or_insert_with(|| kind.to_lowercase().into());
        names
            .entry("listKind")
            .or_insert_with(|| format!("{kind}List").into());
    }
    if let Some(spec) = definition
        .pointer_mut("/spec")
        .and_then(Value::as_object_mut)
    {
        spec.entry("conversion")
            .or_insert_with(|| json!({"strategy": "None"}));
    }
}

/// Sets the status of a served definition. Immediate, whereas a real cluster takes
/// a moment.
pub(crate) fn establish(definition: &mut Value, now: &str) {
    let spec = &definition["spec"];
    let names = spec["names"].clone();
    let stored = spec["versions"].as_array().into_iter().flatten();
    let stored = (stored.filter(|version| version["storage"] == true))
        .map(|version| version["name"].clone())
        .next();
    let status = &mut definition["status"];
    if !status.is_object() {
        *status = json!({});
    }
    let mut versions = status["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    // Versions that were stored once stay listed: objects may still be stored in them.
    versions.extend(stored.filter(|stored| !versions.contains(stored)));
    status["storedVersions"] = versions.into();
    status["acceptedNames"] = names;
    let known = status["conditions"].as_array().cloned().unwrap_or_default();
    let is_established = known
        .iter()
        .any(|condition| condition["type"] == "Established");
    if !is_established {
        status["conditions"] = json!([
            {
                "type": "NamesAccepted", "status": "True", "lastTransitionTime": now,
                "reason": "NoConflicts", "message": "no conflicts found",
            },
            {
                "type": "Established", "status": "True", "lastTransitionTime": now,
                "reason": "InitialNamesAccepted", "message": "the initial names have been accepted",
            },
        ]);
    }
}

/// Validates a definition beyond its schema.
pub(super) fn validate(definition: &Value) -> Vec<Cause> {
    let spec = &definition["spec"];
    let mut causes = Vec::new();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let name = text(&definition["metadata"]["name"]);
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", name, why));
    }
    if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        causes.push(Cause::invalid("spec.group", group.as_str(), why));
    }
    for (field, name) in [
        ("plural", &plural),
        ("singular", &text(&spec["names"]["singular"])),
    ] {
        if let Some(why) = names::label(name) {
            causes.push(Cause::invalid(
                format!("spec.names.{field}"),
                name.as_str(),
                &why,
            ));
        }
    }
    if text(&spec["names"]["kind"]).is_empty() {
        causes.push(Cause::required("spec.names.kind", ""));
    }
    let (scope, scopes) = (text(&spec["scope"]), &["Cluster", "Namespaced"]);
    if !scopes.contains(&scope.as_str()) {
        causes.push(Cause::unsupported("spec.scope", scope, scopes));
    }
    let versions = spec["versions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let stored = versions
        .iter()
        .filter(|version| version["storage"] == true)
        .count();
    if stored != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", "", why));
    }
    for (index, version) in versions.iter().enumerate() {
        if let Some(why) = names::label(&text(&version["name"])) {
            let field = format!("spec.versions[{index}].name");
            causes.push(Cause::invalid(field, version["name"].clone(), &why));
        }
    }
    if let Err(wrong) = Definition::read(definition) {
        causes.extend(wrong);
    }
    causes
}
