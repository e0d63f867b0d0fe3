//! The reference of the flags, from the programs' own.

use std::fmt::Write as _;

use anyhow::Result;
use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::table::cell;

/// Returns the page that lists the flags of every program.
pub(crate) fn page() -> Result<String> {
    let programs = [
        cluster_health_agent::IDENTITY.command::<cluster_health_agent::Args>(),
        remedy_controller::IDENTITY.command::<remedy_controller::Args>(),
        ingress_controller::IDENTITY.command::<ingress_controller::Args>(),
        propagation_controller::IDENTITY.command::<propagation_controller::Args>(),
        scheduler::IDENTITY.command::<scheduler::Args>(),
        execution_controller::IDENTITY.command::<execution_controller::Args>(),
        cluster_controller::IDENTITY.command::<cluster_controller::Args>(),
        placement_controller::IDENTITY.command::<placement_controller::Args>(),
        placement_agent::IDENTITY.command::<placement_agent::Args>(),
        kubectl_remedy::Args::command(),
    ];
    let mut page = String::from(
        "# Flags\n\n\
         A flag may be given as its environment variable; the flag itself wins. Exit code 2 and one line on standard error tell an invalid one.\n",
    );
    for program in programs {
        let name = program.get_bin_name().unwrap_or_else(|| program.get_name());
        list(&program, "##", name, &mut page)?;
    }
    Ok(page)
}

/// Appends the flags of a command called `name`, below a heading of this level.
fn list(command: &Command, level: &str, name: &str, page: &mut String) -> Result<()> {
    let about = command.get_about().map(ToString::to_string);
    writeln!(page, "\n{level} {name}\n\n{}", about.unwrap_or_default())?;
    let mut flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
    if let Some(first) = flags.next() {
        page.push_str("\n| Flag | Default | Meaning | Environment |\n|---|---|---|---|\n");
        for flag in std::iter::once(first).chain(flags) {
            writeln!(page, "{}", row(flag))?;
        }
    }
    let commands = command.get_subcommands();
    for command in commands.filter(|command| !command.is_hide_set()) {
        let name = format!("{name} {}", command.get_name());
        list(command, "###", &name, page)?;
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    format!("`{text}`")
}

fn row(flag: &Arg) -> String {
    let takes_value = matches!(flag.get_action(), ArgAction::Set | ArgAction::Append);
    let values = flag.get_value_names().unwrap_or_default();
    let value = values.first().filter(|_| takes_value);
    let name = flag.get_long().map(|name| format!("--{name}"));
    let parts = name.into_iter().chain(value.map(ToString::to_string));
    let parts: Vec<String> = parts.collect();
    let defaults = flag.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    let default = match &*defaults.join(",") {
        "" => String::new(),
        default => quoted(default),
    };
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let env = flag.get_env().map(|name| quoted(&name.to_string_lossy()));
    format!(
        "| {} | {default} | {} | {} |",
        cell(&quoted(&parts.join(" "))),
        cell(&help),
        env.unwrap_or_default()
    )
}
