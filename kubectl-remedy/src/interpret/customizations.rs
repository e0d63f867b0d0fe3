//! The customizations that are asked, and the configurations of webhooks: those of files, or the fleet's.

use std::io;
use std::path::PathBuf;

use http::{Request, Response};
use interpreters::Interpreters;
use jiff::Timestamp;
use karmada_api::{ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration};
use karmada_runtime::client::{Addresses, connect};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::client::Body;
use kube::{Api, Client};
use objects::Metadata;
use propagation_rules::customization::{self, API_VERSION};
use serde_json::{Value, json};

use crate::args::ConnectionArgs;
use crate::error::Error;
use crate::identity::NAME;
use crate::manifest;

/// Returns the customizations in `files`, or those of the fleet without any, by name; with a client of the fleet, or
/// one that reaches nothing.
pub(super) async fn find(
    files: &[PathBuf],
    connection: &ConnectionArgs,
) -> Result<(Client, Vec<Value>), Error> {
    let (client, mut found) = if files.is_empty() {
        let client = connect(&connection.source(), NAME).await?;
        let of_fleet = list(&client).await?;
        (client, of_fleet)
    } else {
        (without_fleet(), read(files)?)
    };
    found.sort_by(|one, other| one.name().cmp(other.name()));
    Ok((client, found))
}

fn read(files: &[PathBuf]) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for file in files {
        for object in manifest::objects(file)? {
            let kind = objects::GroupVersionKind::of(&object);
            if !customization::kinds().contains(&kind) {
                let file = file.display();
                let what = format!(
                    "{file}: a {} customizes no kind of {API_VERSION}",
                    kind.kind
                );
                return Err(Error::Unusable(what));
            }
            found.push(object);
        }
    }
    Ok(found)
}

/// Reads the customizations of the fleet, and the configurations of webhooks.
async fn list(client: &Client) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for resource in [
        ApiResource::erase::<ResourceInterpreterCustomization>(&()),
        ApiResource::erase::<ResourceInterpreterWebhookConfiguration>(&()),
    ] {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        match api.list(&ListParams::default()).await {
            Ok(list) => found.extend(list.items.iter().map(|object| json!(object))),
            // A fleet without this definition.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(Error::request(format!("list {}", resource.plural), error)),
        }
    }
    Ok(found)
}

/// Returns the interpreters of the fleet, with the customizations and configurations of webhooks that say so.
pub(crate) async fn interpreters(client: &Client) -> Result<(Interpreters, Vec<Value>), Error> {
    let customized = list(client).await?;
    let interpreters =
        Interpreters::new(client.clone(), Addresses::by_system(), NAME, Timestamp::now);
    interpreters.replace(customized.iter().collect());
    Ok((interpreters, customized))
}

/// Returns a client that asks no API.
fn without_fleet() -> Client {
    let nobody = tower::service_fn(|_: Request<Body>| async {
        let why = "no fleet is asked where --customization is given";
        Err::<Response<Body>, _>(io::Error::other(why))
    });
    Client::new(nobody, "default")
}
