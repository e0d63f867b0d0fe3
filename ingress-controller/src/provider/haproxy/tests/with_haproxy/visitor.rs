use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

use super::*;

/// A web server in a member, on an address of the loopback of its own, which answers with that address. It holds a request
/// for `/held` until it is told to let go.
pub(super) struct Member {
    pub(super) address: SocketAddr,
    pub(super) arrived: watch::Sender<usize>,
    pub(super) lets_go: watch::Sender<bool>,
}

impl Member {
    /// Starts the server at `127.0.1.<number>`.
    pub(super) async fn start(number: u8) -> Arc<Self> {
        let own = Ipv4Addr::new(127, 0, 1, number);
        let listener = TcpListener::bind((own, 0)).await.unwrap();
        let member = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            arrived: watch::Sender::new(0),
            lets_go: watch::Sender::new(false),
        });
        let serving = Arc::clone(&member);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&serving).serve(stream));
            }
        });
        member
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Some(head) = head(&mut stream).await {
            self.arrived.send_modify(|arrived| *arrived += 1);
            if head.starts_with("GET /held") {
                let mut lets_go = self.lets_go.subscribe();
                lets_go.wait_for(|lets_go| *lets_go).await.unwrap();
            }
            let body = self.address.to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Returns the next head of a message, `None` at the end.
async fn head(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

/// A client that keeps its connection.
pub(super) struct Visitor {
    stream: BufReader<UnixStream>,
}

impl Visitor {
    pub(super) async fn connect(socket: &Path) -> std::io::Result<Self> {
        let stream = BufReader::new(UnixStream::connect(socket).await?);
        Ok(Self { stream })
    }

    /// Returns the status of the answer and who gave it, or `None` if the connection ends instead.
    pub(super) async fn get(&mut self, path: &str) -> Option<(u16, String)> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: web\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await.ok()?;
        let head = head(&mut self.stream).await?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let headers: BTreeMap<String, &str> = head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        let mut body = String::new();
        if let Some(length) = headers.get("content-length") {
            let mut bytes = vec![0; length.parse().ok()?];
            self.stream.read_exact(&mut bytes).await.ok()?;
            body = String::from_utf8(bytes).ok()?;
        }
        Some((status, body))
    }
}
