//! The Remedies of `manifests/samples`, which the page creates and deletes.

/// A Remedy of `manifests/samples`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleRemedy {
    /// Blocks each cluster whose DNS fails.
    Dns,
    /// Blocks member1 at once.
    Maintenance,
}

impl SampleRemedy {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Dns, Self::Maintenance];

    /// Returns its name on the page.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Maintenance => "maintenance",
        }
    }

    /// Returns the name of its object.
    pub(crate) fn object(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Maintenance => "maintenance-member1",
        }
    }

    /// Finds a sample by either name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|sample| [sample.name(), sample.object()].contains(&name))
    }

    /// Returns its YAML.
    pub(crate) fn manifest(self) -> &'static str {
        match self {
            Self::Dns => include_str!("../../../manifests/samples/remedy-dns.yaml"),
            Self::Maintenance => include_str!("../../../manifests/samples/remedy-maintenance.yaml"),
        }
    }
}
