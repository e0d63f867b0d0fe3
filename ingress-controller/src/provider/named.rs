//! Values of flags that may be given several times, each for a load balancer of its own.

use std::collections::BTreeSet;
use std::str::FromStr;

use karmada_runtime::program::StartError;

/// `[NAME=]VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named<T> {
    /// The load balancer's name, empty without one.
    pub(super) name: String,
    pub(super) value: T,
}

impl<T: FromStr> FromStr for Named<T> {
    type Err = T::Err;

    /// Reads a value, with a name if the text before a first `=` is one: lower-case letters, digits and dashes.
    fn from_str(text: &str) -> Result<Self, T::Err> {
        let named = text.split_once('=').filter(|(name, _)| is_name(name));
        let (name, value) = named.unwrap_or(("", text));
        Ok(Self {
            name: name.to_owned(),
            value: value.parse()?,
        })
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Returns an error unless each of several `values` of `flag`, whose form is `[NAME=]VALUE`, has a name of its own.
pub(super) fn check_names<T>(
    flag: &str,
    form: &str,
    values: &[Named<T>],
) -> Result<(), StartError> {
    let names: BTreeSet<&str> = values.iter().map(|named| named.name.as_str()).collect();
    if values.len() > 1 && (names.len() < values.len() || names.contains("")) {
        return Err(StartError::Config(format!(
            "each of several {flag} needs a name of its own: {flag} NAME={form}"
        )));
    }
    Ok(())
}
