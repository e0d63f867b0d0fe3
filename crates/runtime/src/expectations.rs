//! Our writes that the watches have not shown yet: decisions without them would be written twice, or on an older
//! version.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kube::core::ApiResource;
use objects::Key;
use objects::write::ObjectRef;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::queue::Queue;

/// The time after which a write is not waited for: the watch may never show an object that was gone again at once.
pub const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(10);

/// A key for which nothing is decided before the watch has shown the writes for it. Keys of different topics do
/// not wait for each other's writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// The topic.
    pub topic: &'static str,
    /// The key.
    pub key: Key,
}

impl Subject {
    /// Creates the subject of a key in a topic.
    pub fn new(topic: &'static str, key: &Key) -> Self {
        Self {
            topic,
            key: key.clone(),
        }
    }
}

/// The writes that are waited for; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Expectations(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    objects: HashMap<Key, Vec<Expectation>>,
    /// The keys of the objects that were written for each subject.
    subjects: HashMap<Subject, BTreeSet<Key>>,
    /// The queues that may hold keys back, by the topics of these.
    queues: BTreeMap<&'static str, Vec<Queue<Key>>>,
}

/// A write to one object for one subject.
#[derive(Debug)]
struct Expectation {
    resource: ApiResource,
    subject: Subject,
    until: Instant,
    expected: Expected,
}

/// The sign that shows a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// That is not known before its answer; the watch has shown this meanwhile.
    Unknown(Option<Shown>),
    /// This version, or a newer one.
    Version(String),
    /// That the object is gone.
    Absence,
}

/// The state of an object that a watch shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A version.
    Version(Option<String>),
    /// That it is gone.
    Absence,
}

impl Expected {
    fn is_met_by(&self, shown: &Shown) -> bool {
        match (self, shown) {
            (Self::Unknown(_), _) | (Self::Absence, Shown::Version(_)) => false,
            (_, Shown::Absence) => true,
            (Self::Version(written), Shown::Version(shown)) => {
                is_as_new(shown.as_deref(), Some(written))
            }
        }
    }
}

impl Expectations {
    /// Has `queue` take a key of `topic` that it holds back as soon as nothing more is waited for.
    pub fn add_queue(&self, topic: &'static str, queue: &Queue<Key>) {
        let queues = &mut self.0.lock().queues;
        queues.entry(topic).or_default().push(queue.clone());
    }

    /// Returns the time until which nothing is decided for any of `subjects`.
    pub fn until(&self, subjects: impl IntoIterator<Item = Subject>) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.0.lock();
        let ends = subjects.into_iter();
        let ends = ends.map(|subject| state.until(&subject, now));
        ends.max().flatten()
    }

    /// Notes that `object` is about to be written for `subject`: the watch may show that before the API has answered.
    pub(crate) fn begin(&self, object: &ObjectRef, subject: &Subject) {
        let mut state = self.0.lock();
        state.remove(object, subject);
        state.insert(object, subject, Expected::Unknown(None));
    }

    /// Notes the answer to a write that was begun, and the version that shows it; `None` if none does.
    pub(crate) fn answered(
        &self,
        object: &ObjectRef,
        subject: &Subject,
        expected: Option<Expected>,
    ) {
        let mut state = self.0.lock();
        let meanwhile = match state.remove(object, subject) {
            Some(Expected::Unknown(meanwhile)) => meanwhile,
            _ => None,
        };
        let unmet =
            expected.filter(|expected| meanwhile.is_none_or(|shown| !expected.is_met_by(&shown)));
        match unmet {
            Some(expected) => state.insert(object, subject, expected),
            None => state.resume(subject),
        }
    }

    /// Notes a version of an object that a watch shows.
    pub(crate) fn observe(&self, resource: &ApiResource, key: &Key, shown: &Shown) {
        let mut state = self.0.lock();
        // Most objects are not ours.
        let Some(expectations) = state.objects.get_mut(key) else {
            return;
        };
        let mut met = Vec::new();
        for one in expectations
            .iter_mut()
            .filter(|one| one.resource == *resource)
        {
            if let Expected::Unknown(meanwhile) = &mut one.expected {
                *meanwhile = Some(shown.clone());
            } else if one.expected.is_met_by(shown) {
                met.push(one.subject.clone());
            }
        }
        for subject in met {
            state.remove_from(resource, key, &subject);
            state.resume(&subject);
        }
    }
}

