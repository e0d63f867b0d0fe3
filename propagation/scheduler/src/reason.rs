//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    ScheduleBindingSucceed: "a binding and its template", "its clusters were decided; the note names them";
    ScheduleBindingFailed: "a binding and its template", "no decision is possible; the note gives the reason";
    EvictWorkloadFromClusterSucceed: "a binding and its template", "it leaves a cluster, because of a taint or to fail back";
    BindingContested: "a binding and its template", "another client undoes every write to its clusters; the note names its field manager, if that can be found out";
}
