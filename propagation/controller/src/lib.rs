//! `propagation-controller`: applies propagation policies to resource templates. It claims the templates,
//! keeps a binding for each, and makes the Works of every cluster that a binding is scheduled to.
//!
//! ```text
//! watch → index, templates → queues → template      claims a template, and keeps its binding
//!                                     policy        gives a policy its ID and finalizer, and tells it its problems
//!                                     dependencies  attaches the bindings of a template's dependencies
//!                                     binding       makes the Works of a binding, and sums up their reports
//!                                     namespace     makes the Works of a Namespace
//!                                     customization tells a customization the problems of its scripts or webhooks
//! ```
//!
//! `watch` says which change wakes which key, and `templates/wakes` the same of templates, whose kinds are known at run time
//! only. A loop reads the `index` and the `templates`, asks one function of `propagation_rules`, and writes. Nothing is passed
//! from loop to loop: each sees the writes of another once the watch shows them.
//!
//! - Who interprets a template? The `Interpreters` of the templates, scripts and webhooks of users, which each loop asks
//!   before the rules.
//! - A write of a template, or a Work, counts at once: `templates` and `index` have the object as written.
//! - The facts about a binding's Works: `binding/known`; the steps that are taken: `binding/steps`.
//! - Who undoes our writes? `rivals` tells. Works are written by `work_writer`.
//! - Lazy policies: `template/activation`, and `template/memory` for the facts that die with the process.
//! - Reports to users: `events` with `reason`, `metrics`, `binding/status`.

mod args;
mod binding;
mod customization;
mod dependencies;
mod events;
mod identity;
mod index;
mod latest;
mod metrics;
mod namespace;
mod policy;
mod preferred;
mod queues;
mod reason;
mod rivals;
mod template;
mod templates;
#[cfg(test)]
mod tests;
mod watch;
mod work_writer;

use std::array;
use std::sync::Arc;

use karmada_runtime::commit::Committer;
use karmada_runtime::controller;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::lease::{self, Leadership};
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::write::WriteMode;
use kube::Client;
use propagation_rules::feature_gates;

pub use crate::args::Args;
use crate::args::GATES;
use crate::binding::{BindingReconciler, WorkGauges};
use crate::customization::CustomizationReconciler;
use crate::dependencies::DependencyReconciler;
use crate::events::Events;
pub use crate::identity::{IDENTITY, NAME};
use crate::latest::SharedReads;
use crate::metrics::CountedTemplates;
use crate::namespace::NamespaceReconciler;
use crate::policy::PolicyReconciler;
use crate::preferred::PreferredVersions;
use crate::queues::Queues;
pub use crate::reason::Reason;
use crate::template::{Activations, TemplateReconciler};
use crate::templates::Templates;
use crate::work_writer::WorkWriter;

/// Connects to the Karmada API and adds the tasks of the controller to `program`.
///
/// # Errors
/// Fails if a file named by the flags cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let client = program.connect("karmada", &args.client.source()).await?;
    assemble(&args, client, program);
    Ok(())
}

/// Adds the tasks of the controller to `program`; `client` is connected to the Karmada API.
pub fn assemble(args: &Args, client: Client, program: &mut Program) {
    let unknown = feature_gates::unknown(&args.feature_gates, &GATES);
    if !unknown.is_empty() {
        let features = unknown.join(", ");
        tracing::warn!(
            features,
            "Features that this program does not have are not switched"
        );
    }
    let (leadership, writes) = write_mode(args, &client, program);
    let queues = Queues::default();
    let loops = Loops::new(args, client, program, writes, &queues);
    loops.spawn(program, queues, &leadership);
}

/// Returns the leadership of the program, and whether it writes.
fn write_mode(args: &Args, client: &Client, program: &mut Program) -> (Leadership, WriteMode) {
    if args.observe_only {
        return WriteMode::dry_run(program);
    }
    let leadership = lease::leadership(program, client.clone(), &args.leader_election);
    WriteMode::perform(program, leadership)
}

/// The loops of the controller.
struct Loops {
    templates: TemplateReconciler,
    policies: PolicyReconciler,
    namespaces: NamespaceReconciler,
    dependencies: DependencyReconciler,
    bindings: BindingReconciler,
    customizations: CustomizationReconciler,
}

