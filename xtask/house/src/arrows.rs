//! The files and the modules that use each other's items.

use std::collections::BTreeMap;

use crate::modules::{Import, Modules, Names};

/// The files or modules that each uses, with one of the names that it uses of each.
pub(crate) type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// The end of a path: a module, or an item of it.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    Module(Names),
    Item(Names),
}

/// Returns the arrows between the files of a crate.
pub(crate) fn between_files(modules: &Modules) -> Arrows {
    arrows(modules, |from, to| {
        let [from, to] = [from, to].map(|module| modules.get(module));
        Some((from?.file.clone(), to?.file.clone()))
    })
}

/// Returns the arrows between the modules of each folder of a crate. A module is all that is in it: an item
/// that one of its children uses outside, it uses itself, and whoever uses a child uses it.
pub(crate) fn between_modules(modules: &Modules) -> Arrows {
    arrows(modules, |from, to| {
        let parents = from.iter().zip(to).take_while(|(one, other)| one == other);
        let common = parents.count();
        let [from, to] = [from, to].map(|module| module.get(..=common));
        Some((from?.join("::"), to?.join("::")))
    })
}

/// Returns the arrows from the user of an item to its definer: the two `ends` of a use by one module of
/// another. A module does not use the items of its own children that it only passes on.
fn arrows(
    modules: &Modules,
    ends: impl Fn(&[String], &[String]) -> Option<(String, String)>,
) -> Arrows {
    let mut arrows = Arrows::new();
    for (at, module) in modules {
        let imported = module.imports.iter();
        let imported = imported.filter(|import| !is_passed_on(modules, at, import));
        let named = module.paths.iter().filter(|path| path.len() > 1);
        let used = imported
            .filter_map(|import| Some((import_target(modules, at, import)?, &import.path)))
            .chain(named.filter_map(|path| Some((item(modules, at, path)?, path))));
        for (target, path) in used {
            if let Some((from, to)) = ends(at, &target).filter(|(from, to)| from != to) {
                let name = path.last().cloned().unwrap_or_default();
                arrows.entry(from).or_default().entry(to).or_insert(name);
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

/// Returns the module of the imported item, or of all imported items. The import of a module by its name is no
/// use of its items: the paths that begin with the name are.
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

/// Returns the target of a path in the module `at`, and `None` outside the crate.
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
    use super::*;
    use crate::tests::modules_of;

    /// Returns the arrows between files as `from → to`.
    fn shown(files: &[(&str, &str)]) -> Vec<String> {
        listed(&between_files(&modules_of(files)))
    }

    fn listed(arrows: &Arrows) -> Vec<String> {
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

    /// An item that is passed on belongs to the file that defines it, under any name.
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

    /// All files of a folder are one module: its parts may use another folder, some of which uses it, without a circle
    /// of files.
    #[test]
    fn folders_are_one_module() {
        let modules = modules_of(&[
            ("lib.rs", "mod a; mod b; use a::A; pub struct L;"),
            ("a/mod.rs", "mod c; pub mod d; pub struct A;"),
            ("a/c.rs", "use super::d::D; use crate::b::B; use crate::L;"),
            ("a/d.rs", "pub struct D;"),
            ("b.rs", "use crate::a::d::D; pub struct B;"),
        ]);
        let expected = ["a → b", "a::c → a::d", "b → a"];
        assert_eq!(listed(&between_modules(&modules)), expected);
    }

    /// Tests may use the tested file, and its neighbours.
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
