//! The scenario of this project with a real CoreDNS and Traefik: DNS of a member cluster dies, its
//! traffic goes elsewhere, DNS recovers, and the traffic returns.

use std::{fmt, time::Duration};

use anyhow::{Context, Result, ensure};
use karmada_api::{TRAFFIC_CONTROL, condition::DNS_READY};
use lab_parts::thresholds::ProbeTiming;
use tokio::time::Instant;

use crate::{
    backend::{HttpBackend, UNRESOLVED},
    control_plane::{ApiKind, ControlPlane},
    coredns::{CoreDns, Silence},
    fleet::{Fleet, GATEWAY_CLASS, HOST, Member, PROXY, on_dns},
    own_members::OwnMembers,
    programs::{Profile, Running},
    traefik::Traefik,
    traffic::{Counts, LEFT_AFTER, Traffic, reaches},
};

const STOPPED: &str = "DNS of member1 stopped";
const FALSE: &str = "condition False";
const STARTED: &str = "DNS of member1 started again";
const BACK: &str = "DNS of member1 back";
const TRUE: &str = "condition True";

/// The allowance after the threshold and a period until a verdict is seen: 1 s for the round that completes
/// it, at most 10 s for the write, and the rest for a busy machine. A benchmark measures the real time.
const ALLOWANCE: Duration = Duration::from_secs(20);

/// The fault of DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsOutage {
    /// CoreDNS is gone: queries are refused.
    Refused,
    /// CoreDNS is gone and queries are lost.
    Dropped,
}

/// Who brings workloads to the members, and their endpoints back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// A Karmada, for which the objects that it makes stand.
    Karmada,
    /// Our own programs, in a fleet without Karmada.
    Own,
}