impl Loops {
    fn new(
        args: &Args,
        client: Client,
        program: &mut Program,
        writes: WriteMode,
        queues: &Queues,
    ) -> Self {
        let recorders = Recorders::new(args, &client, program);
        let index = Arc::default();
        let templates = Templates::watch(program, &client, &index, queues);
        watch::watch(program, &client, &templates);
        let notices = Some(rivals::notices(Arc::clone(&recorders.works)));
        // The next decision is made on the written object: nothing waits for its echo.
        let committer = Committer::new(
            client.clone(),
            NAME,
            writes,
            Expectations::default(),
            notices,
        );
        let work_writer = WorkWriter {
            committer: committer.clone(),
            index: Arc::clone(&index),
            queues: queues.clone(),
        };
        Self {
            customizations: CustomizationReconciler {
                templates: Arc::clone(&templates),
                events: recorders.customizations,
            },
            namespaces: NamespaceReconciler {
                index: Arc::clone(&index),
                writer: work_writer.clone(),
                events: Arc::clone(&recorders.works),
                queue: queues.namespaces.clone(),
                skipped: args.skipped(),
            },
            bindings: BindingReconciler {
                index: Arc::clone(&index),
                templates: Arc::clone(&templates),
                client: client.clone(),
                policies: SharedReads::new(client.clone()),
                committer: committer.clone(),
                skipped: args.skipped(),
                writer: work_writer,
                queue: queues.bindings.clone(),
                events: recorders.works,
                status_events: recorders.statuses,
                clock: program.clock,
                gauges: WorkGauges::register(&mut program.registry),
                preferred: PreferredVersions::new(client.clone()),
                conditions: args.deployment_conditions,
            },
            dependencies: DependencyReconciler {
                index: Arc::clone(&index),
                templates: Arc::clone(&templates),
                client: client.clone(),
                committer: committer.clone(),
                events: recorders.dependencies,
                queue: queues.dependencies.clone(),
                skipped: args.skipped(),
                attaches: args.attaches_dependencies(),
            },
            templates: TemplateReconciler {
                index,
                templates: Arc::clone(&templates),
                client,
                committer: committer.clone(),
                events: Arc::clone(&recorders.policies),
                queue: queues.templates.clone(),
                features: args.features(),
                preemption: args.preemption(),
                skipped: args.skipped(),
                uninterpreted: CountedTemplates::uninterpreted(&mut program.registry),
                unnamed: CountedTemplates::unnamed(&mut program.registry),
                activations: Activations::register(&mut program.registry),
            },
            policies: PolicyReconciler::new(templates, committer, recorders.policies),
        }
    }

    fn spawn(self, program: &mut Program, queues: Queues, leadership: &Leadership) {
        let (name, queue) = ("template", queues.templates);
        controller::spawn(program, name, self.templates, queue, leadership.clone());
        let (name, queue) = ("propagationpolicy", queues.policies);
        controller::spawn(program, name, self.policies, queue, leadership.clone());
        let (name, queue) = ("namespace", queues.namespaces);
        controller::spawn(program, name, self.namespaces, queue, leadership.clone());
        let (name, queue) = ("dependencies", queues.dependencies);
        controller::spawn(program, name, self.dependencies, queue, leadership.clone());
        let (name, queue) = ("resourcebinding", queues.bindings);
        controller::spawn(program, name, self.bindings, queue, leadership.clone());
        let (name, queue) = ("customization", queues.customizations);
        controller::spawn(
            program,
            name,
            self.customizations,
            queue,
            leadership.clone(),
        );
    }
}

/// Recorders of Events. Each keeps the troubles of its own loops: a template may have some with its policy, with its
/// Works and with its status.
struct Recorders {
    policies: Arc<Events>,
    works: Arc<Events>,
    statuses: Arc<Events>,
    dependencies: Arc<Events>,
    customizations: Arc<Events>,
}

impl Recorders {
    fn new(args: &Args, client: &Client, program: &mut Program) -> Self {
        let recorder = (!args.observe_only)
            .then(|| EventRecorder::spawn(program, client.clone(), args.events));
        let [policies, works, statuses, dependencies, customizations] = array::from_fn(|_| {
            Arc::new(match recorder.clone() {
                None => Events::none(),
                Some(recorder) => {
                    Events::new(move |regarding, event| recorder.record(regarding, event))
                }
            })
        });
        Self {
            policies,
            works,
            statuses,
            dependencies,
            customizations,
        }
    }
}
