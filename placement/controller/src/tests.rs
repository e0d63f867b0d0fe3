//! The whole program on the embedded API. Time is virtual: a pause ends once nothing is left to do.

mod deletion;
mod evictions;
mod membership;
mod overrides;
mod placements;
mod profiles;
mod refusals;
mod schedule;
mod scoped;
mod snapshots;
mod stage;
mod status_copies;
mod takeover;
mod updates;
mod works;
