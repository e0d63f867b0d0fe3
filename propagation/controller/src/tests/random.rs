//! Random histories of users: the settled state is the one that a program which starts anew would make.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// A step of a user.
#[derive(Clone, Debug)]
enum Step {
    /// Creates a policy, or replaces its spec.
    Policy {
        name: &'static str,
        selector: Value,
        priority: i32,
        preempts: bool,
        waits: bool,
    },
    DeletePolicy(&'static str),
    /// Creates a Deployment, or replaces it; everything that is not in it, claims included, goes.
    Template {
        name: &'static str,
        label: &'static str,
    },
    DeleteTemplate(&'static str),
    Override,
    DeleteOverride,
    Pause,
}

fn step() -> impl Strategy<Value = Step> {
    let policy = select(vec!["a", "b", "c"]);
    let template = select(vec!["web", "api"]);
    let selector = select(vec![
        json!({ "name": "web" }),
        json!({}),
        json!({ "labelSelector": { "matchLabels": { "tier": "x" } } }),
    ]);
    prop_oneof![
        4 => (policy.clone(), selector, 0..3, any::<bool>(), prop::bool::weighted(0.2)).prop_map(
            |(name, selector, priority, preempts, waits)| Step::Policy {
                name, selector, priority, preempts, waits,
            },
        ),
        2 => policy.prop_map(Step::DeletePolicy),
        3 => (template.clone(), select(vec!["x", "y"])).prop_map(|(name, label)| Step::Template { name, label }),
        1 => template.prop_map(Step::DeleteTemplate),
        1 => Just(Step::Override),
        1 => Just(Step::DeleteOverride),
        1 => Just(Step::Pause),
    ]
}

impl Stage {
    /// Creates an object, or replaces it.
    async fn put(&self, path: &str, body: &Value) {
        let name = body["metadata"]["name"].as_str().unwrap();
        let created = self.attempt("POST", path, body).await;
        if !created {
            self.attempt("PUT", &format!("{path}/{name}"), body).await;
        }
    }

    async fn take(&self, step: &Step) {
        match step {
            Step::Policy {
                name,
                selector,
                priority,
                preempts,
                waits,
            } => {
                let mut all = json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
                for (field, value) in selector.as_object().unwrap() {
                    all[field] = value.clone();
                }
                let waits: &[&str] = if *waits { &["o"] } else { &[] };
                let spec = json!({
                    "resourceSelectors": [all],
                    "priority": priority,
                    "preemption": if *preempts { "Always" } else { "Never" },
                    "dependentOverrides": waits,
                    "placement": { "clusterAffinity": { "clusterNames": [name] } },
                });
                let created = self.attempt("POST", POLICY, &policy(name, &spec)).await;
                if !created {
                    let path = format!("{POLICY}/{name}");
                    self.attempt("PATCH", &path, &json!({ "spec": spec })).await;
                }
            }
            Step::DeletePolicy(name) => {
                self.attempt("DELETE", &format!("{POLICY}/{name}"), &json!({}))
                    .await;
            }
            Step::Template { name, label } => {
                let mut object = deployment();
                object["metadata"]["name"] = json!(name);
                object["metadata"]["labels"] = json!({ "tier": label });
                self.put(DEPLOYMENT, &object).await;
            }
            Step::DeleteTemplate(name) => {
                self.attempt("DELETE", &format!("{DEPLOYMENT}/{name}"), &json!({}))
                    .await;
            }
            Step::Override => {
                self.put(OVERRIDE, &override_policy()).await;
            }
            Step::DeleteOverride => {
                self.attempt("DELETE", &format!("{OVERRIDE}/o"), &json!({}))
                    .await;
            }
            Step::Pause => {
                let pause = json!({ "spec": { "suspension": { "dispatching": true } } });
                self.attempt("PATCH", &format!("{POLICY}/a"), &pause).await;
            }
        }
    }
    /// Sends a request of a user. Returns `true` unless the API refuses it.
    async fn attempt(&self, method: &str, path: &str, body: &Value) -> bool {
        self.try_send(method, path, body).await.is_ok()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A program that starts anew reconciles everything: it finds work only if a change woke too little.
    #[test]
    fn restart_writes_nothing(
        history in prop::collection::vec((step(), any::<bool>()), 1..25),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let wrote = runtime.block_on(async {
            let mut stage = Stage::new().await;
            stage.start(&[]).await;
            for (step, pauses) in &history {
                stage.take(step).await;
                if *pauses {
                    stage.settle().await;
                }
            }
            stage.settle().await;
            // Backoffs end.
            tokio::time::sleep(Duration::from_mins(2)).await;
            stage.kill().await;
            stage.written();
            stage.start(&[]).await;
            stage.written()
        });
        prop_assert_eq!(wrote, [""; 0]);
    }
}

fn override_policy() -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": { "name": "o", "namespace": "shop" },
        "spec": { "overrideRules": [] },
    })
}
