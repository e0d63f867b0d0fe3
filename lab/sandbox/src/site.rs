//! The two websites.

/// A website.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// The one that is propagated.
    Shop,
    /// The one that is placed.
    Store,
}

impl Site {
    pub(crate) const BOTH: [Self; 2] = [Self::Shop, Self::Store];

    /// Returns the namespace of its objects.
    pub(crate) const fn namespace(self) -> &'static str {
        match self {
            Self::Shop => "shop",
            Self::Store => "store",
        }
    }
}
