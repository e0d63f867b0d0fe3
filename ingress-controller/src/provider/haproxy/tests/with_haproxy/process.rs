use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// An HAProxy with sockets in a folder of its own. It ends with this.
pub(super) struct Process {
    process: tools::haproxy::Haproxy,
    folder: TempDir,
}

impl Process {
    /// Starts one with these backends. Its frontends, of which one speaks TCP, send requests to the first.
    pub(super) fn start(backends: &[String]) -> Self {
        Self::start_at_level("admin", backends)
    }

    pub(super) fn start_at_level(level: &str, backends: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let first = backends[0].lines().next().unwrap();
        let all: Vec<String> = backends
            .iter()
            .map(|name| format!("backend {name}\n"))
            .collect();
        let configuration = format!(
            "global
  stats socket {path}/admin.sock mode 600 level {level} expose-fd listeners
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend web
  bind unix@{path}/web.sock
  default_backend {first}
frontend tcp
  mode tcp
  bind unix@{path}/tcp.sock
  default_backend ns_i_tcp_80
backend ns_i_tcp_80
  mode tcp
{}",
            all.concat()
        );
        let process = tools::haproxy::Haproxy::start(folder.path(), &configuration).unwrap();
        Self { process, folder }
    }

    /// Ends it as a crash does, and starts it again.
    pub(super) fn restart(&self) {
        self.process.kill().unwrap();
        self.process.revive().unwrap();
    }

    /// Has another process take its sockets over, as a reload does.
    pub(super) fn reload(&self) {
        self.process.reload(&self.path("admin.sock")).unwrap();
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns its Runtime API.
    pub(super) fn socket(&self) -> Socket {
        Socket::Unix(self.path("admin.sock"))
    }

    /// Returns the answer to one command.
    pub(super) async fn ask(&self, command: &str) -> String {
        self.socket().send(command).await.unwrap()
    }

    /// Returns all servers.
    pub(super) async fn state(&self) -> State {
        let all = "show info; show servers state; show servers conn";
        State::read(&self.ask(all).await).unwrap()
    }

    /// Waits until no server has a connection in use: that of a request is given back a moment after its answer.
    pub(super) async fn idle(&self) {
        loop {
            let state = self.state().await;
            let mut servers = state.backends.values().flat_map(|all| all.values());
            if servers.all(|server| server.connections == 0) {
                return;
            }
        }
    }
}
