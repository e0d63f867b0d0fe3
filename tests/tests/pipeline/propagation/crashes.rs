//! The lives of policies while every program dies after each of its writes.

use anyhow::{Context, Result};
use karmada_api::ClusterView;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    crashes::{CrashingProgram, crash_during},
    fleet::Member,
    on_both,
    programs::Binary,
    propagation::{PropagationFleet, PropagationPrograms, create},
    wait::until,
};
use serde_json::{Value, json};

use super::base::until_unclaimed;
use super::evictions::{is_well, no_execute, reschedule, taint, takes_workloads};
use super::groups::{
    REPLICAS, aggregated, groups, is_refused, label, leaves, place, runs_in, set_room,
    until_observed,
};
use super::lazy::{
    apply_one_file, edit, lazily, policy_applied, preempting, second_passes, until_claimed,
};
use super::record::Record;
use super::{
    WEB, change, change_cluster_policy, deployment, deployments, has_image, suspend, work_has,
};

/// Returns the programs of a fleet, which reach its members through their own proxies; the scheduler has these
/// flags.
pub(super) async fn crashing_programs(
    fleet: &PropagationFleet,
    scheduling: &'static [&str],
) -> Result<[CrashingProgram; 3]> {
    let karmada = &fleet.karmada;
    let mut executing = CrashingProgram::new(Binary::ExecutionController, karmada).await?;
    for member in fleet.members() {
        let url = executing.reach(fleet.member(member)).await?;
        lead(fleet, member, &url).await?;
    }
    let choosing = CrashingProgram::new(Binary::Scheduler, karmada).await?;
    Ok([
        CrashingProgram::new(Binary::PropagationController, karmada).await?,
        choosing.with(scheduling.iter().copied()),
        executing,
    ])
}

/// Tells a story while every program dies after each of its writes, and then starts others, which complete what is
/// left.
pub(super) async fn crash_after_each_write(
    fleet: &PropagationFleet,
    scheduling: &'static [&str],
    story: impl Future<Output = Result<()>>,
) -> Result<PropagationPrograms> {
    let programs = crashing_programs(fleet, scheduling).await?;
    crash_during(&programs, story).await?;
    for member in fleet.members() {
        lead(fleet, member, &fleet.member(member).url()).await?;
    }
    fleet.run().await
}

/// Leads requests to a member to this URL, unless the fleet has lost the member.
async fn lead(fleet: &PropagationFleet, member: Member, url: &str) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    if clusters.get_opt(&member.name()).await?.is_none() {
        return Ok(());
    }
    let patch = Patch::Merge(json!({ "spec": { "apiEndpoint": url } }));
    let parameters = PatchParams::default();
    clusters.patch(&member.name(), &parameters, &patch).await?;
    Ok(())
}

/// Tells a story with programs that die, completes it with others, and compares how often the copy has come to each
/// member and gone from it.
pub(super) async fn crash_and_count_moves(
    fleet: &PropagationFleet,
    scheduling: &'static [&str],
    moves: &[usize],
    story: impl Future<Output = Result<()>>,
) -> Result<()> {
    let members = fleet.members().map(|member| fleet.member(member));
    let records: Vec<_> = members.map(Record::of_deployment).collect();
    let programs = crash_after_each_write(fleet, scheduling, story).await?;
    programs.settled().await?;
    for ((member, record), moves) in fleet.members().zip(&records).zip(moves) {
        let ensured = record.ensure_moves(*moves).await;
        ensured.with_context(|| member.name())?;
    }
    Ok(())
}

/// Waits until the deployment has come to a member, and gone from the other.
pub(super) async fn moves(fleet: &PropagationFleet, from: Member, to: Member) -> Result<()> {
    has_image(fleet, to, "web:1").await?;
    leaves(fleet, from).await
}

/// Returns an immediate policy that takes the deployment to a member.
fn at_once(member: Member) -> Value {
    let mut policy = lazily(member);
    policy["activationPreference"] = Value::Null;
    policy
}

