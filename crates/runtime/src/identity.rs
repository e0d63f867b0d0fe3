//! The names by which users know a program.

use clap::{Arg, Command, Parser};

/// The names of a program, and those of the product that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The program's name: its user agent, the name of its lease, and part of the names of its metrics.
    pub name: &'static str,
    /// The product in lower case, with which the names of metrics and of environment variables begin.
    pub product: &'static str,
    /// The namespace of the program's lease.
    pub lease_namespace: &'static str,
}

impl Identity {
    /// Returns the command line `A`, on which every flag that is shown can come from the environment: from
    /// the variable that it names, or else from `PRODUCT_FLAG`.
    pub fn command<A: Parser>(&self) -> Command {
        A::command().mut_args(|flag| self.with_variable(flag))
    }

    /// Returns the prefix of the program's metrics.
    pub(crate) fn metric_prefix(&self) -> String {
        format!("{}_{}", self.product, self.name.replace('-', "_"))
    }

    fn with_variable(&self, flag: Arg) -> Arg {
        match flag.get_long() {
            Some(long) if flag.get_env().is_none() && !flag.is_hide_set() => {
                let name = format!("{}_{long}", self.product).replace('-', "_");
                // clap keeps names as long as the process lives.
                let name: &'static str = name.to_uppercase().leak();
                flag.env(name)
            }
            _ => flag,
        }
    }

    #[cfg(test)]
    pub(crate) const fn for_tests() -> Self {
        Self {
            name: "test-program",
            product: "acme",
            lease_namespace: "acme-system",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[arg(long)]
        log_level: Option<String>,
        #[arg(long, env = "OTHER")]
        named: Option<String>,
        #[arg(long, hide = true)]
        hidden: Option<String>,
    }

    /// A flag keeps the variable that it names, and one without effect has none.
    #[test]
    fn flags_have_prefixed_variables() {
        let command = Identity::for_tests().command::<Flags>();
        let variables: Vec<_> = command
            .get_arguments()
            .map(|flag| flag.get_env().and_then(|name| name.to_str()))
            .collect();
        assert_eq!(variables, [Some("ACME_LOG_LEVEL"), Some("OTHER"), None]);
    }

    #[test]
    fn metrics_begin_with_both_names() {
        let prefix = Identity::for_tests().metric_prefix();
        assert_eq!(prefix, "acme_test_program");
    }
}
