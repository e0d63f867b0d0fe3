use super::*;

/// A backend that the configuration lacks is an obstacle that names it.
#[tokio::test]
async fn missing_backend_says_what_to_add() {
    let haproxy = Process::start(&["other".to_owned()]);
    let provider = provider(haproxy.socket(), Duration::ZERO, false);
    let desired = contract::desired("i", &["s"], &["m1"]);
    assert_eq!(
        provider.ensured(&desired).await,
        [
            "the configuration of HAProxy has no backend ns_i_s_80; add `backend ns_i_s_80` and what routes to it, and reload"
        ]
    );
}

/// A refusal of HAProxy is an obstacle with its words, once, and the next call tries again.
#[tokio::test]
async fn refusal_is_quoted() {
    let haproxy = Process::start_at_level("operator", &[BACKEND.to_owned()]);
    let provider = provider(haproxy.socket(), Duration::ZERO, false);
    let desired = contract::desired("i", &["s"], &["m1"]);
    for _ in 0..2 {
        assert_eq!(
            provider.ensured(&desired).await,
            ["HAProxy refuses to change servers of backend ns_i_s_80: Permission denied"]
        );
    }
}

/// The algorithm of a backend may not allow servers that come and go.
#[tokio::test]
async fn static_backend_is_refused() {
    let haproxy = Process::start(&[format!("{BACKEND}\n  balance source")]);
    let provider = provider(haproxy.socket(), Duration::ZERO, false);
    let obstacles = provider
        .ensured(&contract::desired("i", &["s"], &["m1"]))
        .await;
    let words = "Backend must use a dynamic load balancing to support dynamic servers.";
    assert!(
        obstacles.len() == 1 && obstacles[0].contains(words),
        "{obstacles:?}"
    );
}

/// A socket that nobody serves, and one of something else, are outages.
#[tokio::test]
async fn silence_is_an_outage() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = provider(
        Socket::Unix(folder.path().join("none")),
        Duration::ZERO,
        false,
    );
    let error = nobody
        .ensure(&contract::desired("i", &["s"], &["m1"]))
        .await;
    assert!(nobody.is_outage(&error.unwrap_err()));
    nobody.probe().await.unwrap_err();
    let haproxy = Process::start(&[BACKEND.to_owned()]);
    let web = provider(
        Socket::Unix(haproxy.path("web.sock")),
        Duration::ZERO,
        false,
    );
    let error = web.probe().await.unwrap_err();
    assert!(web.is_outage(&error), "{error}");
}
