//! The third-party programs: their versions, and the files in which they are found. etcd, kube-apiserver and
//! kubectl come from `KUBEBUILDER_ASSETS` if that is set; the others, and these without it, from
//! `$XDG_CACHE_HOME/karmada-rs/tools` (`~/.cache` without the variable), each in a folder that is named by the
//! content that it is built from.

use std::{
    env, fs,
    hash::Hasher,
    io,
    path::{Path, PathBuf},
};

use fnv::FnvHasher;
use thiserror::Error;

/// Go's arguments for every build. They are part of the content that identifies a binary.
pub(crate) const BUILD: [&str; 4] = ["build", "-mod=readonly", "-buildvcs=false", "-o"];

/// A third-party program that the tests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Checks the workflows of CI.
    Actionlint,
    /// The store behind the API server.
    Etcd,
    /// The Kubernetes API server.
    KubeApiserver,
    /// The Kubernetes controllers.
    KubeControllerManager,
    /// The Kubernetes command line.
    Kubectl,
    /// The DNS server of a cluster.
    CoreDns,
    /// An ingress controller.
    Traefik,
    /// The program that reads the metrics of a cluster.
    Prometheus,
    /// The checker of alerts.
    Promtool,
    /// The program that installs charts.
    Helm,
    /// Its next major version, which applies on the server's side.
    Helm4,
    /// The health service of gRPC in Go, in a program of ours.
    GrpcHealth,
    /// Karmada's scheduler, in a program of ours that has it decide about its input.
    KarmadaScheduler,
    /// ExternalDNS, in a program of ours that has zones in memory in place of a cloud's.
    ExternalDns,
}

