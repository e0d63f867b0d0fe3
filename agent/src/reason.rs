//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    ConditionRefused: "Lease", "the API refuses every write to a condition that these agents report, for example by an admission policy; the note gives the reason";
    ConditionTaken: "Lease", "a declared signal has the type of a condition that another writes, which stays as it is; the note names both";
    ReportFailed: "Lease", "a fault of the program keeps the agents of a gateway from their report on one member, which the note names; the others go on";
}
