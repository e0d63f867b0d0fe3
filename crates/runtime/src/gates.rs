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

/// One switch of the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    gate: Gate,
    is_on: bool,
}

impl Gate {
    /// Returns `true` if the feature is on. Of several switches the last one counts.
    pub fn is_on(self, switches: &[Switch]) -> bool {
        let mut switches = switches.iter().rev();
        let switch = switches.find(|switch| switch.gate == self);
        switch.map_or(self.is_default, |switch| switch.is_on)
    }
}

/// Parses a switch such as `Name=true` of one of the `known` gates.
///
/// # Errors
/// Returns one line for clap to print.
pub fn switch(text: &str, known: &[Gate]) -> Result<Switch, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| "write NAME=true or NAME=false".to_owned())?;
    let Some(gate) = known.iter().find(|gate| gate.name == name) else {
        let names: Vec<_> = known.iter().map(|gate| gate.name).collect();
        return Err(format!(
            "there is no feature {name:?}, but {}",
            names.join(", ")
        ));
    };
    let is_on = value
        .parse()
        .map_err(|_| format!("{value:?} is neither true nor false"))?;
    Ok(Switch { gate: *gate, is_on })
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

    /// What is no switch is told in one line that says what would be one.
    #[test]
    fn bad_switches_are_told() {
        for (text, expected) in [
            ("New", "write NAME=true or NAME=false"),
            ("New=yes", "\"yes\" is neither true nor false"),
            ("Newer=true", "there is no feature \"Newer\", but New, Old"),
        ] {
            assert_eq!(switches(&[text]), Err(expected.to_owned()), "{text}");
        }
    }
}
