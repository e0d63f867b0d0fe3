//! A Kubernetes API and its client in one process.

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::{Client, Error};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let server = ApiServer::new();
    let client = Client::new(server.service(), "default");
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut settings = ConfigMap::default();
    settings.metadata.name = Some("settings".to_owned());
    let created = config_maps
        .create(&PostParams::default(), &settings)
        .await?;
    assert_eq!(created, config_maps.get("settings").await?);
    Ok(())
}
