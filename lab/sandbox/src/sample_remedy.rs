//! The Remedies of `manifests/samples`, which the page creates with one button.

use anyhow::{Context, Result};
use karmada_api::Remedy;

/// A Remedy of `manifests/samples`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleRemedy {
    /// Blocks each cluster whose DNS fails.
    Dns,
    /// Blocks each cluster that the gateway does not reach.
    Unreachable,
    /// Blocks member1 at once.
    Maintenance,
}

impl SampleRemedy {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Dns, Self::Unreachable, Self::Maintenance];

    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Unreachable => "unreachable",
            Self::Maintenance => "maintenance-member1",
        }
    }

    /// Finds a sample by its name.
    ///
    /// # Errors
    /// Fails with a message of one line for a reader of the page.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|sample| sample.name() == name).with_context(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no such remedy {name:?}; the samples are {names}")
        })
    }

    /// Returns the Remedy of its manifest.
    pub(crate) fn remedy(self) -> Result<Remedy> {
        let manifest = match self {
            Self::Dns => include_str!("../../../manifests/samples/remedy-dns.yaml"),
            Self::Unreachable => include_str!("../../../manifests/samples/remedy-unreachable.yaml"),
            Self::Maintenance => include_str!("../../../manifests/samples/remedy-maintenance.yaml"),
        };
        serde_saphyr::from_str(manifest).context("a sample is no Remedy")
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;

    use super::*;

    /// Each sample has the name of its manifest.
    #[test]
    fn samples_match_their_manifests() {
        for sample in SampleRemedy::ALL {
            assert_eq!(sample.remedy().unwrap().name_any(), sample.name());
            assert_eq!(SampleRemedy::named(sample.name()).unwrap(), sample);
        }
    }
}
