//! The embedded API server, in this process.

use std::{io, net::SocketAddr};

use anyhow::{Context, Result, anyhow, ensure};
use apiserver::ApiServer;
use jiff::Timestamp;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::oneshot,
    task::JoinHandle,
};

use super::reserve_port;

/// The server on a socket. Dropping it closes its connections.
pub(super) struct Embedded {
    server: ApiServer,
    address: SocketAddr,
    _port: TcpSocket,
    serving: Option<Serving>,
}

struct Serving {
    /// Ends it when dropped.
    running: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Embedded {
    /// Starts the server on a free port.
    pub(super) async fn start() -> Result<Self> {
        let port = reserve_port()?;
        let mut embedded = Self {
            server: ApiServer::starting_at(Timestamp::now()),
            address: port.local_addr()?,
            _port: port,
            serving: None,
        };
        embedded.start_api().await?;
        Ok(embedded)
    }

    /// Returns its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to listen.
    pub(super) async fn start_api(&mut self) -> Result<()> {
        ensure!(self.serving.is_none(), "it runs already");
        let listener = TcpListener::bind(self.address)
            .await
            .with_context(|| format!("cannot listen on {}", self.address))?;
        let server = self.server.clone();
        let (running, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            server.serve(listener, stopped).await
        });
        self.serving = Some(Serving { running, task });
        Ok(())
    }

    /// Stops to listen and closes every connection.
    pub(super) async fn stop_api(&mut self) -> Result<()> {
        let Serving { running, task } = self.serving.take().context("it does not run")?;
        drop(running);
        Ok(task.await??)
    }

    /// Waits until it ends by itself, and returns an error about that.
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
