//! The contract on a program that runs already, for `cargo xtask provider-contract`. Its tests run one after the other, and
//! each begins by deleting the remains of another.

use std::env;

use super::stage::{self, Program, Stage};
use super::*;
use crate::provider::contract::provider_contract;

struct AtUrl(Source);

impl Program for AtUrl {
    async fn start() -> Self {
        let variables = ["PROVIDER_CERTIFICATE_AUTHORITY", "PROVIDER_TOKEN_FILE"];
        let [ca_file, token_file] = variables.map(|name| {
            let path = env::var_os(name).filter(|path| !path.is_empty());
            path.map(Into::into)
        });
        let mut source = source(env::var("PROVIDER_URL").unwrap());
        if let Some(server) = &mut source.server {
            server.ca_file = ca_file;
            server.token_file = token_file;
        }
        stage::clear(&source).await;
        Self(source)
    }

    fn source(&self) -> Source {
        self.0.clone()
    }
}

provider_contract!(Stage<AtUrl>);

#[tokio::test]
async fn foreign_ingress_is_a_clash() {
    stage::foreign_ingress_is_a_clash::<AtUrl>().await;
    // The last one, by its name, leaves nothing.
    AtUrl::start().await;
}
