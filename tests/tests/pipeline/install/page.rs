//! The pages of the documentation that a user follows, and their commands.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use kube::config::Kubeconfig;
use lab_parts::kubeconfig::{self, Access};
use pipeline_tests::{
    agents::MEMBER,
    control_plane::{ApiKind, ControlPlane},
    fleet::Fleet,
    programs::{self, Binary, Profile},
};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};
use tools::{Tool, cargo};

/// A page of the documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Page {
    Before,
    Install,
    Swap,
    Uninstall,
    Propagation,
    Fleet,
    Join,
    Placement,
    Pull,
    Remedy,
    Security,
    Day2,
}

impl Page {
    const fn text(self) -> &'static str {
        match self {
            Self::Before => include_str!("../../../../docs/before.md"),
            Self::Install => include_str!("../../../../docs/install.md"),
            Self::Swap => include_str!("../../../../docs/swap.md"),
            Self::Uninstall => include_str!("../../../../docs/uninstall.md"),
            Self::Propagation => include_str!("../../../../docs/propagation.md"),
            Self::Fleet => include_str!("../../../../docs/fleet.md"),
            Self::Join => include_str!("../../../../docs/join.md"),
            Self::Placement => include_str!("../../../../docs/placement.md"),
            Self::Pull => include_str!("../../../../docs/pull.md"),
            Self::Remedy => include_str!("../../../../docs/remedy.md"),
            Self::Security => include_str!("../../../../docs/security.md"),
            Self::Day2 => include_str!("../../../../docs/day-2.md"),
        }
    }
}

/// The limit of a block of commands.
const LIMIT: Duration = Duration::from_mins(3);

/// The kubeconfig with all contexts.
const CONTEXTS: &str = ".kube/config";

/// Stands for Helm where Karmada's release is concerned: shows its values, and writes down the arguments of an upgrade.
const HELM: &str = r#"#!/bin/sh
case "$1 $2" in
"get values") echo '{"controllerManager": {"controllers": "*"}}' ;;
"upgrade karmada") printf '%s\n' "$@" > upgrade ;;
*) exec "$REAL_HELM" "$@" ;;
esac
"#;

/// A reader of the pages at a terminal, with a kubeconfig for all clusters and manifests to edit.
pub(crate) struct Reader {
    folder: TempDir,
    server: ApiKind,
}

impl Reader {
    /// The gateway's API is that of the host and of the member, too.
    pub(super) fn new(fleet: &Fleet, server: ApiKind) -> Result<Self> {
        let contexts = [
            ("karmada", &fleet.karmada),
            ("gateway", &fleet.gateway),
            ("host", &fleet.gateway),
            (&MEMBER.name(), &fleet.gateway),
        ];
        Self::of(&contexts, server)
    }

