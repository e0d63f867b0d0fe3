//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    WorkNotApplied: "a Work", "one of its manifests cannot be applied in the member, for a reason that is new";
    WorkRewound: "a Work", "its hub has an older version of it than before, as from a backup: nothing is deleted in the member on account of that";
}
