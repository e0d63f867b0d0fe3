//! `kubectl remedy renew --host-context`, or `--in-host`: new tokens in the Secrets by which the programs of a cluster reach other APIs. That is
//! the host, or a member whose programs reach a hub, or a control plane in mode Pull.
//!
//! ```text
//!   Secret (host) → kubeconfig, token → its API: a token of the same account → Secret (host)
//! ```
//!
//! Each is asked for with the one before, so that nobody needs a right to the tokens of others.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use karmada_runtime::client::{Claims, Source, connect, connect_as_pod, kubeconfig, patient};
use kube::{Api, Client};
use serde_json::{from_value, json};

use crate::answer::Answer;
use crate::args::join::RenewArgs;
use crate::clusters::{each, of_member};
use crate::error::Error;
use crate::identity::NAME;
use crate::requests::refused;
use crate::secret::replace_token;
use crate::terminal;
use crate::token::{self, Account};

/// The namespace of the Secrets, where nobody says another.
const NAMESPACE: &str = "karmada-system";

/// The Secrets of the programs on the host of a Karmada, and that of the renewal itself.
const ON_HOST: [&str; 9] = [
    "remedy-controller-karmada",
    "ingress-controller-karmada",
    "ingress-controller-gateway",
    "propagation-controller-karmada",
    "scheduler-karmada",
    "execution-controller-karmada",
    "cluster-controller-karmada",
    "placement-controller-hub",
    "kubectl-remedy-renew-karmada",
];

/// Those of the programs where no Karmada is asked for agents: of a hub, and in members.
const ELSEWHERE: [&str; 4] = [
    "placement-controller-hub",
    "remedy-controller-karmada",
    "placement-agent-hub",
    "pull-karmada",
];

/// Renews tokens that are due.
pub(crate) async fn renew(
    args: &RenewArgs,
    source: &Source,
    now: Timestamp,
) -> Result<Answer, Error> {
    let (host, default) = if let Some(context) = &args.host_context {
        let host = connect(&of_member(source, context), NAME).await?;
        (host, NAMESPACE.to_owned())
    } else {
        let host = patient(connect_as_pod(NAME)?);
        let own = host.default_namespace().to_owned();
        (host, own)
    };
    let namespace = args.host_namespace.as_ref().unwrap_or(&default);
    let secrets: Api<Secret> = Api::namespaced(host, namespace);
    let names: &[&str] = if args.only_programs {
        &ELSEWHERE
    } else {
        &ON_HOST
    };
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let renewed = each(&names, async |name: &str| {
        renew_secret(name, args, &secrets, now).await
    });
    let renewed = renewed.await;
    if renewed.iter().all(|(_, was_there)| !was_there) && renewed.len() == names.len() {
        terminal::print(&format!(
            "No program has a Secret in the namespace {namespace} of that cluster\n"
        ));
    }
    Ok((renewed.len() == names.len()).into())
}

/// Renews the token in a Secret. Returns `false` if there is none.
async fn renew_secret(
    name: &str,
    args: &RenewArgs,
    secrets: &Api<Secret>,
    now: Timestamp,
) -> Result<bool, Error> {
    let found = secrets.get_opt(name).await;
    let found = found.map_err(|source| refused(format!("get the Secret {name}"), source))?;
    let Some(secret) = found else {
        return Ok(false);
    };
    let Some(old) = text(&secret, "token") else {
        terminal::print(&format!("{name} unchanged; it has no token\n"));
        return Ok(true);
    };
    if !token::is_due(&old, args.when_less_than, now) {
        terminal::print(&format!("{name} unchanged; {}\n", token::end(&old)));
        return Ok(true);
    }
    let account = account(&old).ok_or_else(|| {
        let problem = "its token is of no service account: write the Secret anew (docs/install.md)";
        Error::Unusable(problem.to_owned())
    })?;
    let api = api(&secret, &old).await?;
    let new = token::request(&account, args.token_duration, &api).await;
    let new = new.map_err(|error| {
        Error::Unusable(format!(
            "{error}; `access` and `store` of docs/install.md write the Secret anew"
        ))
    })?;
    replace_token(secrets, &secret, &new).await?;
    terminal::print(&format!("{name} renewed; {}\n", token::end(&new)));
    Ok(true)
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    let data = secret.data.as_ref()?.get(key)?;
    let text = String::from_utf8(data.0.clone()).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the account of a token, and the Secret beside it with which it ends.
fn account(token: &str) -> Option<Account> {
    let claims = Claims::of(token)?;
    let (namespace, name) = claims.account()?;
    Some(Account {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        secret: format!("{name}-token"),
    })
}

/// Connects to the API of a Secret with its token.
async fn api(secret: &Secret, token: &str) -> Result<Client, Error> {
    let text = text(secret, "kubeconfig").unwrap_or_default();
    let mut present = kubeconfig::parse(text.as_bytes())
        .map_err(|error| Error::Unusable(format!("its kubeconfig cannot be read: {error}")))?;
    for user in &mut present.auth_infos {
        // The file that it names is beside it in a pod of the program.
        user.auth_info = from_value(json!({ "token": token })).ok();
    }
    let source = Source {
        present: Some(present),
        ..Source::default()
    };
    Ok(connect(&source, NAME).await?)
}
