//! `kubectl remedy why TYPE/NAME`, by a user with the rights of its manifest, and those to the objects that he asks for.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::work::{APPLIED, DISPATCHING};
use kube::Api;
use pipeline_tests::{
    api::{create, merge, merge_status},
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    kubectl::{Finished, Kubectl},
    on_both,
    propagation::{PropagationFleet, PropagationPrograms, namespaced},
    rights::{grant, grant_file},
    wait::until,
};
use serde_json::{Value, json};

const USER: &str = "operator";
const WEB: &str = "web";

/// A fleet of two clusters into which a Deployment is to go, and a user who looks after it.
struct Watched {
    fleet: PropagationFleet,
    kubectl: Kubectl,
    _programs: PropagationPrograms,
}

impl Watched {
    async fn start(server: ApiKind) -> Result<Self> {
        let fleet = PropagationFleet::start(server, 2).await?;
        let client = fleet.karmada.client();
        grant_file(&client, USER, "karmada/kubectl-remedy").await?;
        let deployment = json!({
            "metadata": { "name": WEB, "namespace": NAMESPACE, "labels": { "app": WEB } },
            "spec": { "replicas": 2, "selector": { "matchLabels": { "app": WEB } },
                "template": { "metadata": { "labels": { "app": WEB } },
                    "spec": { "containers": [{ "name": WEB, "image": "web:1" }] } } },
        });
        create(&namespaced::<Deployment>(client), deployment).await?;
        Ok(Self {
            kubectl: Kubectl::new(fleet.karmada.kubeconfig_for(USER)?)?,
            _programs: fleet.run().await?,
            fleet,
        })
    }

    async fn why(&self, subject: &str, flags: &[&str]) -> Result<Finished> {
        let line = [&["why", subject][..], flags].concat();
        self.kubectl.remedy(&line, "").await
    }

    /// Asks until the first line begins so: the programs are still at work.
    async fn says(&self, subject: &str, sentence: &str) -> Result<String> {
        loop {
            let answer = self.why(subject, &["-n", NAMESPACE]).await?;
            assert_eq!(answer.code, Some(0), "{answer:?}");
            if answer.stdout.starts_with(sentence) {
                return Ok(answer.stdout);
            }
        }
    }

    /// Waits until the Work of a member has this condition.
    async fn work_has(&self, member: Member, condition: &str, status: &str) -> Result<()> {
        let name = PropagationFleet::work_name("Deployment", WEB);
        let what = format!("{condition} {status}");
        until(&self.fleet.works(member), &name, &what, |work| {
            let found = work.and_then(|work| work.condition(condition));
            found.is_some_and(|found| found.status == status)
        })
        .await?;
        Ok(())
    }
}

fn policy(name: &str, suspension: &Value) -> Value {
    json!({
        "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": name }],
        "placement": { "clusterAffinity": { "clusterNames": ["member1", "member2"] } },
        "suspension": suspension,
    })
}

/// Returns the last line without its indentation.
fn last(text: &str) -> &str {
    text.lines().next_back().unwrap_or_default().trim_start()
}

/// A user asks for a Deployment that goes nowhere, by every name that it has, until it is everywhere: no policy selects it,
/// its copies do not come up, and it is paused. Each answer has the command to run next.
async fn deployment_is_followed(server: ApiKind) -> Result<()> {
    let watched = Watched::start(server).await?;
    if server == ApiKind::Real {
        refused_without_rights(&watched).await?;
    }
    unselected_is_nowhere(&watched).await?;
    copies_come_up(&watched).await?;
    pause_is_told(&watched).await?;
    wrong_names_are_errors(&watched).await?;
    let offered = watched
        .kubectl
        .complete_remedy(&["why", "-n", NAMESPACE, "deploy/"])
        .await?;
    let words: Vec<&str> = offered.split_whitespace().collect();
    // Names are offered to those who may list them.
    let expected: &[&str] = match server {
        ApiKind::Real => &[":4"],
        ApiKind::Embedded | ApiKind::EmbeddedByTls => &["deploy/web", ":4"],
    };
    assert_eq!(words, expected);
    Ok(())
}

