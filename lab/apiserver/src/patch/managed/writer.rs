//! Who writes.

/// The author of a write: field manager, subresource and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) subresource: Option<&'a str>,
    /// RFC 3339, in seconds.
    pub(crate) time: &'a str,
}

/// Returns the field manager of a request. It defaults to the first part of the user agent.
pub(crate) fn manager_of(field_manager: Option<&str>, user_agent: Option<&str>) -> String {
    if let Some(name) = field_manager.filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let agent = user_agent
        .and_then(|agent| agent.split('/').next())
        .unwrap_or_default();
    let mut name = String::new();
    for letter in agent.chars().filter(|letter| !letter.is_control()) {
        // `FieldManagerMaxLength` of apimachinery, in bytes.
        if name.len() + letter.len_utf8() > 128 {
            break;
        }
        name.push(letter);
    }
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}
