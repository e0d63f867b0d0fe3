//! The features that `--feature-gates` switches on and off, as Kubernetes has them.

use std::str::FromStr;

/// A feature that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its name.
    pub name: &'static str,
    /// True if it is on unless it is switched off.
    pub is_default: bool,
    /// The stage that Karmada has it in.
    pub stage: Stage,
}

/// How far a feature of Karmada's has come, which `AllAlpha` and `AllBeta` go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Off there by default.
    Alpha,
    /// On there by default, mostly.
    Beta,
}

/// Karmada's feature by which workloads of a group are together, or apart.
pub const WORKLOAD_AFFINITY: Gate = Gate {
    name: "WorkloadAffinity",
    is_default: false,
    stage: Stage::Alpha,
};

/// Karmada's feature by which bindings of a higher priority are scheduled first.
pub const PRIORITY: Gate = Gate {
    name: "PriorityBasedScheduling",
    is_default: true,
    stage: Stage::Alpha,
};

/// Karmada's feature by which a template whose Pods differ goes where all of them have room.
pub const COMPONENTS: Gate = Gate {
    name: "MultiplePodTemplatesScheduling",
    is_default: false,
    stage: Stage::Alpha,
};

/// Karmada's feature by which the room of a cluster is counted by the models of its nodes.
pub const MODELS: Gate = Gate {
    name: "CustomizedClusterResourceModeling",
    is_default: true,
    stage: Stage::Beta,
};

/// Karmada's feature by which placed workloads take room in its clusters before these report it.
pub const OVERCOMMIT_PROTECTION: Gate = Gate {
    name: "SchedulingOvercommitProtection",
    is_default: false,
    stage: Stage::Alpha,
};

/// Karmada's feature by which the objects that a template refers to follow it.
pub const DEPENDENCIES: Gate = Gate {
    name: "PropagateDeps",
    is_default: true,
    stage: Stage::Beta,
};

/// Karmada's feature by which a policy takes templates from another one.
pub const PREEMPTION: Gate = Gate {
    name: "PropagationPolicyPreemption",
    is_default: true,
    stage: Stage::Alpha,
};

/// One switch of the flag, such as `Name=true`, or none between two commas or after the last. A feature of a name that a program does not have may be one of another
/// program, or of a newer Karmada: who copies the flag from a Karmada has such names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    name: String,
    is_on: bool,
}

impl Gate {
    /// Returns `true` if the feature is on. Of several switches the last one counts, and one of its own before one of
    /// all in its stage.
    pub fn is_on(self, switches: &[Switch]) -> bool {
        let all = match self.stage {
            Stage::Alpha => ALL_ALPHA,
            Stage::Beta => ALL_BETA,
        };
        let mut names = [self.name, all].into_iter();
        let switch =
            names.find_map(|name| switches.iter().rev().find(|switch| switch.name == name));
        switch.map_or(self.is_default, |switch| switch.is_on)
    }
}

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

impl FromStr for Switch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // As in Karmada, it switches nothing: no feature has this name.
        if text.is_empty() {
            let (name, is_on) = (String::new(), false);
            return Ok(Self { name, is_on });
        }
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| "write NAME=true or NAME=false".to_owned())?;
        let is_on =
            boolean(value.trim()).ok_or_else(|| format!("{value:?} is neither true nor false"))?;
        let name = name.trim().to_owned();
        Ok(Self { name, is_on })
    }
}

/// Returns the value of a word for true or false, as Go has them.
fn boolean(word: &str) -> Option<bool> {
    match word {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Returns the names of the features that are switched and are none of the `known` gates.
pub fn unknown<'a>(switches: &'a [Switch], known: &[Gate]) -> Vec<&'a str> {
    let names = switches.iter().map(|switch| switch.name.as_str());
    let of_gates = names.filter(|name| !["", ALL_ALPHA, ALL_BETA].contains(name));
    let unknown = of_gates.filter(|name| !known.iter().any(|gate| gate.name == *name));
    let mut unknown: Vec<_> = unknown.collect();
    unknown.sort_unstable();
    unknown.dedup();
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: Gate = Gate {
        name: "New",
        is_default: false,
        stage: Stage::Alpha,
    };
    const ON: Gate = Gate {
        name: "Old",
        is_default: true,
        stage: Stage::Beta,
    };

    fn switches(text: &str) -> Result<Vec<Switch>, String> {
        text.split(',').map(str::parse).collect()
    }

    /// A feature has its default until it is switched, and the last switch counts.
    #[test]
    fn last_switch_counts() {
        assert!(!OFF.is_on(&[]));
        assert!(ON.is_on(&[]));
        let switched = switches("New=false,Old=false,New=true").unwrap();
        assert!(OFF.is_on(&switched));
        assert!(!ON.is_on(&switched));
    }

    /// A word that Go takes for true or false is so, and nothing between commas is no switch.
    #[test]
    fn flags_are_read_as_by_go() {
        for (text, off, on) in [
            ("", false, true),
            (",", false, true),
            ("New=true,", true, true),
            (",New= T ,,Old=F", true, false),
            ("New=1,Old=0", true, false),
            ("New=t,Old=f", true, false),
            ("New=True,Old=False", true, false),
            ("New=TRUE,Old=FALSE", true, false),
        ] {
            let switched = switches(text).unwrap();
            assert_eq!(
                (OFF.is_on(&switched), ON.is_on(&switched)),
                (off, on),
                "{text}"
            );
            assert_eq!(unknown(&switched, &[OFF, ON]), [""; 0], "{text}");
        }
    }

    /// A Karmada's manifests switch all features of a stage, and some otherwise, in any order.
    #[test]
    fn stages_are_switched() {
        for (text, off, on) in [
            ("AllAlpha=true,AllBeta=true", true, true),
            ("AllAlpha=true,AllBeta=false", true, false),
            ("Old=true,AllAlpha=true,AllBeta=false", true, true),
            ("New=false,AllAlpha=true", false, true),
            ("AllAlpha=true,New=false", false, true),
        ] {
            let switched = switches(text).unwrap();
            assert_eq!(
                (OFF.is_on(&switched), ON.is_on(&switched)),
                (off, on),
                "{text}"
            );
        }
    }

    /// Features of other programs, and of later versions, are taken, and named.
    #[test]
    fn other_features_are_named() {
        let switched = switches("Newest=true,AllBeta=true,Failover=false,New=true,Newest=false");
        let switched = switched.unwrap();
        assert_eq!(unknown(&switched, &[OFF, ON]), ["Failover", "Newest"]);
        assert!(OFF.is_on(&switched) && ON.is_on(&switched));
    }

    /// A text that is no switch is told in one line, with the form of one.
    #[test]
    fn bad_switches_are_told() {
        for (text, expected) in [
            ("New", "write NAME=true or NAME=false"),
            ("New=yes", "\"yes\" is neither true nor false"),
            ("New=tRUE", "\"tRUE\" is neither true nor false"),
            ("New=", "\"\" is neither true nor false"),
            (" ", "write NAME=true or NAME=false"),
        ] {
            assert_eq!(switches(text), Err(expected.to_owned()), "{text}");
        }
    }
}
