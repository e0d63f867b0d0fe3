//! The files or modules that use each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::arrows::Arrows;

/// Returns the circles: the greatest sets of files of which each leads to all others.
pub(crate) fn circles(arrows: &Arrows) -> Vec<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = arrows
        .keys()
        .map(|file| (file.as_str(), reached(arrows, file)))
        .collect();
    let mut circles = BTreeSet::new();
    for file in reached.keys().filter(|file| leads(&reached, file, file)) {
        let others = reached
            .keys()
            .filter(|other| leads(&reached, file, other) && leads(&reached, other, file));
        circles.insert(others.copied().collect());
    }
    circles.into_iter().collect()
}

fn leads(reached: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    reached
        .get(from)
        .is_some_and(|reached| reached.contains(to))
}

/// Returns the files to which arrows lead from `file`, in one step or in many.
fn reached<'a>(arrows: &'a Arrows, file: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = used(arrows, file).map(|(to, _)| to).collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(used(arrows, file).map(|(to, _)| to));
        }
    }
    reached
}

/// Iterates over the files that `file` uses, each with a name.
fn used<'a>(arrows: &'a Arrows, file: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let used = arrows.get(file).into_iter().flatten();
    used.map(|(to, name)| (to.as_str(), name.as_str()))
}

/// Returns a shortest way from the first file of a circle back to it: `a.rs (B) → b.rs (A) → a.rs`.
pub(crate) fn way_round(arrows: &Arrows, circle: &[&str]) -> String {
    let Some(start) = circle.first() else {
        return String::new();
    };
    let mut ways = VecDeque::from([(*start, String::from(*start))]);
    let mut seen = BTreeSet::new();
    while let Some((file, way)) = ways.pop_front() {
        for (to, name) in used(arrows, file) {
            let way = format!("{way} ({name}) → {to}");
            if to == *start {
                return way;
            }
            if seen.insert(to) {
                ways.push_back((to, way));
            }
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrows::between_files;
    use crate::tests::modules_of;

    /// Two files that use each other, one above them and one below.
    #[test]
    fn only_the_circle_is_named() {
        let arrows = between_files(&modules_of(&[
            ("lib.rs", "mod a; mod b; mod below; mod above;"),
            ("above.rs", "use crate::a::A;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            (
                "b.rs",
                "use crate::a::A; use crate::below::Below; pub struct B;",
            ),
            ("below.rs", "pub struct Below;"),
        ]));
        let circles = circles(&arrows);
        assert_eq!(circles, [["a.rs", "b.rs"]]);
        assert_eq!(
            way_round(&arrows, &circles[0]),
            "a.rs (B) → b.rs (A) → a.rs"
        );
    }

    /// A knot of two circles with a file in common is one.
    #[test]
    fn circles_that_touch_are_one() {
        let arrows = between_files(&modules_of(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::a::A; use crate::c::C; pub struct B;"),
            ("c.rs", "use crate::b::B; pub struct C;"),
        ]));
        assert_eq!(circles(&arrows), [["a.rs", "b.rs", "c.rs"]]);
    }
}
