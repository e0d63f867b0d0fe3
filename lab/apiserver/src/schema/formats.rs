//! String formats that Kubernetes checks and JSON Schema lacks or defines differently.

use std::net::IpAddr;

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    match (address.parse(), length.parse::<u8>()) {
        (Ok(IpAddr::V4(_)), Ok(length)) => length <= 32,
        (Ok(IpAddr::V6(_)), Ok(length)) => length <= 128,
        _ => false,
    }
}

pub(super) fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns `true` for a Go duration: `1h30m`, `1.5s`, `-2us`.
pub(super) fn is_duration(text: &str) -> bool {
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest == "0" {
        return true;
    }
    let mut units = 0;
    while !rest.is_empty() {
        let number =
            rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"]
            .iter()
            .filter_map(|unit| number.strip_prefix(unit))
            .min_by_key(|rest| rest.len());
        let (Some(after), true) = (unit, number.len() < rest.len()) else {
            return false;
        };
        rest = after;
        units += 1;
    }
    units > 0
}

pub(super) fn is_uuid(text: &str) -> bool {
    let digits = text.replace('-', "");
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}
