//! Asks the webhooks by which users interpret kinds (`ResourceInterpreterWebhookConfiguration`), as Karmada does.
//!
//! ```text
//! Webhooks → line of the webhook → connection → HTTPS
//!                      breaker ↗       ↖ directory, which asks the API for Services
//! ```
//!
//! - The questions, and the meaning of answers: `propagation_rules::customization::webhook`.
//! - How many calls at a time, and for how long? `line`. One that falls silent is left alone for a while: `breaker`.
//! - Where is a webhook, and who verifies it? `directory`.
//! - How is it called, and how much may it answer? `connection`.

mod breaker;
mod connection;
mod directory;
mod error;
mod line;
#[cfg(test)]
mod tests;
mod webhooks;

pub use error::{Failure, WebhookError};
pub use webhooks::{CallLabels, Webhooks};
