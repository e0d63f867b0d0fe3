//! The numbers of YAML 1.1, as go-yaml 2 reads them.

/// Returns the JSON of a number that begins with a digit or a sign; `None` if it is none.
pub(super) fn number(text: &str) -> Option<String> {
    integer(text).or_else(|| of_float(text))
}

fn integer(text: &str) -> Option<String> {
    let (sign, digits) = match text.as_bytes() {
        [b'-', ..] => ("-", &text[1..]),
        [b'+', ..] => ("", &text[1..]),
        _ => ("", text),
    };
    let is_decimal = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if is_decimal && !digits.starts_with('0') {
        return Some(format!("{sign}{digits}"));
    }
    if digits == "0" {
        return Some(digits.to_owned());
    }
    let (prefix, rest) = digits.split_at_checked(2)?;
    let (radix, digits) = match prefix {
        "0x" | "0X" => (16, rest),
        "0o" | "0O" => (8, rest),
        "0b" | "0B" => (2, rest),
        _ if digits.starts_with('0') => (8, &digits[1..]),
        _ => return None,
    };
    let is_number = digits
        .bytes()
        .all(|digit| char::from(digit).is_digit(radix));
    let value = u128::from_str_radix(digits, radix).ok();
    let value = value.filter(|_| is_number)?;
    Some(if value == 0 {
        "0".to_owned()
    } else {
        format!("{sign}{value}")
    })
}

/// Returns the JSON of a fraction or power; `None` if it is none, or greater than any.
pub(super) fn of_float(text: &str) -> Option<String> {
    // Words are numbers, too, for a parser.
    let is_number = |letter: u8| letter.is_ascii_digit() || b"+-.eE".contains(&letter);
    let value: f64 = text.bytes().all(is_number).then(|| text.parse().ok())??;
    let is_plain = value == 0.0 || (1e-6..1e21).contains(&value.abs());
    let shown = if is_plain {
        value.to_string()
    } else {
        format!("{value:e}")
    };
    value.is_finite().then_some(shown)
}