/// Cases P46, P40, P32, P33, P28, P34, P48, P37, P45 and P30, in this order. In Karmada every restart is like an edit
/// (W2).
async fn lazy_policy_waits(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    apply_one_file(&fleet, lazily(Member(1))).await?;
    crash_and_count_moves(&fleet, &[], &[6, 5], lazy_life(&fleet)).await
}

async fn lazy_life(fleet: &PropagationFleet) -> Result<()> {
    let (one, two) = (Member(1), Member(2));
    has_image(fleet, one, "web:1").await?;
    change(fleet, WEB, lazily(two)).await?;
    policy_applied(fleet, "False", "waits for the next edit").await?;
    edit(fleet, "refresh-time").await?;
    moves(fleet, one, two).await?;

    change(fleet, WEB, at_once(one)).await?;
    moves(fleet, two, one).await?;
    change(fleet, WEB, lazily(two)).await?;
    policy_applied(fleet, "False", "waits for the next edit").await?;
    suspend(fleet, json!({ "dispatching": true })).await?;
    work_has(fleet, one, "Dispatching", "False", "web:1").await?;
    suspend(fleet, Value::Null).await?;
    work_has(fleet, one, "Dispatching", "True", "web:1").await?;

    fleet.create_policy("heir", lazily(two)).await?;
    let deletion = DeleteParams::default();
    fleet.policies().delete(WEB, &deletion).await?;
    policy_applied(fleet, "False", "shop/heir").await?;
    edit(fleet, "x.karmada.io.example.com/a").await?;
    moves(fleet, one, two).await?;

    fleet
        .create_policy("urgent", preempting(lazily(one), 2))
        .await?;
    policy_applied(fleet, "False", "shop/urgent").await?;
    edit(fleet, "urgent-time").await?;
    moves(fleet, two, one).await?;
    // What waited until now names both policies, too.
    policy_applied(fleet, "True", "").await?;
    change(fleet, "urgent", lazily(two)).await?;
    policy_applied(fleet, "False", "policy shop/urgent waits").await?;
    change(fleet, "urgent", for_another(lazily(two))).await?;
    policy_applied(fleet, "False", "policy shop/heir waits").await?;
    edit(fleet, "heir-time").await?;
    moves(fleet, one, two).await?;
    policy_applied(fleet, "True", "").await?;

    change(fleet, "heir", lazily(one)).await?;
    policy_applied(fleet, "False", "waits for the next edit").await?;
    change(fleet, "heir", for_another(lazily(one))).await?;
    until_unclaimed(fleet).await?;
    change(fleet, "heir", lazily(one)).await?;
    until_claimed(&deployments(&fleet.karmada)).await?;
    fleet.policies().delete("heir", &deletion).await?;
    until_unclaimed(fleet).await?;
    edit(fleet, "unclaimed-time").await?;
    // That the edit arrives shows that all before it was seen.
    fleet.create_policy("last", at_once(two)).await?;
    let copies = deployments(fleet.member(two));
    until(&copies, WEB, "edited", |copy| {
        copy.is_some_and(|copy| copy.annotations().contains_key("unclaimed-time"))
    })
    .await?;
    Ok(())
}

/// Cases P31, P43, P35, P36, P37, P44 and P41, in this order. In Karmada P35 moves the template at once (W2), P43 never
/// (W4), and P44 when the policy before is edited (W3).
async fn handed_over_template_waits(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 3).await?;
    crash_and_count_moves(&fleet, &[], &[6, 4, 1], life_of_heirs(&fleet)).await
}

