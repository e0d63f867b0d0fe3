//! The flags of klog, the logging library of Karmada's own detector. All of them are accepted and none
//! has an effect.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// The flags that take a value, each in the two spellings that Karmada's programs accept.
const WITH_VALUE: [(&str, &str); 7] = [
    ("log-backtrace-at", "log_backtrace_at"),
    ("log-dir", "log_dir"),
    ("log-file", "log_file"),
    ("log-file-max-size", "log_file_max_size"),
    ("stderrthreshold", "stderrthreshold"),
    (VERBOSITY, VERBOSITY),
    ("vmodule", "vmodule"),
];
/// The flags that mean true when they stand alone.
const SWITCHES: [(&str, &str); 6] = [
    ("add-dir-header", "add_dir_header"),
    ("alsologtostderr", "alsologtostderr"),
    ("logtostderr", "logtostderr"),
    ("one-output", "one_output"),
    ("skip-headers", "skip_headers"),
    ("skip-log-headers", "skip_log_headers"),
];
/// The one flag with a short form.
const VERBOSITY: &str = "v";

/// The flags of klog that were given.
#[derive(Debug, Default)]
pub(super) struct KlogArgs {
    given: Vec<&'static str>,
}

impl KlogArgs {
    /// Returns the flags that were given, without hyphens before them.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        self.given.iter().copied()
    }
}

impl clap::Args for KlogArgs {
    fn augment_args(command: Command) -> Command {
        let with_value = WITH_VALUE.map(flag);
        let switches = SWITCHES.map(|names| {
            let switch = flag(names).num_args(0..=1).require_equals(true);
            switch.default_missing_value("true")
        });
        command.args(with_value).args(switches)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for KlogArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = WITH_VALUE.iter().chain(&SWITCHES).map(|(name, _)| *name);
        let given =
            names.filter(|name| matches.value_source(name) == Some(ValueSource::CommandLine));
        Ok(Self {
            given: given.collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag((name, alias): (&'static str, &'static str)) -> Arg {
    // As in Go's flag package, a repeated flag is no error.
    let mut flag = Arg::new(name)
        .long(name)
        .action(ArgAction::Append)
        .hide(true);
    if alias != name {
        flag = flag.alias(alias);
    }
    if name == VERBOSITY {
        flag = flag.short('v');
    }
    flag
}
