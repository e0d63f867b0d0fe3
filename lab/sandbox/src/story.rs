//! The Remedies of the user stories.

/// A Remedy of one of the user stories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoryRemedy {
    /// Traffic leaves a cluster whose DNS is dead.
    Dns,
    /// Traffic leaves member1 at once.
    Maintenance,
}

impl StoryRemedy {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Dns, Self::Maintenance];

    /// What the page calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Maintenance => "maintenance",
        }
    }

    /// What the API calls it.
    pub(crate) fn object(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Maintenance => "maintenance-member1",
        }
    }

    /// The one that goes by either name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|story| [story.name(), story.object()].contains(&name))
    }

    /// Its YAML.
    pub(crate) fn manifest(self) -> &'static str {
        match self {
            Self::Dns => include_str!("../../../manifests/samples/remedy-dns.yaml"),
            Self::Maintenance => include_str!("../../../manifests/samples/remedy-maintenance.yaml"),
        }
    }
}
