//! docs/install.md, and its commands.

use std::{
    env, ffi::OsString, fs, os::unix::fs::symlink, path::PathBuf, process::Stdio, time::Duration,
};

use anyhow::{Context, Result, ensure};
use kube::config::Kubeconfig;
use lab_parts::kubeconfig::{self, Access};
use pipeline_tests::{
    agents::MEMBER,
    cargo,
    control_plane::{ApiKind, ControlPlane},
    fleet::Fleet,
    tools::Tool,
};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

const TEXT: &str = include_str!("../../../../docs/install.md");

/// The limit of a block of commands.
const LIMIT: Duration = Duration::from_mins(3);

/// A reader of the page at a terminal, with a kubeconfig for all clusters.
pub(super) struct Reader {
    folder: TempDir,
    server: ApiKind,
}

impl Reader {
    /// The gateway's API is that of the host and of the member, too.
    pub(super) fn new(fleet: &Fleet, server: ApiKind) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        symlink(
            cargo::root().join("manifests"),
            folder.path().join("manifests"),
        )?;
        let member = MEMBER.name();
        let contexts = [
            access("karmada", &fleet.karmada)?,
            access("gateway", &fleet.gateway)?,
            access("host", &fleet.gateway)?,
            access(&member, &fleet.gateway)?,
        ];
        let reader = Self { folder, server };
        kubeconfig::write(&reader.path("kubeconfig"), &contexts.each_ref())?;
        Ok(reader)
    }

    /// Returns the path of a file that a command has written.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the commands of the page's sections whose titles begin with these words, in one shell.
    pub(super) async fn follow(&self, sections: &[&str]) -> Result<()> {
        let mut script = String::new();
        for title in sections {
            let blocks = blocks(title);
            ensure!(!blocks.is_empty(), "the page has no commands in {title:?}");
            script.extend(blocks.iter().map(|block| self.runnable(block)));
        }
        self.run(&script).await.map(drop)
    }

    /// Returns each block of commands of a section as a script.
    pub(super) fn steps(&self, section: &str) -> Vec<String> {
        let blocks = blocks(section);
        blocks.iter().map(|block| self.runnable(block)).collect()
    }

    /// Runs a script and returns its standard output.
    pub(super) async fn run(&self, script: &str) -> Result<String> {
        let tools = Tool::Kubectl.path()?;
        let tools = tools.parent().context("kubectl is in no folder")?;
        let mut path = OsString::from(tools);
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("KUBECONFIG", self.path("kubeconfig"))
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
        // The embedded API has no tokens, and neither pods nor what is made for them.
        let on_workloads = [
            "access ",
            "store ",
            "kubectl --context host ",
            "kubectl --context NAME ",
        ];
        let lines = block.lines().filter(|line| {
            let is_chart = line.starts_with("helm ");
            let runs_here = self.server == ApiKind::Real
                || !on_workloads.iter().any(|start| line.starts_with(start));
            !is_chart && runs_here
        });
        let lines: Vec<_> = lines.map(|line| line.replace("NAME", &member)).collect();
        lines.join("\n") + "\n"
    }
}

/// Returns the blocks of indented lines in the section whose title begins with these words.
fn blocks(title: &str) -> Vec<String> {
    let heading = format!("## {title}");
    let lines = TEXT.lines().skip_while(|line| !line.starts_with(&heading));
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
