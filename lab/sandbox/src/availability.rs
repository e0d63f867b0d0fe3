//! Servers that are asked again and again whether they respond.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::get::Getter;
use crate::network::HEALTHZ;
use crate::update::{Side, Update, UpdateSender};

/// The path of an API that anybody may request.
pub(crate) const VERSION: &str = "/version";
/// The time between two requests.
const EVERY: Duration = Duration::from_millis(500);
/// The limit of a request to a member, which nothing slows down.
const LIMIT: Duration = Duration::from_secs(2);

/// Requests a path of a server again and again, sends whether there was a response, and never returns.
pub(crate) async fn check(
    getter: Getter,
    server: SocketAddr,
    path: &'static str,
    updates: UpdateSender,
    update: impl Fn(bool) -> Update,
) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let response = getter.get(server, path).await;
        updates.send(update(response.is_ok()));
    }
}

/// Spawns the checks of a member: from the gateway to its `pod`, and from the control plane to its `api`.
pub(crate) fn check_member(
    name: &str,
    [pod, api]: [SocketAddr; 2],
    updates: &UpdateSender,
    tasks: &mut JoinSet<()>,
) {
    let ways = [
        (Side::Gateway, pod, HEALTHZ),
        (Side::ControlPlane, api, VERSION),
    ];
    for (from, server, path) in ways {
        let cluster = name.to_owned();
        let getter = Getter::new("sandbox", LIMIT);
        let updates = updates.clone();
        tasks.spawn(check(getter, server, path, updates, move |reached| {
            Update::Reach {
                cluster: cluster.clone(),
                from,
                reached,
            }
        }));
    }
}
