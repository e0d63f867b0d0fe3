//! `kubectl remedy check`: whether everything that remedies and propagation need is in place.

mod api;
mod before;
mod clusters;
mod controllers;
mod gates;
mod gateway;
mod members;
mod propagation;
mod report;

use std::time::Duration;

use jiff::Timestamp;
use karmada_runtime::client::Source;
use kube::Client;
use tokio::time::{Instant, sleep_until};

use self::report::Section;
use crate::answer::Answer;
use crate::args::CheckArgs;
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::propagation::Survey;
use crate::terminal;

/// The time between two checks, if it may take a while until nothing is wrong.
const PAUSE: Duration = Duration::from_secs(2);

/// Checks the API, the rights of the caller, the controllers, the agents of every cluster, the propagation, and the
/// way to every member; or the surroundings of an installation. A trouble may end within `--wait`; the last check is shown.
pub(crate) async fn run(
    args: &CheckArgs,
    source: &Source,
    client: &Client,
    namespace: Option<&str>,
) -> Result<Answer, Error> {
    let end = Instant::now() + args.wait.unwrap_or_default();
    let (sections, checked) = loop {
        let next = Instant::now() + PAUSE;
        let mut sections = Vec::new();
        let now = Timestamp::now();
        let checked = if args.pre {
            before::check(args, source, client, now, &mut sections).await
        } else {
            check(client, namespace, now, &mut sections).await
        };
        let is_well = checked.is_ok() && !sections.iter().any(Section::fails);
        if is_well || next > end {
            break (sections, checked.map(|()| is_well));
        }
        sleep_until(next).await;
    };
    for section in sections {
        terminal::print(&section.to_string());
    }
    checked.map(Answer::from)
}

/// Adds a section for each subject.
async fn check(
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
    sections: &mut Vec<Section>,
) -> Result<(), Error> {
    sections.push(api::kinds(client).await);
    // Without these nothing further can be read.
    if sections.iter().any(Section::fails) {
        return Ok(());
    }
    sections.push(api::rights(client, namespace).await?);
    if sections.iter().any(Section::fails) {
        return Ok(());
    }
    let fleet = FleetSnapshot::read_without_backends(client, namespace, now).await?;
    let survey = Survey::read(client, namespace).await;
    let known = survey.as_ref().ok().and_then(Option::as_ref);
    sections.push(controllers::section(client, namespace, known, now).await?);
    sections.push(clusters::section(client, &fleet, now).await?);
    sections.push(propagation::section(survey?));
    sections.push(members::section(client, now).await?);
    Ok(())
}
