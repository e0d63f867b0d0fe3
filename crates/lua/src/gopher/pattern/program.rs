//! The instructions that a pattern becomes.

/// A pattern that can be matched.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(super) program: Vec<Instruction>,
    /// The number of captures.
    pub(super) captures: usize,
    pub(super) is_anchored: bool,
}

/// A step of the machine; places are those of other steps.
#[derive(Debug)]
pub(super) enum Instruction {
    Byte(Class),
    Jump(usize),
    /// Goes on at the first place, or else at the second.
    Try(usize, usize),
    Open(usize),
    Close(usize),
    Position(usize),
    Balanced(Option<u8>, Option<u8>),
    Repeat(usize),
    End,
    /// The end, which must be that of the text.
    EndOfText,
}

/// A set of bytes.
#[derive(Clone, Debug)]
pub(super) enum Class {
    Any,
    One(u8),
    /// The letter of a class; a capital one is of all others.
    Named(u8),
    Range(u8, u8),
    Set {
        is_inverted: bool,
        classes: Vec<Self>,
    },
    Nothing,
}

impl Class {
    pub(super) fn has(&self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::One(one) => *one == byte,
            Self::Named(letter) => {
                let is_of = match letter.to_ascii_lowercase() {
                    b'a' => byte.is_ascii_alphabetic(),
                    b'c' => byte.is_ascii_control(),
                    b'd' => byte.is_ascii_digit(),
                    b'l' => byte.is_ascii_lowercase(),
                    b'p' => byte.is_ascii_punctuation(),
                    b's' => matches!(byte, b' ' | 0x09..=0x0d),
                    b'u' => byte.is_ascii_uppercase(),
                    b'w' => byte.is_ascii_alphanumeric(),
                    b'x' => byte.is_ascii_hexdigit(),
                    b'z' => byte == 0,
                    _ => return byte == *letter,
                };
                is_of != letter.is_ascii_uppercase()
            }
            Self::Range(first, last) => (*first..=*last).contains(&byte),
            Self::Set {
                is_inverted,
                classes,
            } => classes.iter().any(|class| class.has(byte)) != *is_inverted,
            Self::Nothing => false,
        }
    }
}
