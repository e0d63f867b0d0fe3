//! `kubectl remedy rights`: the ClusterRoles that let the propagation-controller propagate more kinds.

use std::collections::BTreeSet;

use propagation_rules::rights::GroupResource;

use crate::answer::Answer;
use crate::args::RightsArgs;
use crate::error::Error;
use crate::manifest::{self, Format};
use crate::terminal;

/// Prints a ClusterRole for each kind, so that each can be taken away on its own.
pub(crate) fn run(args: &RightsArgs) -> Result<Answer, Error> {
    let kinds: BTreeSet<&GroupResource> = args.kinds.iter().collect();
    for kind in kinds {
        let role = manifest::text(&kind.cluster_role(), Format::Yaml)?;
        terminal::print(&format!("---\n{role}"));
    }
    Ok(Answer::Yes)
}
