//! `cargo xtask build-times`: the time of cold builds of the sandbox, the agent and the tests by crate, as a page.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo;

/// The number of crates of each list.
const MOST_EXPENSIVE: usize = 10;

/// The builds, with cargo's arguments, in the order of a newcomer: each finds the crates of the one before.
const BUILDS: [(&str, &[&str]); 3] = [
    ("The agent", &["build", "--package", "cluster-health-agent"]),
    ("The sandbox", &["build", "--package", "sandbox"]),
    ("The tests", &["build", "--workspace", "--tests", "--bins"]),
];

/// Builds everything in an empty folder, writes the page and prints its path.
pub(crate) fn run() -> Result<()> {
    let folder = tools::cargo::built("build-times")?;
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let descriptions = descriptions()?;
    let mut page = String::from(
        "# What builds spend time on\n\nWritten by `cargo xtask build-times`. Each build follows the one above it in one folder, which was empty.\n",
    );
    for (name, arguments) in BUILDS {
        let target = folder.to_string_lossy();
        let variables = [("CARGO_TARGET_DIR", &*target)];
        cargo::run(
            &[arguments, &["--locked", "--timings"]].concat(),
            &variables,
        )?;
        let report = fs::read_to_string(folder.join("cargo-timings/cargo-timing.html"))?;
        describe(name, &units(&report)?, &descriptions, &mut page)?;
    }
    let path = folder.join("build-times.md");
    fs::write(&path, page)?;
    println!("{}", path.display());
    Ok(())
}

/// Returns the description of each package of the graph.
fn descriptions() -> Result<HashMap<String, String>> {
    let output = cargo::command(&["metadata", "--format-version=1", "--locked"]).output()?;
    ensure!(output.status.success(), "`cargo metadata` failed");
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let described = packages.filter_map(|package| {
        let description = package["description"].as_str()?;
        let first = description.trim().lines().next()?;
        Some((package["name"].as_str()?.to_owned(), first.to_owned()))
    });
    Ok(described.collect())
}

/// One compilation. Times are in seconds since the build began.
#[derive(Debug)]
struct Unit {
    number: u64,
    name: String,
    /// The target of the package; empty for its library.
    target: String,
    start: f64,
    duration: f64,
    /// The units that waited for it, wholly or for its metadata.
    unlocked: Vec<u64>,
}

impl Unit {
    fn read(unit: &Value) -> Option<Self> {
        let unlocked = [&unit["unlocked_units"], &unit["unlocked_rmeta_units"]];
        let unlocked = unlocked.into_iter().filter_map(Value::as_array).flatten();
        Some(Self {
            number: unit["i"].as_u64()?,
            name: unit["name"].as_str()?.to_owned(),
            target: unit["target"].as_str()?.trim().to_owned(),
            start: unit["start"].as_f64()?,
            duration: unit["duration"].as_f64()?,
            unlocked: unlocked.filter_map(Value::as_u64).collect(),
        })
    }

    fn end(&self) -> f64 {
        self.start + self.duration
    }
}

/// Reads the units out of [cargo's report](https://doc.rust-lang.org/cargo/reference/timings.html), which has
/// them as JSON for its own script.
fn units(report: &str) -> Result<Vec<Unit>> {
    let (_, data) = report
        .split_once("UNIT_DATA = ")
        .context("cargo's report has no UNIT_DATA: its form has changed")?;
    let mut values = serde_json::Deserializer::from_str(data).into_iter::<Value>();
    let data = values.next().context("UNIT_DATA is empty")??;
    let units = data.as_array().into_iter().flatten().map(Unit::read);
    units
        .collect::<Option<_>>()
        .context("UNIT_DATA has another form")
}

/// Returns the units that waited for one another until the last of all was built, the first one first.
fn longest_path(units: &[Unit]) -> Vec<&Unit> {
    let mut path = Vec::new();
    let mut next = units
        .iter()
        .max_by(|one, other| one.end().total_cmp(&other.end()));
    while let Some(unit) = next {
        path.push(unit);
        next = units
            .iter()
            .find(|earlier| earlier.unlocked.contains(&unit.number));
    }
    path.reverse();
    path
}

fn describe(
    name: &str,
    units: &[Unit],
    descriptions: &HashMap<String, String>,
    page: &mut String,
) -> Result<()> {
    let wall = units.iter().map(Unit::end).fold(0.0, f64::max);
    writeln!(page, "\n## {name}: {wall:.0} s, {} units\n", units.len())?;
    let path = longest_path(units);
    let names: Vec<_> = path.iter().map(|unit| unit.name.as_str()).collect();
    let length: f64 = path.iter().map(|unit| unit.duration).sum();
    writeln!(
        page,
        "Longest path, {length:.0} s: {}.\n",
        names.join(" → ")
    )?;
    writeln!(page, "| Seconds | Unit | What it is for |\n|---|---|---|")?;
    let mut slowest: Vec<_> = units.iter().collect();
    slowest.sort_by(|one, other| other.duration.total_cmp(&one.duration));
    let (ours, others): (Vec<_>, Vec<_>) = slowest
        .into_iter()
        // No package of ours has a description.
        .partition(|unit| !descriptions.contains_key(&unit.name));
    for unit in [ours, others]
        .iter()
        .flat_map(|units| units.iter().take(MOST_EXPENSIVE))
    {
        let purpose = descriptions.get(&unit.name).map_or("ours", String::as_str);
        let Unit {
            duration,
            name,
            target,
            ..
        } = unit;
        writeln!(page, "| {duration:.1} | {name} {target} | {purpose} |")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path leads back from the unit that ends last.
    #[test]
    fn longest_path_ends_last() {
        let report = r#"<script>const UNIT_DATA = [
            {"i":0,"name":"a","target":"","start":0.0,"duration":2.0,"unlocked_units":[1],"unlocked_rmeta_units":[2]},
            {"i":1,"name":"b","target":"","start":2.0,"duration":1.0,"unlocked_units":[],"unlocked_rmeta_units":[]},
            {"i":2,"name":"c","target":" bin","start":1.0,"duration":4.0,"unlocked_units":[],"unlocked_rmeta_units":[]}
        ]; const CONCURRENCY_DATA = [];"#;
        let units = units(report).unwrap();
        let path: Vec<_> = longest_path(&units)
            .iter()
            .map(|unit| unit.name.as_str())
            .collect();
        assert_eq!(path, ["a", "c"]);
    }

    /// A report of another form is an error, not an empty page.
    #[test]
    fn other_form_is_refused() {
        assert!(units("<html>").is_err());
        assert!(units("UNIT_DATA = [{}];").is_err());
    }
}
