//! A call of a function in Rust: its arguments, and its end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mlua::{Lua, Table, Value};

use crate::arguments::Arguments;
use crate::deadline::{Deadline, Expired};
use crate::gopher::pattern::MatchError;
use crate::json;

/// The surroundings of one run of a script, on which it depends besides its arguments.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) deadline: Deadline,
    pub(crate) clock: Clock,
}

/// The clock and the die of a run.
#[derive(Debug)]
pub(crate) struct Clock {
    /// The seconds since 1970.
    now: i64,
    die: AtomicU64,
    /// True once the script has looked at either.
    asked: AtomicBool,
}

impl Clock {
    /// Creates a clock that stands at a time, in seconds since 1970.
    pub(crate) fn at(now: i64) -> Self {
        Self {
            now,
            die: AtomicU64::new(now.unsigned_abs()),
            asked: AtomicBool::new(false),
        }
    }

    /// Returns `true` if the script has looked at it.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Returns the seconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.asked.store(true, Ordering::Relaxed);
        self.now
    }

    /// Lets the die go on from `seed`.
    pub(crate) fn seed(&self, seed: u64) {
        self.die.store(seed, Ordering::Relaxed);
    }

    /// Returns a random number from 0 up to 1 (Steele, Lea, Flood: `SplitMix64`).
    pub(crate) fn random(&self) -> f64 {
        self.asked.store(true, Ordering::Relaxed);
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bits = self
            .die
            .fetch_add(step, Ordering::Relaxed)
            .wrapping_add(step);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits are left")]
        let part = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        part
    }
}

/// Ends of a function without a result.
pub(crate) enum Stop {
    /// It raises an error that the script may catch.
    Raise(String),
    /// It ends the script.
    Halt(mlua::Error),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Raise(message)
    }
}

impl From<mlua::Error> for Stop {
    fn from(error: mlua::Error) -> Self {
        Self::Halt(error)
    }
}

impl From<Expired> for Stop {
    fn from(expired: Expired) -> Self {
        Self::Halt(mlua::Error::external(expired))
    }
}

impl From<MatchError> for Stop {
    fn from(error: MatchError) -> Self {
        match error {
            MatchError::Invalid(message) => Self::Raise(message.to_owned()),
            MatchError::Expired(expired) => expired.into(),
        }
    }
}

pub(crate) type Results = Result<Vec<Value>, Stop>;
/// A function of a script that is in Rust.
pub(crate) type Native = fn(&Context, &Lua, Arguments<'_>) -> Results;

/// Returns a text as a script gets it.
pub(crate) fn string(lua: &Lua, text: impl AsRef<[u8]>) -> Result<Value, Stop> {
    Ok(Value::String(lua.create_string(text)?))
}

/// Returns the JSON of a table that a script gives to a function.
pub(crate) fn json_of(context: &Context, table: &Table) -> Result<serde_json::Value, Stop> {
    let whole = json::Empty::Object;
    let encoded = json::encode(&Value::Table(table.clone()), whole, &[], context.deadline);
    encoded.map_err(|error| match error {
        json::EncodeError::Invalid(message) => Stop::Raise(message),
        json::EncodeError::Halt(error) => Stop::Halt(error),
    })
}
