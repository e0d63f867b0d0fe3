//! Validation of names, with the messages of a Kubernetes API
//! (`k8s.io/apimachinery/pkg/util/validation`).

/// The syntax of object names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum NameRule {
    /// RFC 1123 subdomain.
    #[default]
    Subdomain,
    /// RFC 1123 label.
    Label,
    /// Any segment of a path.
    PathSegment,
}

impl NameRule {
    /// Returns the rule that every name with this prefix breaks (`maskTrailingDash`).
    pub(crate) fn broken_by_prefix(self, prefix: &str) -> Option<String> {
        match prefix.strip_suffix('-') {
            Some(rest) if !rest.is_empty() => self.broken_by(&format!("{rest}a")),
            _ => self.broken_by(prefix),
        }
    }

    /// Returns the rule that a name breaks.
    pub(crate) fn broken_by(self, name: &str) -> Option<String> {
        match self {
            Self::Subdomain => subdomain(name),
            Self::Label => label(name),
            Self::PathSegment => path_segment(name),
        }
    }
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(is_lower)
        && bytes.last().copied().is_some_and(is_lower)
        && bytes.iter().all(|&byte| is_lower(byte) || byte == b'-')
}

fn subdomain(name: &str) -> Option<String> {
    if name.len() > 253 {
        return Some(too_long(253));
    }
    (!name.split('.').all(is_label)).then(|| {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
         '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
         for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .to_owned()
    })
}

/// RFC 1123 label.
pub(crate) fn label(name: &str) -> Option<String> {
    if name.len() > 63 {
        return Some(too_long(63));
    }
    if name.contains('.') {
        return Some("must not contain dots".to_owned());
    }
    (!is_label(name)).then(|| {
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
         must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
         used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    })
}

fn path_segment(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("may not be '{name}'")),
        _ if name.contains('/') => Some("may not contain '/'".to_owned()),
        _ if name.contains('%') => Some("may not contain '%'".to_owned()),
        _ => None,
    }
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && (bytes.iter()).all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Validates a label key, annotation key or finalizer: `example.com/name` or `name`.
pub(crate) fn qualified_name(text: &str) -> Option<String> {
    const FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
         with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let name = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            return Some(format!(
                "a valid label key {FORM} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            ));
        }
        Some(("", _)) => return Some("prefix part must be non-empty".to_owned()),
        Some((prefix, _)) if prefix.len() > 253 => {
            return Some("prefix part must be no more than 253 bytes".to_owned());
        }
        Some((prefix, name)) => {
            if let Some(why) = subdomain(prefix) {
                return Some(format!("prefix part {why}"));
            }
            name
        }
        None => text,
    };
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes".to_owned());
    }
    (!is_word(name)).then(|| format!("name part {FORM}"))
}

fn is_of_data_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// Validates a key of the data of a `ConfigMap` or `Secret`.
pub(crate) fn data_key(text: &str) -> Option<String> {
    if text.len() > 253 {
        return Some(too_long(253));
    }
    match text {
        "." => Some("must not be '.'".to_owned()),
        ".." => Some("must not be '..'".to_owned()),
        _ if text.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ if !text.is_empty() && text.bytes().all(is_of_data_key) => None,
        _ => Some(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        ),
    }
}

/// Validates the value of a label.
pub(crate) fn label_value(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!text.is_empty() && !is_word(text)).then(|| {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
         '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
         'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            .to_owned()
    })
}
