//! Checks of single values that several parts have, as flags or in a file.

use std::time::Duration;

use http::uri::Authority;
use objects::qualified_name::is_label;

use crate::peers::Service;

const LONGEST: Duration = Duration::from_hours(24);

/// # Errors
/// Returns a message for the user if the duration is longer than a day.
pub(crate) fn within_a_day(flag: &str, duration: Duration) -> Result<(), String> {
    if duration > LONGEST {
        return Err(format!("{flag} is longer than a day: make it shorter"));
    }
    Ok(())
}

/// Refuses a reference to a variable, which the kubelet passes on as it is if the container has no such
/// variable: with it, all nodes would have the same name.
pub(crate) fn expanded(text: &str) -> Result<(), String> {
    if text.contains("$(") {
        return Err(format!(
            "{text} is not expanded: the container's env needs this variable, before the one that refers to it"
        ));
    }
    Ok(())
}

/// Returns the port of a URL, `default` if it names none, and `None` if that is no port, such as `https` or `99999`.
pub(crate) fn port_of(authority: &Authority, default: u16) -> Option<u16> {
    match authority.port_u16() {
        None if authority.as_str() == authority.host() => Some(default),
        port => port,
    }
}

/// Parses a Service, in the agent's own namespace unless the text names one.
pub(crate) fn service(text: &str) -> Result<Service, String> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    if is_label(name) && namespace.is_none_or(is_label) {
        Ok(Service {
            namespace: namespace.map(ToOwned::to_owned),
            name: name.to_owned(),
        })
    } else {
        Err("write the name of a Service, or NAMESPACE/NAME".to_owned())
    }
}
