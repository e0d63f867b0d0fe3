//! Steady traffic of users: so many requests a second, whatever becomes of them.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tower::{Service, ServiceExt};

use crate::balancer::Balancer;
use crate::facts::{Fact, Facts};

/// Requests in a second.
pub(crate) const RATE: u32 = 60;
/// How long a request waits for anybody to send it to.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sends requests for ever. What becomes of them is told by who answers.
pub(crate) async fn run(mut balancer: Balancer, facts: Facts) {
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut requests = JoinSet::new();
    loop {
        ticks.tick().await;
        while requests.try_join_next().is_some() {}
        match timeout(PATIENCE, balancer.ready()).await {
            Ok(Ok(balancer)) => drop(requests.spawn(balancer.call(()))),
            _ => facts.tell(Fact::Unserved),
        }
    }
}
