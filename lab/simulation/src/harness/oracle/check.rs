//! The result of a check.

/// The result of a check. The error is the violated property.
pub type Check<T = ()> = Result<T, String>;

/// Fails a check unless the condition holds.
pub(crate) fn check(holds: bool, violated: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(violated()) }
}
