//! Our programs take over the fleet of a Karmada, and give it back, by the commands of docs/swap.md.

mod left;
mod with_tools;
