//! The history of one template since the fleet had settled, and whether that may move it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::model;
use super::objects::Template;
use super::schedule;
use super::snapshot::Snapshot;
use super::step::Change;
use crate::harness::value::{condition, items, text};

/// The place of a template: where it should run, where it was scheduled to, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) placement: Option<Value>,
    clusters: BTreeMap<String, Option<u64>>,
    /// The group in use, by its place among all groups and its name.
    group: Option<(usize, String)>,
    copies: BTreeSet<String>,
    /// Set if the Deployment needs it.
    is_required: bool,
    /// Set if it was scheduled as the placement asks: otherwise it goes once no cluster is left to wait for.
    is_scheduled: bool,
    /// Set if a copy that has to leave a cluster goes before there is another.
    leaves_first: bool,
}

/// A policy that selects a template, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    uid: String,
    /// The fields by which policies contend for a template.
    rank: (Value, Value),
    placement: Value,
    is_lazy: bool,
    pauses: bool,
}

impl Offer {
    fn of(policy: &Value) -> Self {
        let spec = &policy["spec"];
        Self {
            uid: text(policy, "/metadata/uid").to_owned(),
            rank: (spec["priority"].clone(), spec["preemption"].clone()),
            placement: spec["placement"].clone(),
            is_lazy: model::is_lazy(policy),
            pauses: model::pauses(&spec["suspension"]),
        }
    }
}

/// The history of a template since the fleet had settled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    pub(crate) place: Place,
    /// Its parts that users write.
    pub(crate) essence: Value,
    /// The uid of the policy that had it.
    pub(crate) holder: String,
    /// The policies that selected it, in each of their versions.
    offers: Vec<Offer>,
    /// The number of offers when it was first edited.
    edited: Option<usize>,
    /// Set once the policies that contend for it became others.
    is_contended: bool,
    age: Age,
    /// Set if Works were suspended: the copies that they hold back come when the pause ends.
    was_suspended: bool,
    pub(crate) by_hand: BTreeSet<ByHand>,
    /// The groups that it may not have fitted in.
    unfit: BTreeSet<String>,
    /// Set once the Deployment has needed it.
    was_required: bool,
}

/// The age of a template, compared to that of the policies that select it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Age {
    /// It was there when the fleet had settled.
    #[default]
    Old,
    /// It was created since.
    New,
    /// It was created since, and one of the policies has changed after that.
    NewBeforePolicy,
}

/// A deed by which somebody moves a workload without a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ByHand {
    /// The binding was deleted.
    Unbound,
    /// Scheduling anew was asked for.
    Rescheduled,
    /// A copy or a Work was changed or deleted.
    Disturbed,
}

impl ByHand {
    pub(crate) fn of(change: &Change) -> Option<(Template, Self)> {
        match change {
            Change::DeleteBinding { template } => Some((*template, Self::Unbound)),
            Change::Reschedule { template } => Some((*template, Self::Rescheduled)),
            Change::ChangeCopy { template, .. } | Change::DeleteWork { template, .. } => {
                Some((*template, Self::Disturbed))
            }
            _ => None,
        }
    }
}

impl Since {
    pub(crate) fn begin(template: Template, snapshot: &Snapshot) -> Self {
        let object = snapshot.templates.get(&template);
        let claimed = object.and_then(|object| model::claimed(snapshot, object));
        Self {
            place: place(snapshot, template),
            essence: essence(snapshot, template),
            holder: text(claimed, "/metadata/uid").to_owned(),
            offers: offers(snapshot, template),
            unfit: unfit(snapshot, template).collect(),
            was_suspended: snapshot.works.iter().any(|((_, of), work)| {
                *of == template && work["spec"]["suspendDispatching"] == true
            }),
            ..Self::default()
        }
    }

    pub(crate) fn note(&mut self, template: Template, before: &Snapshot, now: &Snapshot) {
        self.was_required |= place(now, template).is_required;
        self.unfit.extend(unfit(now, template));
        let (offered, offers) = (offers(before, template), offers(now, template));
        let [ranks, now_ranks] = [&offered, &offers].map(|offers| {
            let ranks = offers.iter().map(|offer| (&offer.uid, &offer.rank));
            ranks.collect::<Vec<_>>()
        });
        self.is_contended |= ranks != now_ranks;
        let [was, is] =
            [before, now].map(|snapshot| text(snapshot.templates.get(&template), "/metadata/uid"));
        let is_created = was != is;
        if is_created {
            self.age = Age::New;
        }
        let is_edited = is_created || essence(before, template) != essence(now, template);
        if is_edited {
            // The edit may be seen together with any later version of a policy.
            self.edited.get_or_insert(self.offers.len());
            self.offers.extend(offers);
        } else if offered != offers {
            if self.age == Age::New {
                self.age = Age::NewBeforePolicy;
            }
            self.offers.extend(offers);
        }
    }

    /// Returns the offers that the template may have taken, each with `true` if it was there after the edit.
    fn open(&self) -> impl Iterator<Item = (&Offer, bool)> {
        // One that is made again has whichever policy comes first then.
        let is_certain = !self.is_contended && self.age == Age::Old && !self.holder.is_empty();
        let offers = self.offers.iter().enumerate();
        offers
            .filter(move |(_, offer)| !is_certain || offer.uid == self.holder)
            .map(|(nth, offer)| (offer, self.edited.is_some_and(|edited| nth >= edited)))
    }

