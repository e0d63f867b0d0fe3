//! Reads a pattern.

use super::program::{Class, Instruction, Pattern};

/// The deepest nesting of captures.
const DEEPEST: usize = 200;
/// The longest pattern, in bytes.
const LONGEST: usize = 10_000;

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Fails with gopher-lua's message if it is none.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("pattern longer than {LONGEST} bytes"));
        }
        let mut parser = Parser {
            text,
            place: 0,
            program: Vec::new(),
            captures: 0,
            depth: 0,
            is_at_end: false,
        };
        let is_anchored = parser.take_if(b'^');
        parser.sequence()?;
        let end = if parser.is_at_end {
            Instruction::EndOfText
        } else {
            Instruction::End
        };
        parser.program.push(end);
        Ok(Self {
            program: parser.program,
            captures: parser.captures,
            is_anchored,
        })
    }
}

struct Parser<'a> {
    text: &'a [u8],
    place: usize,
    program: Vec<Instruction>,
    captures: usize,
    /// The captures around the place.
    depth: usize,
    /// True after a `$` that stands for the end of the text.
    is_at_end: bool,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.place).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.place += 1;
        Some(byte)
    }

    fn take_if(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.place += usize::from(is_there);
        is_there
    }

    /// Returns the error that gopher-lua reports at the last byte that was read.
    fn error(&self, message: &str) -> String {
        format!("{message} at {}", self.place.saturating_sub(1))
    }

    /// Reads up to the end of the pattern, or of a capture.
    fn sequence(&mut self) -> Result<(), String> {
        // The class that a `*` after it repeats.
        let mut last: Option<Class> = None;
        while let Some(byte) = self.peek() {
            if let (b'*' | b'+' | b'-' | b'?', Some(class)) = (byte, &last) {
                self.place += 1;
                // It stands there already, once.
                self.program.pop();
                let class = class.clone();
                self.repeat(byte, class);
                last = None;
                continue;
            }
            last = None;
            match byte {
                b'%' => match self.text.get(self.place + 1) {
                    Some(b'0') => {
                        self.place += 1;
                        return Err(self.error("invalid capture index"));
                    }
                    Some(digit @ b'1'..=b'9') => {
                        self.place += 2;
                        let capture = usize::from(digit - b'1');
                        self.program.push(Instruction::Repeat(capture));
                    }
                    Some(b'b') => {
                        self.place += 2;
                        let (open, close) = (self.next(), self.next());
                        self.program.push(Instruction::Balanced(open, close));
                    }
                    _ => last = Some(self.class(true)?),
                },
                b'.' | b'[' => last = Some(self.class(true)?),
                b')' if self.depth == 0 => return Err(self.error("invalid ')'")),
                b')' => return Ok(()),
                b'(' => self.capture()?,
                b'$' if self.depth == 0 && self.place + 1 == self.text.len() => {
                    self.place += 1;
                    self.is_at_end = true;
                }
                literal => {
                    self.place += 1;
                    last = Some(Class::One(literal));
                }
            }
            if let Some(class) = &last {
                self.program.push(Instruction::Byte(class.clone()));
            }
        }
        Ok(())
    }

    fn capture(&mut self) -> Result<(), String> {
        self.place += 1;
        let capture = self.captures;
        self.captures += 1;
        if self.take_if(b')') {
            self.program.push(Instruction::Position(capture));
            return Ok(());
        }
        if self.depth == DEEPEST {
            return Err(self.error("too many captures"));
        }
        self.program.push(Instruction::Open(capture));
        self.depth += 1;
        self.sequence()?;
        self.depth -= 1;
        if !self.take_if(b')') {
            return Err("unfinished capture at EOS".to_owned());
        }
        self.program.push(Instruction::Close(capture));
        Ok(())
    }

    fn repeat(&mut self, sign: u8, class: Class) {
        let at = self.program.len();
        let byte = Instruction::Byte(class);
        match sign {
            b'*' => self.program.extend([
                Instruction::Try(at + 1, at + 3),
                byte,
                Instruction::Jump(at),
            ]),
            b'+' => self.program.extend([byte, Instruction::Try(at, at + 2)]),
            b'-' => self.program.extend([
                Instruction::Try(at + 3, at + 1),
                byte,
                Instruction::Jump(at),
            ]),
            _ => self
                .program
                .extend([Instruction::Try(at + 1, at + 2), byte]),
        }
    }

    fn class(&mut self, may_be_set: bool) -> Result<Class, String> {
        Ok(match self.next() {
            Some(b'%') => self.next().map_or(Class::Nothing, Class::Named),
            Some(b'.') if may_be_set => Class::Any,
            Some(b'[') if may_be_set => self.set()?,
            Some(byte) => Class::One(byte),
            None => return Err("unexpected EOS at EOS".to_owned()),
        })
    }

    fn set(&mut self) -> Result<Class, String> {
        let is_inverted = self.take_if(b'^');
        let mut classes: Vec<Class> = Vec::new();
        let mut is_range = false;
        loop {
            match self.peek() {
                None => return Err(self.error("unexpected EOS")),
                Some(b']') if !classes.is_empty() => {
                    self.place += 1;
                    break;
                }
                Some(b'-') if !classes.is_empty() => {
                    self.place += 1;
                    is_range = true;
                }
                Some(_) => {
                    let last = self.class(false)?;
                    if std::mem::take(&mut is_range) {
                        let range = match (classes.pop(), last) {
                            (Some(Class::One(first)), Class::One(last)) => {
                                Class::Range(first, last)
                            }
                            _ => Class::Nothing,
                        };
                        classes.push(range);
                    } else {
                        classes.push(last);
                    }
                }
            }
        }
        if is_range {
            classes.push(Class::One(b'-'));
        }
        Ok(Class::Set {
            is_inverted,
            classes,
        })
    }
}
