//! The steps of a sequence.

use super::fault::{About, Api, ApiFault};

/// A step of a sequence: a change `C` of the world, or an event of the programs `R` or the APIs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants explain their fields")]
pub enum Step<C, R> {
    /// Users, members or others change something.
    Change(C),
    /// A replica of a program is killed.
    Kill { program: R, replica: u8 },
    /// A replica is stopped as by SIGTERM.
    Stop { program: R, replica: u8 },
    /// A replica starts unless it runs already.
    Start { program: R, replica: u8 },
    /// A replica dies at one of its next writes, after it was stored or before.
    Crash {
        program: R,
        replica: u8,
        write: u8,
        stored: bool,
    },
    /// An API has a fault for some seconds, for one program or all.
    Fault {
        api: Api,
        program: Option<R>,
        about: Option<About>,
        fault: ApiFault,
        seconds: u16,
    },
    /// Every fault ends.
    Repair,
    /// Every fault ends, every program runs, and time passes until the world has settled.
    Settle,
    /// Time passes.
    Wait { millis: u32 },
}

impl<C, R> Step<C, R> {
    /// Returns the change, if it is one.
    pub(crate) fn change(&self) -> Option<&C> {
        match self {
            Self::Change(change) => Some(change),
            _ => None,
        }
    }
}
