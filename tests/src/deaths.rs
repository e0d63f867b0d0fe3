//! A program that is killed after each of its writes, before it learns of it, and started again.

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Result;
use axum::{
    Router,
    extract::{Request, State},
    http::Method,
    response::Response,
};
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use crate::{
    control_plane::ControlPlane,
    programs::{Binary, Profile, Running},
    proxy::{self, Proxy},
};

/// A program whose every write is its last. It reaches APIs only through proxies, with every right there.
pub struct Mortal {
    program: Binary,
    flags: &'static [&'static str],
    lives: Lives,
    karmada: Proxy,
    members: Vec<Proxy>,
    deaths: AtomicUsize,
}

/// The present life of a program.
type Lives = Arc<Mutex<Arc<Life>>>;

/// One life: until a write succeeds.
struct Life {
    turn: Semaphore,
    written: Notify,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            written: Notify::new(),
        }
    }
}

impl Mortal {
    /// Prepares a program for the API of a fleet; it does not live yet.
    pub async fn new(program: Binary, karmada: &ControlPlane) -> Result<Self> {
        let lives = Lives::default();
        Ok(Self {
            program,
            flags: &[],
            karmada: proxy(karmada, &lives).await?,
            lives,
            members: Vec::new(),
            deaths: AtomicUsize::default(),
        })
    }

    /// Returns it with these flags.
    #[must_use]
    pub fn with(self, flags: &'static [&'static str]) -> Self {
        Self { flags, ..self }
    }

    /// Returns the URL by which it may reach a member's API.
    pub async fn reach(&mut self, member: &ControlPlane) -> Result<String> {
        let proxy = proxy(member, &self.lives).await?;
        let url = proxy.url();
        self.members.push(proxy);
        Ok(url)
    }

    /// Starts it again and again, and kills it after each write.
    ///
    /// # Errors
    /// It does not start, or not die.
    pub async fn live(&self) -> Result<Infallible> {
        let kubeconfig = format!("--kubeconfig={}", self.karmada.kubeconfig().display());
        loop {
            let life = Arc::new(Life::default());
            *self.lives.lock() = Arc::clone(&life);
            let own = [kubeconfig.as_str(), "--leader-elect=false"];
            let flags = own.iter().chain(self.flags);
            let running = Running::start_unready(self.program, Profile::Debug, flags).await?;
            life.written.notified().await;
            running.kill().await?;
            self.deaths.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of its deaths.
    pub fn deaths(&self) -> usize {
        self.deaths.load(Ordering::Relaxed)
    }
}

async fn proxy(api: &ControlPlane, lives: &Lives) -> Result<Proxy> {
    let state = (api.client(), Arc::clone(lives));
    Proxy::start(Router::new().fallback(forward).with_state(state)).await
}

/// Passes a request on. After a write that succeeds no other one does, and nothing is responded.
async fn forward(State((client, lives)): State<(Client, Lives)>, request: Request) -> Response {
    if !is_write(&request) {
        return proxy::forward(&client, request).await;
    }
    let life = Arc::clone(&lives.lock());
    let Ok(turn) = life.turn.acquire().await else {
        return pending().await;
    };
    let response = proxy::forward(&client, request).await;
    if !response.status().is_success() {
        return response;
    }
    turn.forget();
    life.written.notify_one();
    pending().await
}

/// Returns `true` for a write of anything but an Event.
fn is_write(request: &Request) -> bool {
    !matches!(*request.method(), Method::GET | Method::HEAD)
        && !request.uri().path().ends_with("/events")
}
