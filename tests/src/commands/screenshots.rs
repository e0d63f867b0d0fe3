//! `screenshots`: takes the screenshots in docs/images.

use anyhow::Result;
use pipeline_tests::{
    netns::{COMMAND_LIMIT, inside, isolated_command},
    programs::{self, Profile},
    screenshots,
};

pub(crate) fn run() -> Result<()> {
    if !inside() {
        programs::build(Profile::Debug)?;
    }
    isolated_command(COMMAND_LIMIT, async || {
        screenshots::take(&tools::cargo::root().join("docs/images")).await
    })
}
