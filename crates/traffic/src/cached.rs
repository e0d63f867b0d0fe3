//! The knowledge of a cache about an object.

/// An object's state in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached<T> {
    /// The object exists.
    Present(T),
    /// The object does not exist.
    Absent,
    /// The object may exist but could never be read. Decisions must not remove anything on its account.
    Unread,
}

impl<T> Cached<T> {
    /// Applies `make` to a present object.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Cached<U> {
        match self {
            Self::Present(object) => Cached::Present(make(object)),
            Self::Absent => Cached::Absent,
            Self::Unread => Cached::Unread,
        }
    }
}
