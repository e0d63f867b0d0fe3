//! The errors about objects that cannot be explained, each on one line.

use objects::Key;

use super::command::within;
use super::discovery::Served;
use super::named::Named;
use crate::error::Error;

/// Returns the error of a type that the API does not serve.
pub(super) fn unknown(named: &Named<'_>) -> Error {
    let group = named.group;
    let of = group.map_or_else(String::new, |group| format!(" of {group}"));
    let type_ = named.type_;
    Error::Unusable(format!(
        "the API serves no {type_}{of}: `kubectl api-resources` lists what it serves"
    ))
}

/// Returns the error of an object that does not exist.
pub(super) fn missing(kind: &Served, key: &Key) -> Error {
    let within = within(&key.namespace);
    let (shown, listed) = (&kind.kind, kind.full_name());
    Error::Unusable(format!(
        "there is no {shown} {key}: `kubectl get {listed}{within}` lists them"
    ))
}

/// Returns the error of an object that is no template, whatever policies say.
pub(super) fn excluded(kind: &Served, key: &Key) -> Error {
    let kind = &kind.kind;
    Error::Unusable(format!(
        "{kind} {key} is never propagated: it belongs to a control plane, or is made where it is"
    ))
}

/// Returns the error of an object that the caller may not read, with the command that lets him. `message` is the API's,
/// which names him.
pub(super) fn forbidden(kind: &Served, key: &Key, message: &str) -> Error {
    let parts = message.split('"');
    let mut parts = parts.skip_while(|part| !part.ends_with("User "));
    let user = parts.nth(1).unwrap_or("USER");
    let (name, within) = (kind.full_name(), within(&key.namespace));
    let role = format!("read-{name}");
    Error::Unusable(format!(
        "you may not get {name}{within}; this grants it: kubectl create clusterrole {role} --verb=get --resource={name} && \
         kubectl create clusterrolebinding {role} --clusterrole={role} --user={user}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever may not read a kind is told on one line the command that lets him.
    #[test]
    fn forbidden_kind_names_command() {
        let kind = Served {
            group: "apps".to_owned(),
            plural: "deployments".to_owned(),
            ..Served::default()
        };
        let key = Key::new("shop", "web");
        let message = r#"deployments.apps "web" is forbidden: User "operator" cannot get resource"#;
        let role = "read-deployments.apps";
        let grants = |user: &str| {
            format!(
                "you may not get deployments.apps -n shop; this grants it: \
                 kubectl create clusterrole {role} --verb=get --resource=deployments.apps && \
                 kubectl create clusterrolebinding {role} --clusterrole={role} --user={user}"
            )
        };
        for (message, user) in [(message, "operator"), ("forbidden", "USER")] {
            let error = forbidden(&kind, &key, message).to_string();
            assert_eq!(error, grants(user));
        }
    }
}
