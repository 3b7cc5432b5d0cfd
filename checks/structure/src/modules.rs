//! The modules of a crate, and the module that a path leads to.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, UseTree, Visibility};

use crate::source::{Sources, attributes, files_of_module, is_test, path_attribute};

/// The names of a module and of those around it, from the root of the crate, which is empty.
pub(crate) type ModulePath = Vec<String>;

/// A name that a `use` brings into a module.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    /// The name; `*` for a glob.
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
    /// The path starts with `::`.
    pub(crate) external: bool,
}

/// A module without its tests.
pub(crate) struct Module {
    pub(crate) file: String,
    pub(crate) declaration: Option<syn::ItemMod>,
    /// The items; the items inside a macro such as `pin_project!` take its place.
    pub(crate) items: Vec<Item>,
    names: BTreeSet<String>,
    imports: Vec<Import>,
}

/// The destination of a path.
#[derive(Debug, PartialEq)]
pub(crate) struct Destination {
    /// The module that defines the item.
    pub(crate) module: ModulePath,
    /// The item; absent where the path names the module itself.
    pub(crate) item: Option<String>,
    /// The modules whose re-exports lead there.
    pub(crate) through: Vec<ModulePath>,
}

/// The modules of a crate by path. Those of other crates may be below the crate's name.
#[derive(Default)]
pub(crate) struct Modules(pub(crate) BTreeMap<ModulePath, Module>, BTreeSet<String>);

impl Modules {
    /// Reads the modules of a crate, starting from its root file.
    pub(crate) fn of_crate(sources: &mut Sources, root: &str) -> Result<Self, String> {
        let mut modules = Self::default();
        let Some(source) = sources.get_mut(root) else {
            return Err(format!("{root}: no such file"));
        };
        let items = std::mem::take(&mut source.items);
        modules.insert(sources, vec![], root, 0, None, items)?;
        Ok(modules)
    }

    /// Adds another crate, so that paths that begin with its name lead into it.
    pub(crate) fn add_crate(&mut self, name: &str, other: Self) {
        self.1.insert(name.to_owned());
        for (path, module) in other.0 {
            self.0.insert([vec![name.to_owned()], path].concat(), module);
        }
    }

    /// Returns the root of the crate that contains a module.
    fn root_of(&self, module: &[String]) -> ModulePath {
        module.first().filter(|name| self.1.contains(*name)).cloned().into_iter().collect()
    }

    /// Adds a module and those inside it. `inline` counts the modules around it in the same file.
    fn insert(
        &mut self,
        sources: &mut Sources,
        path: ModulePath,
        file: &str,
        inline: usize,
        declaration: Option<syn::ItemMod>,
        items: Vec<Item>,
    ) -> Result<(), String> {
        let mut module =
            Module { file: file.to_owned(), declaration, items: vec![], names: BTreeSet::new(), imports: vec![] };
        for item in items.into_iter().flat_map(unwrap_macro).filter(|item| !is_test(attributes(item))) {
            if let Item::Mod(mut child) = item {
                let name = child.ident.to_string();
                let mut inner = path.clone();
                inner.push(name.clone());
                if let Some((_, items)) = child.content.take() {
                    self.insert(sources, inner, file, inline + 1, Some(child), items)?;
                } else {
                    let shared = path_attribute(file, &child.attrs);
                    let candidates = match &shared {
                        Some(other) => vec![other.clone()],
                        None => files_of_module(file, &path[path.len() - inline..], &name).to_vec(),
                    };
                    let found = candidates.iter().find(|file| sources.contains_key(*file));
                    let Some((file, source)) = found.and_then(|it| Some((it, sources.get_mut(it)?))) else {
                        return Err(format!("{file}: no file for `mod {name}` ({candidates:?})"));
                    };
                    // A file with a `#[path]` is a module of another place, too.
                    let items = if shared.is_some() { source.items.clone() } else { std::mem::take(&mut source.items) };
                    self.insert(sources, inner, file, 0, Some(child), items)?;
                }
                continue;
            }
            if let Item::Use(item) = &item {
                imports_of(item, &mut module.imports);
            }
            module.names.extend(name_of(&item));
            module.items.push(item);
        }
        self.0.insert(path, module);
        Ok(())
    }

