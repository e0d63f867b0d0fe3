//! The charts with the real helm, kubectl and kube-apiserver.

mod helm4;
mod images;
mod ownership;
mod refused;
mod users;

use anyhow::{Context, ensure};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    kubectl::Kubectl,
    netns, test_name,
};
use tools::Tool;

use super::{
    rendering::{chart, compare, manifests, render, render_dependency, run},
    scenarios::{ALL, Scenario},
    values::examples,
};

/// The values that each chart requires.
const CHARTS: [(&str, &[&str]); 7] = [
    ("karmada-rs", &[]),
    ("karmada-rs-agent", &[r#"clusterName="member1""#]),
    ("karmada-rs-rights", &[r#"place="karmada""#]),
    ("karmada-rs-rights", &[r#"place="fleet""#]),
    ("karmada-rs-rights", &[r#"place="gateway""#]),
    ("karmada-rs-rights", &[r#"place="dns""#]),
    ("karmada-rs-rights", &[r#"place="hub""#]),
];

/// A user may change from one to the other, and nothing of a kustomization is missing in the charts. The fleet's chart also
/// makes the namespace that its users make by hand.
#[test]
fn charts_render_the_kustomizations() {
    let mut compared = 0;
    for Scenario {
        chart,
        namespace,
        values,
        manifests: sources,
    } in ALL
    {
        let rendered = render(chart, namespace, values).unwrap();
        let (mut differences, objects) = compare(&rendered, &manifests(sources).unwrap()).unwrap();
        differences.retain(|line| !line.starts_with(r#"("Namespace", "", "karmada-cluster")"#));
        assert!(
            differences.is_empty(),
            "{chart} {values:?}:\n{}",
            differences.join("\n")
        );
        compared += objects;
    }
    assert!(compared > 300, "{compared}");
}

/// A platform's chart may have ours as dependencies, each with a condition and with values for all charts.
#[test]
fn parents_render_the_same() {
    for (name, values) in CHARTS {
        let own = render(name, "karmada-system", values).unwrap();
        let [with, without] = [true, false].map(|enabled| {
            let condition = format!("enabled={enabled}");
            let values = values.iter().map(ToString::to_string);
            let values: Vec<String> = values.chain([condition]).collect();
            render_dependency(name, "karmada-system", &values).unwrap()
        });
        let (differences, objects) = compare(&with, &own).unwrap();
        assert_eq!(differences, [""; 0], "{name} {values:?}");
        assert!(objects > 0, "{name}");
        assert_eq!(without.trim(), "", "{name}");
    }
}

/// Neither Helm finds anything to warn of.
#[test]
fn lint_finds_nothing() {
    for (name, values) in CHARTS {
        let mut arguments = vec!["lint", "--strict", "--quiet"];
        arguments.extend(values.iter().flat_map(|value| ["--set-json", *value]));
        for helm in [Tool::Helm, Tool::Helm4] {
            let output = run(helm, &arguments, &chart(name)).unwrap();
            assert!(output.status.success(), "{name}: {output:?}");
        }
    }
}

/// No value is there for nothing: each changes the rendered text, where everything is installed.
#[test]
fn every_value_has_an_effect() {
    let every = |programs: &[&str]| -> Vec<String> {
        programs
            .iter()
            .map(|name| format!("{name}.enabled=true"))
            .collect()
    };
    let host = every(&[
        "remedyController",
        "ingressController",
        "propagationController",
        "scheduler",
        "executionController",
        "clusterController",
        "placementController",
        "renew",
    ]);
    let agent = every(&[
        "clusterHealthAgent",
        "gatewayHealthAgent",
        "pull",
        "placement",
        "renew",
    ]);
    let mut set = 0;
    for (name, installed) in [
        ("karmada-rs", host),
        ("karmada-rs-agent", agent),
        ("karmada-rs-rights", Vec::new()),
    ] {
        let places = CHARTS.iter().filter(|(chart, _)| *chart == name);
        let bases: Vec<(Vec<&str>, String)> = places
            .map(|(_, values)| {
                let all = installed.iter().map(String::as_str);
                let all: Vec<&str> = values.iter().copied().chain(all).collect();
                let text = render(name, "other", &all).unwrap();
                (all, text)
            })
            .collect();
        for example in examples(name).unwrap() {
            let mut value = example.value;
            // The parts that are installed here for a value to have an effect.
            if installed.contains(&format!("{}=true", example.path)) {
                value = false.into();
            }
            let setting = format!("{}={value}", example.path);
            // A value may be of some places only, and refused in others.
            let changes = bases.iter().any(|(values, base)| {
                let values = [values, &[setting.as_str()][..]].concat();
                render(name, "other", &values).is_ok_and(|text| text != *base)
            });
            assert!(changes, "{name}: {setting} changes nothing");
            set += 1;
        }
    }
    assert!(set > 100, "{set}");
}

/// A server admits all objects, and no field is unknown to it.
#[test]
fn apiserver_admits_every_object() {
    netns::isolated(test_name!(), async || {
        let api = ControlPlane::start("karmada", ApiKind::Real).await?;
        let kubectl = Kubectl::new(api.kubeconfig_path().to_owned())?;
        for namespace in [
            "karmada-system",
            "karmada-cluster",
            "karmada-es-member1",
            "karmada-rs",
            "fleet-system",
            "fleet-member-member1",
        ] {
            let create = format!("create namespace {namespace} --dry-run=client -o yaml");
            let made = kubectl.run(&create).await?;
            kubectl.feed("apply -f -", &made).await?;
        }
        for Scenario {
            chart,
            namespace,
            values,
            ..
        } in ALL
        {
            let rendered = render(chart, namespace, values)?;
            let admitted = kubectl
                .feed("apply --dry-run=server --validate=strict -f -", &rendered)
                .await
                .with_context(|| format!("{chart} {values:?}"))?;
            ensure!(admitted.contains("server dry run"), "{admitted}");
        }
        Ok(())
    });
}
