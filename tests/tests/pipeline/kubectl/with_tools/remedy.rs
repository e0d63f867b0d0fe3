//! `kubectl remedy`, as the real kubectl runs it, by a user with no rights but those of its manifest.

use anyhow::Result;
use karmada_api::{
    TRAFFIC_CONTROL,
    remedy::{EXPIRES_AT, PRACTICED},
};
use kube::ResourceExt;
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Fleet, Member, maintenance, on_dns},
    kubectl::{Finished, Kubectl},
    on_both,
    programs::{Profile, Running},
    rights::grant_file,
};
use serde_json::{Value, json};

const USER: &str = "operator";

/// A fleet of two clusters that both serve, and a user who operates it.
struct Operated {
    fleet: Fleet,
    kubectl: Kubectl,
    remedies: Running,
    ingresses: Running,
}

impl Operated {
    async fn start(server: ApiKind) -> Result<Self> {
        let members = [Member(1), Member(2)];
        let fleet = Fleet::with_members(server, Profile::Debug, &members).await?;
        grant_file(&fleet.karmada.client(), USER, "karmada/kubectl-remedy").await?;
        let operated = Self {
            kubectl: Kubectl::new(fleet.karmada.kubeconfig_for(USER)?)?,
            remedies: fleet.remedy_controller().await?,
            ingresses: fleet.ingress_controller().await?,
            fleet,
        };
        operated.fleet.serves(&members).await?;
        // The authorizer has a watch of its own: repeat until it has seen the binding.
        while operated.run(&["status"]).await?.code != Some(0) {}
        Ok(operated)
    }

    async fn run(&self, arguments: &[&str]) -> Result<Finished> {
        self.kubectl.remedy(arguments, "").await
    }

    async fn plan(&self, name: &str, spec: &Value) -> Result<Finished> {
        let remedy = json!({ "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
            "metadata": { "name": name }, "spec": spec });
        let remedy = remedy.to_string();
        self.kubectl.remedy(&["plan", "-f", "-"], &remedy).await
    }

    async fn stop(self) -> Result<()> {
        self.remedies.stop().await?;
        self.ingresses.stop().await
    }
}

/// Returns `true` if a line of `text` has exactly these words.
fn has_row(text: &str, words: &str) -> bool {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut lines = text.lines();
    lines.any(|line| line.split_whitespace().eq(words.iter().copied()))
}

/// A block takes the traffic of a cluster, and unblock gives it back.
async fn block_moves_traffic(server: ApiKind) -> Result<()> {
    let operated = Operated::start(server).await?;
    let fleet = &operated.fleet;
    let planned = operated.plan("any", &maintenance(Member(1))).await?;
    assert_eq!(planned.code, Some(0), "{planned:?}");
    let row = "shop shop web member1 <none> member2";
    assert!(has_row(&planned.stdout, row), "{planned:?}");

    let block = ["block", "member1", "--for=2h", "--reason=new kernel"];
    let blocked = operated.run(&block).await?;
    assert_eq!(
        blocked.stdout,
        "remedy.remedy.karmada.io/block-member1 created\n"
    );
    assert!(has_row(&blocked.stderr, row), "{blocked:?}");
    fleet.has_blocked(&[Member(1)]).await?;
    fleet.serves(&[Member(2)]).await?;

    let why = operated.run(&["why", "member1"]).await?.stdout;
    for line in [
        "member1 is blocked by Remedy block-member1 (it names no condition).",
        "  TrafficControl, last written by remedy-controller ",
        "  shop/shop: blocked, last written by ingress-controller ",
        "    Service web is served by member2",
    ] {
        assert!(
            why.lines().any(|shown| shown.starts_with(line)),
            "{line}\n{why}"
        );
    }
    let status = operated.run(&["status"]).await?.stdout;
    let row = "member1 <none> <none> <none> <none> TrafficControl block-member1 1/1";
    assert!(has_row(&status, row), "{status}");

    let unblocked = operated.run(&["unblock", "member1"]).await?;
    assert_eq!(
        unblocked.stdout,
        "remedy.remedy.karmada.io/block-member1 deleted\n"
    );
    assert_eq!(unblocked.code, Some(0));
    fleet.has_blocked(&[]).await?;
    fleet.serves(&[Member(1), Member(2)]).await?;
    let again = operated.run(&["unblock", "member1"]).await?;
    assert_eq!(again.code, Some(1), "{again:?}");
    operated.stop().await
}