/// An error of the search for a tool's binary.
#[derive(Debug, Error)]
pub enum ToolsError {
    /// Go, which must build a tool, is not installed.
    #[error(
        "cannot build {tool}: there is no `go` on the PATH; install Go {go} or newer as described on https://go.dev/doc/install"
    )]
    GoMissing {
        /// The tool.
        tool: &'static str,
        /// The oldest Go that can build it.
        go: String,
    },
    /// Go failed to build a tool.
    #[error(
        "cannot build {tool} {version} (it needs Go {go} or newer and its module proxy):\n{output}"
    )]
    Build {
        /// The tool.
        tool: &'static str,
        /// Its version.
        version: String,
        /// The oldest Go that can build it.
        go: String,
        /// The end of Go's output.
        output: String,
    },
    /// The binary is neither in `KUBEBUILDER_ASSETS` nor built.
    #[error("{tool} is not built: run `cargo xtask tools`")]
    NotBuilt {
        /// The tool.
        tool: &'static str,
    },
    /// `KUBEBUILDER_ASSETS` is set and does not hold the binary.
    #[error("KUBEBUILDER_ASSETS is {}, which has no {tool}: unset it, or run setup-envtest", folder.display())]
    NotInAssets {
        /// The tool.
        tool: &'static str,
        /// The value of the variable.
        folder: PathBuf,
    },
    /// No cache folder for binaries is known.
    #[error("no folder for built tools: set XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    /// A file could not be read or written.
    #[error("cannot {attempt} {}", path.display())]
    File {
        /// The attempt.
        attempt: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Tool {
    /// Every tool.
    pub const ALL: [Self; 14] = [
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::Kubectl,
        Self::Etcd,
        Self::Actionlint,
        Self::CoreDns,
        Self::Traefik,
        Self::Prometheus,
        Self::Promtool,
        Self::Helm,
        Self::Helm4,
        Self::GrpcHealth,
        Self::ExternalDns,
        Self::KarmadaScheduler,
    ];

    /// The programs of a Kubernetes API.
    pub const CONTROL_PLANE: [Self; 3] = [
        Self::KubeApiserver,
        // It deletes the dependents of deleted objects.
        Self::KubeControllerManager,
        Self::Etcd,
    ];

    /// Returns `true` if only long tests run it.
    pub fn is_for_long_tests(self) -> bool {
        self == Self::KarmadaScheduler
    }

    /// Returns the name of the binary.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Actionlint => "actionlint",
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
            Self::CoreDns => "coredns",
            Self::Traefik => "traefik",
            Self::Prometheus => "prometheus",
            Self::Promtool => "promtool",
            Self::Helm => "helm",
            Self::Helm4 => "helm4",
            Self::GrpcHealth => "grpc-health",
            Self::KarmadaScheduler => "karmada-scheduler",
            Self::ExternalDns => "external-dns",
        }
    }

    /// Returns the path of the binary, which must have been [built](crate::build) before.
    pub fn path(self) -> Result<PathBuf, ToolsError> {
        let path = match self.assets() {
            Some(assets) => {
                let path = assets.join(self.name());
                if !path.is_file() {
                    return Err(ToolsError::NotInAssets {
                        tool: self.name(),
                        folder: assets,
                    });
                }
                path
            }
            None => self.folder()?.join(self.name()),
        };
        if path.is_file() {
            Ok(path)
        } else {
            Err(ToolsError::NotBuilt { tool: self.name() })
        }
    }

    /// Returns `KUBEBUILDER_ASSETS` if it is set and this tool belongs there.
    fn assets(self) -> Option<PathBuf> {
        match self {
            Self::Etcd | Self::KubeApiserver | Self::Kubectl => env::var_os("KUBEBUILDER_ASSETS")
                .filter(|value| !value.is_empty())
                .map(PathBuf::from),
            // setup-envtest has none.
            Self::Actionlint
            | Self::KubeControllerManager
            | Self::CoreDns
            | Self::Traefik
            | Self::Prometheus
            | Self::Promtool
            | Self::Helm
            | Self::Helm4
            | Self::GrpcHealth
            | Self::KarmadaScheduler
            | Self::ExternalDns => None,
        }
    }

    /// Returns the Go module with the version of the tool.
    const fn module(self) -> &'static str {
        match self {
            Self::Actionlint => "github.com/rhysd/actionlint",
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::KubeApiserver | Self::KubeControllerManager | Self::Kubectl => {
                "k8s.io/kubernetes"
            }
            Self::CoreDns => "github.com/coredns/coredns",
            Self::Traefik => "github.com/traefik/traefik/v3",
            Self::Prometheus | Self::Promtool => "github.com/prometheus/prometheus",
            Self::Helm => "helm.sh/helm/v3",
            Self::Helm4 => "helm.sh/helm/v4",
            Self::GrpcHealth => "google.golang.org/grpc",
            Self::KarmadaScheduler => "github.com/karmada-io/karmada",
            Self::ExternalDns => "sigs.k8s.io/external-dns",
        }
    }

    /// Returns the Go package of the program.
    pub(crate) const fn package(self) -> &'static str {
        match self {
            Self::Actionlint => "github.com/rhysd/actionlint/cmd/actionlint",
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::CoreDns => "github.com/coredns/coredns",
            Self::Traefik => "github.com/traefik/traefik/v3/cmd/traefik",
            Self::Prometheus => "github.com/prometheus/prometheus/cmd/prometheus",
            Self::Promtool => "github.com/prometheus/prometheus/cmd/promtool",
            Self::Helm => "helm.sh/helm/v3/cmd/helm",
            Self::Helm4 => "helm.sh/helm/v4/cmd/helm",
            // Those of our programs, beside their go.mod.
            Self::GrpcHealth | Self::KarmadaScheduler | Self::ExternalDns => ".",
        }
    }

    /// Returns the approximate time of a build from nothing on two cores.
    pub(crate) const fn build_minutes(self) -> &'static str {
        match self {
            Self::Actionlint | Self::Etcd | Self::Kubectl | Self::GrpcHealth => "1 min",
            Self::KubeApiserver | Self::KarmadaScheduler => "5 min",
            Self::KubeControllerManager | Self::CoreDns | Self::Promtool => "2 min",
            Self::Traefik => "7 min",
            Self::Prometheus | Self::Helm | Self::Helm4 | Self::ExternalDns => "3 min",
        }
    }

    /// Returns arguments for Go's linker, which omit debug information and set the version that the tool
    /// reports.
    pub(crate) fn link_arguments(self, version: &str) -> String {
        let mut arguments = vec!["-ldflags=-s -w".to_owned()];
        if self.module() == Self::KubeApiserver.module() {
            let mut numbers = version.split('.');
            let major = numbers.next().unwrap_or_default();
            let minor = numbers.next().unwrap_or_default();
            for value in [
                &format!("gitVersion=v{version}"),
                &format!("gitMajor={major}"),
                &format!("gitMinor={minor}"),
                "gitTreeState=clean",
            ] {
                arguments.push(format!("-X k8s.io/component-base/version.{value}"));
            }
        }
        if matches!(self, Self::Helm | Self::Helm4) {
            arguments.push(format!(
                "-X {}/internal/version.version=v{version}",
                self.module()
            ));
        }
        if self == Self::Helm {
            // As in its Makefile: the Kubernetes for which it renders charts while it is connected to none.
            for package in ["lint/rules", "chartutil"] {
                for number in ["Major=1", "Minor=34"] {
                    let variable = format!("{}/pkg/{package}.k8sVersion{number}", self.module());
                    arguments.push(format!("-X {variable}"));
                }
            }
        }
        arguments.join(" ")
    }

    /// Returns Go's argument for the parts that are left out.
    pub(crate) const fn tags(self) -> &'static str {
        match self {
            // They know the service discoveries, with the client of each cloud.
            Self::Prometheus | Self::Promtool => "-tags=remove_all_sd",
            _ => "-tags=",
        }
    }

    /// Returns the folder into which it is built.
    pub(crate) fn folder(self) -> Result<PathBuf, ToolsError> {
        let version = self.go_mod()?.version;
        let content = self.content_hash(&version)?;
        Ok(cache()?.join(format!("{}-{version}-{content:016x}", self.name())))
    }

    fn content_hash(self, version: &str) -> Result<u64, ToolsError> {
        let mut hasher = FnvHasher::default();
        let arguments = [self.package(), self.tags(), &self.link_arguments(version)];
        for text in [env::consts::OS, env::consts::ARCH]
            .into_iter()
            .chain(BUILD)
            .chain(arguments)
        {
            add(&mut hasher, text.as_bytes());
        }
        let own = (self.package() == ".").then_some("main.go");
        for name in ["go.mod", "go.sum"].into_iter().chain(own) {
            let path = self.source().join(name);
            let content = fs::read(&path).map_err(file("read", &path))?;
            add(&mut hasher, &content);
        }
        Ok(hasher.finish())
    }

    /// Returns the folder of its `go.mod`, which programs of one module share.
    pub(crate) fn source(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(match self {
            Self::KubeApiserver | Self::KubeControllerManager | Self::Kubectl => "kubernetes",
            Self::Prometheus | Self::Promtool => "prometheus",
            other => other.name(),
        })
    }

    pub(crate) fn go_mod(self) -> Result<GoMod, ToolsError> {
        let path = self.source().join("go.mod");
        let text = fs::read_to_string(&path).map_err(file("read", &path))?;
        Ok(GoMod::parse(&text, self.module()))
    }
}

