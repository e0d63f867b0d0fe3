//! The Containerfile: its build stage, run outside a container with stand-ins for its downloads.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use pipeline_tests::programs::{self, Binary, Profile};
use tools::cargo;

const TEXT: &str = include_str!("../../../Containerfile");

/// Writes down its arguments and its compiler; `cargo build` finds each program built.
const STAND_IN: &str = r#"#!/bin/sh
echo "$(basename "$0") $*" >> log
env | grep -E '^(CC_|RUSTFLAGS|CARGO_TARGET_.*_LINKER)' >> log
if [ "$1" = build ]; then
  folder="target/$6/$4"
  mkdir -p "$folder"
  shift 6
  while [ "$1" = --package ]; do
    cp "$BUILT" "$folder/$2"
    shift 2
  done
fi
"#;

const PROGRAMS: [&str; 10] = [
    "cluster-health-agent",
    "remedy-controller",
    "ingress-controller",
    "propagation-controller",
    "scheduler",
    "execution-controller",
    "cluster-controller",
    "placement-controller",
    "placement-agent",
    "kubectl-remedy",
];

/// Runs the build stage in a folder, and returns its output and the log of the stand-ins.
fn build(folder: &Path, [build, target]: [&str; 2]) -> (Output, String) {
    let run = TEXT.split("\nRUN ").nth(1).unwrap();
    let run = run.split("\n\n").next().unwrap().replace("\\\n", "\n");
    assert!(run.contains("/image/"), "{run}");
    let image = folder.join("image");
    let script = run.replace("/image/", &format!("{}/", image.display()));
    for name in ["apt-get", "cargo", "rustup"] {
        let path = folder.join(name);
        fs::write(&path, STAND_IN).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.display(), env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        .env("PATH", path)
        .env(
            "BUILT",
            programs::path(Binary::Agent, Profile::Debug).unwrap(),
        )
        .env("BUILDARCH", build)
        .env("TARGETARCH", target)
        .output()
        .unwrap();
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    (output, log)
}

fn built(architectures: [&str; 2]) -> (tempfile::TempDir, String) {
    programs::build_for_tests().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (output, log) = build(folder.path(), architectures);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    (folder, log)
}

/// Returns the command that builds all programs statically for `target`.
fn build_line(target: &str) -> String {
    let packages = PROGRAMS.map(|program| format!(" --package {program}"));
    let packages = packages.concat();
    format!(
        "cargo build --locked --profile dist --target {target}{packages}\nRUSTFLAGS=-C target-feature=+crt-static\n"
    )
}

/// The agent's image starts with the command of Karmada's detector.
#[test]
fn agent_image_accepts_detectors_command() {
    let (folder, log) = built(["amd64", "amd64"]);
    let target = "x86_64-unknown-linux-gnu";
    assert_eq!(
        log,
        format!("rustup target add {target}\n{}", build_line(target))
    );
    for name in [
        "program",
        "cluster-health-agent",
        "service-name-resolution-detector",
        "service-name-resolution-detector-example",
    ] {
        let programs = folder.path().join("image/cluster-health-agent/bin");
        let started = Command::new(programs.join(name))
            .args(["--v=4", "--logtostderr", "--version"])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&started.stdout);
        assert!(
            printed.starts_with("cluster-health-agent "),
            "{name}: {started:?}"
        );
    }
}

/// All images are built for both architectures on either.
#[test]
fn images_cross_compile() {
    let manifest = fs::read_to_string(cargo::root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("\n[profile.dist]\n"));
    for (architectures, target, gcc) in [
        (
            ["amd64", "arm64"],
            "aarch64-unknown-linux-gnu",
            "aarch64-linux-gnu-gcc",
        ),
        (
            ["arm64", "amd64"],
            "x86_64-unknown-linux-gnu",
            "x86_64-linux-gnu-gcc",
        ),
    ] {
        let (folder, log) = built(architectures);
        for program in PROGRAMS {
            let program = folder.path().join(format!("image/{program}/bin/program"));
            assert!(program.is_file(), "{program:?}");
        }
        let underscored = target.replace('-', "_");
        for expected in [
            format!(
                "cargo build --locked --profile dist --target {target} --package cluster-health-agent "
            ),
            format!("CC_{underscored}={gcc}"),
            format!("CARGO_TARGET_{}_LINKER={gcc}", underscored.to_uppercase()),
        ] {
            assert!(log.contains(&expected), "{expected}: {log}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (output, _) = build(folder.path(), ["amd64", "riscv64"]);
    assert!(!output.status.success(), "{output:?}");
}

/// The image has a program and the certificates that it trusts, from the compiler of the workspace.
#[test]
fn image_has_only_its_program() {
    let bases: Vec<_> = TEXT
        .lines()
        .filter(|line| line.starts_with("FROM "))
        .collect();
    assert_eq!(bases.len(), 2, "{bases:?}");
    assert_eq!(bases[1], "FROM scratch");
    assert!(TEXT.trim_end().ends_with("ENTRYPOINT [\"/bin/program\"]"));
    let toolchain = fs::read_to_string(cargo::root().join("rust-toolchain.toml")).unwrap();
    let (_, channel) = toolchain.split_once("channel = \"").unwrap();
    let (channel, _) = channel.split_once('"').unwrap();
    assert!(bases[0].contains(&format!("/rust:{channel}-")), "{bases:?}");
}
