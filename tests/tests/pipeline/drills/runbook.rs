//! The commands of a runbook, as somebody on call types them.

use std::{fs, os::unix::fs::symlink};

use anyhow::{Context, Result, ensure};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    programs::{self, Binary, Profile},
};
use regex::{NoExpand, Regex};
use tools::cargo;

use crate::install::page::Reader;

/// The open places of the commands.
const OPEN: [&str; 6] = ["CLUSTER", "NAMESPACE", "NAME", "PROGRAM", "POD", "NODE"];
/// Parts of the commands about pods and nodes, of which the drills have none: the programs are processes.
const OF_PODS: [&str; 4] = ["--context host ", " logs ", " pod ", " node "];

/// Asserts that the commands of an alert's page show the cause: all of these words.
#[expect(clippy::print_stdout, reason = "libtest captures it")]
pub(super) async fn names(
    alert: &str,
    contexts: &[(&str, &ControlPlane)],
    values: &[(&str, &str)],
    cause: &[&str],
) -> Result<()> {
    let reader = Reader::of(contexts, ApiKind::Real)?;
    symlink(
        programs::path(Binary::KubectlRemedy, Profile::Debug)?,
        reader.path("bin/kubectl-remedy"),
    )?;
    let mut all = String::new();
    for command in look(alert)? {
        if OF_PODS.iter().any(|part| command.contains(part)) {
            println!("$ {command}\n(not run: the programs are processes, not pods)");
            continue;
        }
        let command = filled(&command, values)?;
        // Some of them end with 1 to say that something is wrong.
        let shown = reader
            .run(&format!("{{ {command}\n}} 2>&1 || true"))
            .await?;
        println!("$ {command}\n{shown}");
        all.push_str(&shown);
    }
    for words in cause {
        ensure!(
            all.contains(words),
            "no command of docs/runbooks/{alert}.md shows {words:?}"
        );
    }
    Ok(())
}

/// Returns the commands under *Look* of an alert's page.
fn look(alert: &str) -> Result<Vec<String>> {
    let page = cargo::root().join(format!("docs/runbooks/{alert}.md"));
    let page = fs::read_to_string(page)?;
    let (_, section) = page.split_once("\n## Look\n").context("no Look")?;
    let (section, _) = section.split_once("\n## ").context("nothing to do")?;
    let commands = section.lines().filter_map(|line| line.strip_prefix("    "));
    Ok(commands.map(ToOwned::to_owned).collect())
}

/// Puts values into the open places of a command.
fn filled(command: &str, values: &[(&str, &str)]) -> Result<String> {
    let mut command = command.to_owned();
    for open in OPEN {
        let word = Regex::new(&format!(r"\b{open}\b"))?;
        let value = values.iter().find(|(name, _)| *name == open);
        if let Some((_, value)) = value {
            command = word.replace_all(&command, NoExpand(value)).into_owned();
        }
        ensure!(!word.is_match(&command), "{open} is open in {command}");
    }
    Ok(command)
}

/// Whole words are replaced, and a word without a value is an error.
#[test]
fn open_words_are_filled() -> Result<()> {
    let command = "kubectl remedy why work/NAME -n karmada-es-CLUSTER -o jsonpath='{.NAMES}'";
    let values = [("NAME", "web"), ("CLUSTER", "member1")];
    let expected = "kubectl remedy why work/web -n karmada-es-member1 -o jsonpath='{.NAMES}'";
    assert_eq!(filled(command, &values)?, expected);
    assert!(filled(command, &values[..1]).is_err());
    Ok(())
}
