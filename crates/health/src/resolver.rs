//! The resolvers that programs in pods use.

use std::fmt;
use std::str::FromStr;

/// A resolver. The same responses lead some of them to an address, and others not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resolver {
    /// The C library of Debian, Ubuntu, Red Hat and their kin.
    Glibc,
    /// The C library of Alpine.
    Musl,
    /// Go's own, in programs built without cgo.
    Go,
}

impl Resolver {
    /// Every resolver.
    pub const ALL: [Self; 3] = [Self::Glibc, Self::Musl, Self::Go];

    /// Returns the name in lower case, as flags, metrics and vote documents have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Musl => "musl",
            Self::Go => "go",
        }
    }
}

impl fmt::Display for Resolver {
    /// Writes the name as sentences have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Glibc | Self::Musl => self.as_str(),
            Self::Go => "Go",
        })
    }
}

/// The error for a text that names no resolver known to this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownResolver;

impl FromStr for Resolver {
    type Err = UnknownResolver;

    /// Parses the output of [`Self::as_str`].
    fn from_str(text: &str) -> Result<Self, UnknownResolver> {
        let mut all = Self::ALL.into_iter();
        all.find(|resolver| resolver.as_str() == text)
            .ok_or(UnknownResolver)
    }
}
