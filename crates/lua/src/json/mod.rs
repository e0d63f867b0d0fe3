//! Objects as tables, and tables as objects.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub(crate) use decode::{decode, decode_list};
pub(crate) use encode::{Empty, EncodeError, encode};
