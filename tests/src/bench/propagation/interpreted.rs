//! The same templates, with a customization that interprets their kind.

use anyhow::Result;
use karmada_api::ResourceInterpreterCustomization;
use serde_json::{Value, json};

use super::{
    clients::untyped,
    stand::{Bench, ROWS},
};
use crate::bench::{
    Pairs, ROUNDS,
    requests::{create, delete},
};

const NAME: &str = "deployments";

/// The programs' own knowledge of Deployments, in Lua.
const SCRIPTS: [(&str, &str); 6] = [
    (
        "replicaResource",
        "local kube = require('kube')
         function GetReplicas(obj)
           return obj.spec.replicas, kube.accuratePodRequirements(obj.spec.template)
         end",
    ),
    (
        "replicaRevision",
        "function ReviseReplica(obj, replicas)
           obj.spec.replicas = replicas
           return obj
         end",
    ),
    (
        "retention",
        "function Retain(desired, observed)
           return desired
         end",
    ),
    (
        "statusReflection",
        "function ReflectStatus(obj)
           if obj.status == nil then return {} end
           return { replicas = obj.status.replicas, readyReplicas = obj.status.readyReplicas }
         end",
    ),
    (
        "healthInterpretation",
        "function InterpretHealth(obj)
           return obj.status ~= nil and obj.status.readyReplicas == obj.spec.replicas
         end",
    ),
    (
        "statusAggregation",
        "function AggregateStatus(obj, items)
           local ready = 0
           for _, item in ipairs(items or {}) do
             ready = ready + (item.status and item.status.readyReplicas or 0)
           end
           obj.status = { readyReplicas = ready }
           return obj
         end",
    ),
];

/// Measures the programs without a customization and with one, by turns, and passes each line to `print`.
pub(super) async fn compare(bench: &mut Bench, mut print: impl FnMut(&str)) -> Result<()> {
    let mut pairs = [const { Pairs(Vec::new()) }; ROWS.len()];
    let mut notes = Vec::new();
    for _ in 0..ROUNDS {
        let (natively, _, of_native) = bench.round().await?;
        let customizations = untyped::<ResourceInterpreterCustomization>(&bench.fleet);
        create(&customizations, &customization()).await?;
        let (by_scripts, _, of_scripts) = bench.round().await?;
        delete(&customizations, NAME).await?;
        for ((pair, time), limit) in pairs.iter_mut().zip(by_scripts).zip(natively) {
            pair.add(time, limit);
        }
        let of_native = of_native.iter().map(|note| format!("without: {note}"));
        let of_scripts = of_scripts.iter().map(|note| format!("with: {note}"));
        notes = of_native.chain(of_scripts).collect();
    }
    print("with a customization of Deployments; in parentheses the limit: without");
    for (row, pair) in ROWS.iter().zip(&pairs) {
        print(&format!("{row}: {pair}"));
    }
    for note in notes {
        print(&note);
    }
    Ok(())
}

fn customization() -> Value {
    let scripts = SCRIPTS.map(|(field, source)| (field.to_owned(), json!({ "luaScript": source })));
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": { "name": NAME },
        "spec": {
            "target": { "apiVersion": "apps/v1", "kind": "Deployment" },
            "customizations": serde_json::Map::from_iter(scripts),
        },
    })
}
