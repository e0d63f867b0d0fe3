//! Signals that users declare, from the file to their conditions: `kinds`, each on a server of its own; `with_tools`, on servers of others.

mod kinds;
mod with_tools;
