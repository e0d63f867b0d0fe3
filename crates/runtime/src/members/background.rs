//! The work for members beside the loops, in one task of the program.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::panics::{Panicked, caught};
use crate::program::Program;

/// The time from a panic to a new beginning: its cause may be there still.
const PAUSE: Duration = Duration::from_mins(1);

/// A task of a program that runs any number of futures, each for a member; clones share it.
#[derive(Clone)]
pub struct Background {
    futures: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
    show: Arc<Show>,
}

/// Tells about the member whose future has panicked.
type Show = dyn Fn(&str, Panicked) + Send + Sync;

impl Background {
    /// Spawns the task `name` of `program`. A panic ends the future of one member, and `show` tells about that member.
    pub fn spawn(
        program: &mut Program,
        name: &'static str,
        show: impl Fn(&str, Panicked) + Send + Sync + 'static,
    ) -> Self {
        let (futures, mut added) = mpsc::unbounded_channel::<BoxFuture<'static, ()>>();
        let stopping = program.stopping.clone();
        program.tasks.spawn(name, async move {
            let mut running = FuturesUnordered::new();
            loop {
                tokio::select! {
                    biased;
                    () = stopping.cancelled() => return Ok(()),
                    Some(future) = added.recv() => running.push(future),
                    Some(()) = running.next() => {}
                }
            }
        });
        Self {
            futures,
            show: Arc::new(show),
        }
    }

    /// Runs `future` for a member until it ends or the program stops. A while after a panic, `renew` is to let it begin
    /// anew.
    pub fn run(
        &self,
        member: &str,
        future: impl Future<Output = ()> + Send + 'static,
        renew: impl FnOnce() + Send + 'static,
    ) {
        let (member, show) = (member.to_owned(), Arc::clone(&self.show));
        let running = async move {
            if let Err(panicked) = caught(future).await {
                tracing::error!(member, error = %panicked, pause = ?PAUSE, "Member is not watched any more, will begin anew");
                show(&member, panicked);
                sleep(PAUSE).await;
                renew();
            }
        };
        // Without a receiver the program stops, and nothing new has to begin.
        drop(self.futures.send(Box::pin(running)));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use parking_lot::Mutex;
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::*;
    use crate::program::Identity;

    /// Nobody notices but the member concerned, whose future begins anew after a pause.
    #[tokio::test(start_paused = true)]
    async fn panic_ends_one_future() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut program = Program::new(Identity::for_tests(), address);
        let shown: Arc<Mutex<Vec<String>>> = Arc::default();
        let show = Arc::clone(&shown);
        let background = Background::spawn(&mut program, "members", move |member, _| {
            show.lock().push(member.to_owned());
        });
        let (began, (renewed, renewal)) = (Instant::now(), oneshot::channel());
        let (lives, other) = oneshot::channel();
        background.run("m1", async { panic!("deliberate") }, || {
            renewed.send(()).unwrap();
        });
        let living = async {
            sleep(2 * PAUSE).await;
            lives.send(()).unwrap();
        };
        background.run("m2", living, || panic!("it did not panic"));
        renewal.await.unwrap();
        assert_eq!(began.elapsed(), PAUSE);
        assert_eq!(*shown.lock(), ["m1"]);
        other.await.unwrap();
        program.stopping.cancel();
        assert!(program.tasks.drain(PAUSE).await);
    }
}