/// The events of a scenario and their times.
#[derive(Clone, Debug)]
pub struct Timeline {
    fault: DnsOutage,
    thresholds: ProbeTiming,
    steps: Vec<(&'static str, Instant)>,
    /// All requests.
    pub counts: Counts,
    /// Requests that ended before DNS of member1 was stopped.
    pub before: Counts,
    /// Requests sent from then on until member1 was left.
    pub outage: Counts,
    /// Requests sent while member1 was blocked.
    pub during: Counts,
    /// Requests sent since member1 was left.
    pub after: Counts,
    /// Resident memory of each program at the end, in KiB.
    pub memory: Vec<(String, u64)>,
}

/// Plays the scenario in the network namespace of this process.
pub async fn play(
    server: ApiKind,
    profile: Profile,
    home: Home,
    fault: DnsOutage,
    thresholds: ProbeTiming,
) -> Result<Timeline> {
    progress("starting Kubernetes APIs, CoreDNS, Traefik and our programs");
    let mut stage = Stage::start(server, profile, home, thresholds).await?;
    let mut steps = Vec::new();

    progress("both members get requests; stopping DNS of member1");
    let stopped = Instant::now();
    stage.dns[0].stop().await?;
    let silence = match fault {
        DnsOutage::Refused => None,
        DnsOutage::Dropped => Some(Silence::on(Member(1).dns())?),
    };
    steps.push((STOPPED, stopped));
    steps.extend(stage.verdict(true).await?);
    let blocked = std::time::Instant::now();
    stage.traffic.left("member1", LEFT_AFTER, blocked).await?;
    if let Some(last) = stage.traffic.last_to("member1") {
        steps.push(("last request to member1", last.into()));
    }
    let left = std::time::Instant::now();
    let during = stage.traffic.next(LEFT_AFTER, left).await?;

    progress("member1 gets none any more; starting its DNS again");
    drop(silence);
    steps.push((STARTED, Instant::now()));
    stage.dns[0].restart().await?;
    let back = Instant::now();
    steps.push((BACK, back));
    steps.extend(stage.verdict(false).await?);
    let first = stage.traffic.first_to("member1", back.into_std()).await?;
    steps.push(("first request to member1", first.into()));
    stage.traffic.next(LEFT_AFTER, first).await?;

    progress("member1 gets requests again");
    steps.sort_by_key(|(_, at)| *at);
    let traffic = &stage.traffic;
    let timeline = Timeline {
        fault,
        thresholds,
        steps,
        counts: traffic.counts(),
        before: traffic.counts_until(stopped.into_std()),
        outage: traffic.counts_between(stopped.into_std(), left),
        during,
        after: traffic.counts_since(left),
        memory: stage.memory()?,
    };
    stage.stop().await?;
    Ok(timeline)
}

#[expect(clippy::print_stderr, reason = "a person waits for a minute or more")]
fn progress(what: &str) {
    eprintln!("{what}");
}

/// Everything that runs in the scenario.
struct Stage {
    fleet: Fleet,
    dns: Vec<CoreDns>,
    programs: Vec<(String, Running)>,
    traffic: Traffic,
    _apis: Vec<ControlPlane>,
    _backends: Vec<HttpBackend>,
    _proxy: Traefik,
}

impl Stage {
    /// Starts two healthy members that both get requests.
    async fn start(
        server: ApiKind,
        profile: Profile,
        home: Home,
        thresholds: ProbeTiming,
    ) -> Result<Self> {
        let members = [Member(1), Member(2)];
        Fleet::lay_network(&members)?;
        let (fleet, OwnMembers { mut programs, apis }) = match home {
            Home::Karmada => {
                let fleet = Fleet::with_members(server, profile, &members).await?;
                (fleet, OwnMembers::default())
            }
            Home::Own => OwnMembers::start(server, profile, &members).await?,
        };
        let flags: &[&str] = match home {
            Home::Karmada => &[],
            // No member of such a fleet has the kind.
            Home::Own => &["--export-services=false"],
        };
        fleet.create_remedy("dns", on_dns()).await?;

        let (mut dns, mut backends) = (Vec::new(), Vec::new());
        programs.push((
            "remedy-controller".to_owned(),
            fleet.remedy_controller().await?,
        ));
        programs.push((
            "ingress-controller".to_owned(),
            fleet.ingress_controller_with(flags).await?,
        ));
        for member in members {
            dns.push(CoreDns::start(member.dns(), fleet.gateway.kubeconfig_path()).await?);
            let name = member.name();
            let backend = HttpBackend::resolving(member.backend(), &name, member.dns());
            backends.push(backend.await?);
            let agent = fleet.agent(member, &thresholds.flags()).await?;
            programs.push((format!("cluster-health-agent of {}", member.name()), agent));
        }
        let access = fleet.proxy_access().await?;
        let proxy = Traefik::start(PROXY.parse()?, &access, Some(GATEWAY_CLASS)).await?;

        for member in members {
            fleet.has_condition(member, DNS_READY, "True").await?;
        }
        let names = members.map(Member::name);
        reaches(PROXY.parse()?, HOST, &names).await?;
        let started = std::time::Instant::now();
        let traffic = Traffic::start(PROXY.parse()?, HOST);
        for member in members {
            traffic.first_to(&member.name(), started).await?;
        }
        Ok(Self {
            fleet,
            dns,
            programs,
            traffic,
            _apis: apis,
            _backends: backends,
            _proxy: proxy,
        })
    }

