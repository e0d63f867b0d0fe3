//! The address of an API, as others than this machine reach it.

use std::net::IpAddr;

use http::Uri;

/// Returns why only this machine, or the cluster that hosts it, reaches a server.
pub(crate) fn unreachable(server: &str) -> Option<&'static str> {
    let url: Option<Uri> = server.parse().ok();
    let host = url.as_ref().and_then(Uri::host).unwrap_or_default();
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    let is_service = [".svc", ".svc.cluster.local"]
        .iter()
        .any(|end| host.ends_with(end));
    let is_loopback = match host.parse::<IpAddr>() {
        Ok(ip) => ip.is_loopback() || ip.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    if is_service {
        Some("only the cluster that hosts it resolves that name")
    } else if is_loopback {
        Some("that is this machine")
    } else if host.is_empty() {
        Some("that is no URL")
    } else {
        None
    }
}
