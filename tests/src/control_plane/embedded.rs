//! The embedded API server, in this process.

use std::{io, net::SocketAddr};

use anyhow::{Context, Result, anyhow, ensure};
use embedded_apiserver::ApiServer;
use jiff::Timestamp;
use lab_parts::port::ReservedPort;
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

/// The streams that kube-apiserver allows on a connection, unless `--http2-max-streams-per-connection` says otherwise.
const STREAMS: u32 = 100;

/// The server on a socket. Dropping it closes its connections.
pub(super) struct Embedded {
    server: ApiServer,
    copy: Option<ApiServer>,
    port: ReservedPort,
    /// None: it is reached in plaintext, over HTTP/1.1.
    tls: Option<TlsAcceptor>,
    serving: Option<Serving>,
}

struct Serving {
    /// Ends it when dropped.
    running: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Embedded {
    /// Starts the server on a free port.
    pub(super) fn start(tls: Option<TlsAcceptor>) -> Result<Self> {
        let mut embedded = Self {
            server: ApiServer::starting_at(Timestamp::now()),
            copy: None,
            port: ReservedPort::reserve()?,
            tls,
            serving: None,
        };
        embedded.start_api()?;
        Ok(embedded)
    }

    /// Returns its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Starts to listen.
    pub(super) fn start_api(&mut self) -> Result<()> {
        ensure!(self.serving.is_none(), "it runs already");
        let listener = self.port.listen();
        let listener =
            listener.with_context(|| format!("cannot listen on {}", self.port.address()))?;
        let (server, tls) = (self.server.clone(), self.tls.clone());
        let (running, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            match tls {
                Some(tls) => server.serve_tls(listener, tls, STREAMS, stopped).await,
                None => server.serve(listener, stopped).await,
            }
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

    /// Copies the data.
    pub(super) fn copy_data(&mut self) {
        self.copy = Some(self.server.fork());
    }

    /// Puts the copy in the place of the data. It must not listen.
    pub(super) fn restore_data(&mut self) -> Result<()> {
        ensure!(self.serving.is_none(), "it still runs");
        self.server = self.copy.as_ref().context("there is no copy")?.fork();
        Ok(())
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
