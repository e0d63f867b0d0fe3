//! Panics that end only the work in which they happened: one object, or one member, must not end a program for the others.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::LazyLock;

use futures::FutureExt;
use prometheus_client::metrics::counter::Counter;

/// The panics of this process that ended no more than one task, `panics_total`.
pub(crate) static PANICS: LazyLock<Counter> = LazyLock::new(Counter::default);

/// A panic. Its message, which may be of any library, is in the log alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program has failed here by a fault of its own (a panic), which its log has")]
pub struct Panicked;

/// Runs `future` to its end, and counts a panic as one. Everything that the future held is dropped then, its locks among it.
///
/// # Errors
/// Fails if it has panicked.
pub async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    // Nothing of it is used afterwards, and all that others share with it is behind locks of short duration.
    let ended = AssertUnwindSafe(future).catch_unwind().await;
    ended.map_err(|panic: Box<dyn Any + Send>| {
        PANICS.inc();
        // The drop of a payload may panic again.
        std::mem::forget(panic);
        Panicked
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A panic after the first wait is caught, too, and nothing else is counted.
    #[tokio::test]
    async fn panics_become_errors() {
        let before = PANICS.get();
        assert_eq!(caught(async { 7 }).await, Ok(7));
        let failing = async {
            tokio::task::yield_now().await;
            panic!("deliberate");
        };
        assert_eq!(caught(failing).await, Err::<(), _>(Panicked));
        // Other tests may count, too.
        assert!(PANICS.get() > before);
    }
}
