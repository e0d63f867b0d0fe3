//! A proxy that leads to a server by HTTP `CONNECT`: a mock of the proxies that stand before clusters.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The size of the largest request for a server.
const LARGEST: usize = 8192;

/// The answer to every request for a server.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// It leads to this server, whichever is asked for.
    Leads(SocketAddr),
    /// It refuses with this status.
    Refuses(u16),
}

/// A proxy. Dropping it ends it.
#[derive(Debug)]
pub struct ConnectProxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl ConnectProxy {
    /// Starts a proxy on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// Fails if there is none.
    pub async fn start(answer: Answer) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::default());
        let log = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let log = Arc::clone(&log);
                tokio::spawn(async move {
                    // Whoever closes the connection early is served.
                    drop(serve(client, answer, &log).await);
                });
            }
        });
        Ok(Self {
            address,
            asked,
            serving,
        })
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the requests for servers, each with its headers.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

impl Drop for ConnectProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    mut client: TcpStream,
    answer: Answer,
    asked: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LARGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(client.read_u8().await?);
    }
    asked
        .lock()
        .push(String::from_utf8_lossy(&head).into_owned());
    match answer {
        Answer::Leads(server) => {
            let mut server = TcpStream::connect(server).await?;
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            copy_bidirectional(&mut client, &mut server).await?;
        }
        Answer::Refuses(status) => {
            let refusal = format!("HTTP/1.1 {status} Refused\r\n\r\n");
            client.write_all(refusal.as_bytes()).await?;
        }
    }
    Ok(())
}
