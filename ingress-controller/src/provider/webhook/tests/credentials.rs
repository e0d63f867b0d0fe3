//! A program that is known by its certificate, and knows us by a token, which it quotes wherever it can.

use std::path::Path;

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use http::{Method, StatusCode, header};
use lab_parts::tls::Authority;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::*;

const TOKEN: &str = "not-a-real-token-4711";

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, peer) = self.listener.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Serves by TLS, and returns the server's authority too.
async fn serve(routes: Router) -> (Serving, Authority) {
    let authority = Authority::generate();
    let acceptor = authority.acceptor(&["localhost"], &[]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Tls { listener, acceptor };
    (Serving::on(address, listener, routes), authority)
}

/// Returns the server, known by `authority`, with the token in the folder.
fn known_by(serving: &Serving, authority: &Authority, folder: &Path) -> Source {
    let (ca, token) = (folder.join("ca.crt"), folder.join("token"));
    std::fs::write(&ca, authority.pem()).unwrap();
    std::fs::write(&token, TOKEN).unwrap();
    Source {
        server: Some(Server {
            url: format!("https://localhost:{}", serving.address.port()),
            ca_file: Some(ca),
            token_file: Some(token),
            ..Server::default()
        }),
        ..Source::default()
    }
}

/// A program that quotes its requests, the token among them, has it in no error, obstacle or status.
#[tokio::test]
async fn quoted_token_is_never_shown() {
    let program = Router::new().fallback(|request: Request| {
        let sent = request.headers()[header::AUTHORIZATION].to_str().unwrap();
        let answer = match (request.method(), request.uri().path()) {
            (&Method::GET, "/") => {
                json!({ "ingresses": [{ "controller": CONTROLLER, "namespace": "ns",
                "name": "listed", "problem": sent }] })
                .to_string()
                .into_response()
            }
            (&Method::PUT, "/ns/told") => json!({ "problem": sent }).to_string().into_response(),
            (&Method::PUT, "/ns/nonsense") => format!("\"{sent}\"").into_response(),
            (&Method::PUT, "/ns/refused") => {
                let words = json!({ "message": format!("you sent {sent}!") }).to_string();
                (StatusCode::UNPROCESSABLE_ENTITY, words).into_response()
            }
            _ => (StatusCode::BAD_GATEWAY, format!("Authorization: {sent}")).into_response(),
        };
        std::future::ready(answer)
    });
    let (serving, authority) = serve(program).await;
    let folder = tempfile::tempdir().unwrap();
    let provider = provider(&known_by(&serving, &authority, folder.path())).await;
    let mut shown = Vec::new();
    match provider.list().await {
        Ok(_) => shown.push(format!("{:?}", provider.holdings.lock())),
        Err(error) => shown.push(format!("{} {error:?}", Chain(&error))),
    }
    provider.holdings.lock().is_listed = true;
    for name in ["told", "nonsense", "refused", "broken"] {
        let desired = contract::desired(name, &["s"], &["m1"]);
        match provider.ensure(&desired).await {
            Ok(ensured) => shown.push(format!("{ensured:?}")),
            Err(error) => shown.push(format!("{} {error:?}", Chain(&*error))),
        }
    }
    for shown in &shown {
        assert!(!shown.contains(TOKEN), "{shown}");
    }
    assert!(shown[3].contains("you sent Bearer (token)!"), "{shown:?}");
}

/// A program that another authority vouches for gets no token.
#[tokio::test]
async fn impostor_gets_no_token() {
    let (serving, _) = serve(Router::new()).await;
    let folder = tempfile::tempdir().unwrap();
    let source = known_by(&serving, &Authority::generate(), folder.path());
    let provider = provider(&source).await;
    let error = provider.list().await.unwrap_err();
    let shown = Chain(&error).to_string();
    assert!(
        shown.contains("certificate") && !shown.contains('\n'),
        "{shown}"
    );
    assert!(error.is_outage());
}
