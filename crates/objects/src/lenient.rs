//! Readers of fields that others write.
//!
//! Null is as absent everywhere. A list element that cannot be read is as if it were absent. A field of
//! a wrong type makes the whole object unreadable only if its absence would mean something, such as
//! every cluster; then the last good version of the object stays in effect.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// A value of any type: `None` if it is no `T`.
#[derive(Clone, Debug)]
pub struct Any<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Any<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Shape<T> {
            Read(T),
            Other(IgnoredAny),
        }
        Ok(Self(match Shape::deserialize(deserializer)? {
            Shape::Read(value) => Some(value),
            Shape::Other(IgnoredAny) => None,
        }))
    }
}

/// Reads a list, without the elements that are no `T`.
pub fn list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Option::<Vec<Any<T>>>::deserialize(deserializer)?;
    Ok(list.map(|list| {
        list.into_iter()
            .filter_map(|Any(element)| element)
            .collect()
    }))
}

/// Reads a list as [`list`] does. A value of another type is an empty list, which is not an absent one:
/// the owner of the field finds that it must be written.
pub fn list_of_ours<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let Any(list) = Any::<Option<Vec<Any<T>>>>::deserialize(deserializer)?;
    let list = list.unwrap_or_else(|| Some(Vec::new()));
    Ok(list.map(|list| {
        list.into_iter()
            .filter_map(|Any(element)| element)
            .collect()
    }))
}

/// Reads a value. One that is no `T` is as absent.
pub fn option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let Any(value) = Any::<Option<T>>::deserialize(deserializer)?;
    Ok(value.flatten())
}

/// Reads a value. One that is no `T` is as the default.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(option(deserializer)?.unwrap_or_default())
}

/// Reads a value. Null is as the default.
pub fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
