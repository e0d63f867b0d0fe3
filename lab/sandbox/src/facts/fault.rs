//! What can be wrong, by the names that the page uses.

use serde::{Deserialize, Serialize};

/// What is wrong with a DNS server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DnsFault {
    /// Nothing.
    #[default]
    None,
    /// Nothing listens.
    Stop,
    /// It answers REFUSED.
    Refuse,
    /// It answers SERVFAIL.
    Servfail,
    /// It knows no name.
    Nxdomain,
    /// It answers nothing.
    Drop,
    /// Its answers come too late.
    Slow,
    /// It answers nothing to three of ten questions.
    Lose,
}

/// What is wrong with the Karmada API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ApiFault {
    /// Nothing.
    #[default]
    None,
    /// Every connection is lost.
    Cut,
    /// Every answer takes a second longer.
    Slow,
    /// Every second write conflicts.
    Conflicts,
    /// Every third request fails.
    Errors,
}
