//! The numbers of YAML 1.1, as go-yaml 2 reads them.

/// Returns the JSON of a number that begins with a digit or a sign; `None` if it is none.
pub(super) fn number(text: &str) -> Option<String> {
    integer(text).or_else(|| of_float(text))
}

fn integer(text: &str) -> Option<String> {
    // In another radix go-yaml reads 64 bits; decimal digits are all kept.
    let (sign, digits, most) = match text.as_bytes() {
        [b'-', ..] => ("-", &text[1..], i64::MIN.unsigned_abs()),
        [b'+', ..] => ("", &text[1..], i64::MAX.unsigned_abs()),
        _ => ("", text, u64::MAX),
    };
    let is_decimal = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if is_decimal && !digits.starts_with('0') {
        return Some(format!("{sign}{digits}"));
    }
    if digits == "0" {
        return Some(digits.to_owned());
    }
    let (prefix, rest) = digits.split_at_checked(2)?;
    let (radix, of_radix) = match prefix {
        "0x" | "0X" => (16, rest),
        "0o" | "0O" => (8, rest),
        "0b" | "0B" => (2, rest),
        _ if digits.starts_with('0') => (8, &digits[1..]),
        _ => return None,
    };
    let is_number = of_radix
        .bytes()
        .all(|digit| char::from(digit).is_digit(radix));
    let value = u64::from_str_radix(of_radix, radix).ok();
    match value.filter(|value| is_number && *value <= most) {
        Some(0) => Some("0".to_owned()),
        Some(value) => Some(format!("{sign}{value}")),
        // The zeros of a number that is not octal, or too great for that, mean nothing.
        None => is_decimal.then(|| format!("{sign}{}", digits.trim_start_matches('0'))),
    }
}

/// Returns the JSON of a fraction or power; `None` if it is none, or greater than any.
pub(super) fn of_float(text: &str) -> Option<String> {
    // Words are numbers, too, for a parser.
    let mut letters = text.bytes();
    let is_number = letters.all(|letter| letter.is_ascii_digit() || b"+-.eE".contains(&letter));
    let value: f64 = is_number.then(|| text.parse().ok())??;
    let is_plain = value == 0.0 || (1e-6..1e21).contains(&value.abs());
    let shown = if is_plain {
        value.to_string()
    } else {
        format!("{value:e}")
    };
    value.is_finite().then_some(shown)
}
