//! The built program, running.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Ample for the longest scenario, on a machine that plays others as well.
const AMPLE: Duration = Duration::from_mins(5);

/// A sandbox. Dropping it kills it.
pub(crate) struct Sandbox {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    errors: Arc<Mutex<String>>,
    reading: JoinHandle<()>,
}

impl Sandbox {
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sandbox"))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let errors = Arc::<Mutex<String>>::default();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let written = Arc::clone(&errors);
        let reading = tokio::spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                let mut written = written.lock().unwrap();
                written.push_str(&line);
                written.push('\n');
            }
        });
        let stdout = child.stdout.take().unwrap();
        Self {
            child,
            lines: BufReader::new(stdout).lines(),
            errors,
            reading,
        }
    }

    /// Waits for a line of standard output that begins so, and returns the rest of it.
    pub(crate) async fn line(&mut self, start: &str) -> String {
        loop {
            let line = timeout(AMPLE, self.lines.next_line()).await.unwrap();
            let line = line.unwrap();
            assert!(line.is_some(), "no {start:?}: {}", self.errors());
            let line = line.unwrap();
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
        }
    }

    /// Waits for its end, and returns the exit code and the lines until then.
    pub(crate) async fn end(&mut self) -> (Option<i32>, Vec<String>) {
        let mut text = String::new();
        let read = self.lines.get_mut().read_to_string(&mut text);
        timeout(AMPLE, read).await.unwrap().unwrap();
        let status = timeout(AMPLE, self.child.wait()).await.unwrap().unwrap();
        timeout(AMPLE, &mut self.reading).await.unwrap().unwrap();
        (status.code(), text.lines().map(str::to_owned).collect())
    }

    /// Sends a signal: Ctrl-C is [`Signal::INT`].
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.id().unwrap().try_into().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Returns its standard error so far.
    pub(crate) fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }
}

/// Sends a request to a page, and returns the status line, the headers and the body of the response.
pub(crate) async fn request(page: &str, head: &str, body: &str) -> String {
    let host = page.strip_prefix("http://").unwrap();
    request_with(page, head, &[("Host", host)], body).await
}

/// Sends a request with these headers to a server, and returns the status line, the headers and the
/// body of the response.
pub(crate) async fn request_with(
    server: &str,
    head: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> String {
    let address = server.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let headers = headers.concat();
    let request = format!(
        "{head} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}