async fn life_of_heirs(fleet: &PropagationFleet) -> Result<()> {
    let (one, two, three) = (Member(1), Member(2), Member(3));
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    second_passes(fleet).await?;
    fleet.create_policy(WEB, lazily(two)).await?;
    until_claimed(&deployments(&fleet.karmada)).await?;
    change(fleet, WEB, at_once(one)).await?;
    has_image(fleet, one, "web:1").await?;

    fleet.create_cluster_policy("first", lazily(two)).await?;
    change(fleet, WEB, for_another(lazily(one))).await?;
    policy_applied(fleet, "False", "policy first waits").await?;
    edit(fleet, "refresh-time").await?;
    moves(fleet, one, two).await?;
    fleet.create_cluster_policy("second", lazily(one)).await?;
    change_cluster_policy(fleet, "first", for_another(lazily(two))).await?;
    policy_applied(fleet, "False", "policy second waits").await?;
    edit(fleet, "second-time").await?;
    moves(fleet, two, one).await?;

    fleet
        .create_policy("third", preempting(at_once(two), 2))
        .await?;
    moves(fleet, one, two).await?;
    fleet
        .create_policy("fourth", preempting(lazily(one), 3))
        .await?;
    policy_applied(fleet, "False", "shop/fourth").await?;
    change(fleet, "third", at_once(three)).await?;
    edit(fleet, "fourth-time").await?;
    moves(fleet, two, one).await?;
    let deletion = DeleteParams::default();
    fleet.policies().delete("fourth", &deletion).await?;
    moves(fleet, one, three).await
}

/// Returns the policy for another deployment.
fn for_another(mut policy: Value) -> Value {
    policy["resourceSelectors"][0]["name"] = "other".into();
    policy
}

/// Cases P51, P52, P58, the way back, P53, P54 and P57, in this order.
async fn groups_follow_each_other(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 3).await?;
    let flags = &["--evict-untolerated", "--affinity-fail-back"];
    crash_and_count_moves(&fleet, flags, &[4, 4, 3], life_of_groups(&fleet)).await
}

async fn life_of_groups(fleet: &PropagationFleet) -> Result<()> {
    let (primary, backup, single) = (Member(1), Member(2), Member(3));
    let in_primary = async || runs_in(fleet, &[(primary, 4)], Some("primary")).await;
    let in_backup = async || runs_in(fleet, &[(backup, 4)], Some("backup")).await;
    label(fleet, primary, Some("primary")).await?;
    label(fleet, backup, Some("backup")).await?;
    taint(fleet, primary, no_execute()).await?;
    let mut policy = at_once(primary);
    policy["placement"] = json!({ "clusterAffinities": groups(&["primary", "backup"]) });
    fleet.create_policy(WEB, policy).await?;
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    in_backup().await?;
    let more = groups(&["primary", "backup", "spare"]);
    place(fleet, json!({ "clusterAffinities": more })).await?;
    until_observed(fleet, "Deployment", "/clusterAffinities", &more).await?;
    in_backup().await?;

    taint(fleet, primary, json!([])).await?;
    in_primary().await?;
    has_image(fleet, backup, "web:1").await?;
    is_well(fleet, primary).await?;
    leaves(fleet, backup).await?;
    taint(fleet, primary, no_execute()).await?;
    in_backup().await?;
    has_image(fleet, primary, "web:1").await?;
    is_well(fleet, backup).await?;
    leaves(fleet, primary).await?;
    label(fleet, backup, Some("primary")).await?;
    runs_in(fleet, &[(backup, 4)], Some("primary")).await?;

    let only = json!({ "clusterNames": [single.name()] });
    place(
        fleet,
        json!({ "clusterAffinity": only, "clusterAffinities": null }),
    )
    .await?;
    runs_in(fleet, &[(single, 4)], None).await?;
    leaves(fleet, backup).await?;
    taint(fleet, primary, json!([])).await?;
    two_groups_with_one_cluster(fleet, single, primary).await
}

