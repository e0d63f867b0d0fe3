//! The man pages of `kubectl remedy`, from its flags. The programs that run in pods have none.

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

/// Returns the file name and the text of a page for `kubectl remedy` and for each of its commands.
pub(crate) fn pages() -> Result<Vec<(String, String)>> {
    let mut command = kubectl_remedy::Args::command().disable_help_subcommand(true);
    command.build();
    let mut pages = vec![page(&command)?];
    let commands = command.get_subcommands();
    for command in commands.filter(|command| !command.is_hide_set()) {
        pages.push(page(command)?);
    }
    Ok(pages)
}

fn page(command: &Command) -> Result<(String, String)> {
    let version = env!("CARGO_PKG_VERSION");
    let page = Man::new(command.clone())
        .source(format!("kubectl-remedy {version}"))
        .manual("kubectl remedy");
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok((page.get_filename(), String::from_utf8(text)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each command that is shown has a page under the name that man looks for.
    #[test]
    fn every_command_has_a_page() {
        let pages = pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "kubectl-remedy.1",
                "kubectl-remedy-status.1",
                "kubectl-remedy-why.1",
                "kubectl-remedy-plan.1",
                "kubectl-remedy-block.1",
                "kubectl-remedy-unblock.1",
                "kubectl-remedy-drain.1",
                "kubectl-remedy-uncordon.1",
                "kubectl-remedy-practice.1",
                "kubectl-remedy-approve.1",
                "kubectl-remedy-evict.1",
                "kubectl-remedy-check.1",
                "kubectl-remedy-join.1",
                "kubectl-remedy-leave.1",
                "kubectl-remedy-renew.1",
                "kubectl-remedy-rights.1",
                "kubectl-remedy-interpret.1",
            ]
        );
        let (_, block) = &pages[4];
        assert!(block.contains("kubectl remedy block"), "{block}");
    }
}
