//! Differences between two objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{both, child, elements, fields, item, items};
use crate::patch::paths::{Path, Paths, extended, field};
use crate::schema::Node;

/// The differences between two objects, as disjoint sets.
#[derive(Debug, Default)]
pub(in crate::patch) struct Difference {
    pub(in crate::patch) added: Paths,
    pub(in crate::patch) modified: Paths,
    pub(in crate::patch) removed: Paths,
}

/// Returns the differences of `new` from `old`.
pub(in crate::patch) fn difference(
    node: &Node,
    old: &Value,
    new: &Value,
) -> Result<Difference, String> {
    let mut difference = Difference::default();
    compare(node, Some(old), Some(new), &Vec::new(), &mut difference)?;
    Ok(difference)
}

fn compare(
    node: &Node,
    old: Option<&Value>,
    new: Option<&Value>,
    at: &Path,
    difference: &mut Difference,
) -> Result<(), String> {
    if let Some((left, right)) = both((old, fields(node, old)), (new, fields(node, new))) {
        let names: BTreeSet<&String> = [left, right]
            .into_iter()
            .flatten()
            .flat_map(Map::keys)
            .collect();
        for name in names {
            let [left, right] = [left, right].map(|side| side.and_then(|fields| fields.get(name)));
            compare(
                child(node, name),
                left,
                right,
                &extended(at, field(name)),
                difference,
            )?;
        }
    } else if let Some((left, right)) = both((old, items(node, old)), (new, items(node, new))) {
        let mut pairs: BTreeMap<String, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, list) in [left, right].into_iter().enumerate() {
            for (step, value) in elements(node, list)? {
                if let Some(values) = pairs.entry(step).or_default().get_mut(side) {
                    values.push(value);
                }
            }
        }
        for (step, [left, right]) in pairs {
            let path = extended(at, step);
            // Ambiguous elements are compared as a group, since it is unknown which became which.
            if left.len() <= 1 && right.len() <= 1 {
                compare(
                    item(node),
                    left.first().copied(),
                    right.first().copied(),
                    &path,
                    difference,
                )?;
            } else if left != right {
                note(!left.is_empty(), !right.is_empty(), path, difference);
            }
        }
    } else {
        if old != new {
            note(old.is_some(), new.is_some(), at.clone(), difference);
        }
        return Ok(());
    }
    if old.is_none() != new.is_none() {
        note(old.is_some(), new.is_some(), at.clone(), difference);
    }
    Ok(())
}

fn note(was: bool, is: bool, path: Path, difference: &mut Difference) {
    let set = match (was, is) {
        (false, _) => &mut difference.added,
        (_, false) => &mut difference.removed,
        _ => &mut difference.modified,
    };
    set.insert(path);
}
