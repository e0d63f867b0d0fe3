//! The Protocol Buffers messages of built-in kinds, for the embedded API: from the Go modules that define them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The messages that clients send. All others are those that their fields refer to.
///
/// Clients send a `CustomResourceDefinition` as JSON.
const SENT: [&str; 29] = [
    "apps.DaemonSet",
    "apps.Deployment",
    "apps.ReplicaSet",
    "apps.StatefulSet",
    "autoscaling.HorizontalPodAutoscaler",
    "batch.CronJob",
    "batch.Job",
    "coordination.Lease",
    "core.ConfigMap",
    "core.Endpoints",
    "core.Event",
    "core.Namespace",
    "core.Node",
    "core.PersistentVolumeClaim",
    "core.Pod",
    "core.Secret",
    "core.Service",
    "core.ServiceAccount",
    "discovery.EndpointSlice",
    "events.Event",
    "meta.DeleteOptions",
    "networking.Ingress",
    "networking.IngressClass",
    "networking.NetworkPolicy",
    "policy.PodDisruptionBudget",
    "rbac.ClusterRole",
    "rbac.ClusterRoleBinding",
    "rbac.Role",
    "rbac.RoleBinding",
];

/// The folders of the modules `k8s.io/api` and `k8s.io/apimachinery`.
#[derive(Debug)]
pub(crate) struct Modules {
    pub(crate) api: PathBuf,
    pub(crate) apimachinery: PathBuf,
}

/// Describes every message: its name, and its fields by number, name and type.
pub(crate) fn describe(modules: &Modules) -> Result<String> {
    let mut packages = BTreeMap::new();
    let mut described = BTreeMap::new();
    let mut wanted: Vec<String> = SENT.map(str::to_owned).into();
    while let Some(message) = wanted.pop() {
        if described.contains_key(&message) {
            continue;
        }
        let (package, name) = message.split_once('.').context("a message of no package")?;
        if !packages.contains_key(package) {
            packages.insert(package.to_owned(), Package::read(modules, package)?);
        }
        let fields = packages[package].fields(name);
        let fields = fields.with_context(|| format!("reading {message}"))?;
        wanted.extend(fields.iter().filter_map(|field| field.refers_to.clone()));
        described.insert(message, fields);
    }
    let mut text = String::new();
    for (message, fields) in described {
        writeln!(text, "{message}")?;
        for Field { line, .. } in fields {
            writeln!(text, "  {line}")?;
        }
    }
    Ok(text)
}

/// The sources of a package: `generated.proto` has the types of fields, `types.go` their names in JSON.
struct Package {
    name: String,
    proto: String,
    go: String,
}

struct Field {
    line: String,
    /// The message that it is of.
    refers_to: Option<String>,
}

impl Package {
    fn read(modules: &Modules, name: &str) -> Result<Self> {
        let folder = match name {
            "meta" => modules.apimachinery.join("pkg/apis/meta/v1"),
            "autoscaling" => modules.api.join("autoscaling/v2"),
            group => modules.api.join(group).join("v1"),
        };
        Ok(Self {
            name: name.to_owned(),
            proto: read(&folder.join("generated.proto"))?,
            go: read(&folder.join("types.go"))?,
        })
    }

    fn fields(&self, message: &str) -> Result<Vec<Field>> {
        let proto = block(&self.proto, &format!("message {message} {{"))?;
        let go = block(&self.go, &format!("type {message} struct {{"))?;
        let declared = proto.lines().map(str::trim);
        declared
            .filter(|line| line.ends_with(';') && !line.starts_with("//"))
            .map(|line| self.field(line, go).with_context(|| line.to_owned()))
            .collect()
    }

    /// Describes a field that is declared as `optional string name = 1;`.
    fn field(&self, declared: &str, go: &str) -> Result<Field> {
        let (declared, number) = declared
            .trim_end_matches(';')
            .rsplit_once(" = ")
            .context("no number")?;
        let (type_, name) = declared.rsplit_once(' ').context("no name")?;
        let (count, type_) = match type_.strip_prefix("map<string, ") {
            Some(type_) => ("{}", type_.trim_end_matches('>')),
            None => match type_.split_once(' ').context("no type")? {
                ("repeated", type_) => ("[]", type_),
                (_, type_) => ("", type_),
            },
        };
        let type_ = self.named(type_);
        let in_go = GoField::numbered(go, number)?;
        let count = in_go.name.map_or("=", |_| count);
        let keeps_zero = in_go.is_pointer && matches!(&*type_, "text" | "int" | "bool");
        let absent = if keeps_zero { "?" } else { "" };
        let name = in_go.name.unwrap_or(name);
        Ok(Field {
            line: format!("{number} {name} {count}{type_}{absent}"),
            refers_to: type_.contains('.').then_some(type_),
        })
    }

    /// Returns our name of a type: that of a message has a dot.
    fn named(&self, type_: &str) -> String {
        match type_.rsplit('.').next().unwrap_or(type_) {
            "string" => "text".to_owned(),
            "int32" | "int64" => "int".to_owned(),
            "FieldsV1" => "Json".to_owned(),
            plain @ ("bool" | "bytes" | "Time" | "MicroTime" | "Quantity" | "IntOrString") => {
                plain.to_owned()
            }
            message => {
                // Of another package: `.k8s.io.api.core.v1.PodSpec`.
                let mut parts = type_.rsplit('.').skip(2);
                let package = parts.next().unwrap_or(&self.name);
                format!("{package}.{message}")
            }
        }
    }
}

/// A field of a struct in Go.
struct GoField<'a> {
    /// Its name in JSON, unless that inlines it.
    name: Option<&'a str>,
    is_pointer: bool,
}

impl<'a> GoField<'a> {
    /// Finds the field with this number in its `protobuf` tag.
    fn numbered(go: &'a str, number: &str) -> Result<Self> {
        let tagged = go.lines().find_map(|line| {
            let (field, tags) = line.split_once('`')?;
            let of_protobuf = tag(tags, "protobuf")?;
            (of_protobuf.split(',').nth(1)? == number).then_some((field.trim(), tags))
        });
        let (field, tags) = tagged.context("no such field in Go")?;
        let (name, options) = tag(tags, "json")
            .and_then(|json| json.split_once(',').or(Some((json, ""))))
            .context("no name in JSON")?;
        let type_ = field.rsplit(' ').next().unwrap_or(field);
        Ok(Self {
            name: (!options.contains("inline")).then_some(name),
            is_pointer: type_.starts_with('*'),
        })
    }
}

/// Returns the value of a tag of a field in Go.
fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = tags.split_once(&format!("{key}:\""))?;
    Some(rest.split_once('"')?.0)
}

/// Returns the text between this line and the brace that ends it.
fn block<'a>(text: &'a str, first: &str) -> Result<&'a str> {
    let (_, rest) = text
        .split_once(&format!("\n{first}\n"))
        .with_context(|| format!("no `{first}`"))?;
    let (block, _) = rest.split_once("\n}").context("no end")?;
    Ok(block)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}
