//! Clusters that join, leave, and get new tokens: those of a Karmada by their `agent`, and those of a `fleet` without one by themselves.
//! docs/join.md does the same by hand.

pub(crate) mod agent;
mod fleet;
mod joined;

use jiff::Timestamp;
use karmada_runtime::client::Source;
use kube::Client;

use crate::answer::Answer;
use crate::args::join::{JoinArgs, LeaveArgs, RenewArgs};
use crate::error::Error;
use crate::{credentials, terminal};

/// Lets clusters join.
pub(crate) async fn join(
    args: &JoinArgs,
    source: &Source,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    if args.fleet {
        fleet::join(args, source, client, now).await
    } else {
        agent::join(args, source, client, now).await
    }
}

/// Lets clusters leave.
pub(crate) async fn leave(
    args: &LeaveArgs,
    source: &Source,
    client: &Client,
) -> Result<Answer, Error> {
    if args.fleet {
        fleet::leave(args, source, client).await
    } else {
        agent::leave(args, source, client).await
    }
}

/// Renews the tokens of agents and, where the flags say so, those of members and of programs.
pub(crate) async fn renew(
    args: &RenewArgs,
    source: &Source,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let agents = agent::renew(args, client, now).await;
    if !args.fleet && !args.has_host() {
        return agents;
    }
    let mut answers = vec![agents];
    if args.fleet {
        answers.push(fleet::renew(args, client, now).await);
    }
    if args.has_host() {
        answers.push(credentials::renew(args, source, now).await);
    }
    // One sort of tokens holds up no other.
    let mut are_renewed = true;
    for answer in answers {
        are_renewed &= answer.unwrap_or_else(|error| {
            terminal::print_error(&format!("error: {error}"));
            Answer::No
        }) == Answer::Yes;
    }
    Ok(are_renewed.into())
}
