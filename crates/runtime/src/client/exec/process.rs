//! The run of a command, with an end.

use std::io::{self, Read};
use std::process::{Child, ExitStatus, Output};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The time between two looks at whether a command has ended, once it prints no more.
const POLL: Duration = Duration::from_millis(10);

/// Waits until a command ends, and returns its output; `None` if that is not until `end`, at which it is killed.
pub(super) fn output(mut child: Child, end: Option<Instant>) -> io::Result<Option<Output>> {
    // Its children may outlive it, and keep its output open: nobody waits for them any longer than for it.
    let (stdout, stderr) = (printed(child.stdout.take()), printed(child.stderr.take()));
    if let Some(stdout) = received(&stdout, end)
        && let Some(stderr) = received(&stderr, end)
        && let Some(status) = ended(&mut child, end)?
    {
        return Ok(Some(Output {
            status,
            stdout,
            stderr,
        }));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Reads the output of a command, beside everything else: it waits for whoever does not read.
fn printed(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut printed = Vec::new();
        if let Some(mut pipe) = pipe {
            // The output before an error is of use, too.
            drop(pipe.read_to_end(&mut printed));
        }
        // Nobody may wait any more.
        drop(sender.send(printed));
    });
    receiver
}

/// Returns the output, unless it goes on until `end`.
fn received(printed: &mpsc::Receiver<Vec<u8>>, end: Option<Instant>) -> Option<Vec<u8>> {
    match end {
        Some(end) => {
            let left = end.saturating_duration_since(Instant::now());
            printed.recv_timeout(left).ok()
        }
        None => printed.recv().ok(),
    }
}

/// Returns how a command ended, unless it runs until `end`.
fn ended(child: &mut Child, end: Option<Instant>) -> io::Result<Option<ExitStatus>> {
    let Some(end) = end else {
        return child.wait().map(Some);
    };
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= end {
            return Ok(status);
        }
        thread::sleep(POLL);
    }
}
