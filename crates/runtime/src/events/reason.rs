//! The reasons of Events.

/// The reasons of a program's Events, which the reference lists. [`event_reasons`](crate::event_reasons)
/// makes them.
pub trait EventReason: Copy + 'static {
    /// All reasons of the program.
    const ALL: &'static [Self];

    /// Returns the reason as Events have it.
    fn as_str(self) -> &'static str;

    /// Returns the objects that its Events are about.
    fn about(self) -> &'static str;

    /// Returns the moment at which its Events are recorded.
    fn recorded_when(self) -> &'static str;
}

/// Makes the enum `Reason` of a program: each reason with the objects that its Events are about and the
/// moment at which they are recorded.
#[macro_export]
macro_rules! event_reasons {
    ($($name:ident: $about:literal, $when:literal;)+) => {
        /// The reasons of this program's Events.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason {
            $(#[doc = concat!("Recorded when ", $when, ".")] $name,)+
        }

        impl $crate::events::EventReason for Reason {
            const ALL: &'static [Self] = &[$(Self::$name),+];

            fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            fn about(self) -> &'static str {
                match self {
                    $(Self::$name => $about,)+
                }
            }

            fn recorded_when(self) -> &'static str {
                match self {
                    $(Self::$name => $when,)+
                }
            }
        }
    };
}