/// A block ends by itself and is then said to have expired.
async fn block_expires(server: ApiKind) -> Result<()> {
    let operated = Operated::start(server).await?;
    let fleet = &operated.fleet;
    operated.run(&["block", "member1", "--for=2h"]).await?;
    fleet.has_blocked(&[Member(1)]).await?;
    fleet.serves(&[Member(2)]).await?;
    // The end is set anew: however slow the machine is, a block was there to end.
    let again = operated.run(&["block", "member1", "--for=2s"]).await?;
    assert_eq!(
        again.stdout,
        "remedy.remedy.karmada.io/block-member1 configured\n"
    );
    let block = fleet.remedies().get("block-member1").await?;
    let end = &block.annotations()[EXPIRES_AT];
    let event = format!("RemedyExpired it expired at {end}");
    fleet.has_event("Remedy", "block-member1", &event).await?;
    fleet.has_actions(Member(1), &[]).await?;
    fleet.has_blocked(&[]).await?;
    fleet.serves(&[Member(1), Member(2)]).await?;

    let status = operated.run(&["status"]).await?.stdout;
    let row = "member1 <none> <none> <none> <none> <none> <none> 0/1";
    assert!(has_row(&status, row), "{status}");
    let why = operated.run(&["why", "member1"]).await?.stdout;
    assert!(why.starts_with("member1 is not blocked.\n"), "{why}");
    let row = format!("block-member1 no TrafficControl it has expired (until {end})");
    assert!(has_row(&why, &row), "{why}");
    let why = operated.run(&["why", "member1", "-o=json"]).await?.stdout;
    let why: Value = serde_json::from_str(&why)?;
    assert_eq!(why["blocked"], json!(false));
    let block = json!({ "name": "block-member1", "acts": false, "actions": [TRAFFIC_CONTROL],
        "because": "it has expired", "expiresAt": end });
    assert_eq!(why["remedies"], json!([block]));
    operated.stop().await
}

/// A drained cluster gets no traffic and nothing new until it is uncordoned, and a practice has an outcome, by a user who
/// has no other rights.
async fn drain_is_taken_back(server: ApiKind) -> Result<()> {
    let operated = Operated::start(server).await?;
    let fleet = &operated.fleet;
    let rights = "karmada/kubectl-remedy-drain";
    grant_file(&fleet.karmada.client(), USER, rights).await?;
    while operated.run(&["uncordon", "member1"]).await?.code != Some(1) {}
    let drain = ["drain", "member1", "--workloads", "--wait=2m"];
    let drained = operated.run(&drain).await?;
    assert_eq!(
        drained.stdout,
        "cluster.cluster.karmada.io/member1 tainted\n\
         remedy.remedy.karmada.io/drain-member1 created\n\
         cluster.cluster.karmada.io/member1 tainted\n",
        "{drained:?}"
    );
    assert_eq!(drained.code, Some(0), "{drained:?}");
    fleet.has_blocked(&[Member(1)]).await?;
    fleet.serves(&[Member(2)]).await?;
    let status = operated.run(&["status"]).await?.stdout;
    let line = status.lines().last().unwrap_or_default();
    assert!(line.starts_with("member1 is drained until "), "{status}");

    let uncordoned = operated.run(&["uncordon", "member1"]).await?;
    assert_eq!(
        uncordoned.stdout,
        "cluster.cluster.karmada.io/member1 untainted\n\
         remedy.remedy.karmada.io/drain-member1 deleted\n",
        "{uncordoned:?}"
    );
    assert_eq!(uncordoned.code, Some(0), "{uncordoned:?}");
    fleet.has_blocked(&[]).await?;
    fleet.serves(&[Member(1), Member(2)]).await?;

    let practiced = operated.run(&["practice", "member1", "--for=20s"]).await?;
    let end = "member1: the others did without it for 20s\n";
    assert!(practiced.stdout.ends_with(end), "{practiced:?}");
    let remedy = fleet.remedies().get("practice-member1").await?;
    let conditions = remedy.status.and_then(|status| status.conditions);
    let mut conditions = conditions.into_iter().flatten();
    assert!(conditions.any(|one| one.type_ == PRACTICED && one.status == "True"));
    fleet
        .has_event("Remedy", "practice-member1", "PracticeSucceeded")
        .await?;
    let unknown = operated.run(&["drain", "member9"]).await?;
    assert_eq!(unknown.stderr, "error: there is no cluster member9\n");
    assert_eq!(unknown.code, Some(2));
    operated.stop().await
}

