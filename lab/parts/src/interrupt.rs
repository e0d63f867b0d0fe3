//! The end of a command that a person interrupts.

use std::io;

/// Runs `work` to its end, or until Ctrl-C: all that it has started is then dropped with it, and ends.
///
/// # Errors
/// The interrupt.
pub async fn until_interrupted<T>(work: impl Future<Output = T>) -> io::Result<T> {
    tokio::select! {
        biased;
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            Err(io::ErrorKind::Interrupted.into())
        }
        done = work => Ok(done),
    }
}
