//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    WorkNotApplied: "an AppliedWork", "a manifest of its Work cannot be applied in the member, for a reason that is new";
    WorkNotCompared: "an AppliedWork", "an object of its Work, which only reports differences, cannot be compared, for a reason that is new";
    WorkRewound: "an AppliedWork", "the hub has an older version of its Work than before, as from a backup: nothing is deleted in the member on account of that";
}
