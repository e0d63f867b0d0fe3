//! The agent's verdict beside real resolvers: random DNS worlds, in each of which glibc, musl, Go and the agent
//! look the same name up. Every way in which they differ is either a mistake, or has a row in `docs/probe.md`.

mod difference;
mod play;
mod table;
mod world;

pub use self::play::{Seen, play};
pub use self::table::{Table, compare};
pub use self::world::World;
