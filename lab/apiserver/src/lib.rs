//! An embedded Kubernetes API for trying and testing: in memory, with faults on demand.
//!
//! It serves what clients made with `kube` and an unmodified `kubectl` need: discovery, OpenAPI,
//! tables, custom resources as data, validation, defaulting and pruning, every kind of patch,
//! watches, and the deletion of what nobody owns any more.
//!
//! **It is no control plane to depend on.** It keeps everything in memory and nothing on disk, asks
//! nobody who they are, encrypts nothing, runs no admission webhook, converts between versions of a
//! custom resource by their name only, does not run CEL rules, and has none of the controllers but
//! those that collect what is deleted. For use there is kube-apiserver.
//!
//! Within a process, a client talks to [`ApiServer::service`]; over a socket, to
//! [`ApiServer::serve`]:
//!
//! ```
//! use apiserver::{ApiServer, Fault, Verb};
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
//! In process it is deterministic: on one thread the same requests get the same answers, byte for
//! byte, UIDs and timestamps included. Time is tokio's, so a test that pauses it pauses the server.
//! [`Faults`] are counted, never random.

mod answer;
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
mod news;
mod openapi;
mod patch;
mod protobuf;
mod repeated;
mod request;
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
