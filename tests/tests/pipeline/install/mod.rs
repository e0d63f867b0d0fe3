//! Installation and removal as docs/install.md and docs/uninstall.md describe them, with the real kubectl.

pub(crate) mod page;
pub(crate) mod renewal;
pub(crate) mod snapshot;
mod with_tools;

use std::{fs, path::Path};

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;

/// Writes the files of a Secret into a folder, each at once, as a kubelet does.
pub(crate) fn mount(secret: Secret, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (name, content) in secret.data.unwrap_or_default() {
        let new = folder.join("new");
        fs::write(&new, content.0)?;
        fs::rename(new, folder.join(name))?;
    }
    Ok(())
}