/// Moves the deployment between two groups that both have the cluster in which it runs.
async fn two_groups_with_one_cluster(
    fleet: &PropagationFleet,
    single: Member,
    primary: Member,
) -> Result<()> {
    let overlapping = json!([
        { "affinityName": "one", "clusterNames": [single.name()] },
        { "affinityName": "two", "clusterNames": [single.name(), primary.name()] },
    ]);
    let placement = json!({ "clusterAffinity": null, "clusterAffinities": overlapping });
    place(fleet, placement).await?;
    runs_in(fleet, &[(single, 4)], Some("one")).await?;
    taint(fleet, single, no_execute()).await?;
    runs_in(fleet, &[(primary, 4)], Some("two")).await?;
    is_well(fleet, primary).await?;
    leaves(fleet, single).await?;
    taint(fleet, single, json!([])).await?;
    runs_in(fleet, &[(single, 4)], Some("one")).await?;
    is_well(fleet, single).await?;
    leaves(fleet, primary).await
}

/// Cases P52, P60, P54, P55, P56, P53 and P55 the other way round, in this order; P61 is that of every death between
/// the writes of the scheduler.
async fn lack_of_room_moves_nothing(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 3).await?;
    let flags = &["--evict-untolerated"];
    crash_and_count_moves(&fleet, flags, &[0, 5, 4], life_of_room(&fleet)).await
}

async fn life_of_room(fleet: &PropagationFleet) -> Result<()> {
    let (private, public, new) = (Member(1), Member(2), Member(3));
    let in_public = async |group| runs_in(fleet, &[(public, REPLICAS)], group).await;
    let in_groups = json!({
        "clusterAffinities": groups(&["private", "public"]), "replicaScheduling": aggregated(),
    });
    label(fleet, private, Some("private")).await?;
    set_room(fleet, private, 3).await?;
    let mut policy = at_once(private);
    policy["placement"] = in_groups.clone();
    fleet.create_policy(WEB, policy).await?;
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    is_refused(fleet, "Unschedulable").await?;
    label(fleet, public, Some("public")).await?;
    set_room(fleet, public, 9).await?;
    in_public(Some("public")).await?;

    let only = json!({ "clusterNames": [public.name()] });
    let single = json!({ "clusterAffinity": only, "clusterAffinities": null });
    place(fleet, single).await?;
    in_public(None).await?;
    let mut again = in_groups;
    again["clusterAffinity"] = Value::Null;
    place(fleet, again).await?;
    in_public(Some("public")).await?;

    label(fleet, public, None).await?;
    // That a divided workload looks for clusters at all needs a reason.
    let tolerate = async |key: &str| {
        let tolerations = json!([{ "key": key, "operator": "Exists" }]);
        place(fleet, json!({ "clusterTolerations": tolerations })).await
    };
    tolerate("any").await?;
    is_refused(fleet, "Unschedulable").await?;
    in_public(Some("public")).await?;
    label(fleet, new, Some("private")).await?;
    set_room(fleet, new, 9).await?;
    let in_new = async || runs_in(fleet, &[(new, REPLICAS)], Some("private")).await;
    in_new().await?;
    leaves(fleet, public).await?;

    label(fleet, public, Some("public")).await?;
    taint(fleet, new, no_execute()).await?;
    in_public(Some("public")).await?;
    has_image(fleet, new, "web:1").await?;
    is_well(fleet, public).await?;
    leaves(fleet, new).await?;
    taint(fleet, new, json!([])).await?;
    takes_workloads(fleet, new).await?;
    reschedule(fleet).await?;
    in_new().await?;
    leaves(fleet, public).await?;

    set_room(fleet, public, 3).await?;
    label(fleet, private, None).await?;
    label(fleet, new, None).await?;
    tolerate("other").await?;
    is_refused(fleet, "Unschedulable").await?;
    in_new().await?;
    label(fleet, public, None).await?;
    leaves(fleet, new).await?;

    label(fleet, public, Some("public")).await?;
    set_room(fleet, public, 9).await?;
    in_public(Some("public")).await
}

on_both!(
    both long:
    lazy_policy_waits,
    handed_over_template_waits,
    lack_of_room_moves_nothing,
    groups_follow_each_other,
);
