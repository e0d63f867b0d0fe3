//! The embedded API server, in this process.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use anyhow::{Context, Result, anyhow, ensure};
use apiserver::ApiServer;
use jiff::Timestamp;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// The server, on a socket. Dropping it closes what is open.
pub(super) struct Embedded {
    server: ApiServer,
    address: SocketAddr,
    serving: Option<Serving>,
}

struct Serving {
    /// Ends it when dropped.
    running: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Embedded {
    /// Serves on a free port.
    pub(super) async fn start() -> Result<Self> {
        let mut embedded = Self {
            server: ApiServer::starting_at(Timestamp::now()),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            serving: None,
        };
        embedded.start_api().await?;
        Ok(embedded)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens.
    pub(super) async fn start_api(&mut self) -> Result<()> {
        ensure!(self.serving.is_none(), "it runs already");
        let listener = TcpListener::bind(self.address)
            .await
            .with_context(|| format!("cannot listen on {}", self.address))?;
        self.address = listener.local_addr()?;
        let server = self.server.clone();
        let (running, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            server.serve(listener, stopped).await
        });
        self.serving = Some(Serving { running, task });
        Ok(())
    }

    /// Closes every connection and listens no more.
    pub(super) async fn stop_api(&mut self) -> Result<()> {
        let Serving { running, task } = self.serving.take().context("it does not run")?;
        drop(running);
        Ok(task.await??)
    }

    /// Waits until it ends by itself, and says how it ended.
    pub(super) async fn failure(&mut self) -> anyhow::Error {
        let Some(serving) = &mut self.serving else {
            return std::future::pending().await;
        };
        match (&mut serving.task).await {
            Ok(Ok(())) => anyhow!("it ended"),
            Ok(Err(error)) => error.into(),
            Err(error) => error.into(),
        }
    }
}
