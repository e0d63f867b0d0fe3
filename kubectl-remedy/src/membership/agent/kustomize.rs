//! The changes of users to the agent: components of kustomize. The agent has their files in an annotation, so that the next `join` applies
//! them to its agent, of another version too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use objects::metadata;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;
use crate::manifest;
use crate::namespace::NAMESPACE;

/// The annotation of the agents' `DaemonSet` with the components.
const ANNOTATION: &str = "karmada-rs.io/kustomize";
/// The most bytes of their files: an object has 256 KiB of annotations at most.
const MOST: usize = 64 * 1024;
/// The file that the components change.
const AGENT: &str = "agent.yaml";

/// Components, each as its files by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct Components(Vec<BTreeMap<String, String>>);

impl Components {
    /// Reads the files of each folder.
    pub(super) fn read(folders: &[PathBuf]) -> Result<Self, Error> {
        let components = folders.iter().map(|folder| {
            files(folder).map_err(|error| {
                Error::Unusable(format!(
                    "cannot read the component {}: {error}",
                    folder.display()
                ))
            })
        });
        let components: Vec<_> = components.collect::<Result<_, _>>()?;
        let files = components.iter().flatten();
        let bytes: usize = files.map(|(name, text)| name.len() + text.len()).sum();
        if bytes > MOST {
            return Err(Error::Unusable(format!(
                "the files of the components have {bytes} bytes, and the agent keeps {MOST} at most"
            )));
        }
        Ok(Self(components))
    }

    /// Returns those that the `DaemonSet` of the agents was made with.
    pub(super) fn of(agents: &Value) -> Self {
        let kept = agents["metadata"]["annotations"][ANNOTATION].as_str();
        kept.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// Returns the objects as the components change them.
    pub(super) fn apply(&self, objects: Vec<Value>) -> Result<Vec<Value>, Error> {
        if self.0.is_empty() {
            return Ok(objects);
        }
        let built = self.build(&objects);
        let built = built.map_err(|error| {
            Error::Unusable(format!("the components cannot be applied: {error}"))
        })?;
        let mut changed = manifest::shipped(&built)?;
        if changed.iter().any(|object| object["kind"] == "Secret") {
            // The annotation would show it to whoever may read the agents.
            let problem = "a component makes a Secret: create that in the member, and name it";
            return Err(Error::Unusable(problem.to_owned()));
        }
        let agents = changed.iter_mut().find(|it| it["kind"] == "DaemonSet");
        let agents = agents
            .ok_or_else(|| Error::Unusable("a component takes the agents away".to_owned()))?;
        let kept = json!(self).to_string();
        metadata::edit(agents, "annotations", |annotations| {
            annotations.insert(ANNOTATION.to_owned(), kept.into());
        });
        Ok(changed)
    }

    /// Has kubectl build a kustomization of the objects and these components.
    fn build(&self, objects: &[Value]) -> io::Result<String> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        let texts: Vec<String> = objects.iter().map(ToString::to_string).collect();
        fs::write(root.join(AGENT), texts.join("\n---\n"))?;
        let mut names = Vec::new();
        for (number, files) in self.0.iter().enumerate() {
            let name = number.to_string();
            let component = root.join(&name);
            fs::create_dir(&component)?;
            for (file, text) in files {
                fs::write(component.join(plain(file)?), text)?;
            }
            names.push(name);
        }
        let kustomization = kustomization(&names).to_string();
        fs::write(root.join("kustomization.yaml"), kustomization)?;
        kubectl_kustomize(root)
    }
}

/// Returns the files of a folder by name. A component cannot have folders below it.
fn files(folder: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && path.is_file()
        {
            files.insert(name.to_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(files)
}

/// Returns the name of a file, unless it is a path: whoever can write the annotation must not choose where on this machine it is written.
fn plain(file: &str) -> io::Result<&str> {
    if Path::new(file).file_name().is_some_and(|name| name == file) {
        return Ok(file);
    }
    Err(io::Error::other(format!("{file:?} is no name of a file")))
}

fn kustomization(components: &[String]) -> Value {
    // As in manifests/member: an object that a component adds without a namespace is in that of the agent.
    let namespace = json!({
        "apiVersion": "builtin",
        "kind": "NamespaceTransformer",
        "metadata": { "name": "namespace", "namespace": NAMESPACE },
        "unsetOnly": true,
    });
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [AGENT],
        "components": components,
        "transformers": [format!("{namespace}\n")],
    })
}

fn kubectl_kustomize(folder: &Path) -> io::Result<String> {
    let mut command = Command::new("kubectl");
    command.arg("kustomize").arg(folder).stdin(Stdio::null());
    // Files that are fetched would not be those that are kept, and an annotation must not have this machine fetch anything. Go asks loopback
    // addresses without a proxy all the same: docs/security.md says so.
    command.env("GIT_ALLOW_PROTOCOL", "none");
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        command.env(proxy, "http://127.0.0.1:9");
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = command
        .output()
        .map_err(|error| io::Error::other(format!("kubectl cannot be started: {error}")))?;
    if output.status.success() {
        return String::from_utf8(output.stdout).map_err(io::Error::other);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(errors.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents() -> Value {
        json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "a" } })
    }

    /// The files of a folder are found again where they are kept.
    #[test]
    fn components_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kustomization.yaml"), "kind: Component").unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        let components = Components::read(&[folder.path().to_owned()]).unwrap();
        let mut kept = agents();
        kept["metadata"]["annotations"] = json!({ ANNOTATION: json!(components).to_string() });
        assert_eq!(Components::of(&kept), components);
        assert_ne!(components, Components::default());
        assert_eq!(Components::of(&agents()), Components::default());
    }

    /// Without components nothing is started, and nothing changes.
    #[test]
    fn nothing_changes_nothing() {
        let objects = Components::default().apply(vec![agents()]).unwrap();
        assert_eq!(objects, [agents()]);
    }

    /// Files that are too large, or that would be written elsewhere, are refused with the reason.
    #[test]
    fn odd_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("large"), "x".repeat(MOST)).unwrap();
        let error = Components::read(&[folder.path().to_owned()]).unwrap_err();
        assert!(error.to_string().contains("keeps 65536 at most"), "{error}");
        let error = Components::read(&[folder.path().join("absent")]).unwrap_err();
        assert!(error.to_string().contains("absent"), "{error}");
        for name in ["../kustomization.yaml", "/etc/passwd", "..", ""] {
            let files = BTreeMap::from([(name.to_owned(), String::new())]);
            let error = Components(vec![files]).apply(vec![agents()]).unwrap_err();
            assert!(
                error.to_string().contains("is no name of a file"),
                "{error}"
            );
        }
    }
}
