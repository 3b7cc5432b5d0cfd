//! The imports between the modules of a crate: one for each path that leads from one to another.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, Stmt};

use crate::modules::{Import, ModulePath, Modules, imports_of};
use crate::source::is_test;

/// A path in one module that leads to another.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) from: ModulePath,
    pub(crate) to: ModulePath,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) path: String,
}

/// Lists the paths between modules: imports, types, expressions and those inside macro calls.
/// Re-exports in the root of the crate are left out, because every module may appear there.
pub(crate) fn references(modules: &Modules) -> Vec<Reference> {
    let mut found = vec![];
    for (path, module) in &modules.0 {
        let mut visitor = Paths { modules, path, file: &module.file, scopes: vec![], found: &mut found };
        for item in &module.items {
            let root_export =
                path.is_empty() && matches!(item, Item::Use(item) if !matches!(item.vis, syn::Visibility::Inherited));
            if !root_export {
                visitor.visit_item(item);
            }
        }
    }
    found
}

struct Paths<'a> {
    modules: &'a Modules,
    path: &'a ModulePath,
    file: &'a str,
    /// The imports of the blocks around the path.
    scopes: Vec<Vec<Import>>,
    found: &'a mut Vec<Reference>,
}

impl Paths<'_> {
    fn refer(&mut self, path: &[String], line: usize) {
        let local = self.scopes.iter().rev().flatten().find(|import| path.first() == Some(&import.name));
        let full = match local {
            Some(import) if import.external => return,
            Some(import) => [&import.path, &path[1..]].concat(),
            None => path.to_vec(),
        };
        // A module that exports a name of another crate is imported, too.
        let shortened = || {
            let shorter = (1..full.len()).rev();
            let found = shorter.filter_map(|length| self.modules.resolve(self.path, &full[..length])).next();
            found.filter(|found| !found.module.is_empty())
        };
        let Some(to) = self.modules.resolve(self.path, &full).or_else(shortened) else { return };
        if path.len() == 1 && to.item.is_none() {
            return; // a variable that is named like a module
        }
        let through = to.through.into_iter().filter(|module| !module.is_empty());
        for to in through.chain([to.module]).filter(|to| to != self.path) {
            let (from, file, path) = (self.path.clone(), self.file.to_owned(), path.join("::"));
            self.found.push(Reference { from, to, file, line, path });
        }
    }

    /// Finds paths among the tokens of a macro call.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut line, mut colons, mut skip) = (vec![], 0, 0, false);
        let mut dot = false;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) if colons == 2 && (skip || !path.is_empty()) => {
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.end_of_tokens(&mut path, line, skip);
                    let second = dot;
                    dot = matches!(&other, TokenTree::Punct(punct) if punct.as_char() == '.');
                    skip = dot && !second; // a field or a method, but not the end of a range
                    if let TokenTree::Group(group) = &other {
                        self.tokens(group.stream());
                        skip = group.delimiter() == Delimiter::None;
                    }
                    if let TokenTree::Ident(ident) = other {
                        (line, skip) = (ident.span().start().line, skip || colons == 2);
                        path.push(ident.to_string());
                    }
                    colons = 0;
                }
            }
        }
        self.end_of_tokens(&mut path, line, skip);
    }

    fn end_of_tokens(&mut self, path: &mut Vec<String>, line: usize, skip: bool) {
        if !path.is_empty() && !skip {
            self.refer(path, line);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if let (None, Some(first)) = (&path.leading_colon, path.segments.first()) {
            self.refer(&names, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut imports = vec![];
        imports_of(item, &mut imports);
        for import in imports.iter().filter(|import| !import.external) {
            self.refer(&import.path, item.use_token.span.start().line);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let mut scope = vec![];
        for statement in &block.stmts {
            if let Stmt::Item(Item::Use(item)) = statement {
                imports_of(item, &mut scope);
            }
        }
        self.scopes.push(scope);
        visit::visit_block(self, block);
        self.scopes.pop();
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    /// The paths in the definition of an exported macro are those of its callers, in other crates.
    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if !item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
            visit::visit_item_macro(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}
