//! A token that the programs in a member renew themselves, once the pages' commands are run.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use pipeline_tests::{control_plane::ControlPlane, kubectl::Kubectl};
use serde_json::json;

use super::page::Reader;

/// An account of one API, and the Secret in a member that has its token.
pub(crate) struct OwnToken<'a> {
    /// The context of the account's API.
    pub(crate) api: &'a str,
    /// The account, as `NAMESPACE:NAME`.
    pub(crate) account: &'a str,
    /// The context of the member.
    pub(crate) member: &'a str,
    /// The Secret, as `NAMESPACE/NAME`.
    pub(crate) secret: &'a str,
}

/// Runs the commands that let a token renew itself, and does the work of the `CronJob` once: before them it is refused, after
/// them the token changes, and nothing else in its Secret.
pub(crate) async fn renews(
    reader: &Reader,
    member: &ControlPlane,
    token: OwnToken<'_>,
    commands: &[String],
) -> Result<()> {
    let (namespace, account) = token.account.split_once(':').context("no account")?;
    let (host_namespace, secret) = token.secret.split_once('/').context("no Secret")?;
    let kubectl = Kubectl::new(reader.path(".kube/config"))?;
    let renew = [
        "renew",
        &format!("--host-context={}", token.member),
        &format!("--host-namespace={host_namespace}"),
        "--only-programs",
        "--when-less-than=9000h",
    ];
    let refused = kubectl.remedy(&renew, "").await?;
    let told = refused.stderr.matches("cannot get a token of ").count();
    ensure!(refused.code == Some(1) && told == 1, "{refused:?}");

    for command in commands {
        reader.run(command).await?;
    }
    // The authorizer has a watch of its own: repeat until it has seen the binding.
    let may = format!(
        "--context {} -n {namespace} --as system:serviceaccount:{namespace}:{account} auth can-i create serviceaccounts/{account} --subresource=token",
        token.api
    );
    while kubectl.run(&may).await.is_err() {}
    let secrets: Api<Secret> = Api::namespaced(member.client(), host_namespace);
    let before = secrets.get(secret).await?.data;
    let renewed = kubectl.remedy(&renew, "").await?;
    ensure!(renewed.code == Some(0), "{renewed:?}");
    let after = secrets.get(secret).await?.data;
    let (mut before, after) = (before.context("no data")?, after.context("no data")?);
    let old = before.insert("token".to_owned(), after["token"].clone());
    ensure!(before == after, "more than the token changed");
    ensure!(old.as_ref() != after.get("token"), "the token is the same");
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": { "token": String::from_utf8(after["token"].0.clone())? },
    });
    let asked = format!(
        "--context {} create -o jsonpath={{.status.user.username}} -f -",
        token.api
    );
    let who = kubectl.feed(&asked, &review.to_string()).await?;
    ensure!(
        who == format!("system:serviceaccount:{}", token.account),
        "{who}"
    );
    Ok(())
}
