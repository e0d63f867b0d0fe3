//! `string.format`, which is Go's `Sprintf` there: its verbs, and its marks for values that do not fit.

use super::numbers;

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    Number(f64),
    Text(Vec<u8>),
    Boolean(bool),
    Nil,
    /// Any other, by its Go type and its text.
    Other(&'static str, String),
}

/// The widest field, and the most digits.
const WIDEST: usize = 1_000_000;

/// The part of a directive before its verb.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each stands for a character that may be there"
)]
struct Flags {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// Returns the text of `format` with the arguments put in.
pub(crate) fn format(format: &[u8], arguments: &[Argument]) -> Vec<u8> {
    // As gopher-lua counts: further arguments are left out.
    let marks = format.split(|byte| *byte == b'%').count() - 1;
    let expected = marks - pairs(format);
    let arguments = &arguments[..expected.min(arguments.len())];
    let mut given = arguments.iter();
    let mut out = Vec::new();
    let mut rest = format;
    while let Some(place) = rest.iter().position(|byte| *byte == b'%') {
        out.extend_from_slice(&rest[..place]);
        rest = &rest[place + 1..];
        let flags;
        (flags, rest) = directive(rest, &mut given, &mut out);
        let Some((verb, after)) = character(rest) else {
            out.extend_from_slice(b"%!(NOVERB)");
            break;
        };
        rest = after;
        match given.as_slice().first() {
            _ if verb == '%' => out.push(b'%'),
            None => out.extend_from_slice(format!("%!{verb}(MISSING)").as_bytes()),
            Some(argument) => {
                given.next();
                one(&mut out, verb, flags, argument);
            }
        }
        if out.len() > WIDEST * 4 {
            break;
        }
    }
    if !rest.contains(&b'%') {
        out.extend_from_slice(rest);
    }
    extra(&mut out, given.as_slice());
    out
}

/// Returns the number of `%%` that do not overlap.
fn pairs(format: &[u8]) -> usize {
    let (mut count, mut rest) = (0, format);
    while let Some(place) = rest.windows(2).position(|pair| pair == b"%%") {
        count += 1;
        rest = &rest[place + 2..];
    }
    count
}

/// Reads flags, width and precision, and returns the rest.
fn directive<'a>(
    mut rest: &'a [u8],
    given: &mut std::slice::Iter<'_, Argument>,
    out: &mut Vec<u8>,
) -> (Flags, &'a [u8]) {
    let mut flags = Flags::default();
    while let Some((&flag, after)) = rest.split_first() {
        match flag {
            b'-' => flags.minus = true,
            b'+' => flags.plus = true,
            b'#' => flags.sharp = true,
            b' ' => flags.space = true,
            b'0' => flags.zero = true,
            _ => break,
        }
        rest = after;
    }
    if let Some((b'*', after)) = rest.split_first() {
        // No number of Lua's is an integer of Go's.
        given.next();
        out.extend_from_slice(b"%!(BADWIDTH)");
        rest = after;
    } else {
        (flags.width, rest) = digits(rest);
    }
    if let Some((b'.', after)) = rest.split_first() {
        let (precision, after) = digits(after);
        flags.precision = Some(precision.unwrap_or_default());
        rest = after;
    }
    flags.zero &= !flags.minus;
    (flags, rest)
}

fn digits(bytes: &[u8]) -> (Option<usize>, &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit());
    let (number, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    let number = std::str::from_utf8(number).ok();
    let number = number.and_then(|number| number.parse::<usize>().ok());
    (number.map(|number| number.min(WIDEST)), rest)
}

fn character(bytes: &[u8]) -> Option<(char, &[u8])> {
    let first = bytes.utf8_chunks().next()?;
    match first.valid().chars().next() {
        Some(verb) => Some((verb, &bytes[verb.len_utf8()..])),
        None => Some((char::REPLACEMENT_CHARACTER, &bytes[1..])),
    }
}

fn one(out: &mut Vec<u8>, verb: char, flags: Flags, argument: &Argument) {
    match argument {
        Argument::Number(value) => number(out, verb, flags, *value),
        Argument::Text(text) => match verb {
            'd' | 'i' => match numbers::read(&String::from_utf8_lossy(text), None) {
                Some(_) => string(out, 's', flags, text),
                None => number(out, 'd', flags, 0.0),
            },
            verb => string(out, verb, flags, text),
        },
        Argument::Boolean(value) => match verb {
            't' | 's' | 'v' | 'q' | 'x' | 'X' => {
                let verb = if verb == 't' { 's' } else { verb };
                string(out, verb, flags, value.to_string().as_bytes());
            }
            verb => bad(out, verb, "lua.LBool", &value.to_string()),
        },
        Argument::Nil => string_of(out, verb, flags, ("*lua.LNilType", "nil")),
        Argument::Other(kind, text) => string_of(out, verb, flags, (kind, text)),
    }
}

fn string_of(out: &mut Vec<u8>, verb: char, flags: Flags, (kind, text): (&str, &str)) {
    match verb {
        's' | 'v' | 'q' | 'x' | 'X' => string(out, verb, flags, text.as_bytes()),
        verb => bad(out, verb, kind, text),
    }
}

