//! The files that a file uses.

use std::collections::BTreeMap;

use crate::modules::{Import, Modules, Names};

/// The files that each file uses, with one of the names that it uses of them.
pub(crate) type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// What a path leads to: a module, or an item of it.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    Module(Names),
    Item(Names),
}

/// Returns the arrows between the files of a crate. What a module only passes on of its own children is none.
pub(crate) fn arrows(modules: &Modules) -> Arrows {
    let mut arrows = Arrows::new();
    for (at, module) in modules {
        let imported = module.imports.iter();
        let imported = imported.filter(|import| !is_passed_on(modules, at, import));
        let named = module.paths.iter().filter(|path| path.len() > 1);
        let used = imported
            .filter_map(|import| Some((import_target(modules, at, import)?, &import.path)))
            .chain(named.filter_map(|path| Some((item(modules, at, path)?, path))));
        for (target, path) in used {
            let Some(target) = modules.get(&target) else {
                continue;
            };
            if target.file != module.file {
                let name = path.last().cloned().unwrap_or_default();
                let of_file = arrows.entry(module.file.clone()).or_default();
                of_file.entry(target.file.clone()).or_insert(name);
            }
        }
    }
    arrows
}

/// Returns `true` if the module `at` passes on an item of a module below it, and does not name it itself.
fn is_passed_on(modules: &Modules, at: &[String], import: &Import) -> bool {
    let target = find(modules, at, &import.path);
    let is_below =
        matches!(target, Some(Target::Item(to) | Target::Module(to)) if to.starts_with(at));
    let mut paths = modules.get(at).into_iter().flat_map(|module| &module.paths);
    import.is_reexport && is_below && !paths.any(|path| *path == [import.name.clone()])
}

/// Returns the module whose item is imported, or all of whose items are. The import of a module by its name is no
/// use of what it holds: the paths that begin with the name are.
fn import_target(modules: &Modules, at: &[String], import: &Import) -> Option<Names> {
    match find(modules, at, &import.path)? {
        Target::Module(target) if import.name == "*" => Some(target),
        Target::Module(_) => None,
        Target::Item(target) => Some(target),
    }
}

/// Returns the module that defines the item of a path.
fn item(modules: &Modules, at: &[String], path: &[String]) -> Option<Names> {
    match find(modules, at, path)? {
        Target::Module(_) => None,
        Target::Item(target) => Some(target),
    }
}

/// Returns what a path in the module `at` leads to, and `None` outside the crate.
fn find(modules: &Modules, at: &[String], path: &[String]) -> Option<Target> {
    follow(modules, at, path, 0)
}

/// Follows a path from the module `at`, through names that are passed on. `depth` ends an import of itself.
fn follow(modules: &Modules, at: &[String], path: &[String], depth: usize) -> Option<Target> {
    const DEEPEST: usize = 32;
    let module = modules.get(at).filter(|_| depth < DEEPEST)?;
    let Some((head, rest)) = path.split_first() else {
        return Some(Target::Module(at.to_vec()));
    };
    let depth = depth + 1;
    match head.as_str() {
        "crate" => return follow(modules, &[], rest, depth),
        "self" => return follow(modules, at, rest, depth),
        "super" => return follow(modules, at.split_last()?.1, rest, depth),
        _ => {}
    }
    let child = [at, std::slice::from_ref(head)].concat();
    let is_child = modules.contains_key(&child);
    // A function may be named as its module: a path ends with the function, and goes on in the module.
    if is_child && !rest.is_empty() {
        return follow(modules, &child, rest, depth);
    }
    if module.items.contains(head) {
        return Some(Target::Item(at.to_vec()));
    }
    let named = module.imports.iter().filter(|import| import.name == *head);
    let all = module.imports.iter().filter(|import| import.name == "*");
    let through = named
        .map(|import| [&import.path, rest].concat())
        .chain(all.map(|import| [&import.path, path].concat()))
        .find_map(|path| follow(modules, at, &path, depth));
    through.or_else(|| is_child.then_some(Target::Module(child)))
}

#[cfg(test)]
mod tests {
    use crate::arrows_of;

    /// Returns the arrows as `from → to`.
    fn shown(files: &[(&str, &str)]) -> Vec<String> {
        let arrows = arrows_of(files);
        let pairs = arrows
            .iter()
            .flat_map(|(from, to)| to.keys().map(move |to| (from, to)));
        pairs.map(|(from, to)| format!("{from} → {to}")).collect()
    }

    /// An import, a path, a path in a macro, and one in an attribute of serde.
    #[test]
    fn every_form_of_use_counts() {
        for user in [
            "use super::b::B;",
            "use crate::b::{self, B};",
            "use super::b; fn f() -> b::B {}",
            "fn f() { crate::b::B::new() }",
            "fn f() { let x = matches!(x, Some(crate::b::B)); }",
            "struct A { #[serde(default = \"super::b::B\")] b: u8 }",
            "fn f() { use super::b::*; B }",
        ] {
            let files = [
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", user),
                ("b.rs", "pub struct B;"),
            ];
            assert_eq!(shown(&files), ["a.rs → b.rs"], "{user}");
        }
    }

    /// What is passed on belongs to the file that defines it, under any name.
    #[test]
    fn reexports_lead_to_the_definition() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::Renamed;"),
            ("b/mod.rs", "mod c; pub use c::C as Renamed;"),
            ("b/c.rs", "pub struct C;"),
        ];
        assert_eq!(shown(&files), ["a.rs → b/c.rs"]);
    }

    /// A parent that names its child's item itself uses it.
    #[test]
    fn parents_use_what_they_name() {
        let child = ("a.rs", "use super::P; pub struct A;");
        for (parent, is_use) in [
            ("mod a; pub use a::A; struct P;", false),
            ("mod a; pub use a::A; struct P(A);", true),
            ("mod a; use a::A; struct P;", true),
            ("mod a; struct P; fn f() { a::A }", true),
        ] {
            let expected = if is_use {
                &["a.rs → lib.rs", "lib.rs → a.rs"][..]
            } else {
                &["a.rs → lib.rs"]
            };
            assert_eq!(shown(&[("lib.rs", parent), child]), expected, "{parent}");
        }
    }

    /// Tests may use what they test, and its neighbours.
    #[test]
    fn tests_draw_no_arrow() {
        let tests = "#[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)] use crate::b::B;";
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", tests),
            ("b.rs", "pub struct B;"),
        ];
        assert_eq!(shown(&files), [""; 0]);
    }

    /// A function named as its module does not hide it, wherever it is defined.
    #[test]
    fn modules_and_functions_share_names() {
        let user = "use crate::plan; fn f() -> plan::Plan { plan() }";
        let plan = "pub fn plan() {} pub struct Plan;";
        let files = [
            ("lib.rs", "mod plan; mod user; pub use plan::plan;"),
            ("plan.rs", plan),
            ("user.rs", user),
        ];
        assert_eq!(shown(&files), ["user.rs → plan.rs"]);
        let files = [
            ("lib.rs", "mod plan; mod user; fn plan() {}"),
            ("plan.rs", plan),
            ("user.rs", "use super::plan::Plan;"),
        ];
        assert_eq!(shown(&files), ["user.rs → plan.rs"]);
    }
}