    /// Returns the change that has no reason.
    pub(crate) fn moved(&self, now: &Place, may_move: bool) -> Option<String> {
        let is_free = self.edited.is_some() || self.by_hand.contains(&ByHand::Unbound);
        let was = &self.place;
        let is_placed = match &now.placement {
            placement if *placement == was.placement => true,
            None => is_free,
            Some(placement) => self
                .open()
                .any(|(offer, _)| offer.placement == *placement && (is_free || !offer.is_lazy)),
        };
        if !is_placed {
            return Some(format!("{:?} became {:?}", was.placement, now.placement));
        }
        let may_schedule = is_free
            || may_move
            || self.by_hand.contains(&ByHand::Rescheduled)
            || self.open().any(|(offer, _)| !offer.is_lazy);
        if now.clusters != was.clusters && !may_schedule {
            return Some(format!("{:?} became {:?}", was.clusters, now.clusters));
        }
        let is_required = was.is_required || self.was_required;
        let may_copy = may_schedule
            || self.by_hand.contains(&ByHand::Disturbed)
            || self.is_paused()
            || is_required;
        (now.copies != was.copies && !may_copy)
            .then(|| format!("{:?} became {:?}", was.copies, now.copies))
    }

    /// Returns `true` if it has been paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.was_suspended || self.offers.iter().any(|offer| offer.pauses)
    }

    /// Returns `true` if an offer has the placement with which the fleet had settled.
    fn is_placed_by(&self, offer: &Offer) -> bool {
        Some(&offer.placement) == self.place.placement.as_ref()
    }

    /// Returns `true` if the last copy has gone though only taints can have moved the workload: it may not go
    /// before another is there.
    pub(crate) fn is_bare(&self, now: &Place) -> bool {
        let mut offers = self.offers.iter();
        let may_move = self.edited.is_some()
            || !self.by_hand.is_empty()
            || self.was_required
            || !self.place.is_scheduled
            || self.place.leaves_first
            || now.leaves_first
            || offers.any(|offer| !offer.is_lazy && !self.is_placed_by(offer));
        !may_move && !self.place.copies.is_empty() && now.copies.is_empty()
    }

    /// Returns a group that was left for an earlier one, though the workload fitted in it all the time.
    pub(crate) fn returned(&self, was: &Place, now: &Place) -> Option<String> {
        let is_kept = self.offers.iter().all(|offer| self.is_placed_by(offer));
        let may_return = !self.by_hand.is_empty() || !is_kept;
        let ((later, left), (earlier, _)) = (was.group.as_ref()?, now.group.as_ref()?);
        let is_wrong = earlier < later && !self.unfit.contains(left) && !may_return;
        is_wrong.then(|| format!("{left} was left for an earlier group, and fits"))
    }

    /// Returns the placement that does not follow the policy in spite of an edit.
    pub(crate) fn left_behind(&self, essence: &Value, now: &Place) -> Option<String> {
        // Who has another policy at last, or is as before, may not have been seen when it was edited.
        // One that is first seen when its policy has changed since waits, for the policy may not have selected
        // it before.
        let is_seen = self.edited.is_some()
            && !self.is_contended
            && self.age != Age::NewBeforePolicy
            && *essence != self.essence;
        if !is_seen || self.by_hand.contains(&ByHand::Unbound) || essence.is_null() {
            return None;
        }
        let mut offers = self.open().filter(|(_, is_after)| *is_after).peekable();
        let is_selected = offers.peek().is_some();
        let follows = offers.any(|(offer, _)| now.placement.as_ref() == Some(&offer.placement));
        (is_selected && !follows).then(|| format!("edited, and has still {:?}", now.placement))
    }
}

/// Returns the groups that a template may not fit in.
fn unfit(snapshot: &Snapshot, template: Template) -> impl Iterator<Item = String> {
    let binding = snapshot.bindings.get(&template);
    let unfit = binding.map(|binding| schedule::unfit(snapshot, binding));
    unfit.into_iter().flatten()
}

/// Returns the parts of a template that users write; null if it is not there.
pub(crate) fn essence(snapshot: &Snapshot, template: Template) -> Value {
    let object = snapshot.templates.get(&template);
    object.map_or(Value::Null, |object| model::essence(template, object))
}

/// Returns the policies that select a template, or would if it were there: those of a moment ago may get it when
/// it comes.
fn offers(snapshot: &Snapshot, template: Template) -> Vec<Offer> {
    let candidates = model::candidates(snapshot, template);
    candidates.into_iter().map(Offer::of).collect()
}

pub(crate) fn place(snapshot: &Snapshot, template: Template) -> Place {
    let binding = snapshot.bindings.get(&template);
    let placement = binding.map(|binding| &binding["spec"]["placement"]);
    let clusters = binding
        .into_iter()
        .flat_map(|binding| items(binding, "/spec/clusters"));
    let copies = snapshot.copies.keys();
    let in_use = binding.map_or("", schedule::in_use);
    let groups = placement.into_iter();
    let mut groups = groups.flat_map(|placement| items(placement, "/clusterAffinities"));
    let spec = binding.map(|binding| &binding["spec"]);
    Place {
        is_required: spec.is_some_and(|spec| items(spec, "/requiredBy").next().is_some()),
        is_scheduled: binding.is_some_and(|binding| condition(binding, "Scheduled") == "True"),
        leaves_first: !text(spec, "/failover/cluster/purgeMode").is_empty(),
        placement: placement.filter(|placement| !placement.is_null()).cloned(),
        clusters: clusters
            .map(|target| {
                (
                    text(target, "/name").to_owned(),
                    target["replicas"].as_u64(),
                )
            })
            .collect(),
        group: groups
            .position(|group| group["affinityName"] == in_use)
            .map(|place| (place, in_use.to_owned())),
        copies: copies
            .filter(|(_, of)| *of == template)
            .map(|(cluster, _)| cluster.clone())
            .collect(),
    }
}
