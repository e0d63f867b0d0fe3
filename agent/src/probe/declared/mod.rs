//! The signals that users declare in a file, and the probe of each.
//!
//! ```text
//!   file → declarations → probe and vote of each, which start and end with its declaration
//! ```
//!
//! - The content of a file, and the mistakes in one: [`mod@file`]. Its probes are of a kind in [`probe`].
//! - When is it read, and which probes start and end then: [`follow`].
//! - How does a round of a probe go: [`round`], the same for all kinds.
//! - How is each kind asked: [`http`], [`tcp`], [`grpc`], [`dns`], [`prometheus`] and [`nodes`]. They reach servers by
//!   [`network`] and [`tls`], read files of users as far as [`bounded`] lets them, [`exchange`] sends requests over HTTP, and [`unmet`] is how a round ends that does not succeed.
//! - The output for a person who tries a file: [`check`].
//!
//! Another kind is a file beside these, and its lines in [`probe`].

mod bounded;
pub(crate) mod check;
mod dns;
mod exchange;
mod file;
mod follow;
mod grpc;
mod http;
mod kind;
mod network;
mod nodes;
mod probe;
mod prometheus;
mod round;
mod tcp;
mod tls;
mod unmet;

use std::net::IpAddr;
use std::path::PathBuf;

use health::signal::PerTarget;
use karmada_runtime::client::Addresses;
use karmada_runtime::program::Program;

pub(crate) use self::file::Defaults;
use self::follow::Follower;
pub(crate) use self::follow::Shared;
use self::network::Node;
use crate::flag_values::expanded;

/// The flags of the signals that users declare.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DeclaredArgs {
    /// File with further signals of the agent's own cluster (docs/signals.md). It is read again when it changes, and may be missing.
    #[arg(long, env = "KARMADA_SIGNALS_FILE", value_name = "PATH")]
    pub(crate) signals_file: Option<PathBuf>,
    /// Address of this agent's node, for which $(NODE_IP) stands in that file.
    #[arg(long, env = "KARMADA_NODE_IP", value_name = "IP", value_parser = node_ip)]
    node_ip: Option<IpAddr>,
}

impl DeclaredArgs {
    /// Spawns the reads of the file, and with them the probes, as a task of `program`.
    pub(crate) fn start(self, program: &mut Program, shared: Shared) {
        let Some(path) = self.signals_file else {
            shared.declared.send_replace(Some(PerTarget::default()));
            return;
        };
        // Of their own: the agent's own servers are known without these.
        let addresses = Addresses::by_system();
        let node = Node::new(addresses, self.node_ip, shared.member.clone());
        let follower = Follower::new(path, node, shared, &mut program.registry);
        program.run_until_stopped("signals", follower.run());
    }
}

fn node_ip(text: &str) -> Result<IpAddr, String> {
    expanded(text)?;
    text.parse()
        .map_err(|_| "write an IP address, such as 10.0.0.7".to_owned())
}

#[cfg(test)]
mod tests;
