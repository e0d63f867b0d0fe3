//! The flags of the provider.

use std::time::Duration;

use clap::ArgAction;
use karmada_runtime::args::duration;
use karmada_runtime::program::StartError;
use traffic::ingress::haproxy::ServerParameters;

use super::runtime_api::Socket;
use crate::provider::named::{Named, check_names};

/// The flags of each HAProxy.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_field_names,
    reason = "the flags are called as the fields are"
)]
pub(crate) struct HaproxyArgs {
    /// Runtime API of an HAProxy that serves the traffic, at the level admin: unix: and a path, or tcp: and HOST:PORT. May be given several times, each with a name: every HAProxy serves all, and one that does not answer delays no other.
    #[arg(
        long,
        env = "KARMADA_HAPROXY_SOCKET",
        value_name = "[NAME=]SOCKET",
        value_delimiter = ','
    )]
    haproxy_socket: Vec<Named<Socket>>,
    /// Parameters with which servers are added to HAProxy, which inherit nothing of its default-server.
    #[arg(
        long,
        env = "KARMADA_HAPROXY_SERVER_PARAMETERS",
        default_value_t,
        value_name = "TEXT",
        allow_hyphen_values = true
    )]
    haproxy_server_parameters: ServerParameters,
    /// Time for which a server that is taken out of HAProxy keeps the clients that are bound to it, before its maintenance. Requests that it has are answered after that, too.
    #[arg(long, env = "KARMADA_HAPROXY_DRAIN_GRACE", default_value = "30s", value_name = "DURATION", value_parser = duration)]
    haproxy_drain_grace: Duration,
    /// End the connections that a server still has in maintenance, as those in mode tcp may last for ever.
    #[arg(long, env = "KARMADA_HAPROXY_END_CONNECTIONS", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    haproxy_end_connections: bool,
}

impl HaproxyArgs {
    /// Returns the first flag that is set.
    pub(crate) fn first_set(&self) -> Option<&'static str> {
        (!self.haproxy_socket.is_empty()).then_some("--haproxy-socket")
    }

    pub(super) fn sockets(&self) -> Result<&[Named<Socket>], StartError> {
        let sockets = &self.haproxy_socket;
        if sockets.is_empty() {
            return Err(StartError::Config(
                "--provider haproxy needs --haproxy-socket: name the Runtime API of the HAProxy that serves the traffic, such as unix:/run/haproxy/admin.sock".to_owned(),
            ));
        }
        check_names("--haproxy-socket", "SOCKET", sockets)?;
        Ok(sockets)
    }

    pub(super) fn server_parameters(&self) -> &ServerParameters {
        &self.haproxy_server_parameters
    }

    pub(super) fn drain_grace(&self) -> Duration {
        self.haproxy_drain_grace
    }

    pub(super) fn end_connections(&self) -> bool {
        self.haproxy_end_connections
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;

    fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
        let all = ["ingress-controller", "--provider=haproxy"];
        Args::try_parse_from(all.iter().chain(flags))
    }

    fn sockets(flags: &[&str]) -> Option<String> {
        let args = parse(flags).ok()?.provider.haproxy;
        let sockets = args.sockets().ok()?.iter();
        let shown = sockets.map(|named| format!("{} {}", named.name, named.value));
        Some(shown.collect::<Vec<_>>().join(", "))
    }

    /// Each HAProxy has a socket, and a name if there are several.
    #[test]
    fn flags_name_sockets() {
        assert_eq!(
            sockets(&["--haproxy-socket=unix:/a=b"]).unwrap(),
            " unix:/a=b"
        );
        assert_eq!(
            sockets(&["--haproxy-socket=eu=unix:/a,us=tcp:[::1]:9999"]).unwrap(),
            "eu unix:/a, us tcp:[::1]:9999"
        );
        for wrong in [
            &[][..],
            &["--haproxy-socket=/a"],
            &["--haproxy-socket=unix:a"],
            &["--haproxy-socket=tcp:host"],
            &["--haproxy-socket=tcp::1"],
            &["--haproxy-socket=tcp:host:0"],
            &["--haproxy-socket=unix:/a", "--haproxy-socket=unix:/b"],
        ] {
            assert_eq!(sockets(wrong), None, "{wrong:?}");
        }
    }

    /// By default servers are checked, keep idle connections, and nobody's connection is ended.
    #[test]
    fn defaults_end_nothing() {
        let args = parse(&["--haproxy-socket=unix:/a"])
            .unwrap()
            .provider
            .haproxy;
        assert_eq!(
            args.server_parameters().to_string(),
            "check inter 2s pool-max-conn 100 pool-purge-delay 5s"
        );
        assert_eq!(
            (args.drain_grace().as_secs(), args.end_connections()),
            (30, false)
        );
        assert!(parse(&["--haproxy-server-parameters=check; show info"]).is_err());
    }
}
