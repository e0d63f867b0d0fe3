//! Kubernetes's rules for names of the form `domain/name`, and for the values of labels.

/// Returns `true` for a valid key of a label: a name, with a domain or without.
pub fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_subdomain(domain) && is_name(name),
        None => is_name(text),
    }
}

/// Returns `true` for a valid value of a label.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

/// Returns `true` for a DNS-1123 label, by the rules of Kubernetes.
pub fn is_label(text: &str) -> bool {
    text.len() <= 63 && !text.contains('.') && is_subdomain(text)
}

/// Returns `true` for a DNS-1123 subdomain, by the rules of Kubernetes.
pub fn is_subdomain(text: &str) -> bool {
    let mut labels = text.split('.');
    text.len() <= 253
        && text.chars().all(|c| is_lower(c) || c == '-' || c == '.')
        && labels.all(|label| label.starts_with(is_lower) && label.ends_with(is_lower))
}

fn is_lower(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Returns `true` for a valid part of a qualified name after the slash.
pub fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}