    /// Waits until the verdict about member1 has reached the condition, the actions and the ingress, and
    /// returns the time of each.
    async fn verdict(&self, dead: bool) -> Result<[(&'static str, Instant); 3]> {
        let status = if dead { "False" } else { "True" };
        let actions: &[&str] = if dead { &[TRAFFIC_CONTROL] } else { &[] };
        let blocked: &[Member] = if dead { &[Member(1)] } else { &[] };
        let (condition, actions, blocked) = tokio::try_join!(
            self.fleet.has_condition(Member(1), DNS_READY, status),
            self.fleet.has_actions(Member(1), actions),
            self.fleet.has_blocked(blocked),
        )?;
        let steps = if dead {
            [FALSE, "remedyActions set", "trafficBlockClusters set"]
        } else {
            [
                TRUE,
                "remedyActions cleared",
                "trafficBlockClusters cleared",
            ]
        };
        Ok([
            (steps[0], condition),
            (steps[1], actions),
            (steps[2], blocked),
        ])
    }

    fn memory(&self) -> Result<Vec<(String, u64)>> {
        self.programs
            .iter()
            .map(|(name, program)| Ok((name.clone(), program.memory()?)))
            .collect()
    }

    /// Stops our programs with SIGTERM.
    async fn stop(self) -> Result<()> {
        for (_, program) in self.programs {
            program.stop().await?;
        }
        Ok(())
    }
}

impl Timeline {
    /// Checks the promises of the scenario: the verdicts come in time, requests fail only on a member
    /// without DNS and only until it is left, and it comes back.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn check(&self) -> Result<()> {
        let Self {
            before,
            outage,
            during,
            after,
            ..
        } = self;
        self.is_in_time([STOPPED, STOPPED], FALSE)?;
        self.is_in_time([STARTED, BACK], TRUE)?;
        ensure!(before.failed() == 0, "requests failed before: {before}");
        ensure!(before.to("member1") > 0, "member1 got none: {before}");
        // A backend without DNS fails its requests: hence the block.
        let unresolved = format!("member1: status 503 Service Unavailable, {UNRESOLVED}");
        let failures: Vec<&String> = outage.failures.keys().collect();
        ensure!(failures == [&unresolved], "failures of others: {outage}");
        ensure!(
            during.to("member1") == 0,
            "member1 got requests while blocked: {during}"
        );
        ensure!(
            during.to("member2") > 0,
            "member2 got no requests: {during}"
        );
        ensure!(after.failed() == 0, "requests failed afterwards: {after}");
        ensure!(after.to("member1") > 0, "member1 never came back: {after}");
        Ok(())
    }

    /// Checks the time from a change of DNS, which began and was complete at these steps, to the
    /// verdict: not before the threshold, less the round that may have been on its way, and at most a
    /// period and [`ALLOWANCE`] after it.
    fn is_in_time(&self, [began, complete]: [&str; 2], verdict: &str) -> Result<()> {
        let ProbeTiming { period, threshold } = self.thresholds;
        let at = |what: &str| {
            let step = self.steps.iter().find(|(step, _)| *step == what);
            step.map(|(_, at)| *at)
                .with_context(|| format!("no step {what:?}"))
        };
        let least = at(verdict)?.saturating_duration_since(at(began)?);
        ensure!(
            least >= threshold.saturating_sub(period),
            "{verdict} after {least:?}, before a threshold of {threshold:?} was over"
        );
        let most = at(verdict)?.saturating_duration_since(at(complete)?);
        ensure!(
            most <= threshold + period + ALLOWANCE,
            "{verdict} only after {most:?}, with a threshold of {threshold:?}"
        );
        Ok(())
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fault,
            thresholds: ProbeTiming { period, threshold },
            steps,
            counts,
            outage,
            during,
            memory,
            ..
        } = self;
        writeln!(
            f,
            "queries {fault:?}, probed every {period:?}, thresholds {threshold:?}"
        )?;
        let (start, mut previous) = match steps.first() {
            Some((_, at)) => (*at, *at),
            None => return Ok(()),
        };
        for (what, at) in steps {
            let (since, step) = (*at - start, *at - previous);
            writeln!(
                f,
                "{:>9.3} s  +{:>7.3} s  {what}",
                since.as_secs_f64(),
                step.as_secs_f64()
            )?;
            previous = *at;
        }
        writeln!(f, "requests: {counts}")?;
        writeln!(f, "until member1 was left: {outage}")?;
        writeln!(f, "while member1 was blocked: {during}")?;
        for (name, kib) in memory {
            writeln!(
                f,
                "memory of {name}: {:.1} MiB",
                f64::from(u32::try_from(*kib).unwrap_or(u32::MAX)) / 1024.0
            )?;
        }
        Ok(())
    }
}