/// A policy selects another name.
async fn unselected_is_nowhere(watched: &Watched) -> Result<()> {
    watched
        .fleet
        .create_policy("shop", policy("api", &Value::Null))
        .await?;
    let text = watched
        .says("deployment/web", "No policy selects Deployment shop/web: PropagationPolicy shop/shop comes nearest, and selects the name api.\n")
        .await?;
    assert_eq!(
        last(&text),
        "kubectl get propagationpolicy/shop -n shop -o yaml"
    );
    Ok(())
}

/// The policy selects it, and its copies get ready.
async fn copies_come_up(watched: &Watched) -> Result<()> {
    let fleet = &watched.fleet;
    let patch = json!({ "spec": policy(WEB, &Value::Null) });
    merge(&fleet.policies(), "shop", &patch).await?;
    for member in fleet.members() {
        watched.work_has(member, APPLIED, "True").await?;
    }
    // Nothing runs Pods in these members.
    let text = watched
        .says("deploy/web", "Deployment shop/web is applied in member1, and not healthy there (1 other cluster is in trouble, too).\n")
        .await?;
    let work = PropagationFleet::work_name("Deployment", WEB);
    assert!(
        last(&text).starts_with(&format!("kubectl get work/{work} -n karmada-es-member1")),
        "{text}"
    );
    for member in fleet.members() {
        let copies: Api<Deployment> = namespaced(fleet.member(member).client());
        let generation = copies.get(WEB).await?.metadata.generation;
        let status = json!({ "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2,
            "availableReplicas": 2, "observedGeneration": generation });
        merge_status(&copies, WEB, &status).await?;
    }
    let well = "Deployment shop/web is in member1 and member2, as it is to be.\n";
    for subject in ["deployments.apps/web", "rb/web-deployment"] {
        let text = watched.says(subject, well).await?;
        assert_eq!(
            last(&text),
            "kubectl describe resourcebinding/web-deployment -n shop"
        );
        assert!(text.contains("propagation-controller"), "{text}");
    }
    Ok(())
}

/// The policy pauses one cluster.
async fn pause_is_told(watched: &Watched) -> Result<()> {
    let fleet = &watched.fleet;
    let pause = json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } });
    let patch = json!({ "spec": policy(WEB, &pause) });
    merge(&fleet.policies(), "shop", &patch).await?;
    watched.work_has(Member(2), DISPATCHING, "False").await?;
    let paused = "Deployment shop/web is paused in member2, which has all there is to have now.\n";
    watched.says("deploy/web", paused).await?;
    let work = PropagationFleet::work_name("Deployment", WEB);
    let answer = watched
        .why(
            &format!("work/{work}"),
            &["-n=karmada-es-member2", "-o=json"],
        )
        .await?;
    let story: Value = serde_json::from_str(&answer.stdout)?;
    assert_eq!(story["cause"], "Paused");
    assert_eq!(story["clusters"][0]["work"]["state"], "paused");
    assert_eq!(story["policy"]["suspended"], "member2");
    Ok(())
}

/// Absent objects, and those that are never propagated.
async fn wrong_names_are_errors(watched: &Watched) -> Result<()> {
    for (subject, problem) in [
        ("deploy/none", "there is no Deployment shop/none"),
        ("pp/shop", "PropagationPolicy shop/shop is never propagated"),
    ] {
        let answer = watched.why(subject, &["-n", NAMESPACE]).await?;
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(
            answer.stderr.starts_with(&format!("error: {problem}")),
            "{answer:?}"
        );
        assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    }
    Ok(())
}

/// The user may read no Deployments, and is told the command that lets him.
async fn refused_without_rights(watched: &Watched) -> Result<()> {
    let answer = watched.why("deploy/web", &["-n", NAMESPACE]).await?;
    assert_eq!(answer.code, Some(2), "{answer:?}");
    let role = "read-deployments.apps";
    let line = format!(
        "error: you may not get deployments.apps -n shop; this grants it: \
         kubectl create clusterrole {role} --verb=get --resource=deployments.apps && \
         kubectl create clusterrolebinding {role} --clusterrole={role} --user={USER}\n"
    );
    assert_eq!(answer.stderr, line);
    let read = json!([{ "apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"] }]);
    grant(&watched.fleet.karmada.client(), USER, &read).await?;
    // The authorizer has a watch of its own: repeat until it has seen the binding.
    while watched.why("deploy/web", &["-n", NAMESPACE]).await?.code != Some(0) {}
    Ok(())
}

on_both!(long: deployment_is_followed);
