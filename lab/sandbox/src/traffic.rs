//! The users' traffic: requests to both websites at a steady rate, however they end.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tower::{Service, ServiceExt};

use crate::balancer::Balancer;
use crate::site::Site;
use crate::update::{Request, Update, UpdateSender};

/// Returns the requests per second to a website.
fn rate(site: Site) -> u32 {
    match site {
        Site::Shop => 60,
        Site::Store => 20,
    }
}

/// The longest that a request waits for a cluster that is served.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends requests and never returns. The balancer's endpoints send updates on how they end.
pub(crate) async fn run(site: Site, mut balancer: Balancer, updates: UpdateSender) {
    let mut ticks = interval(Duration::from_secs(1) / rate(site));
    // After a stall the rate stays the same: no burst makes up for the requests that were missed.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut requests = JoinSet::new();
    loop {
        ticks.tick().await;
        while requests.try_join_next().is_some() {}
        match timeout(RESPONSE_TIMEOUT, balancer.ready()).await {
            Ok(Ok(balancer)) => drop(requests.spawn(balancer.call(()))),
            _ => updates.send(Update::Request(site, Request::Unserved)),
        }
    }
}