/// A block that would leave a backend without a cluster is refused unless forced.
async fn last_cluster_needs_force(server: ApiKind) -> Result<()> {
    let operated = Operated::start(server).await?;
    let fleet = &operated.fleet;
    let block = |member: &'static str| ["block", member, "--for=1h"];
    operated.run(&block("member1")).await?;
    fleet.serves(&[Member(2)]).await?;

    let refused = operated.run(&block("member2")).await?;
    assert_eq!(refused.code, Some(1));
    let reason = "Service web of shop/shop has no cluster left.";
    assert!(refused.stderr.contains(reason), "{refused:?}");
    assert_eq!(fleet.remedies().get_opt("block-member2").await?, None);
    let planned = operated.plan("any", &maintenance(Member(2))).await?;
    assert_eq!(planned.code, Some(1), "{planned:?}");

    for dry_run in ["--dry-run=client", "--dry-run=server"] {
        let flags = [&block("member2")[..], &["--force", dry_run, "-o", "json"]].concat();
        let printed = operated.run(&flags).await?;
        let printed: Value = serde_json::from_str(&printed.stdout)?;
        assert_eq!(printed["spec"]["actions"], json!([TRAFFIC_CONTROL]));
        assert_eq!(fleet.remedies().get_opt("block-member2").await?, None);
    }
    let forced = operated
        .run(&[&block("member2")[..], &["--force"]].concat())
        .await?;
    assert_eq!(forced.code, Some(0), "{forced:?}");
    fleet.serves(&[]).await?;
    let unknown = operated.run(&block("member9")).await?;
    assert_eq!(unknown.stderr, "error: there is no cluster member9\n");
    assert_eq!(unknown.code, Some(2));
    operated.stop().await
}

/// The plan of a condition happens and is explained.
async fn plan_comes_true(server: ApiKind) -> Result<()> {
    let operated = Operated::start(server).await?;
    let fleet = &operated.fleet;
    fleet.set_dns(Member(1), "False").await?;
    let planned = operated.plan("dns", &on_dns()).await?;
    let change = "TrafficControl set by Remedy dns: ServiceDomainNameResolutionReady is False";
    assert!(
        has_row(&planned.stdout, &format!("member1 {change}")),
        "{planned:?}"
    );
    assert!(
        has_row(&planned.stdout, "shop shop web member1 <none> member2"),
        "{planned:?}"
    );
    fleet.create_remedy("dns", on_dns()).await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    fleet.serves(&[Member(2)]).await?;
    let planned = operated.plan("dns", &on_dns()).await?;
    assert_eq!(planned.stdout, "No cluster gets or loses an action.\n");

    operated.run(&["block", "member1", "--for=1h"]).await?;
    let unblocked = operated.run(&["unblock", "member1"]).await?;
    let rest = "member1 stays blocked by Remedy dns: ServiceDomainNameResolutionReady is False\n";
    assert_eq!(unblocked.stderr, rest);
    operated.stop().await
}