    /// Finds the module of this crate that defines what `path` names in `from`.
    pub(crate) fn resolve(&self, from: &[String], path: &[String]) -> Option<Destination> {
        self.resolve_within(from, path, 16)
    }

    fn resolve_within(&self, from: &[String], path: &[String], depth: u8) -> Option<Destination> {
        let depth = depth.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(self.root_of(from), rest, false, depth),
            "self" | "super" => {
                let at = if first == "self" { from } else { from.split_last()?.1 };
                match rest.first().is_some_and(|next| next == "super") {
                    true => self.resolve_within(at, rest, depth),
                    false => self.walk(at.to_vec(), rest, false, depth),
                }
            }
            name if self.1.contains(name) => self.walk(vec![first.clone()], rest, false, depth),
            _ => self.walk(from.to_vec(), path, true, depth),
        }
    }

    /// Follows `path` from the module `at`. With `strict` an unknown first name leads out of the
    /// crate; otherwise it counts as an item that a macro makes.
    fn walk(&self, at: ModulePath, path: &[String], strict: bool, depth: u8) -> Option<Destination> {
        let module = self.0.get(&at)?;
        let Some((name, rest)) = path.split_first() else {
            return Some(Destination { module: at, item: None, through: vec![] });
        };
        let defined = module.names.contains(name);
        let mut child = at.clone();
        child.push(name.clone());
        let named = || module.imports.iter().filter(|import| import.name == *name);
        if self.0.contains_key(&child) && !(rest.is_empty() && (defined || named().next().is_some())) {
            return self.walk(child, rest, false, depth);
        }
        if !defined {
            for import in named().filter(|import| !import.external) {
                let path = [&import.path, rest].concat();
                if let Some(found) = self.resolve_within(&at, &path, depth) {
                    return Some(found.through(at));
                }
            }
            if named().next().is_some() {
                return None;
            }
            for glob in module.imports.iter().filter(|import| import.name == "*" && !import.external) {
                let target = self.resolve_within(&at, &glob.path, depth);
                let Some(target) = target.filter(|target| target.item.is_none()) else { continue };
                if let Some(found) = self.walk(target.module, path, true, depth.checked_sub(1)?) {
                    return Some(found.through(at));
                }
            }
            if strict {
                return None;
            }
        }
        Some(Destination { module: at, item: Some(name.clone()), through: vec![] })
    }
}

impl Destination {
    fn through(mut self, module: ModulePath) -> Self {
        self.through.push(module);
        self
    }
}

/// Lists the names that a `use` imports.
pub(crate) fn imports_of(item: &syn::ItemUse, imports: &mut Vec<Import>) {
    fn flatten(tree: &UseTree, path: &[String], external: bool, imports: &mut Vec<Import>) {
        let mut add = |name: String, last: &str| {
            let mut path = path.to_vec();
            if last != "self" || path.is_empty() {
                path.push(last.to_owned());
            }
            let name = if name == "self" { path.last().cloned().unwrap_or(name) } else { name };
            imports.push(Import { name, path, external });
        };
        match tree {
            UseTree::Name(name) => add(name.ident.to_string(), &name.ident.to_string()),
            UseTree::Rename(name) => add(name.rename.to_string(), &name.ident.to_string()),
            UseTree::Glob(_) => {
                imports.push(Import { name: "*".to_owned(), path: path.to_vec(), external });
            }
            UseTree::Path(step) => {
                let path = [path, &[step.ident.to_string()]].concat();
                flatten(&step.tree, &path, external, imports);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| flatten(tree, path, external, imports));
            }
        }
    }
    flatten(&item.tree, &[], item.leading_colon.is_some(), imports);
}

/// Returns `true` if the visibility is `pub`.
pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Replaces a macro call around items by the items.
fn unwrap_macro(item: Item) -> Vec<Item> {
    if let Item::Macro(call) = &item
        && call.ident.is_none()
        && let Ok(file) = syn::parse2::<syn::File>(call.mac.tokens.clone())
    {
        return file.items;
    }
    vec![item]
}

pub(crate) fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
