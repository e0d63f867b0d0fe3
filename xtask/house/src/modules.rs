//! The modules of a crate: their definitions, imports and names.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Ident, ImplItemFn, Item, ItemMod, ItemUse, LitStr, Macro, Meta, UseTree, Visibility,
};

/// The text of each file, by its path in `src`.
pub(crate) type Sources = BTreeMap<String, String>;

/// The names that lead to a module or an item.
pub(crate) type Names = Vec<String>;

/// The modules of a crate, by the names that lead to them from its root.
pub(crate) type Modules = BTreeMap<Names, Module>;

/// A module without its tests.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) file: String,
    /// The names of its own items.
    pub(crate) items: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// The paths in its code; one of a single name may be a variable, too.
    pub(crate) paths: Vec<Names>,
}

/// One name that a `use` brings in.
#[derive(Debug)]
pub(crate) struct Import {
    /// The name here; `*` for all names of a module.
    pub(crate) name: String,
    pub(crate) path: Names,
    /// True if others see the name here, too.
    pub(crate) is_reexport: bool,
}

/// Reads the modules of the crate that begins with the file `root`.
pub(crate) fn read(root: &str, sources: &Sources) -> syn::Result<Modules> {
    let mut modules = Modules::new();
    let mut files = vec![(Names::new(), root.to_owned())];
    while let Some((path, file)) = files.pop() {
        let text = sources.get(&file).map(String::as_str).unwrap_or_default();
        let items = syn::parse_file(text)?.items;
        let mut inline = vec![(path, items)];
        while let Some((path, items)) = inline.pop() {
            let mut module = Module {
                file: file.clone(),
                ..Module::default()
            };
            for item in items.into_iter().filter(|item| !is_test(attributes(item))) {
                module.items.extend(name(&item).map(Ident::to_string));
                module.visit_item(&item);
                if let Item::Mod(ItemMod { ident, content, .. }) = item {
                    let child = [path.clone(), vec![ident.to_string()]].concat();
                    match content {
                        Some((_, items)) => inline.push((child, items)),
                        None => files.push((child.clone(), file_of(root, &child, sources))),
                    }
                }
            }
            modules.insert(path, module);
        }
    }
    Ok(modules)
}

/// Returns the file of a module that has one of its own.
fn file_of(root: &str, module: &[String], sources: &Sources) -> String {
    let folder = root
        .rsplit_once('/')
        .map(|(folder, _)| format!("{folder}/"));
    let path = folder.unwrap_or_default() + &module.join("/");
    let alone = format!("{path}.rs");
    if sources.contains_key(&alone) {
        alone
    } else {
        format!("{path}/mod.rs")
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the name that the item defines. A module has a place of its own.
fn name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        _ => None,
    }
}

fn below(path: &[String], name: &Ident) -> Names {
    [path, &[name.to_string()]].concat()
}

impl Module {
    fn import(&mut self, tree: &UseTree, before: &[String], is_reexport: bool) {
        let (name, path) = match tree {
            UseTree::Path(path) => {
                return self.import(&path.tree, &below(before, &path.ident), is_reexport);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before, is_reexport);
                }
                return;
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().cloned().unwrap_or_default(), before.to_vec())
            }
            UseTree::Name(name) => (name.ident.to_string(), below(before, &name.ident)),
            UseTree::Rename(rename) => (rename.rename.to_string(), below(before, &rename.ident)),
            UseTree::Glob(_) => ("*".to_owned(), before.to_vec()),
        };
        self.imports.push(Import {
            name,
            path,
            is_reexport,
        });
    }

    /// Collects the paths in tokens that only a macro understands.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path = Names::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.paths.push(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                }
                TokenTree::Group(group) => {
                    self.paths.push(std::mem::take(&mut path));
                    self.scan(group.stream());
                }
                TokenTree::Literal(literal) => {
                    self.paths.push(std::mem::take(&mut path));
                    // serde takes the paths of functions as strings.
                    let text = syn::parse_str::<LitStr>(&literal.to_string());
                    if let Ok(path) = text.and_then(|text| text.parse::<syn::Path>()) {
                        self.visit_path(&path);
                    }
                }
                TokenTree::Punct(_) => self.paths.push(std::mem::take(&mut path)),
            }
            colons = 0;
        }
        self.paths.push(path);
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        self.import(&item.tree, &[], is_reexport);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter();
        self.paths
            .push(names.map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        self.visit_path(&invoked.path);
        self.scan(invoked.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.scan(list.tokens.clone());
        }
    }
}
