//! A program that is killed after each of its writes, before it learns of it, and started again.

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    extract::{Request, State},
    http::Method,
    response::Response,
};
use futures::future::try_join_all;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use crate::{
    control_plane::ControlPlane,
    programs::{Binary, Profile, Running},
    proxy::{self, Proxy},
};

/// A program whose every write is its last. It reaches APIs only through proxies, with every right there.
pub struct CrashingProgram {
    program: Binary,
    flags: Vec<String>,
    current: CurrentRun,
    /// The API of its `--kubeconfig`.
    own: Proxy,
    others: Vec<Proxy>,
    crashes: AtomicUsize,
}

/// The present run of a program.
type CurrentRun = Arc<Mutex<Arc<OneRun>>>;

/// From a start to the first write that succeeds.
struct OneRun {
    turn: Semaphore,
    written: Notify,
}

impl Default for OneRun {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            written: Notify::new(),
        }
    }
}

impl CrashingProgram {
    /// Prepares a program for the API of its `--kubeconfig`; it does not run yet.
    pub async fn new(program: Binary, api: &ControlPlane) -> Result<Self> {
        let current = CurrentRun::default();
        Ok(Self {
            program,
            flags: Vec::new(),
            own: proxy(api, &current).await?,
            current,
            others: Vec::new(),
            crashes: AtomicUsize::default(),
        })
    }

    /// Returns it with these flags.
    #[must_use]
    pub fn with(mut self, flags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.flags.extend(flags.into_iter().map(Into::into));
        self
    }

    /// Returns the URL by which it may reach a member's API.
    pub async fn reach(&mut self, member: &ControlPlane) -> Result<String> {
        let proxy = proxy(member, &self.current).await?;
        let url = proxy.url();
        self.others.push(proxy);
        Ok(url)
    }

    /// Returns it with this flag: a kubeconfig by which it may reach another API.
    pub async fn reaching(mut self, flag: &str, api: &ControlPlane) -> Result<Self> {
        let proxy = proxy(api, &self.current).await?;
        let flag = format!("{flag}={}", proxy.kubeconfig().display());
        self.others.push(proxy);
        Ok(self.with([flag]))
    }

    /// Starts it again and again, and kills it after each write.
    ///
    /// # Errors
    /// It cannot be started, or not killed.
    pub async fn run(&self) -> Result<Infallible> {
        let kubeconfig = format!("--kubeconfig={}", self.own.kubeconfig().display());
        loop {
            let run = Arc::new(OneRun::default());
            *self.current.lock() = Arc::clone(&run);
            let own = [kubeconfig.as_str(), "--leader-elect=false"];
            let flags = own.into_iter().chain(self.flags.iter().map(String::as_str));
            let running = Running::start_unready(self.program, Profile::Debug, flags).await?;
            run.written.notified().await;
            running.kill().await?;
            self.crashes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of its crashes.
    pub fn crashes(&self) -> usize {
        self.crashes.load(Ordering::Relaxed)
    }
}

/// Tells a story while each of these programs dies after every write.
///
/// # Errors
/// The story fails, or a program cannot be started or killed, or has hardly anything to write.
pub async fn crash_during(
    programs: &[CrashingProgram],
    story: impl Future<Output = Result<()>>,
) -> Result<()> {
    let running = try_join_all(programs.iter().map(CrashingProgram::run));
    tokio::select! {
        ended = running => { ended.context("a program cannot be started or killed")?; }
        told = story => told?,
    }
    for program in programs {
        ensure!(program.crashes() > 1, "one crashed too seldom");
    }
    Ok(())
}

async fn proxy(api: &ControlPlane, current: &CurrentRun) -> Result<Proxy> {
    let state = (api.client(), Arc::clone(current));
    Proxy::start(Router::new().fallback(forward).with_state(state)).await
}

/// Passes a request on. After a write that succeeds no other one does, and nothing is responded.
async fn forward(
    State((client, current)): State<(Client, CurrentRun)>,
    request: Request,
) -> Response {
    if !is_write(&request) {
        return proxy::forward(&client, request).await;
    }
    let run = Arc::clone(&current.lock());
    let Ok(turn) = run.turn.acquire().await else {
        return pending().await;
    };
    let response = proxy::forward(&client, request).await;
    if !response.status().is_success() {
        return response;
    }
    turn.forget();
    run.written.notify_one();
    pending().await
}

/// Returns `true` for a write of anything but an Event.
fn is_write(request: &Request) -> bool {
    !matches!(*request.method(), Method::GET | Method::HEAD)
        && !request.uri().path().ends_with("/events")
}