    /// Returns a reader with these contexts, of which the first is the current one.
    pub(crate) fn of(contexts: &[(&str, &ControlPlane)], server: ApiKind) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .arg(cargo::root().join("manifests"))
            .arg(folder.path())
            .status()?;
        ensure!(copied.success(), "cannot copy the manifests ({copied})");
        let contexts = contexts.iter().map(|(name, api)| access(name, api));
        let contexts = contexts.collect::<Result<Vec<_>>>()?;
        let reader = Self { folder, server };
        fs::create_dir(reader.path("bin"))?;
        fs::write(reader.path("bin/helm"), HELM)?;
        fs::set_permissions(reader.path("bin/helm"), fs::Permissions::from_mode(0o755))?;
        fs::create_dir(reader.path(".kube"))?;
        kubeconfig::write(&reader.path(CONTEXTS), &Vec::from_iter(&contexts))?;
        Ok(reader)
    }

    /// Returns the path of a file that a command has written.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the commands of the sections of install.md whose titles begin with these words, in one shell.
    pub(super) async fn follow(&self, sections: &[&str]) -> Result<()> {
        let mut script = String::new();
        for title in sections {
            let blocks = blocks(Page::Install, title);
            ensure!(!blocks.is_empty(), "the page has no commands in {title:?}");
            script.extend(blocks.iter().map(|block| self.runnable(block)));
        }
        self.run(&script).await.map(drop)
    }

    /// Has the scripts that follow know the functions of install.md that other pages use.
    pub(crate) async fn learn_functions(&self) -> Result<()> {
        let steps = self.steps(Page::Install, "2. ");
        let functions = steps.iter().find(|block| block.starts_with("access() {"));
        let functions = functions.context("the page has no functions")?;
        let (functions, _) = functions.split_once("\naccess ").context("no call")?;
        self.run(functions).await.map(drop)
    }

    /// Has the scripts that follow find our plugin.
    pub(super) fn install_plugin(&self) -> Result<()> {
        let plugin = programs::path(Binary::KubectlRemedy, Profile::Debug)?;
        Ok(symlink(plugin, self.path("bin/kubectl-remedy"))?)
    }

    /// Returns each block of commands of a section as a script.
    pub(crate) fn steps(&self, page: Page, section: &str) -> Vec<String> {
        let blocks = blocks(page, section);
        blocks.iter().map(|block| self.runnable(block)).collect()
    }

    /// Runs a script and returns its standard output. It has the functions that those before it have defined.
    pub(crate) async fn run(&self, script: &str) -> Result<String> {
        let tools = Tool::Kubectl.path()?;
        let tools = tools.parent().context("kubectl is in no folder")?;
        let others = env::var_os("PATH").unwrap_or_default();
        let own = [self.path("bin"), tools.to_owned()];
        let path = env::join_paths(own.into_iter().chain(env::split_paths(&others)))?;
        let in_one_shell = format!(
            "[ ! -e functions ] || . ./functions\ntrap 'declare -f > functions' EXIT\n{script}"
        );
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &in_one_shell])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("KUBECONFIG", self.path(CONTEXTS))
            .env("REAL_HELM", Tool::Helm.path()?)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(LIMIT, output)
            .await
            .with_context(|| format!("it does not end:\n{script}"))??;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(
            output.status.success(),
            "{}:\n{script}\n{}{text}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(text)
    }

    /// Returns the commands of a block that have something to work on.
    fn runnable(&self, block: &str) -> String {
        let member = MEMBER.name();
        // The embedded API has no tokens, and neither pods nor the objects that are made for them.
        let on_workloads = [
            "access ",
            "store ",
            "kubectl --context host ",
            "kubectl --context NAME ",
        ];
        let commands = commands(block).into_iter().filter(|command| {
            self.server == ApiKind::Real
                || !on_workloads.iter().any(|start| command.starts_with(start))
        });
        let commands = commands.map(|command| command.replace("NAME", &member) + "\n");
        commands.collect()
    }
}

/// Returns the commands of a block. One goes on after an open quote, a pipe or a backslash.
fn commands(block: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in block.lines() {
        let goes_on = |command: &&mut String| {
            command.matches('\'').count() % 2 == 1 || command.ends_with(['|', '\\'])
        };
        match commands.last_mut().filter(goes_on) {
            Some(command) => {
                command.push('\n');
                command.push_str(line);
            }
            None => commands.push(line.to_owned()),
        }
    }
    commands
}

/// Returns the blocks of indented lines in the section whose title begins with these words.
fn blocks(page: Page, title: &str) -> Vec<String> {
    let heading = format!("## {title}");
    let lines = page
        .text()
        .lines()
        .skip_while(|line| !line.starts_with(&heading));
    let lines = lines.skip(1).take_while(|line| !line.starts_with("## "));
    let lines: Vec<_> = lines.collect();
    let blocks = lines.chunk_by(|line, next| line.starts_with("    ") == next.starts_with("    "));
    blocks
        .filter(|block| block[0].starts_with("    "))
        .map(|block| {
            // A block in a list is indented twice.
            let indent = block[0].len() - block[0].trim_start().len();
            let lines: Vec<_> = block
                .iter()
                .map(|line| line.get(indent..).unwrap_or_default())
                .collect();
            lines.join("\n")
        })
        .collect()
}

fn access(name: &str, api: &ControlPlane) -> Result<Access> {
    let kubeconfig: Kubeconfig = serde_json::from_slice(&fs::read(api.kubeconfig_path())?)?;
    let cluster = kubeconfig.clusters.into_iter().next();
    let user = kubeconfig.auth_infos.into_iter().next();
    Ok(Access {
        name: name.to_owned(),
        cluster: cluster
            .and_then(|named| named.cluster)
            .context("no cluster")?,
        user: user.and_then(|named| named.auth_info).unwrap_or_default(),
    })
}
