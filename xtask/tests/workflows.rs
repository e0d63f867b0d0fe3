//! The workflows of CI and their commands, as far as these can be run here.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;

use tools::cargo;

/// The text of each workflow by its name.
fn workflows() -> Vec<(String, String)> {
    let folder = fs::read_dir(cargo::root().join(".github/workflows")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let read = paths.map(|path| {
        let name = path.display().to_string();
        (name, fs::read_to_string(path).unwrap())
    });
    read.collect()
}

/// Whoever moves a tag of an action would run in our workflows, with their rights: a commit cannot be moved.
#[test]
fn actions_are_pinned() {
    let mut found = 0;
    for (path, text) in workflows() {
        let uses = text.lines().filter_map(|line| line.split_once("uses: "));
        for (_, action) in uses.filter(|(_, action)| !action.starts_with("./")) {
            let commit = action
                .split_once('@')
                .and_then(|(_, rest)| rest.split_once(" # v"));
            let is_pinned = commit.is_some_and(|(commit, _)| {
                commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
            });
            assert!(
                is_pinned,
                "{path}: {action}: write the commit, and its version behind it"
            );
            found += 1;
        }
    }
    assert!(found > 10, "{found}");
}

/// Returns the list of this key in a file of TOML.
fn listed(file: &str, key: &str) -> String {
    let text = fs::read_to_string(cargo::root().join(file)).unwrap();
    let (_, list) = text.split_once(&format!("{key} = [\n")).unwrap();
    list.split_once(']').unwrap().0.to_owned()
}

/// A release has the notices of whatever licence a dependency may have.
#[test]
fn notices_have_allowed_licences() {
    assert_eq!(
        listed("about.toml", "accepted"),
        listed("deny.toml", "allow")
    );
}

/// Who installs from the files of a release finds each of our programs there: every kustomization that names an image is a place.
#[test]
fn release_has_every_place() {
    let manifests = cargo::root().join("manifests");
    let places = fs::read_to_string(manifests.join("places.sh")).unwrap();
    let known: Vec<&str> = places.split_whitespace().collect();
    let mut folders = vec![manifests.clone()];
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            // The charts have copies.
            if path.is_dir() && !path.ends_with("helm") {
                folders.push(path);
            } else if path.ends_with("kustomization.yaml")
                && fs::read_to_string(&path).unwrap().contains("newName: ")
            {
                let place = folder.strip_prefix(&manifests).unwrap();
                let place = place.to_str().unwrap();
                assert!(known.contains(&place), "{place} is no place of a release");
                found += 1;
            }
        }
    }
    assert!(found > 9, "{found}");
}

/// A release writes its registry and the digests of its images into the charts of programs: the lines that it replaces are there.
#[test]
fn charts_have_the_replaced_lines() {
    for chart in ["karmada-rs", "karmada-rs-agent"] {
        let values = cargo::root().join(format!("manifests/helm/{chart}/values.yaml"));
        let values = fs::read_to_string(values).unwrap();
        for line in ["registry: \"registry.invalid/karmada-rs\"", "digests: {}"] {
            let found = values.lines().filter(|one| *one == line).count();
            assert_eq!(found, 1, "{chart}: {line}");
        }
    }
}

mod with_tools {
    use std::collections::BTreeSet;
    use std::fs::{self, File};
    use std::process::Command;

    use tools::{Tool, cargo};

    /// A mistake in a workflow shows when it runs, and that of a release runs once.
    #[test]
    fn actionlint_finds_nothing() {
        let output = Command::new(Tool::Actionlint.path().unwrap())
            // Which of these are installed must not decide.
            .args(["-shellcheck=", "-pyflakes="])
            .current_dir(cargo::root())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }

    /// A release has the manifests of each place with its own images, and no program is forgotten.
    #[test]
    fn release_has_every_image() {
        let folder = tempfile::tempdir().unwrap();
        let containerfile = fs::read_to_string(cargo::root().join("Containerfile")).unwrap();
        let workflow =
            fs::read_to_string(cargo::root().join(".github/workflows/release.yml")).unwrap();
        let (_, programs) = workflow.split_once("  IMAGES: >-\n").unwrap();
        let programs: BTreeSet<_> = programs
            .lines()
            .map_while(|line| line.strip_prefix("    "))
            .flat_map(str::split_whitespace)
            .collect();
        let images = folder.path().join("images");
        let lines = programs.iter().map(|name| format!("{name} sha256:0\n"));
        fs::write(&images, lines.collect::<String>()).unwrap();
        let kubectl = Tool::Kubectl.path().unwrap();
        let path = format!(
            "{}:{}",
            kubectl.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let output = Command::new(cargo::root().join(".ci/install-files"))
            .args(["registry.example.com/fleet", "9.8.7"])
            .arg(folder.path())
            .env("PATH", path)
            .stdin(File::open(images).unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let mut used = BTreeSet::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "yaml") {
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            let images = text
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix("image: "));
            for image in images {
                let image = image.strip_prefix("registry.example.com/fleet/").unwrap();
                let name = image.strip_suffix(":9.8.7@sha256:0").unwrap();
                assert!(containerfile.contains(name), "{name}");
                used.insert(name.to_owned());
            }
        }
        let programs: BTreeSet<_> = programs.into_iter().map(str::to_owned).collect();
        assert_eq!(used, programs);
    }
}
