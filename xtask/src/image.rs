//! The images of the Containerfile, built without the net: its first stage runs on this machine, and buildah carries out the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tools::cargo;

const CONTAINERFILE: &str = include_str!("../../Containerfile");
/// The authorities that the public trusts, as Debian's package `ca-certificates` has them.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";
/// Starts a program with the files of its image only: as its user, and with nothing to write to.
const START: &str = r#"mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
exec chroot --userspec=65532:65532 "$1" /bin/program --version"#;

/// Builds the images of these programs, or of all, starts them, and prints their sizes.
pub(crate) fn build(programs: &[String]) -> Result<()> {
    let list = list()?;
    let known: Vec<&str> = list
        .split_whitespace()
        .filter(|word| *word != "\\")
        .collect();
    if let Some(unknown) = programs.iter().find(|it| !known.contains(&it.as_str())) {
        bail!("no image is of {unknown}: {}", known.join(", "));
    }
    let folder = cargo::root().join("target/image");
    // Files of an earlier run may be of another commit.
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let context = folder.join("context");
    let named: Vec<&str> = programs.iter().map(String::as_str).collect();
    let programs = if named.is_empty() { known } else { named };
    compile(&programs.join(" "), &context)?;
    let store = Store::new(&folder, &context)?;
    println!("{:<24} {:>10} {:>10}  digest", "image", "program", "packed");
    for program in programs {
        let image = store.build(program)?;
        store.start(&image, program)?;
        let alone = fs::metadata(context.join(format!("image/{program}/bin/{program}")))?.len();
        let (packed, digest) = store.pack(&image, program)?;
        println!(
            "{program:<24} {:>10} {:>10}  {digest}",
            megabytes(alone),
            megabytes(packed)
        );
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with two digits")]
fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}

/// Returns the programs of which there are images, as the first stage lists them.
fn list() -> Result<&'static str> {
    let (_, list) = CONTAINERFILE
        .split_once("programs=\"")
        .context("no programs")?;
    let (list, _) = list.split_once('"').context("no end of the programs")?;
    Ok(list)
}

/// Runs the first stage for these programs, and puts the files that the other one takes from it into the context.
fn compile(programs: &str, context: &Path) -> Result<()> {
    let (_, stage) = CONTAINERFILE
        .split_once("\nRUN ")
        .context("it runs nothing")?;
    let (script, _) = stage.split_once("\n\n").context("it has one stage")?;
    let image = format!("{}/image/", context.display());
    let script = script.replace(list()?, programs);
    let script = script.replace("\\\n", "\n").replace("/image/", &image);
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("there are no images for {other}"),
    };
    let status = Command::new("sh")
        .args(["-c", &script])
        .current_dir(cargo::root())
        // Its tool is fetched from the net.
        .env_remove("AUDITABLE")
        .env("CARGO_TARGET_DIR", cargo::root().join("target"))
        .env("BUILDARCH", architecture)
        .env("TARGETARCH", architecture)
        .status()?;
    ensure!(status.success(), "the programs cannot be built ({status})");
    let authorities = context.join(AUTHORITIES);
    fs::create_dir_all(authorities.parent().context("no folder")?)?;
    fs::copy(Path::new("/").join(AUTHORITIES), authorities)
        .with_context(|| format!("cannot copy /{AUTHORITIES}: apt-get install ca-certificates"))?;
    fs::copy(cargo::root().join("LICENSE"), context.join("LICENSE"))?;
    // A release, and who rehearses one, has put them there.
    let notices = cargo::root().join("NOTICES.md");
    if notices.is_file() {
        fs::copy(notices, context.join("NOTICES.md"))?;
    }
    Ok(())
}

/// Where buildah keeps its images: apart from those of the user.
struct Store {
    folder: PathBuf,
    context: PathBuf,
}

impl Store {
    fn new(folder: &Path, context: &Path) -> Result<Self> {
        // The files of the first stage are in the context.
        let (_, stage) = CONTAINERFILE
            .split_once("\nFROM scratch\n")
            .context("no image")?;
        let stage = format!("FROM scratch\n{}", stage.replace("--from=build ", ""));
        fs::write(folder.join("Containerfile"), stage)?;
        Ok(Self {
            folder: folder.to_owned(),
            context: context.to_owned(),
        })
    }

    /// Builds the image of a program, and returns its id.
    fn build(&self, program: &str) -> Result<String> {
        let file = self.folder.join("Containerfile");
        let of = format!("PROGRAM={program}");
        let build = [
            "build",
            "--quiet",
            "--no-cache",
            "--timestamp=0",
            "--build-arg",
            &of,
            "--file",
        ];
        let mut command = self.buildah(&build);
        output(command.arg(file).arg(&self.context))
    }

    /// Starts the program of an image with nothing but the image.
    fn start(&self, image: &str, program: &str) -> Result<()> {
        let container = output(&mut self.buildah(&["from", image]))?;
        let root = output(&mut self.buildah(&["mount", &container]))?;
        let mut start = Command::new("unshare");
        let printed = output(start.args(["--mount", "sh", "-ec", START, "sh", &root]))?;
        output(&mut self.buildah(&["rm", &container]))?;
        ensure!(printed.starts_with(program), "{program} says {printed:?}");
        Ok(())
    }

    /// Returns the bytes that a registry gets of an image, and its digest there.
    fn pack(&self, image: &str, program: &str) -> Result<(u64, String)> {
        let archive = self.folder.join(program);
        let place = format!("oci:{}", archive.display());
        output(&mut self.buildah(&["push", "--quiet", image, &place]))?;
        let index: Value = serde_json::from_slice(&fs::read(archive.join("index.json"))?)?;
        let digest = index["manifests"][0]["digest"].as_str().unwrap_or_default();
        let mut bytes = 0;
        for blob in fs::read_dir(archive.join("blobs/sha256"))? {
            bytes += blob?.metadata()?.len();
        }
        Ok((bytes, digest.to_owned()))
    }

    fn buildah(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("buildah");
        command
            .arg("--root")
            .arg(self.folder.join("store"))
            .arg("--runroot")
            .arg(self.folder.join("run"))
            .args(["--storage-driver=vfs"])
            .args(arguments);
        command
    }
}

/// Runs a command, and returns its output.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.with_context(|| format!("cannot start {name}: apt-get install {name}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} fails: {}", errors.trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
