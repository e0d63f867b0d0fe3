use super::*;

/// The kinds that a program reads from an API, and those that it writes there.
struct Client {
    side: Side,
    program: Role,
    reads: &'static [&'static str],
    writes: &'static [&'static str],
}

/// Every client. The strategy has a table of its own, which must agree.
const CLIENTS: [Client; 3] = [
    Client {
        side: Side::Karmada,
        program: Role::Remedy,
        reads: &["clusters", "remedies", "leases"],
        writes: &["clusters", "remedies", "leases"],
    },
    Client {
        side: Side::Karmada,
        program: Role::Ingress,
        reads: &[
            "clusters",
            "remedies",
            "multiclusteringresses",
            "ingressclasses",
            "resourcebindings",
            "services",
            "endpointslices",
            "leases",
        ],
        writes: &["multiclusteringresses", "leases"],
    },
    Client {
        side: Side::Gateway,
        program: Role::Ingress,
        reads: &["services", "endpointslices", "ingresses"],
        writes: &["services", "endpointslices", "ingresses"],
    },
];

/// The requests to which a fault happens.
enum Concerned {
    All,
    Writes,
    /// The next write, whatever its kind.
    NextWrite,
}

fn concerned(fault: ApiFault) -> Concerned {
    match fault {
        ApiFault::Conflicts { .. } | ApiFault::LoseResponses { .. } => Concerned::Writes,
        ApiFault::Late { .. } => Concerned::NextWrite,
        ApiFault::TooManyRequests { .. }
        | ApiFault::Unauthorized
        | ApiFault::Forbidden
        | ApiFault::InternalErrors { .. }
        | ApiFault::Unavailable
        | ApiFault::Slow { .. }
        | ApiFault::Outage
        | ApiFault::Silence
        // Every kind that is read is watched, and a watch begins with a list.
        | ApiFault::CutWatches { .. }
        | ApiFault::ExpireWatches
        | ApiFault::FailWatches
        | ApiFault::WithholdBookmarks
        | ApiFault::DelayEvents { .. }
        | ApiFault::StaleLists { .. } => Concerned::All,
    }
}

fn can_happen(step: &Step) -> bool {
    let Step::Fault {
        api,
        program,
        about,
        fault,
        ..
    } = step
    else {
        return false;
    };
    let is_hit = |client: &Client| {
        client.side == Side::from(*api) && program.is_none_or(|program| program == client.program)
    };
    CLIENTS
        .iter()
        .filter(|client| is_hit(client))
        .any(|client| match (about, concerned(*fault)) {
            (None, _) => true,
            (Some(kind), Concerned::All) => client.reads.contains(&kind.plural),
            (Some(kind), Concerned::Writes) => client.writes.contains(&kind.plural),
            (Some(_), Concerned::NextWrite) => false,
        })
}

proptest! {
    // A kind out of place is drawn once in some hundred faults.
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn only_faults_that_can_happen_are_drawn(step in fault()) {
        prop_assert!(can_happen(&step), "{step:?}");
    }
}