fn number(out: &mut Vec<u8>, verb: char, flags: Flags, number: f64) {
    let integer = numbers::truncated(number);
    match verb {
        's' | 'q' => string(out, verb, flags, numbers::text(number).as_bytes()),
        'd' | 'i' | 'b' | 'o' | 'x' | 'X' => whole(out, verb, flags, integer),
        'c' => {
            let code = u32::try_from(integer).ok().and_then(char::from_u32);
            let code = code.unwrap_or(char::REPLACEMENT_CHARACTER).to_string();
            pad(out, code.as_bytes(), flags);
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => float(out, verb, flags, number),
        'v' if numbers::text(number) == integer.to_string() => whole(out, 'd', flags, integer),
        'v' => float(out, 'g', flags, number),
        verb if numbers::text(number) == integer.to_string() => {
            bad(out, verb, "int64", &integer.to_string());
        }
        verb => bad(out, verb, "float64", &numbers::general(number, None)),
    }
}

fn whole(out: &mut Vec<u8>, verb: char, flags: Flags, integer: i64) {
    let size = integer.unsigned_abs();
    let (prefix, digits) = match verb {
        'b' => ("0b", format!("{size:b}")),
        'o' => ("0", format!("{size:o}")),
        'x' => ("0x", format!("{size:x}")),
        'X' => ("0X", format!("{size:X}")),
        _ => ("", size.to_string()),
    };
    let prefix = if flags.sharp { prefix } else { "" };
    let least = flags.precision.unwrap_or_default();
    let digits = format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
    let zero = flags.zero && flags.precision.is_none();
    let flags = Flags { zero, ..flags };
    signed(out, flags, integer < 0, &format!("{prefix}{digits}"));
}

fn float(out: &mut Vec<u8>, verb: char, flags: Flags, number: f64) {
    let text = match verb.to_ascii_lowercase() {
        'e' => numbers::scientific(number, flags.precision.unwrap_or(6)),
        'f' => numbers::fixed(number, flags.precision.unwrap_or(6)),
        _ => numbers::general(number, flags.precision),
    };
    let text = if verb.is_ascii_uppercase() && number.is_finite() {
        text.to_ascii_uppercase()
    } else {
        text
    };
    // An infinite number shows its sign always.
    let always = number.is_infinite() && number > 0.0;
    let flags = Flags {
        plus: flags.plus || always,
        zero: flags.zero && number.is_finite(),
        ..flags
    };
    let size = text.trim_start_matches(['-', '+']);
    signed(out, flags, text.starts_with('-'), size);
}

/// Writes a number after its sign; zeros stand between both.
fn signed(out: &mut Vec<u8>, flags: Flags, is_negative: bool, size: &str) {
    let sign = match (is_negative, flags.plus, flags.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    let width = flags.width.unwrap_or_default();
    let zeros = if flags.zero {
        width.saturating_sub(sign.len() + size.len())
    } else {
        0
    };
    let text = format!("{sign}{}{size}", "0".repeat(zeros));
    let flags = Flags {
        zero: false,
        ..flags
    };
    pad(out, text.as_bytes(), flags);
}

fn string(out: &mut Vec<u8>, verb: char, flags: Flags, text: &[u8]) {
    let shown = match flags.precision {
        Some(most) => truncated(text, most),
        None => text,
    };
    match verb {
        's' | 'v' => pad(out, shown, flags),
        'q' => pad(out, quoted(shown).as_bytes(), flags),
        'x' => pad(out, hexadecimal(shown).as_bytes(), flags),
        'X' => pad(
            out,
            hexadecimal(shown).to_ascii_uppercase().as_bytes(),
            flags,
        ),
        verb => bad(out, verb, "string", &String::from_utf8_lossy(text)),
    }
}

/// Returns the first characters of a text.
fn truncated(text: &[u8], most: usize) -> &[u8] {
    let mut end = 0;
    for _ in 0..most {
        match character(&text[end..]) {
            Some((_, rest)) => end = text.len() - rest.len(),
            None => break,
        }
    }
    &text[..end]
}

fn hexadecimal(text: &[u8]) -> String {
    let digits = text.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    digits.collect()
}

fn quoted(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => quoted.push_str("\\\""),
                '\\' => quoted.push_str("\\\\"),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                control if control.is_ascii_control() => {
                    quoted.push_str("\\x");
                    quoted.push_str(&hexadecimal(control.to_string().as_bytes()));
                }
                other => quoted.push(other),
            }
        }
        for byte in chunk.invalid() {
            quoted.push_str("\\x");
            quoted.push_str(&hexadecimal(&[*byte]));
        }
    }
    quoted.push('"');
    quoted
}

fn pad(out: &mut Vec<u8>, text: &[u8], flags: Flags) {
    let length = String::from_utf8_lossy(text).chars().count();
    let missing = flags.width.unwrap_or_default().saturating_sub(length);
    let filler = if flags.zero { b'0' } else { b' ' };
    if !flags.minus {
        out.extend(std::iter::repeat_n(filler, missing));
    }
    out.extend_from_slice(text);
    if flags.minus {
        out.extend(std::iter::repeat_n(b' ', missing));
    }
}

fn bad(out: &mut Vec<u8>, verb: char, kind: &str, value: &str) {
    out.extend_from_slice(format!("%!{verb}({kind}={value})").as_bytes());
}

/// Names the arguments that nothing asked for.
fn extra(out: &mut Vec<u8>, arguments: &[Argument]) {
    if arguments.is_empty() {
        return;
    }
    let named = arguments.iter().map(|argument| match argument {
        Argument::Number(number) => format!("lua.LNumber={}", numbers::text(*number)),
        Argument::Text(text) => format!("lua.LString={}", String::from_utf8_lossy(text)),
        Argument::Boolean(value) => format!("lua.LBool={value}"),
        Argument::Nil => "*lua.LNilType=nil".to_owned(),
        Argument::Other(kind, text) => format!("{kind}={text}"),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    out.extend_from_slice(format!("%!(EXTRA {named})").as_bytes());
}
