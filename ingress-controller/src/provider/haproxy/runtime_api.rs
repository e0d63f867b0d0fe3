//! The Runtime API of an HAProxy (Management Guide 2.6, 9.3).
//!
//! Every line of commands has a connection of its own: one that outlives a reload talks to the process that leaves. And
//! every line asks for the process, because nothing else in an answer tells which one obeyed.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// The longest line, well below the 16,384 bytes of HAProxy's buffer (`tune.bufsize`).
const LINE: usize = 8_000;
/// The longest time for an answer.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest answer: the states of half a million servers.
const ANSWER: u64 = 256 << 20;

/// The address of a Runtime API: `unix:/PATH` or `tcp:HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Socket {
    Unix(PathBuf),
    /// Host and port as they are dialled.
    Tcp(String),
}

impl Socket {
    /// Sends commands in one line, and returns the answer of the process, its own information first.
    ///
    /// # Errors
    /// Fails if nobody listens, or if the answer does not end in time.
    pub(super) async fn send(&self, line: &str) -> io::Result<String> {
        let answer = timeout(LIMIT, self.exchange(line)).await;
        answer.unwrap_or_else(|elapsed| Err(io::Error::new(io::ErrorKind::TimedOut, elapsed)))
    }

    async fn exchange(&self, line: &str) -> io::Result<String> {
        match self {
            Self::Unix(path) => answer(UnixStream::connect(path).await?, line).await,
            Self::Tcp(address) => answer(TcpStream::connect(address).await?, line).await,
        }
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, line: &str) -> io::Result<String> {
    stream.write_all(format!("{line}\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Returns `commands` in as few lines as HAProxy takes, each of which asks for the process first.
pub(super) fn lines(commands: &[String]) -> Vec<String> {
    const PROCESS: &str = "show info";
    let mut lines = Vec::new();
    let mut line = PROCESS.to_owned();
    for command in commands {
        if line.len() + command.len() > LINE && line != PROCESS {
            lines.push(std::mem::replace(&mut line, PROCESS.to_owned()));
        }
        line.push_str("; ");
        line.push_str(command);
    }
    lines.push(line);
    lines
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// The text is no address of a Runtime API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be unix: and an absolute path, or tcp: and a host and port, such as unix:/run/haproxy/admin.sock"
)]
pub(super) struct InvalidSocket;

impl FromStr for Socket {
    type Err = InvalidSocket;

    fn from_str(text: &str) -> Result<Self, InvalidSocket> {
        if let Some(path) = text
            .strip_prefix("unix:")
            .filter(|path| path.starts_with('/'))
        {
            return Ok(Self::Unix(path.into()));
        }
        let address = text.strip_prefix("tcp:").ok_or(InvalidSocket)?;
        let (host, port) = address.rsplit_once(':').ok_or(InvalidSocket)?;
        let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
        if host.is_empty() || !is_port {
            return Err(InvalidSocket);
        }
        Ok(Self::Tcp(address.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line asks for the process and is short enough, and no command is lost or split.
    #[test]
    fn lines_are_short() {
        assert_eq!(lines(&[]), ["show info"]);
        let commands: Vec<String> = (0..500)
            .map(|n| format!("show servers state ns_i_s{n}_80"))
            .collect();
        let all = lines(&commands);
        assert!(all.len() > 1 && all.iter().all(|line| line.len() <= LINE + 2));
        let sent = all.iter().flat_map(|line| line.split("; ").skip(1));
        assert!(sent.eq(commands.iter().map(String::as_str)));
        let long = ["x".repeat(2 * LINE)];
        assert_eq!(lines(&long), [format!("show info; {}", long[0])]);
    }
}