/// A check tells a cluster that has joined and never reported from one that has not joined, which controller does not lead,
/// and with time whether it has begun to.
async fn check_names_the_leaderless(server: ApiKind) -> Result<()> {
    let operated = Operated::start(server).await?;
    operated.fleet.karmada.namespace("karmada-cluster").await?;
    let checked = operated.run(&["check"]).await?;
    let silent = "× member1 has joined, and never reported\n";
    assert!(checked.stdout.contains(silent), "{checked:?}");
    let admin = Kubectl::new(operated.fleet.karmada.kubeconfig_path().to_owned())?;
    for member in ["member1", "member2"] {
        let credentials =
            format!("create secret generic {member} -n karmada-cluster --from-literal=token=t");
        admin.run(&credentials).await?;
        let role = format!("delete clusterrole karmada-rs:cluster-health-agent:{member}");
        admin.run(&role).await?;
    }
    let checked = operated.run(&["check"]).await?;
    for line in [
        "✓ remedies of remedy.karmada.io/v1alpha1 are served",
        "✓ remedy-controller leads: lease karmada-system/remedy-controller is held by ",
        "✓ ingress-controller leads: lease karmada-system/ingress-controller is held by ",
        "✓ serviceLocations of ingresses is written by the ingress-controller alone",
        "‼ member1 has not joined",
    ] {
        let mut lines = checked.stdout.lines();
        assert!(
            lines.any(|shown| shown.starts_with(line)),
            "{line}\n{checked:?}"
        );
    }
    if server == ApiKind::Real {
        let rights =
            "✓ you may read everything that is shown\n✓ you may block and unblock clusters\n";
        assert!(checked.stdout.contains(rights), "{checked:?}");
    }
    assert_eq!(checked.code, Some(0), "{checked:?}");
    operated.remedies.stop().await?;
    let checked = operated.kubectl.remedy(&["check"], "").await?;
    let line = "× remedy-controller does not lead: nobody holds the lease";
    assert!(checked.stdout.contains(line), "{checked:?}");
    assert_eq!(checked.code, Some(1));
    let waiting = operated.kubectl.remedy(&["check", "--wait=1m"], "");
    let started = operated.fleet.remedy_controller();
    let (checked, remedies) = tokio::try_join!(waiting, started)?;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    remedies.stop().await?;
    operated.ingresses.stop().await
}

/// The shell offers commands, clusters and kinds.
async fn shell_completes_names(server: ApiKind) -> Result<()> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.create_cluster("member1").await?;
    fleet.create_cluster("other").await?;
    let kubectl = Kubectl::new(fleet.karmada.kubeconfig_path().to_owned())?;
    let offered = kubectl.complete_remedy(&["un"]).await?;
    let words: Vec<&str> = offered.split_whitespace().collect();
    assert_eq!(words.first(), Some(&"unblock"), "{offered}");
    assert_eq!(words.last(), Some(&":4"), "{offered}");
    let offered = kubectl.complete_remedy(&["why", "mem"]).await?;
    let words: Vec<&str> = offered.split_whitespace().collect();
    assert_eq!(words, ["member1", ":4"]);
    let line = [
        "rights",
        "configmaps",
        "rbac.authorization.k8s.io/clusterroles",
    ];
    let offered = kubectl.complete_remedy(&line).await?;
    let words: Vec<&str> = offered.split_whitespace().collect();
    let [.., last] = line;
    assert_eq!(words, [last, "ClusterRole", ":4"]);
    Ok(())
}

on_both!(
    long:
    block_moves_traffic,
    block_expires,
    drain_is_taken_back,
    last_cluster_needs_force,
    plan_comes_true,
    check_names_the_leaderless,
    shell_completes_names,
);
