//! The one place that sends the writes of a plan: only while leading, unless another client undoes it time and again,
//! and with its key held back until the watch shows it.

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use kube::{Api, Client};
use objects::Key;
use objects::metadata::has_marks;
use objects::write::{Action, ObjectRef, Write};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::contention::{Attempt, Contention, find_rival};
use crate::expectations::{Expectations, Expected, Subject};
use crate::write::{Refusals, Stored, WriteError, WriteErrorKind, WriteMode, perform};

/// The number of writes of one plan that are under way at once.
const OF_ONE_PLAN: usize = 8;
/// The number of writes that are under way at once. With more a busy API server writes no faster, but its watches fall
/// seconds behind, and decisions by them conflict.
const AT_ONCE: usize = 16;

/// A target in one object, or in a part of it: by that a write is known again.
type Part = (&'static str, Key, String);

/// Sends writes; clones share it.
#[derive(Clone)]
pub struct Committer(Arc<Shared>);

struct Shared {
    client: Client,
    manager: &'static str,
    mode: WriteMode,
    expectations: Expectations,
    notices: Option<Notices>,
    contention: Contention<Part>,
    refusals: Refusals<Part>,
    under_way: Semaphore,
}

/// Tells users where a write meets an obstacle, each time that is news.
pub type Notices = Box<dyn Fn(&Write, Obstacle<'_>) + Send + Sync>;

/// A reason why a write does not last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle<'a> {
    /// The API refuses it, for this reason.
    Refused(&'a str),
    /// This manager undoes it, so that it waits for growing pauses.
    Contested(&'a str),
}

/// The fate of a write.
#[derive(Debug)]
pub enum Outcome {
    /// It was stored, and the object is this one; one that was deleted and is gone has no version.
    Stored(ObjectRef),
    /// It was stored, and the object is as it was: the API does not keep the change, or had it already.
    Unchanged,
    /// The object that was to be created exists, as the API has answered. The watch is about to show it.
    Exists(WriteError),
    /// The object is gone, as the API has answered. The watch is about to show that.
    Gone(WriteError),
    /// It was only counted.
    DryRun,
    /// It was not sent, and will not be before this.
    Contended(Instant),
}

impl Outcome {
    /// Returns `true` if the object is as it was written.
    pub fn is_stored(&self) -> bool {
        matches!(self, Self::Stored(_) | Self::Unchanged)
    }

    /// Fails with the API's answer if the object is gone.
    pub fn if_present(self) -> Result<Self, WriteError> {
        match self {
            Self::Gone(error) => Err(error),
            outcome => Ok(outcome),
        }
    }
}

impl Committer {
    /// Creates the committer to the API behind `client`, which knows it as `manager` and whose watches end `expectations`.
    /// Nobody is told of obstacles if `notices` are absent.
    pub fn new(
        client: Client,
        manager: &'static str,
        mode: WriteMode,
        expectations: Expectations,
        notices: Option<Notices>,
    ) -> Self {
        Self(Arc::new(Shared {
            client,
            manager,
            mode,
            expectations,
            notices,
            contention: Contention::default(),
            refusals: Refusals::default(),
            under_way: Semaphore::new(AT_ONCE),
        }))
    }

    /// Returns `true` if nothing is written.
    pub fn is_dry_run(&self) -> bool {
        self.0.mode.is_dry_run()
    }

    /// Returns the time until which nothing is decided for any of these.
    pub fn held_until(&self, subjects: impl IntoIterator<Item = Subject>) -> Option<Instant> {
        self.0.expectations.until(subjects)
    }

    /// Sends a write. Until the watch shows it, nothing is decided for `subject`.
    ///
    /// # Errors
    /// Fails if another version is there, or the namespace of a new object is not; if the API refuses the write or does
    /// not answer; or without leadership.
    pub async fn write(
        &self,
        write: &Write,
        subject: Option<&Subject>,
    ) -> Result<Outcome, WriteError> {
        let attempt = match self.attempt(write).await {
            Ok(attempt) => attempt,
            Err(until) => return Ok(Outcome::Contended(until)),
        };
        let expectations = &self.0.expectations;
        if let Some(subject) = subject {
            expectations.begin(&write.object, subject);
        }
        let result = self.send(write).await;
        if let Some(reason) = (self.0.refusals).note(part(write), &result) {
            self.tell(write, Obstacle::Refused(&reason));
        }
        let outcome = outcome(write, result);
        if let Some(subject) = subject {
            let expected = outcome.as_ref().ok().and_then(|one| expected(write, one));
            expectations.answered(&write.object, subject, expected);
        }
        match &outcome {
            Ok(Outcome::Stored(object)) => self.stored(attempt, object.version.clone()),
            Ok(Outcome::Unchanged) => self.stored(attempt, write.object.version.clone()),
            Ok(Outcome::Gone(_)) => self.0.refusals.forget(&part(write)),
            _ => {}
        }
        outcome
    }

    /// Returns the end of the pause before a write that another client undoes, if it is not sent now. Who sends others before
    /// it can spare them.
    pub async fn paused_until(&self, write: &Write) -> Option<Instant> {
        self.attempt(write).await.err()
    }

    /// Sends the writes of one plan, some at once, and returns their fates.
    ///
    /// # Errors
    /// Fails with the first error as [`Self::write`] does, once all have ended: a failure for one object keeps no other
    /// waiting.
    pub async fn commit(
        &self,
        writes: &[Write],
        subject: Option<&Subject>,
    ) -> Result<Vec<Outcome>, WriteError> {
        let (mut outcomes, mut failed) = (Vec::with_capacity(writes.len()), None);
        for some in writes.chunks(OF_ONE_PLAN) {
            let sent = join_all(some.iter().map(|write| self.write(write, subject))).await;
            for one in sent {
                match one {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
        }
        failed.map_or(Ok(outcomes), Err)
    }

    /// Returns `true` if the object that was to be created exists without the labels and annotations that it would have: it is
    /// somebody else's, or somebody has taken its marks. A watch that selects by them does not show it.
    pub async fn is_taken(&self, write: &Write) -> kube::Result<bool> {
        let objects = self.objects(&write.object);
        let found = objects.get_metadata_opt(&write.object.key.name).await?;
        let wanted = ObjectMeta::deserialize(&write.body()["metadata"]).unwrap_or_default();
        Ok(found.is_some_and(|found| !has_marks(&found.metadata, &wanted)))
    }

    /// Forgets the fate of the writes of `target` to an object that is gone.
    pub fn forget(&self, target: &'static str, object: &Key) {
        self.forget_part(target, object, "");
    }

    /// Forgets the same of a part of an object.
    pub fn forget_part(&self, target: &'static str, object: &Key, part: &str) {
        let part = (target, object.clone(), part.to_owned());
        self.0.refusals.forget(&part);
        self.0.contention.forget(&part);
    }

    /// Begins a write, or returns the end of the pause before it.
    async fn attempt(&self, write: &Write) -> Result<Option<Attempt<Part>>, Instant> {
        let Some(wanted) = &write.wanted else {
            return Ok(None);
        };
        let (value, seen) = (&wanted.value, write.object.version.as_deref());
        let begun = (self.0.contention).begin(part(write), value, seen, Instant::now());
        let backoff = match begun {
            Ok(attempt) => return Ok(Some(attempt)),
            Err(backoff) => backoff,
        };
        if backoff.is_news {
            let (objects, name) = (self.objects(&write.object), &write.object.key.name);
            let rival = find_rival(&objects, name, self.0.manager, &wanted.paths).await;
            let manager = rival.as_deref().unwrap_or("another client");
            tracing::warn!(
                object = %write.object.key,
                written = write.target,
                manager,
                "Another writer undoes every write, will write again after growing pauses"
            );
            self.tell(write, Obstacle::Contested(manager));
        }
        Err(backoff.until)
    }

    async fn send(&self, write: &Write) -> Result<Option<Stored>, WriteError> {
        let Shared {
            client,
            manager,
            mode,
            under_way,
            ..
        } = &*self.0;
        let _under_way = under_way.acquire().await;
        mode.write(write.target, perform(client, write, manager))
            .await
    }

    fn stored(&self, attempt: Option<Attempt<Part>>, version: Option<String>) {
        if let Some(attempt) = attempt {
            (self.0.contention).stored(attempt, version, Instant::now());
        }
    }

    fn tell(&self, write: &Write, obstacle: Obstacle<'_>) {
        if let Some(notices) = &self.0.notices {
            notices(write, obstacle);
        }
    }

    fn objects(&self, object: &ObjectRef) -> Api<DynamicObject> {
        let (client, resource) = (self.0.client.clone(), &object.resource);
        match &*object.key.namespace {
            "" => Api::all_with(client, resource),
            namespace => Api::namespaced_with(client, namespace, resource),
        }
    }
}

fn part(write: &Write) -> Part {
    (write.target, write.object.key.clone(), write.part.clone())
}

/// Returns the fate of a write, which is an error if somebody has to do something about it.
fn outcome(
    write: &Write,
    result: Result<Option<Stored>, WriteError>,
) -> Result<Outcome, WriteError> {
    let is_creation = matches!(write.action, Action::Create(_));
    match result {
        Ok(None) => Ok(Outcome::DryRun),
        Ok(Some(stored)) => {
            let stored = stored.of(&write.object);
            let is_known = stored.version.is_some() && stored.version == write.object.version;
            Ok(if is_known {
                Outcome::Unchanged
            } else {
                Outcome::Stored(stored)
            })
        }
        Err(error) if is_creation && exists(&error) => Ok(Outcome::Exists(error)),
        Err(error) if !is_creation && error.kind() == WriteErrorKind::Missing => {
            Ok(Outcome::Gone(error))
        }
        Err(error) => Err(error),
    }
}

/// Returns the sign that shows a write, if there is one.
fn expected(write: &Write, outcome: &Outcome) -> Option<Expected> {
    let Outcome::Stored(ObjectRef { version, .. }) = outcome else {
        return None;
    };
    match version {
        Some(version) => Some(Expected::Version(version.clone())),
        None => (write.action == Action::Delete).then_some(Expected::Absence),
    }
}

fn exists(error: &WriteError) -> bool {
    matches!(error, WriteError::Api(kube::Error::Api(status)) if status.reason == "AlreadyExists")
}

#[cfg(test)]
mod tests {
    use embedded_apiserver::ApiServer;
    use k8s_openapi::api::core::v1::ConfigMap;
    use objects::write::Guard;
    use serde_json::{from_value, json};

    use super::*;
    use crate::lease::Leadership;
    use crate::metrics::WriteMetrics;
    use crate::write::{WouldWrite, Writer};

    fn committer(server: &ApiServer, mode: WriteMode) -> Committer {
        let client = Client::new(server.service(), "default");
        Committer::new(client, "tests", mode, Expectations::default(), None)
    }

    fn creation() -> Write {
        let map = json!({ "metadata": { "namespace": "default", "name": "m" } });
        Write::create("map", &from_value::<ConfigMap>(map).unwrap(), &())
    }

    fn merge(version: &str, value: &str) -> Write {
        let object = ObjectRef {
            version: Some(version.to_owned()),
            ..creation().object
        };
        let body = json!({ "data": { "a": value } });
        Write::merge("map", object, body).guarded(Guard::Version)
    }

    /// Each answer has an outcome, and only a version that the watch is going to show is waited for.
    #[tokio::test]
    async fn answers_decide_outcomes() {
        let writer = Writer::new(Leadership::always(), WriteMetrics::default());
        let committer = committer(&ApiServer::new(), WriteMode::Perform(writer));
        let subject = Subject::new("map", &creation().object.key);
        let write = async |write: Write| {
            let outcome = committer.write(&write, Some(&subject)).await;
            let is_held = committer.held_until([subject.clone()]).is_some();
            (outcome, is_held)
        };
        let stored = |(outcome, is_held): (Result<Outcome, WriteError>, bool)| match outcome {
            Ok(Outcome::Stored(object)) if is_held => object.version.unwrap(),
            other => panic!("{other:?}, held: {is_held}"),
        };
        let first = stored(write(creation()).await);
        let (outcome, is_held) = write(creation()).await;
        assert!(matches!(outcome, Ok(Outcome::Exists(_))) && !is_held);
        let second = stored(write(merge(&first, "1")).await);
        let (outcome, is_held) = write(merge(&first, "2")).await;
        let kind = outcome.unwrap_err().kind();
        assert_eq!((kind, is_held), (WriteErrorKind::Conflict, false));
        let (outcome, is_held) = write(merge(&second, "1")).await;
        assert!(matches!(outcome, Ok(Outcome::Unchanged)) && !is_held);
        let deletion = Write::delete("map", creation().object);
        let (outcome, is_held) = write(deletion.clone()).await;
        assert_eq!((outcome.unwrap().is_stored(), is_held), (true, true));
        for gone in [deletion, merge(&second, "2")] {
            let (outcome, is_held) = write(gone).await;
            assert!(matches!(outcome, Ok(Outcome::Gone(_))) && !is_held);
        }
    }

    /// An object that exists is taken if it lacks a label that it would have.
    #[tokio::test]
    async fn marks_tell_whose_it_is() {
        let writer = Writer::new(Leadership::always(), WriteMetrics::default());
        let committer = committer(&ApiServer::new(), WriteMode::Perform(writer));
        let map = json!({ "metadata": { "namespace": "default", "name": "m", "labels": { "by": "us" } } });
        let marked = Write::create("map", &from_value::<ConfigMap>(map).unwrap(), &());
        assert!(!committer.is_taken(&marked).await.unwrap());
        committer.write(&creation(), None).await.unwrap();
        assert!(committer.is_taken(&marked).await.unwrap());
        assert!(!committer.is_taken(&creation()).await.unwrap());
    }

    /// A write that is only counted is neither stored nor waited for.
    #[tokio::test]
    async fn dry_run_only_counts() {
        let (server, counters) = (ApiServer::new(), WouldWrite::default());
        let committer = committer(&server, WriteMode::DryRun(counters.clone()));
        let subject = Subject::new("map", &creation().object.key);
        let outcome = committer.write(&creation(), Some(&subject)).await;
        assert!(matches!(outcome, Ok(Outcome::DryRun)));
        assert_eq!(counters.of("map"), 1);
        assert_eq!(committer.held_until([subject]), None);
        let maps: Api<ConfigMap> =
            Api::default_namespaced(Client::new(server.service(), "default"));
        assert!(maps.get_opt("m").await.unwrap().is_none());
    }
}
