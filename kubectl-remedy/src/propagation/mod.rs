//! `kubectl remedy why TYPE/NAME`: how far an object has come on its way to the members, and its obstacle.
//!
//! ```text
//! argument → named ─┐
//! API → discovery ──┴→ gather → facts → report → text, JSON or YAML
//!                                 │       ├ policy, binding, cluster: the links of the chain
//!                                 └───────┴ cause: the first link that does not hold, and the next command
//! ```
//!
//! `survey` is all of it, for `kubectl remedy check`.
//!
//! `gather` makes every request. The rest is decided by the rules that the programs act by.

mod binding;
mod cause;
mod cluster;
mod command;
mod discovery;
mod facts;
mod gather;
mod named;
mod near_misses;
mod policy;
mod report;
mod requests;
mod survey;
mod templates;
#[cfg(test)]
mod tests;
mod text;
mod trouble;
mod unavailable;

use jiff::Timestamp;
use kube::Client;

pub(crate) use self::discovery::{Served, served};
pub(crate) use self::named::Named;
use self::report::Report;
pub(crate) use self::survey::{Remark, Survey};
use crate::answer::Answer;
use crate::args::WhyArgs;
use crate::error::Error;
use crate::{manifest, terminal};

/// Explains where an object stands that is propagated, or a binding or a Work that is made of one on its way.
pub(crate) async fn run(
    named: &Named<'_>,
    args: &WhyArgs,
    client: &Client,
    namespace: &str,
    now: Timestamp,
) -> Result<Answer, Error> {
    let facts = gather::read(named, args, client, namespace).await?;
    let report = Report::of(&facts);
    terminal::print(&match args.output {
        None => report.text(now),
        Some(format) => manifest::text(&report, format)?,
    });
    Ok(Answer::Yes)
}