/// Adds a part with its length, so that no byte can move from one part to the next.
fn add(hasher: &mut FnvHasher, part: &[u8]) {
    hasher.write(&part.len().to_le_bytes());
    hasher.write(part);
}

/// Returns the folder in which a user's built tools are kept.
pub fn cache() -> Result<PathBuf, ToolsError> {
    let cache = match (env::var_os("XDG_CACHE_HOME"), env::var_os("HOME")) {
        (Some(cache), _) if Path::new(&cache).is_absolute() => PathBuf::from(cache),
        (_, Some(home)) if !home.is_empty() => Path::new(&home).join(".cache"),
        _ => return Err(ToolsError::NoCacheFolder),
    };
    Ok(cache.join("karmada-rs/tools"))
}

/// The versions in a tool's `go.mod`.
pub(crate) struct GoMod {
    /// The oldest Go that can build it.
    pub(crate) go: String,
    /// The tool's version, without the `v`.
    pub(crate) version: String,
}

impl GoMod {
    pub(crate) fn parse(text: &str, module: &str) -> Self {
        let version = word_after(text, module).trim_start_matches('v');
        Self {
            go: word_after(text, "go").to_owned(),
            version: version.to_owned(),
        }
    }
}

/// Returns the second word of the first line that begins with this word.
fn word_after<'a>(text: &'a str, first: &str) -> &'a str {
    text.lines()
        .map(str::split_whitespace)
        .find_map(|mut words| (words.next() == Some(first)).then(|| words.next())?)
        .unwrap_or("?")
}

pub(crate) fn file(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ToolsError {
    let path = path.to_owned();
    move |source| ToolsError::File {
        attempt,
        path,
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{GoMod, Tool};

    #[test]
    fn go_mods_name_both_versions() {
        for tool in Tool::ALL {
            let GoMod { go, version } = tool.go_mod().unwrap();
            for text in [&go, &version] {
                assert_eq!(text.split('.').count(), 3, "{}: {text}", tool.name());
            }
        }
    }

    #[test]
    fn apiserver_reports_its_version() {
        let arguments = Tool::KubeApiserver.link_arguments("1.36.3");
        for expected in ["gitVersion=v1.36.3", "gitMajor=1", "gitMinor=36"] {
            assert!(arguments.contains(expected), "{arguments}");
        }
    }

    /// A new version of one tool builds that one, not all.
    #[test]
    fn each_has_its_folder() {
        let folders = || Tool::ALL.map(|tool| tool.folder().unwrap());
        assert_eq!(HashSet::from(folders()).len(), Tool::ALL.len());
        assert_eq!(folders(), folders());
    }
}
