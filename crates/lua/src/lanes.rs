//! Lanes for scripts: those of a customization run one after the other, on a thread that may block, so that one that
//! takes its time holds up no other customization's objects. A virtual clock stands still while they run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use propagation_rules::customization::Script;
use tokio::task::spawn_blocking;

use crate::error::ScriptError;

/// The time for which the scripts of a customization are not tried again after one ran too long. It doubles each time.
const PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The lanes of all customizations, by name.
#[derive(Debug, Default)]
pub(crate) struct Lanes(Mutex<BTreeMap<String, Lane>>);

/// The lane of one version of a customization. Whoever holds the lock runs.
#[derive(Debug, Default)]
struct Lane {
    version: String,
    pause: Arc<tokio::sync::Mutex<Option<Pause>>>,
}

/// The pause after a script that ran too long.
#[derive(Clone, Copy, Debug)]
struct Pause {
    length: Duration,
    end: Instant,
}

impl Lanes {
    /// Runs `job`, which asks a script, in the lane of its customization.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        script: &Script,
        job: impl FnOnce(&str) -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, ScriptError> {
        let mut pause = self.of(script).lock_owned().await;
        if pause.is_some_and(|pause| Instant::now() < pause.end) {
            return Err(ScriptError::Paused);
        }
        let source = Arc::clone(&script.source);
        // It holds the lane to its end, though whoever asked may have gone.
        let running = spawn_blocking(move || {
            let result = job(&source);
            let is_over = matches!(result, Err(ScriptError::Expired));
            *pause = is_over.then(|| Pause::after(*pause));
            result
        });
        running.await.unwrap_or(Err(ScriptError::Died))
    }

    /// Forgets the customizations that are not among these.
    pub(crate) fn keep(&self, is_there: impl Fn(&str) -> bool) {
        self.0.lock().retain(|name, _| is_there(name));
    }

    fn of(&self, script: &Script) -> Arc<tokio::sync::Mutex<Option<Pause>>> {
        let mut lanes = self.0.lock();
        let lane = lanes.entry(script.customization.clone()).or_default();
        // Another version gets another chance.
        if lane.version != script.version {
            *lane = Lane {
                version: script.version.clone(),
                ..Lane::default()
            };
        }
        Arc::clone(&lane.pause)
    }
}

impl Pause {
    fn after(last: Option<Self>) -> Self {
        let length = last.map_or(PAUSE, |last| (last.length * 2).min(LONGEST_PAUSE));
        let end = Instant::now() + length;
        Self { length, end }
    }
}

#[cfg(test)]
mod tests {
    use propagation_rules::customization::Operation;
    use std::sync::mpsc;
    use tokio::sync::oneshot;

    use super::*;

    fn script(customization: &str, version: &str) -> Arc<Script> {
        Arc::new(Script {
            customization: customization.to_owned(),
            version: version.to_owned(),
            operation: Operation::Retain,
            source: "source".into(),
        })
    }

    /// Case I74: a customization whose script ran too long is paused, until it is another; no other one is.
    #[tokio::test]
    async fn slow_script_pauses_its_customization() {
        let lanes = Lanes::default();
        let run = async |script: Arc<Script>, result: Result<i32, ScriptError>| {
            lanes.run(&script, move |_| result).await
        };
        assert_eq!(run(script("slow", "1"), Ok(1)).await, Ok(1));
        let expired = Err(ScriptError::Expired);
        assert_eq!(run(script("slow", "1"), expired.clone()).await, expired);
        assert_eq!(
            run(script("slow", "1"), Ok(1)).await,
            Err(ScriptError::Paused)
        );
        assert_eq!(run(script("other", "1"), Ok(2)).await, Ok(2));
        assert_eq!(run(script("slow", "2"), Ok(3)).await, Ok(3));
    }

    /// While the script of one customization runs, others do.
    #[tokio::test]
    async fn customizations_run_beside_each_other() {
        let lanes = Lanes::default();
        let (started, is_started) = oneshot::channel::<()>();
        let (end, ended) = mpsc::channel::<()>();
        let (a, b) = (script("a", "1"), script("b", "1"));
        let long = lanes.run(&a, move |_| {
            started.send(()).unwrap();
            ended.recv().unwrap_err();
            Ok(())
        });
        let short = async {
            is_started.await.unwrap();
            let result = lanes.run(&b, |source| Ok(source.to_owned())).await;
            drop(end);
            result
        };
        let (long, short) = tokio::join!(long, short);
        assert_eq!((long, short), (Ok(()), Ok("source".to_owned())));
    }

    /// A job that dies is answered, and the next one runs.
    #[tokio::test]
    async fn dead_job_is_answered() {
        let lanes = Lanes::default();
        let a = script("a", "1");
        let died = lanes.run(&a, |_| -> Result<(), ScriptError> { panic!("died") });
        assert_eq!(died.await, Err(ScriptError::Died));
        assert_eq!(lanes.run(&a, |_| Ok(1)).await, Ok(1));
    }
}
