//! An estimator in place of Karmada's: it speaks its protocol on loopback and script as a test says.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use prost::Message;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tonic::server::Grpc;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::super::message::{
    AssumedWorkload, MaxAvailableComponentSetsRequest, MaxAvailableComponentSetsResponse,
    MaxAvailableReplicasRequest, MaxAvailableReplicasResponse,
};

/// The answer of the server.
#[derive(Clone, Copy)]
pub(crate) enum Script {
    /// This many replicas, or sets.
    Room(i32),
    /// This many replicas, without those that are assumed.
    Pods(i32),
    Error,
    Never,
}

/// A server that ends when it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Seen,
    _tasks: JoinSet<()>,
}

#[derive(Clone, Default)]
struct Seen {
    asked: Arc<Mutex<Vec<MaxAvailableReplicasRequest>>>,
    asked_for_sets: Arc<Mutex<Vec<MaxAvailableComponentSetsRequest>>>,
    connections: Arc<Mutex<usize>>,
}

impl Server {
    /// Starts a server that speaks plaintext.
    pub(crate) async fn start(script: Script) -> Self {
        Self::start_on(script, None).await
    }

    /// Starts a server that speaks TLS 1.3 as Karmada's does, and writes the files of its clients to the directory.
    pub(super) async fn start_with_tls(script: Script, directory: &Path) -> Self {
        Self::start_on(script, Some(certify(directory))).await
    }

    async fn start_on(script: Script, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Seen::default();
        let mut tasks = JoinSet::new();
        let noted = seen.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, seen) = (tls.clone(), noted.clone());
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, script, seen).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, script, seen).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            port,
            seen,
            _tasks: tasks,
        }
    }

    /// Returns the questions so far.
    pub(crate) fn asked(&self) -> Vec<MaxAvailableReplicasRequest> {
        self.seen.asked.lock().clone()
    }

    /// Returns the questions about sets so far.
    pub(super) fn asked_for_sets(&self) -> Vec<MaxAvailableComponentSetsRequest> {
        self.seen.asked_for_sets.lock().clone()
    }

    /// Returns the number of connections so far.
    pub(super) fn connections(&self) -> usize {
        *self.seen.connections.lock()
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    script: Script,
    seen: Seen,
) {
    *seen.connections.lock() += 1;
    let service = service_fn(move |request: http::Request<Incoming>| {
        let seen = seen.clone();
        async move {
            let method = request.uri().path().rsplit('/').next();
            Ok::<_, Infallible>(match method.unwrap_or_default() {
                "MaxAvailableReplicas" => {
                    respond(request, script, seen.asked, |max_replicas| {
                        MaxAvailableReplicasResponse { max_replicas }
                    })
                    .await
                }
                "MaxAvailableComponentSets" => {
                    respond(request, script, seen.asked_for_sets, |max_sets| {
                        MaxAvailableComponentSetsResponse { max_sets }
                    })
                    .await
                }
                other => panic!("{other}"),
            })
        }
    });
    let server = http2::Builder::new(TokioExecutor::new());
    // A client that goes away is no fault of a test.
    drop(server.serve_connection(TokioIo::new(stream), service).await);
}

trait Question: Message + Default + Send + Sync + 'static {
    /// Returns the number of Pods that are assumed to be in the cluster.
    fn assumed(&self) -> i32;
}

impl Question for MaxAvailableReplicasRequest {
    fn assumed(&self) -> i32 {
        pods(&self.assumed_workloads)
    }
}

impl Question for MaxAvailableComponentSetsRequest {
    fn assumed(&self) -> i32 {
        pods(&self.assumed_workloads)
    }
}

fn pods(workloads: &[AssumedWorkload]) -> i32 {
    let components = workloads.iter().flat_map(|workload| &workload.components);
    components.map(|component| component.replicas).sum()
}

/// Notes a question and answers it.
async fn respond<Q, A>(
    request: http::Request<Incoming>,
    script: Script,
    asked: Arc<Mutex<Vec<Q>>>,
    of: fn(i32) -> A,
) -> http::Response<tonic::body::Body>
where
    Q: Question,
    A: Message + Send + Sync + 'static,
{
    let answer = tower::service_fn(move |request: Request<Q>| {
        let question = request.into_inner();
        let assumed = question.assumed();
        asked.lock().push(question);
        async move {
            match script {
                Script::Room(room) => Ok(Response::new(of(room))),
                Script::Pods(pods) => Ok(Response::new(of(pods - assumed))),
                Script::Error => Err(Status::internal("no nodes are known")),
                Script::Never => std::future::pending().await,
            }
        }
    });
    let codec: ProstCodec<A, Q> = ProstCodec::default();
    Grpc::new(codec).unary(answer, request).await
}

/// Makes an authority, the certificates of a server and of a client, and another authority.
fn certify(directory: &Path) -> TlsAcceptor {
    let [(issuer, own), _] = ["ca.crt", "other.crt"].map(|file| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(&key).unwrap();
        fs::write(directory.join(file), own.pem()).unwrap();
        (Issuer::new(params, key), own)
    });
    let sign = |purpose: ExtendedKeyUsagePurpose| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![purpose];
        (params.signed_by(&key, &issuer).unwrap(), key)
    };
    let (certificate, key) = sign(ExtendedKeyUsagePurpose::ClientAuth);
    fs::write(directory.join("client.crt"), certificate.pem()).unwrap();
    fs::write(directory.join("client.key"), key.serialize_pem()).unwrap();
    let (certificate, key) = sign(ExtendedKeyUsagePurpose::ServerAuth);

    let mut clients = RootCertStore::empty();
    clients.add(own.der().clone()).unwrap();
    let clients = WebPkiClientVerifier::builder(Arc::new(clients))
        .build()
        .unwrap();
    let versions = [&rustls::version::TLS13];
    let mut config = ServerConfig::builder_with_protocol_versions(&versions)
        .with_client_cert_verifier(clients)
        .with_single_cert(
            vec![CertificateDer::from(certificate.der().to_vec())],
            PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}
