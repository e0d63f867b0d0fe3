//! The features that `--feature-gates` switches on and off, as Kubernetes has them.

/// A feature that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its name.
    pub name: &'static str,
    /// True if it is on unless it is switched off.
    pub is_default: bool,
}

/// Karmada's feature by which workloads of a group are together, or apart.
pub const WORKLOAD_AFFINITY: Gate = Gate {
    name: "WorkloadAffinity",
    is_default: false,
};

/// Karmada's feature by which bindings of a higher priority are scheduled first.
pub const PRIORITY: Gate = Gate {
    name: "PriorityBasedScheduling",
    is_default: true,
};

/// Karmada's feature by which a template whose Pods differ goes where all of them have room.
pub const COMPONENTS: Gate = Gate {
    name: "MultiplePodTemplatesScheduling",
    is_default: false,
};

/// Karmada's feature by which the room of a cluster is counted by the models of its nodes.
pub const MODELS: Gate = Gate {
    name: "CustomizedClusterResourceModeling",
    is_default: true,
};

/// Karmada's feature by which what was placed takes room in its clusters before these report it.
pub const OVERCOMMIT_PROTECTION: Gate = Gate {
    name: "SchedulingOvercommitProtection",
    is_default: false,
};

/// Karmada's features that our programs always have, or never.
const FIXED: [(&str, bool); 3] = [
    ("PropagateDeps", true),
    ("PropagationPolicyPreemption", true),
    ("ResourceQuotaEstimate", false),
];

/// Karmada's features of other programs, and of how it writes its log. Who copies the flag from a Karmada has these in it.
const OF_OTHERS: [&str; 9] = [
    "Failover",
    "GracefulEviction",
    "MultiClusterService",
    "StatefulFailoverInjection",
    "FederatedQuotaEnforcement",
    "ControllerPriorityQueue",
    "LoggingAlphaOptions",
    "LoggingBetaOptions",
    "ContextualLogging",
];

/// One switch of the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Absent if it switches nothing here.
    gate: Option<Gate>,
    is_on: bool,
}

impl Gate {
    /// Returns `true` if the feature is on. Of several switches the last one counts.
    pub fn is_on(self, switches: &[Switch]) -> bool {
        let mut switches = switches.iter().rev();
        let switch = switches.find(|switch| switch.gate == Some(self));
        switch.map_or(self.is_default, |switch| switch.is_on)
    }
}

/// Parses a switch such as `Name=true` of one of the `known` gates, or of a feature of Karmada's that is none here.
///
/// # Errors
/// Returns one line for clap to print.
pub fn switch(text: &str, known: &[Gate]) -> Result<Switch, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| "write NAME=true or NAME=false".to_owned())?;
    let is_on: bool = value
        .parse()
        .map_err(|_| format!("{value:?} is neither true nor false"))?;
    let gate = known.iter().copied().find(|gate| gate.name == name);
    let mut fixed = FIXED.iter();
    match fixed.find(|(fixed, _)| *fixed == name) {
        Some((_, always)) if *always != is_on => {
            let which = if *always { "always" } else { "never" };
            return Err(format!("{name} is {which} on here: leave it out"));
        }
        None if gate.is_none() && !OF_OTHERS.contains(&name) => {
            let names: Vec<_> = known.iter().map(|gate| gate.name).collect();
            let names = names.join(", ");
            return Err(format!("there is no feature {name:?}, but {names}"));
        }
        _ => {}
    }
    Ok(Switch { gate, is_on })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: Gate = Gate {
        name: "New",
        is_default: false,
    };
    const ON: Gate = Gate {
        name: "Old",
        is_default: true,
    };

    fn switches(texts: &[&str]) -> Result<Vec<Switch>, String> {
        let texts = texts.iter();
        texts.map(|text| switch(text, &[OFF, ON])).collect()
    }

    /// A feature has its default until it is switched, and the last switch counts.
    #[test]
    fn last_switch_counts() {
        assert!(!OFF.is_on(&[]));
        assert!(ON.is_on(&[]));
        let switched = switches(&["New=false", "Old=false", "New=true"]).unwrap();
        assert!(OFF.is_on(&switched));
        assert!(!ON.is_on(&switched));
    }

    /// The switches of a whole Karmada are taken, as far as nothing else is meant by them than is done.
    #[test]
    fn karmadas_switches_are_taken() {
        let switched = switches(&["Failover=true", "PropagateDeps=true", "New=true"]).unwrap();
        assert!(OFF.is_on(&switched) && ON.is_on(&switched));
    }

    /// What is no switch is told in one line that says what would be one.
    #[test]
    fn bad_switches_are_told() {
        for (text, expected) in [
            ("New", "write NAME=true or NAME=false"),
            ("New=yes", "\"yes\" is neither true nor false"),
            ("Newer=true", "there is no feature \"Newer\", but New, Old"),
            (
                "PropagateDeps=false",
                "PropagateDeps is always on here: leave it out",
            ),
            (
                "ResourceQuotaEstimate=true",
                "ResourceQuotaEstimate is never on here: leave it out",
            ),
        ] {
            assert_eq!(switches(&[text]), Err(expected.to_owned()), "{text}");
        }
    }
}
