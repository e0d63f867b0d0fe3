//! `kubectl remedy why`: every link from the verdict of a cluster's nodes to the load balancer.

mod explanation;
mod links;
mod text;

use jiff::Timestamp;
use kube::Client;

use crate::answer::Answer;
use crate::args::WhyArgs;
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::{manifest, terminal};

pub(crate) use self::explanation::requires;
use self::explanation::{Explanation, Traces};
use self::links::Links;

/// Explains the cluster `name`.
pub(crate) async fn run(
    name: &str,
    args: &WhyArgs,
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Answer, Error> {
    let fleet = FleetSnapshot::read(client, namespace, now).await?;
    let cluster = fleet.require(name)?;
    let traces = Traces::read(client, namespace, fleet.kind, name).await?;
    let links = Links {
        fleet: &fleet,
        cluster,
        traces: &traces,
        controllers: &args.controllers,
    };
    let explanation = Explanation::of(&links);
    terminal::print(&match args.output {
        None => explanation.text(now),
        Some(format) => manifest::text(&explanation, format)?,
    });
    Ok(Answer::Yes)
}

impl Explanation {
    /// Returns the story that `links` tell about their cluster.
    fn of(links: &Links<'_>) -> Self {
        Self {
            cluster: links.name(),
            summary: links.summary(),
            is_blocked: links.is_blocked(),
            conditions: links.conditions(),
            lease: links.lease(),
            remedies: links.remedies(),
            actions: links.actions(),
            ingresses: links.ingresses(),
        }
    }
}

#[cfg(test)]
mod tests;