impl State {
    fn insert(&mut self, object: &ObjectRef, subject: &Subject, expected: Expected) {
        let one = Expectation {
            resource: object.resource.clone(),
            subject: subject.clone(),
            until: Instant::now() + EXPECTATION_TIMEOUT,
            expected,
        };
        let key = &object.key;
        self.objects.entry(key.clone()).or_default().push(one);
        let keys = self.subjects.entry(subject.clone()).or_default();
        keys.insert(key.clone());
    }

    fn remove(&mut self, object: &ObjectRef, subject: &Subject) -> Option<Expected> {
        self.remove_from(&object.resource, &object.key, subject)
    }

    fn remove_from(
        &mut self,
        resource: &ApiResource,
        key: &Key,
        subject: &Subject,
    ) -> Option<Expected> {
        let expectations = self.objects.get_mut(key)?;
        let mut all = expectations.iter();
        let place = all.position(|one| one.subject == *subject && one.resource == *resource)?;
        let removed = expectations.swap_remove(place);
        // An object of another kind may have the same key.
        let is_last = !expectations.iter().any(|one| one.subject == *subject);
        if expectations.is_empty() {
            self.objects.remove(key);
        }
        if is_last && let Some(keys) = self.subjects.get_mut(subject) {
            keys.remove(key);
            if keys.is_empty() {
                self.subjects.remove(subject);
            }
        }
        Some(removed.expected)
    }

    fn until(&mut self, subject: &Subject, now: Instant) -> Option<Instant> {
        let keys = self.subjects.get(subject)?;
        let all = keys
            .iter()
            .filter_map(|key| self.objects.get(key))
            .flatten();
        let of_it = all.filter(|one| one.subject == *subject && now < one.until);
        let until = of_it.map(|one| one.until).max();
        if until.is_none() {
            self.forget(subject);
        }
        until
    }

    /// Forgets a subject of which nothing is waited for any longer.
    fn forget(&mut self, subject: &Subject) {
        for key in self.subjects.remove(subject).unwrap_or_default() {
            if let Some(expectations) = self.objects.get_mut(&key) {
                expectations.retain(|one| one.subject != *subject);
                if expectations.is_empty() {
                    self.objects.remove(&key);
                }
            }
        }
    }

    /// Has the key of a subject taken, unless another write for it is waited for.
    fn resume(&self, subject: &Subject) {
        let queues = self.queues.get(subject.topic).into_iter().flatten();
        for queue in queues.filter(|_| !self.subjects.contains_key(subject)) {
            queue.resume(&subject.key);
        }
    }
}

