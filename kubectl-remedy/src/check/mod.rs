//! `kubectl remedy check`: whether everything that remedies and propagation need is in place.

mod api;
mod clusters;
mod controllers;
mod members;
mod propagation;
mod report;

use jiff::Timestamp;
use kube::Client;

use self::report::Section;
use crate::answer::Answer;
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::terminal;

/// Checks the API, the rights of the caller, the controllers, the agents of every cluster, what is propagated, and the
/// way to every member.
pub(crate) async fn run(
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Answer, Error> {
    let mut is_well = true;
    let mut show = |section: &Section| {
        terminal::print(&section.to_string());
        is_well &= !section.fails();
        is_well
    };
    // Without these nothing further can be read.
    if !show(&api::kinds(client).await) || !show(&api::rights(client, namespace).await?) {
        return Ok(Answer::No);
    }
    let fleet = FleetSnapshot::read_without_backends(client, namespace, now).await?;
    show(&controllers::section(client, namespace, now).await?);
    show(&clusters::section(client, &fleet, now).await?);
    show(&propagation::section(client, namespace).await?);
    show(&members::section(client, now).await?);
    Ok(is_well.into())
}
