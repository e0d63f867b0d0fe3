//! Kubeconfig files, read as kubectl reads them.
//!
//! kube's own reader differs from client-go's: it refuses a key that stands twice, takes an empty text for a value, and
//! needs every context to be whole, also one that nobody uses. An error never quotes the file, in which anything may be a
//! credential.

use std::path::Path;
use std::{fs, io};

use kube::config::{
    AuthInfo, Cluster, Context, ExecConfig, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

/// Errors of reading a kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The text is neither YAML nor JSON.
    #[error("line {0} is no YAML")]
    Syntax(u64),
    /// The document is no kubeconfig.
    #[error("it is no mapping with {0}")]
    Form(&'static str),
    /// An entry has a field of another type.
    #[error("{list}: a field of {name:?} has another type than in a kubeconfig")]
    Entry {
        /// The list.
        list: &'static str,
        /// The name of the entry.
        name: String,
    },
    /// Two entries of a list have one name.
    #[error("{list}: {name:?} stands there twice")]
    Twice {
        /// The list.
        list: &'static str,
        /// The name of both.
        name: String,
    },
}

/// Reads a file. Paths in it start from its folder.
pub(super) fn read(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
    let mut kubeconfig = parse(&fs::read(path)?)?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let clusters = kubeconfig.clusters.iter_mut();
    for cluster in clusters.filter_map(|named| named.cluster.as_mut()) {
        from_folder(folder, &mut cluster.certificate_authority);
    }
    let users = kubeconfig.auth_infos.iter_mut();
    for user in users.filter_map(|named| named.auth_info.as_mut()) {
        from_folder(folder, &mut user.client_certificate);
        from_folder(folder, &mut user.client_key);
        from_folder(folder, &mut user.token_file);
        if let Some(ExecConfig { command, .. }) = &mut user.exec
            // Any other is looked up in $PATH.
            && command.as_ref().is_some_and(|command| command.contains('/'))
        {
            from_folder(folder, command);
        }
    }
    Ok(kubeconfig)
}

/// Parses a kubeconfig, whose paths stay as they are.
///
/// # Errors
/// Fails if kubectl would not read it either.
pub fn parse(text: &[u8]) -> Result<Kubeconfig, KubeconfigError> {
    let mut document = document(text)?.unwrap_or_default();
    let clusters = entries(&mut document, "clusters", "cluster")?;
    let users = entries::<AuthInfo>(&mut document, "users", "user")?;
    let contexts = entries::<Context>(&mut document, "contexts", "context")?;
    let current = document["current-context"].as_str();
    let with_certificate = |cluster: &str| {
        contexts.iter().any(|(_, context)| {
            let user = users
                .iter()
                .find(|(name, _)| context.user.as_ref() == Some(name));
            context.cluster == cluster && user.is_some_and(|(_, user)| has_certificate(user))
        })
    };
    Ok(Kubeconfig {
        clusters: clusters
            .into_iter()
            .map(|(name, cluster)| NamedCluster {
                cluster: Some(with_scheme(cluster, with_certificate(&name))),
                name,
                ..NamedCluster::default()
            })
            .collect(),
        auth_infos: users
            .into_iter()
            .map(|(name, user)| NamedAuthInfo {
                name,
                auth_info: Some(user),
                ..NamedAuthInfo::default()
            })
            .collect(),
        contexts: contexts
            .into_iter()
            .map(|(name, context)| NamedContext {
                name,
                context: Some(context),
                ..NamedContext::default()
            })
            .collect(),
        current_context: current
            .filter(|current| !current.is_empty())
            .map(ToOwned::to_owned),
        ..Kubeconfig::default()
    })
}

/// Parses the first document of a YAML or JSON text. Of a key that stands twice the last counts.
pub(super) fn document(text: &[u8]) -> Result<Option<Value>, KubeconfigError> {
    // A text with tabs may be JSON, and is no YAML.
    if let Ok(json) = serde_json::from_slice(text) {
        return Ok(Some(json));
    }
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    let mut text = text;
    let mut documents = serde_saphyr::read_with_options(&mut text, options);
    documents.next().transpose().map_err(|error| {
        let place = error.location();
        KubeconfigError::Syntax(place.map_or(1, |place| place.line()))
    })
}

/// Takes the entries of a list out of a kubeconfig, each with its name.
fn entries<T: DeserializeOwned>(
    kubeconfig: &mut Value,
    list: &'static str,
    field: &'static str,
) -> Result<Vec<(String, T)>, KubeconfigError> {
    let listed = match kubeconfig {
        Value::Null => Value::Null,
        Value::Object(fields) => fields.remove(list).unwrap_or_default(),
        _ => return Err(KubeconfigError::Form(list)),
    };
    let listed = match listed {
        Value::Null => Vec::new(),
        Value::Array(listed) => listed,
        _ => return Err(KubeconfigError::Form(list)),
    };
    let mut entries: Vec<(String, T)> = Vec::new();
    for mut entry in listed {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        if entries.iter().any(|(known, _)| *known == name) {
            return Err(KubeconfigError::Twice { list, name });
        }
        let mut fields = match entry.get_mut(field).map(Value::take) {
            None | Some(Value::Null) => Value::Object(serde_json::Map::new()),
            Some(fields) => fields,
        };
        forget_empty(&mut fields);
        if let Value::Object(fields) = &mut fields
            && field == "context"
        {
            fields.entry("cluster").or_insert_with(|| "".into());
        }
        match serde_json::from_value(fields) {
            Ok(fields) => entries.push((name, fields)),
            Err(_) => return Err(KubeconfigError::Entry { list, name }),
        }
    }
    Ok(entries)
}

/// Takes out the fields that are empty for Go: a field that is null or has no text.
fn forget_empty(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(forget_empty),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                // The content of an extension is its own; one without is none.
                if name == "extensions" {
                    let whole =
                        |one: &Value| one["name"].is_string() && !one["extension"].is_null();
                    if let Some(extensions) = field.as_array_mut() {
                        extensions.retain(whole);
                    }
                    continue;
                }
                forget_empty(field);
                // Go's decoder of Base64 skips the ends of lines.
                if let Value::String(text) = field
                    && name.ends_with("-data")
                {
                    text.retain(|character| !matches!(character, '\r' | '\n'));
                }
            }
            fields.retain(|_, field| !field.is_null() && *field != "");
        }
        _ => {}
    }
}

fn has_certificate(user: &AuthInfo) -> bool {
    user.client_certificate.is_some() || user.client_certificate_data.is_some()
}

/// Adds the scheme to the address of a server that has none, as client-go does (`rest/url_utils.go`): https for whatever tells of TLS,
/// also the certificate of a user.
fn with_scheme(mut cluster: Cluster, has_certificate: bool) -> Cluster {
    let is_tls = has_certificate
        || cluster.certificate_authority.is_some()
        || cluster.certificate_authority_data.is_some()
        || cluster.insecure_skip_tls_verify == Some(true);
    if let Some(server) = &mut cluster.server
        && !server.contains("://")
    {
        let scheme = if is_tls { "https" } else { "http" };
        *server = format!("{scheme}://{server}");
    }
    cluster
}

fn from_folder(folder: &Path, path: &mut Option<String>) {
    if let Some(path) = path
        && let Some(joined) = folder.join(&*path).to_str()
    {
        joined.clone_into(path);
    }
}

#[cfg(test)]
mod tests;