/// Returns `true` if one version is as new as another, or newer. Resource versions of one kind compare as numbers
/// (Kubernetes API concepts, "Resource versions"); of others, the one shown last counts.
pub(crate) fn is_as_new(shown: Option<&str>, other: Option<&str>) -> bool {
    match [shown, other].map(|version| version?.parse::<u128>().ok()) {
        [Some(shown), Some(other)] => shown >= other,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;

    fn map(name: &str) -> ObjectRef {
        ObjectRef::named::<ConfigMap>(Key::cluster_scoped(name), &())
    }

    fn subject(topic: &'static str) -> Subject {
        Subject::new(topic, &Key::cluster_scoped("owner"))
    }

    fn version(version: &str) -> Shown {
        Shown::Version(Some(version.to_owned()))
    }

    fn written(expectations: &Expectations, of: &Subject, version: &str) {
        let expected = Expected::Version(version.to_owned());
        expectations.begin(&map("a"), of);
        expectations.answered(&map("a"), of, Some(expected));
    }

    fn show(expectations: &Expectations, of: &ObjectRef, shown: &Shown) {
        expectations.observe(&of.resource, &of.key, shown);
    }

    /// Only the version that was written, a newer one, or that the object is gone ends the wait, and only of its subject.
    #[tokio::test(start_paused = true)]
    async fn written_version_ends_wait() {
        for (shown, ends) in [
            (version("6"), false),
            (version("7"), true),
            (version("10"), true),
            (Shown::Absence, true),
        ] {
            let expectations = Expectations::default();
            let (one, other) = (subject("one"), subject("other"));
            written(&expectations, &one, "7");
            assert_eq!(expectations.until([other.clone()]), None);
            let secret = ObjectRef::named::<Secret>(Key::cluster_scoped("a"), &());
            show(&expectations, &secret, &Shown::Absence);
            assert!(expectations.until([other.clone(), one.clone()]).is_some());
            show(&expectations, &map("a"), &shown);
            assert_eq!(
                expectations.until([other, one]).is_none(),
                ends,
                "{shown:?}"
            );
        }
    }

    /// The watch may show a write before the API has answered.
    #[tokio::test(start_paused = true)]
    async fn early_echo_ends_wait() {
        for (shown, ends) in [("6", false), ("7", true)] {
            let (expectations, of) = (Expectations::default(), subject("one"));
            expectations.begin(&map("a"), &of);
            show(&expectations, &map("a"), &version(shown));
            assert!(expectations.until([of.clone()]).is_some());
            let expected = Expected::Version("7".to_owned());
            expectations.answered(&map("a"), &of, Some(expected));
            assert_eq!(expectations.until([of]).is_none(), ends, "{shown}");
        }
    }

    /// A deletion is shown by nothing but the absence of the object, and a write that failed by nothing at all.
    #[tokio::test(start_paused = true)]
    async fn deletion_waits_for_absence() {
        let (expectations, of) = (Expectations::default(), subject("one"));
        expectations.begin(&map("a"), &of);
        expectations.answered(&map("a"), &of, Some(Expected::Absence));
        expectations.begin(&map("b"), &of);
        expectations.answered(&map("b"), &of, None);
        show(&expectations, &map("a"), &version("9"));
        assert!(expectations.until([of.clone()]).is_some());
        show(&expectations, &map("a"), &Shown::Absence);
        assert_eq!(expectations.until([of]), None);
        assert!(expectations.0.lock().objects.is_empty());
    }

    /// A write that is never shown is not waited for without end, nor remembered.
    #[tokio::test(start_paused = true)]
    async fn unseen_write_times_out() {
        let (expectations, of) = (Expectations::default(), subject("one"));
        written(&expectations, &of, "7");
        let until = expectations.until([of.clone()]).unwrap();
        assert_eq!(until, Instant::now() + EXPECTATION_TIMEOUT);
        tokio::time::advance(EXPECTATION_TIMEOUT).await;
        assert_eq!(expectations.until([of]), None);
        let state = expectations.0.lock();
        assert!(state.objects.is_empty() && state.subjects.is_empty());
    }

    /// A key that was held back is decided once every write is shown.
    #[tokio::test(start_paused = true)]
    async fn last_echo_resumes_key() {
        let (expectations, queue) = (Expectations::default(), Queue::default());
        expectations.add_queue("one", &queue);
        let of = subject("one");
        written(&expectations, &of, "7");
        expectations.begin(&map("b"), &of);
        expectations.answered(&map("b"), &of, Some(Expected::Version("8".to_owned())));
        queue.add(of.key.clone());
        let key = queue.next().await;
        queue.hold(&key, Instant::now() + EXPECTATION_TIMEOUT);
        show(&expectations, &map("a"), &version("7"));
        assert!(!queue.has_backlog());
        show(&expectations, &map("b"), &version("8"));
        assert!(queue.has_backlog());
        assert_eq!(queue.next().await, of.key);
    }
}
