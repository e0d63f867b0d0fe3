//! `kubectl-remedy __complete`: the words that may come next on a line, as kubectl asks a plugin for them.
//!
//! kubectl runs `kubectl_complete-remedy` with the words of the line, the last of which is incomplete, and
//! reads candidates with their descriptions and then a directive, as cobra's completion scripts do.

mod candidates;

use clap::{Arg, Command, CommandFactory, ValueHint};

use self::candidates::{api, clusters, kinds, subjects};
use crate::answer::Answer;
use crate::args::Args;
use crate::terminal;

/// Directives of cobra.
const OFFER_FILES: &str = ":0";
const OFFER_NO_FILES: &str = ":4";
/// No files, and no space after the word.
const OFFER_MORE: &str = ":6";

/// The candidates for the next word.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// One of these words, each with its description.
    Word(Vec<(String, String)>),
    /// The name of a cluster.
    Cluster,
    /// A kind that can be propagated.
    Kind,
    /// The name of a cluster, or `TYPE/NAME`.
    Subject,
    /// The name of a file.
    File,
    /// Something that nobody can guess.
    Unknown,
}

/// Prints the words that may come after `words`. An error is no candidate, so there is none.
pub(crate) async fn run(words: &[String]) -> Answer {
    let incomplete = words.last().map_or("", String::as_str);
    let (candidates, directive) = match Next::after(words) {
        Next::Word(candidates) => (candidates, OFFER_NO_FILES),
        Next::File => (Vec::new(), OFFER_FILES),
        next => (next.known_to_api(words, incomplete).await, OFFER_NO_FILES),
    };
    let offered = candidates.into_iter();
    let offered: Vec<_> = offered
        .filter(|(word, _)| word.starts_with(incomplete))
        .collect();
    // The name comes behind a type at once.
    let are_types = offered.iter().all(|(word, _)| word.ends_with('/'));
    let directive = if are_types && !offered.is_empty() {
        OFFER_MORE
    } else {
        directive
    };
    for (word, description) in offered {
        terminal::print(&format!("{word}\t{description}\n"));
    }
    terminal::print(&format!("{directive}\n"));
    Answer::Yes
}

impl Next {
    /// Returns the names that the API of the line knows.
    async fn known_to_api(&self, words: &[String], incomplete: &str) -> Vec<(String, String)> {
        if *self == Self::Unknown {
            return Vec::new();
        }
        let Some(client) = api(words).await else {
            return Vec::new();
        };
        match self {
            Self::Cluster => clusters(&client).await,
            Self::Kind => kinds(&client).await,
            Self::Subject => subjects(&client, words, incomplete).await,
            Self::Word(_) | Self::File | Self::Unknown => Vec::new(),
        }
    }

    fn after(words: &[String]) -> Self {
        let root = Args::command();
        let Some((incomplete, before)) = words.split_last() else {
            return Self::Unknown;
        };
        let (mut command, mut awaits_value, mut positionals) = (&root, None, 0);
        for word in before {
            if awaits_value.take().is_some() {
                continue;
            }
            if word.starts_with('-') {
                awaits_value = flag(&root, command, word).filter(|flag| takes_value(flag));
            } else if let Some(found) = command.find_subcommand(word) {
                command = found;
            } else {
                positionals += 1;
            }
        }
        if let Some(flag) = awaits_value {
            return Self::value_of(flag);
        }
        if incomplete.starts_with('-') {
            let flags = command.get_arguments().chain(root.get_arguments());
            return Self::Word(flags.filter_map(described_flag).collect());
        }
        if command.has_subcommands() {
            let commands = command.get_subcommands().filter(|c| !c.is_hide_set());
            let described = commands.map(|c| (c.get_name().to_owned(), first_line(c.get_about())));
            return Self::Word(described.collect());
        }
        match command.get_positionals().next() {
            Some(kinds) if kinds.get_id() == "kinds" => Self::Kind,
            Some(clusters) if clusters.get_id() == "clusters" => Self::Cluster,
            Some(subject) if subject.get_id() == "subject" && positionals == 0 => Self::Subject,
            Some(name) if ["run", "placement"].contains(&name.get_id().as_str()) => Self::Unknown,
            // Whatever else stands alone after a command is a cluster.
            Some(_) if positionals == 0 => Self::Cluster,
            _ => Self::Unknown,
        }
    }

    fn value_of(flag: &Arg) -> Self {
        let values = flag.get_possible_values();
        if !values.is_empty() {
            let described = values.into_iter().map(|v| {
                let help = v.get_help().map(ToString::to_string);
                (v.get_name().to_owned(), help.unwrap_or_default())
            });
            return Self::Word(described.collect());
        }
        match flag.get_value_hint() {
            ValueHint::AnyPath | ValueHint::FilePath => Self::File,
            _ => Self::Unknown,
        }
    }
}

/// Returns the flag that `word` names, unless its value is in the same word.
fn flag<'a>(root: &'a Command, command: &'a Command, word: &str) -> Option<&'a Arg> {
    let mut flags = command.get_arguments().chain(root.get_arguments());
    flags.find(|flag| match word.strip_prefix("--") {
        Some(long) => flag.get_long() == Some(long),
        None => flag
            .get_short()
            .is_some_and(|short| word == format!("-{short}")),
    })
}

fn takes_value(flag: &Arg) -> bool {
    flag.get_action().takes_values()
}

fn described_flag(flag: &Arg) -> Option<(String, String)> {
    Some((
        format!("--{}", flag.get_long()?),
        first_line(flag.get_help()),
    ))
}

fn first_line(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(ToOwned::to_owned).collect()
    }

    fn candidates(line: &str) -> Vec<String> {
        match Next::after(&words(line)) {
            Next::Word(candidates) => candidates.into_iter().map(|(word, _)| word).collect(),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// Commands flags and their values are offered.
    #[test]
    fn commands_and_flags_are_offered() {
        assert_eq!(
            candidates(""),
            [
                "status",
                "why",
                "plan",
                "block",
                "unblock",
                "drain",
                "uncordon",
                "practice",
                "approve",
                "evict",
                "check",
                "join",
                "leave",
                "renew",
                "rights",
                "interpret",
            ]
        );
        assert_eq!(candidates("--context here "), candidates(""));
        assert_eq!(
            candidates("block m1 --dry-run "),
            ["none", "client", "server"]
        );
        assert_eq!(candidates("status -o "), ["wide", "json", "yaml"]);
        let flags = candidates("block m1 --");
        for flag in [
            "--for",
            "--reason",
            "--force",
            "--kubeconfig",
            "--namespace",
        ] {
            assert!(flags.iter().any(|offered| offered == flag), "{flag}");
        }
    }

    /// Clusters and kinds are offered where a command names one.
    #[test]
    fn names_are_offered() {
        for (line, next) in [
            ("rights ", Next::Kind),
            ("rights apps/deployments ba", Next::Kind),
            ("why ", Next::Subject),
            ("why -n shop deployments.apps/w", Next::Subject),
            ("why m1 ", Next::Unknown),
            ("block --for 2h mem", Next::Cluster),
            ("unblock --dry-run=client m", Next::Cluster),
            ("join m1 --image i m", Next::Cluster),
            ("leave --all ", Next::Cluster),
            ("renew m1 ", Next::Cluster),
            ("block m1 ", Next::Unknown),
            ("approve ", Next::Unknown),
            ("block m1 --for ", Next::Unknown),
            ("check ", Next::Unknown),
            ("plan -f ", Next::File),
            ("status --kubeconfig ", Next::File),
        ] {
            assert_eq!(Next::after(&words(line)), next, "{line}");
        }
    }
}
