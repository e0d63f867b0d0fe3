//! The drills. A real API has the accounts, quotas and priority levels that they are about.

mod api;
mod members;
mod templates;
mod traffic;
