//! The reference of the flags, from the programs' own.

use std::fmt::Write as _;

use anyhow::Result;
use clap::{Arg, ArgAction, Command, CommandFactory};

use super::cell;

/// Returns the page that lists the flags of every program.
pub(super) fn page() -> Result<String> {
    let programs = [
        cluster_health_agent::Args::command(),
        remedy_controller::Args::command(),
        ingress_controller::Args::command(),
        propagation_controller::Args::command(),
        scheduler::Args::command(),
        execution_controller::Args::command(),
        cluster_controller::Args::command(),
    ];
    let mut page = String::from(
        "# Flags\n\n\
         A flag may be given as its environment variable; the flag itself wins. Exit code 2 and one line on standard error tell an invalid one.\n",
    );
    for program in programs {
        list(&program, &mut page)?;
    }
    Ok(page)
}

fn list(program: &Command, page: &mut String) -> Result<()> {
    let about = program.get_about().map(ToString::to_string);
    write!(
        page,
        "\n## {}\n\n{}\n\n| Flag | Default | Meaning | Environment |\n|---|---|---|---|\n",
        program.get_name(),
        about.unwrap_or_default(),
    )?;
    for flag in program.get_arguments().filter(|flag| !flag.is_hide_set()) {
        if let Some(name) = flag.get_long() {
            writeln!(page, "{}", row(name, flag))?;
        }
    }
    Ok(())
}

fn row(name: &str, flag: &Arg) -> String {
    let quoted = |text: &str| format!("`{text}`");
    let takes_value = matches!(flag.get_action(), ArgAction::Set | ArgAction::Append);
    let values = flag.get_value_names().unwrap_or_default();
    let value = match values.first() {
        Some(value) if takes_value => format!(" {value}"),
        _ => String::new(),
    };
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
        cell(&quoted(&format!("--{name}{value}"))),
        cell(&help),
        env.unwrap_or_default()
    )
}
