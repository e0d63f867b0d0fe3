//! Lua's patterns, as gopher-lua matches them (its package `pm`).
//!
//! A pattern becomes the instructions of a small machine, which tries one way and goes back to the last choice where
//! that fails. It counts its steps: a match in C could go on without end, and no hook stops it.

mod parse;
mod program;

use std::ops::Range;

use crate::deadline::{Deadline, Expired};

use self::program::Instruction;
pub(crate) use self::program::Pattern;

/// The most choices that are remembered at once: one for each byte of the longest text.
const MOST_CHOICES: usize = 1_100_000;

/// Errors of a match.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MatchError {
    #[error("{0}")]
    Invalid(&'static str),
    #[error(transparent)]
    Expired(#[from] Expired),
}

/// An occurrence of a pattern.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) whole: Range<usize>,
    pub(crate) captures: Vec<Capture>,
    /// The place from which the next occurrence is looked for; `None` if there can be no other.
    pub(crate) next: Option<usize>,
}

/// The text that a part of a pattern has captured.
#[derive(Clone, Debug)]
pub(crate) enum Capture {
    Text(Range<usize>),
    /// A place, counted from 1.
    Position(usize),
}

/// The step that is undone when a way fails.
enum Undo {
    GoOn { at: usize, place: usize },
    Restore { capture: usize, slot: Slot },
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    start: Option<usize>,
    end: Option<usize>,
    is_position: bool,
}

impl Pattern {
    /// Returns the first occurrence in `text` from `from` on.
    pub(crate) fn find(
        &self,
        text: &[u8],
        from: usize,
        deadline: &Deadline,
    ) -> Result<Option<Found>, MatchError> {
        let mut machine = Machine {
            pattern: self,
            text,
            deadline,
            steps: 0,
            slots: vec![Slot::default(); self.captures],
            undo: Vec::new(),
        };
        for start in from..=text.len() {
            if let Some(end) = machine.run(start)? {
                let next = end.max(start + 1);
                let slots = machine.slots.iter();
                return Ok(Some(Found {
                    whole: start..end,
                    captures: slots.filter_map(Slot::capture).collect(),
                    next: (!self.is_anchored).then_some(next),
                }));
            }
            if self.is_anchored {
                break;
            }
        }
        Ok(None)
    }
}

impl Slot {
    fn capture(&self) -> Option<Capture> {
        let start = self.start?;
        Some(if self.is_position {
            Capture::Position(start + 1)
        } else {
            Capture::Text(start..self.end?)
        })
    }
}

struct Machine<'a> {
    pattern: &'a Pattern,
    text: &'a [u8],
    deadline: &'a Deadline,
    steps: u32,
    slots: Vec<Slot>,
    undo: Vec<Undo>,
}

impl Machine<'_> {
    /// Returns the end of an occurrence that begins at `start`.
    fn run(&mut self, start: usize) -> Result<Option<usize>, MatchError> {
        self.undo.clear();
        self.slots.fill(Slot::default());
        let (mut at, mut place) = (0, start);
        loop {
            self.step()?;
            let next = match self.pattern.program.get(at) {
                None | Some(Instruction::End) => return Ok(Some(place)),
                Some(Instruction::EndOfText) if place == self.text.len() => {
                    return Ok(Some(place));
                }
                Some(instruction) => self.advance(instruction, at, place)?,
            };
            (at, place) = match next {
                Some(next) => next,
                None => match self.back() {
                    Some(other) => other,
                    None => return Ok(None),
                },
            };
        }
    }

    fn step(&mut self) -> Result<(), MatchError> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(4096) {
            self.deadline.check()?;
        }
        if self.undo.len() > MOST_CHOICES {
            return Err(MatchError::Invalid("pattern too complex"));
        }
        Ok(())
    }

    /// Returns where it goes on; `None` if the way fails.
    fn advance(
        &mut self,
        instruction: &Instruction,
        at: usize,
        place: usize,
    ) -> Result<Option<(usize, usize)>, MatchError> {
        let next = match instruction {
            Instruction::Byte(class) => {
                let byte = self.text.get(place);
                byte.filter(|byte| class.has(**byte))
                    .map(|_| (at + 1, place + 1))
            }
            Instruction::Jump(to) => Some((*to, place)),
            Instruction::Try(first, second) => {
                self.undo.push(Undo::GoOn { at: *second, place });
                Some((*first, place))
            }
            Instruction::Open(capture) => {
                self.set(*capture, |slot| slot.start = Some(place));
                Some((at + 1, place))
            }
            Instruction::Close(capture) => {
                self.set(*capture, |slot| slot.end = Some(place));
                Some((at + 1, place))
            }
            Instruction::Position(capture) => {
                self.set(*capture, |slot| {
                    *slot = Slot {
                        start: Some(place),
                        end: Some(place),
                        is_position: true,
                    };
                });
                Some((at + 1, place))
            }
            Instruction::Balanced(open, close) => {
                let end = self.balanced(place, *open, *close)?;
                end.map(|end| (at + 1, end))
            }
            Instruction::Repeat(capture) => {
                let slot = self.slots.get(*capture).copied().unwrap_or_default();
                let (Some(start), Some(end)) = (slot.start, slot.end) else {
                    return Err(MatchError::Invalid("invalid capture index"));
                };
                let repeated = self.text.get(start..end).unwrap_or_default();
                let rest = self.text.get(place..).unwrap_or_default();
                rest.starts_with(repeated)
                    .then(|| (at + 1, place + repeated.len()))
            }
            Instruction::End | Instruction::EndOfText => None,
        };
        Ok(next)
    }

    fn set(&mut self, capture: usize, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slots.get_mut(capture) {
            self.undo.push(Undo::Restore {
                capture,
                slot: *slot,
            });
            change(slot);
        }
    }

    /// Returns the end of the text that begins with `open` at `place` and has as many of both.
    fn balanced(
        &mut self,
        place: usize,
        open: Option<u8>,
        close: Option<u8>,
    ) -> Result<Option<usize>, MatchError> {
        let first = self.text.get(place).copied();
        if first.is_none() || first != open {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for (end, byte) in self.text.iter().enumerate().skip(place + 1) {
            self.step()?;
            let byte = Some(*byte);
            if byte == close {
                depth -= 1;
            }
            if depth == 0 {
                return Ok(Some(end + 1));
            }
            if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// Goes back to the last choice.
    fn back(&mut self) -> Option<(usize, usize)> {
        loop {
            match self.undo.pop()? {
                Undo::GoOn { at, place } => return Some((at, place)),
                Undo::Restore { capture, slot } => {
                    if let Some(changed) = self.slots.get_mut(capture) {
                        *changed = slot;
                    }
                }
            }
        }
    }
}
