//! Logs on standard error, one line for each event.

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{CommonArgs, LogFormat};

/// Returns `true` if logs are coloured: on a terminal, unless `NO_COLOR` is set
/// (<https://no-color.org>).
pub fn is_coloured() -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !no_colour
}

pub(crate) fn init(args: &CommonArgs) {
    let registry = tracing_subscriber::registry().with(args.log_level.clone());
    match args.log_format {
        LogFormat::Text => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .with_writer(std::io::stderr)
                    .with_ansi(is_coloured()),
            )
            .init(),
        LogFormat::Json => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .json()
                    .with_writer(std::io::stderr),
            )
            .init(),
    }
}
