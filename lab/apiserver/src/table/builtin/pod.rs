//! Pods. Their status in one word is that of the container which says most.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cell::{NONE, age, has_condition, items, name, number, or, text};
use super::columns::Table;
use crate::table::age;

pub(super) const POD: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Status", "string", 0),
        ("Restarts", "string", 0),
        ("Age", "string", 0),
        ("IP", "string", 1),
        ("Node", "string", 1),
        ("Nominated Node", "string", 1),
        ("Readiness Gates", "string", 1),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let shown = Summary::of(object);
        vec![
            name(object),
            json!(format!("{}/{}", shown.ready, container_count(spec))),
            json!(shown.status),
            json!(shown.restarts.text(now)),
            json!(age(object, now)),
            json!(or(text(&status["podIPs"][0]["ip"]), NONE)),
            json!(or(text(&spec["nodeName"]), NONE)),
            json!(or(text(&status["nominatedNodeName"]), NONE)),
            json!(readiness_gates(object)),
        ]
    },
};

/// The status of all containers of a pod (`printPod` of kube-apiserver).
struct Summary {
    ready: usize,
    status: String,
    restarts: Restarts,
}

#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    /// The end of the newest life before the present one.
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += number(&container["restartCount"]);
        let ended = text(&container["lastState"]["terminated"]["finishedAt"]);
        self.last = self.last.max(ended.parse().ok());
    }

    fn text(self, now: Timestamp) -> String {
        match self.last.filter(|_| self.count != 0) {
            Some(last) => format!("{} ({} ago)", self.count, age::between(last, now)),
            None => self.count.to_string(),
        }
    }
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let mut shown = Self {
            ready: 0,
            status: of_pod(pod),
            restarts: Restarts::default(),
        };
        if let Some(sidecars) = shown.initialize(pod) {
            shown.restarts = sidecars;
            shown.run(pod);
        }
        let is_deleted = !pod["metadata"]["deletionTimestamp"].is_null();
        let phase = text(&pod["status"]["phase"]);
        if is_deleted && pod["status"]["reason"] == "NodeLost" {
            "Unknown".clone_into(&mut shown.status);
        } else if is_deleted && !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut shown.status);
        }
        shown
    }

    /// Reads the init containers. Returns the restarts of those that run on beside the others, or `None` while the
    /// pod initializes.
    fn initialize(&mut self, pod: &Value) -> Option<Restarts> {
        let mut sidecars = Restarts::default();
        for (index, container) in items(&pod["status"]["initContainerStatuses"])
            .iter()
            .enumerate()
        {
            let is_sidecar = is_sidecar(pod, &container["name"]);
            self.restarts.add(container);
            if is_sidecar {
                sidecars.add(container);
            }
            let ended = &container["state"]["terminated"];
            if !ended.is_null() && number(&ended["exitCode"]) == 0 {
                continue;
            }
            if is_sidecar && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            let waits_for = text(&container["state"]["waiting"]["reason"]);
            self.status = if !ended.is_null() {
                format!("Init:{}", end(ended))
            } else if !matches!(waits_for, "" | "PodInitializing") {
                format!("Init:{waits_for}")
            } else {
                let count = items(&pod["spec"]["initContainers"]).len();
                format!("Init:{index}/{count}")
            };
            // The first that is not done stands for all. A condition that the pod is initialized counts more.
            return has_condition(pod, "Initialized").then_some(sidecars);
        }
        Some(sidecars)
    }

    /// Reads the other containers, of which the first that says anything counts.
    fn run(&mut self, pod: &Value) {
        let (mut is_running, mut failure) = (false, None);
        for container in items(&pod["status"]["containerStatuses"]).iter().rev() {
            self.restarts.add(container);
            let state = &container["state"];
            let (waits_for, ended) = (text(&state["waiting"]["reason"]), &state["terminated"]);
            if !waits_for.is_empty() {
                waits_for.clone_into(&mut self.status);
            } else if !ended.is_null() {
                self.status = end(ended);
                if number(&ended["exitCode"]) != 0 {
                    failure = Some(self.status.clone());
                }
            } else if container["ready"] == true && !state["running"].is_null() {
                is_running = true;
                self.ready += 1;
            }
        }
        // One container that has ended says nothing about a pod of which another one runs.
        if self.status == "Completed" {
            if is_running && has_condition(pod, "Ready") {
                "Running".clone_into(&mut self.status);
            } else if let Some(failure) = failure {
                self.status = failure;
            } else if is_running {
                "NotReady".clone_into(&mut self.status);
            }
        }
    }
}

/// Returns the status that the pod has if no container says more.
fn of_pod(pod: &Value) -> String {
    let status = &pod["status"];
    let is_gated = items(&status["conditions"]).iter().any(|condition| {
        condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated"
    });
    if is_gated {
        "SchedulingGated".to_owned()
    } else {
        or(text(&status["reason"]), text(&status["phase"]))
    }
}

/// Returns the reason for which a container ended.
fn end(terminated: &Value) -> String {
    let signal = number(&terminated["signal"]);
    match text(&terminated["reason"]) {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", number(&terminated["exitCode"])),
        reason => reason.to_owned(),
    }
}

/// Returns `true` if an init container runs on beside the others.
fn is_sidecar(pod: &Value, name: &Value) -> bool {
    let containers = items(&pod["spec"]["initContainers"]);
    (containers.iter())
        .any(|container| container["name"] == *name && container["restartPolicy"] == "Always")
}

fn container_count(spec: &Value) -> usize {
    let sidecars = items(&spec["initContainers"]).iter();
    let sidecars = sidecars.filter(|container| container["restartPolicy"] == "Always");
    items(&spec["containers"]).len() + sidecars.count()
}

fn readiness_gates(pod: &Value) -> String {
    let gates = items(&pod["spec"]["readinessGates"]);
    let met = gates
        .iter()
        .filter(|gate| has_condition(pod, text(&gate["conditionType"])));
    match gates.len() {
        0 => NONE.to_owned(),
        all => format!("{}/{all}", met.count()),
    }
}
