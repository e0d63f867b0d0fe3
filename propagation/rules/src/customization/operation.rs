//! The questions about an object of a kind.

use std::fmt;

/// A question about an object, as Karmada names it (`config.karmada.io/v1alpha1`, `InterpreterOperation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// How many replicas has a template, and which requirements has each?
    InterpretReplica,
    /// Of which components does a template consist?
    InterpretComponent,
    /// How does a manifest look with that many replicas?
    ReviseReplica,
    /// Which fields does an object in a member keep when it is replaced?
    Retain,
    /// Which status has a template with copies that have these?
    AggregateStatus,
    /// Which part of the status of an object in a member is reported?
    InterpretStatus,
    /// Is an object in a member well?
    InterpretHealth,
    /// Which objects does a template refer to?
    InterpretDependency,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 8] = [
        Self::InterpretReplica,
        Self::InterpretComponent,
        Self::ReviseReplica,
        Self::Retain,
        Self::AggregateStatus,
        Self::InterpretStatus,
        Self::InterpretHealth,
        Self::InterpretDependency,
    ];

    /// Returns Karmada's name of the operation.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Returns the field of a customization that has the operation's script.
    pub fn field(self) -> &'static str {
        self.names()[1]
    }

    /// Returns the name of the function that the script defines.
    pub fn function(self) -> &'static str {
        self.names()[2]
    }

    fn names(self) -> [&'static str; 3] {
        match self {
            Self::InterpretReplica => ["InterpretReplica", "replicaResource", "GetReplicas"],
            Self::InterpretComponent => {
                ["InterpretComponent", "componentResource", "GetComponents"]
            }
            Self::ReviseReplica => ["ReviseReplica", "replicaRevision", "ReviseReplica"],
            Self::Retain => ["Retain", "retention", "Retain"],
            Self::AggregateStatus => ["AggregateStatus", "statusAggregation", "AggregateStatus"],
            Self::InterpretStatus => ["InterpretStatus", "statusReflection", "ReflectStatus"],
            Self::InterpretHealth => ["InterpretHealth", "healthInterpretation", "InterpretHealth"],
            Self::InterpretDependency => [
                "InterpretDependency",
                "dependencyInterpretation",
                "GetDependencies",
            ],
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
