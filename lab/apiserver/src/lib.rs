//! An embedded Kubernetes API for tests and sandboxes: in memory, with faults on demand.
//!
//! It implements what `kube` clients and an unmodified `kubectl` need: discovery, OpenAPI, tables,
//! custom resources, validation, defaulting and pruning, every kind of patch, watches, and garbage
//! collection.
//!
//! **It is not a control plane to depend on.** It keeps everything in memory and nothing on disk,
//! has no authentication, authorization or encryption, calls no webhooks, evaluates of CEL
//! rules only those about emptiness, converts custom resources between versions by changing `apiVersion` only, and runs no
//! controllers except those that complete deletions. `docs/embedded-api.md` lists what it does not do.
//! For anything real, use kube-apiserver.
//!
//! Clients connect in process through [`ApiServer::service`] or over a socket through
//! [`ApiServer::serve`]:
//!
//! ```
//! use embedded_apiserver::{ApiServer, Fault, Verb};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{Api, Client, api::{ObjectMeta, PostParams}};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::new();
//! let client = Client::new(server.service(), "default");
//! let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
//!
//! let name = ObjectMeta { name: Some("settings".to_owned()), ..ObjectMeta::default() };
//! let settings = ConfigMap { metadata: name, ..ConfigMap::default() };
//! server.faults().inject(Fault::InternalError.verbs([Verb::Create]).times(1));
//! assert!(config_maps.create(&PostParams::default(), &settings).await.is_err());
//! let made = config_maps.create(&PostParams::default(), &settings).await?;
//! assert_eq!(config_maps.get("settings").await?, made);
//! # Ok(())
//! # }
//! ```
//!
//! In process it is deterministic: on one thread, the same requests get the same responses, byte
//! for byte, including UIDs and timestamps. It follows tokio's clock, so that a test that pauses
//! time pauses the server. [`Faults`] are counted, never random.

mod body;
mod call;
mod clock;
mod collector;
mod deletion;
mod discovery;
mod dispatch;
mod error;
mod faults;
mod kinds;
mod lease;
mod metadata;
mod metrics;
mod names;
mod notify;
mod openapi;
mod patch;
mod protobuf;
mod repeated;
mod request;
mod response;
mod schema;
mod selector;
mod serve;
mod server;
mod service;
mod store;
mod table;
mod verbs;
mod watch;
mod write;

#[cfg(test)]
mod tests;

pub use error::ApiError;
pub use faults::{Fault, FaultId, Faults, Injection};
pub use request::Verb;
pub use server::ApiServer;
pub use service::ApiService;
