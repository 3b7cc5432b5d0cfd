//! The public API of a crate as text, one line for each name and signature.
//!
//! It reads the sources instead of the compiler's output, so a newer compiler changes nothing here.
//! Types appear as the sources write them. Items that are `#[doc(hidden)]` are left out. So are
//! auto traits and derived implementations, which only the compiler knows.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Fields, Generics, ImplItem, Item, Meta, TraitItem, Type, Visibility};

use crate::modules::{Destination, Import, ModulePath, Modules, imports_of, is_public, name_of};
use crate::source::attributes;
use crate::tokens::{text, without_attributes, without_dollars};

/// An item by the module that defines it and its name.
type Key = (ModulePath, String);

/// Lists the public API of a crate.
pub(crate) fn list(modules: &Modules, krate: &str) -> String {
    let mut api = Api { modules, items: BTreeMap::new(), lines: BTreeSet::new(), open: BTreeSet::new() };
    api.module(&[], krate);
    for (key, path) in &api.items {
        for item in modules.0.get(&key.0).into_iter().flat_map(|module| &module.items) {
            if name_of(item).as_ref() == Some(&key.1) {
                api.lines.extend(members(item, path));
            }
        }
    }
    for (path, module) in &modules.0 {
        for item in &module.items {
            if let Item::Impl(block) = item {
                api.implementation(path, block);
            }
        }
    }
    api.lines.into_iter().map(|line| line + "\n").collect()
}

struct Api<'a> {
    modules: &'a Modules,
    /// The first public path of each item.
    items: BTreeMap<Key, String>,
    lines: BTreeSet<String>,
    /// The modules that are being listed.
    open: BTreeSet<ModulePath>,
}

impl Api<'_> {
    /// Lists the items of a module under a public path.
    fn module(&mut self, path: &[String], public: &str) {
        let Some(module) = self.modules.0.get(path) else { return };
        if !self.open.insert(path.to_vec()) {
            return;
        }
        let cfg = module.declaration.as_ref().map(|it| cfg(&it.attrs)).unwrap_or_default();
        self.lines.insert(format!("{public}: {cfg}mod"));
        for item in &module.items {
            if let Item::Use(item) = item {
                if is_public(&item.vis) && !is_hidden(&item.attrs) {
                    self.reexport(path, item, public);
                }
            } else if let (Some(name), true) = (name_of(item), is_public_item(item)) {
                self.item(path, &name, format!("{public}::{name}"));
            }
        }
        let children = self.modules.0.range(path.to_vec()..).skip(1);
        for (child, module) in children.take_while(|(child, _)| child.starts_with(path)) {
            let declared = module.declaration.as_ref();
            let shown = declared.is_some_and(|it| is_public(&it.vis) && !is_hidden(&it.attrs));
            if let (Some(name), true) = (child.last(), shown && child.len() == path.len() + 1) {
                self.module(child, &format!("{public}::{name}"));
            }
        }
        self.open.remove(path);
    }

    fn reexport(&mut self, at: &[String], item: &syn::ItemUse, public: &str) {
        let mut imports = vec![];
        imports_of(item, &mut imports);
        for Import { name, path, external } in imports {
            let shown = format!("{public}::{name}");
            let found = self.modules.resolve(at, &path).filter(|_| !external);
            match found {
                Some(Destination { module, item: None, .. }) if name == "*" => self.module(&module, public),
                Some(Destination { module, item: None, .. }) => {
                    self.module(&module, &shown);
                    self.conditions(&shown, item);
                }
                Some(Destination { module, item: Some(item), .. }) => {
                    // A function and a module may have the same name.
                    self.module(&path, &shown);
                    self.item(&module, &item, shown);
                }
                None => {
                    let path = path.join("::");
                    self.lines.insert(format!("{shown}: {}use {path}", cfg(&item.attrs)));
                }
            }
        }
    }

    /// Adds the conditions of a re-exported module to its line.
    fn conditions(&mut self, shown: &str, item: &syn::ItemUse) {
        if self.lines.remove(&format!("{shown}: mod")) {
            self.lines.insert(format!("{shown}: {}mod", cfg(&item.attrs)));
        }
    }

    /// Lists an item under a public path; a second path refers to the first.
    fn item(&mut self, module: &[String], name: &str, public: String) {
        let key = (module.to_vec(), name.to_owned());
        match self.items.get(&key) {
            Some(first) if *first != public => {
                self.lines.insert(format!("{public}: use {first}"));
            }
            Some(_) => {}
            None => {
                self.items.insert(key, public);
            }
        }
    }

    /// Lists the methods of a public type, and the public traits that are implemented.
    fn implementation(&mut self, at: &[String], block: &syn::ItemImpl) {
        if is_hidden(&block.attrs) {
            return;
        }
        let public = |path: &syn::Path| {
            let names: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
            let found = self.modules.resolve(at, &names)?;
            Some(self.items.get(&(found.module, found.item?)))
        };
        let own = match self_path(&block.self_ty).map(public) {
            Some(Some(None)) => return, // a private type
            Some(Some(Some(path))) => Some(path),
            _ => None,
        };
        let head = {
            let (generics, target) = (&block.generics, &block.self_ty);
            let (parameters, _, clause) = generics.split_for_impl();
            let parameters = generics_with_bounds(generics).unwrap_or(quote!(#parameters));
            let of = block.trait_.as_ref().map(|(not, path, of)| quote!(#not #path #of));
            format!("{}{}", cfg(&block.attrs), text(quote!(impl #parameters #of #target #clause)))
        };
        if let Some((_, path, _)) = &block.trait_ {
            match (public(path), own) {
                (Some(None), _) | (None, None) => {} // a private trait, or nothing of this crate
                (_, Some(shown)) | (Some(Some(shown)), None) => {
                    let shown = shown.clone();
                    for item in &block.items {
                        if let ImplItem::Type(it) = item {
                            let (name, ty) = (&it.ident, &it.ty);
                            let ty = text(quote!(type #name = #ty));
                            self.lines.insert(format!("{shown}: {head} {{ {ty} }}"));
                        }
                    }
                    self.lines.insert(format!("{shown}: {head}"));
                }
            }
            return;
        }
        let Some(shown) = own.cloned() else { return };
        let mut made = vec![];
        for item in &block.items {
            let ImplItem::Macro(call) = item else { continue };
            match made_by(self.modules, &call.mac) {
                Some(items) => made.extend(items),
                None => {
                    let path = &call.mac.path;
                    self.lines.insert(format!("{shown}: {head} {{ macro {} }}", text(quote!(#path))));
                }
            }
        }
        for item in block.items.iter().chain(&made) {
            let (visibility, attributes, signature) = match item {
                ImplItem::Fn(it) => (&it.vis, &it.attrs, it.sig.to_token_stream()),
                ImplItem::Const(it) => {
                    let (name, ty) = (&it.ident, &it.ty);
                    (&it.vis, &it.attrs, quote!(const #name: #ty))
                }
                _ => continue,
            };
            if is_public(visibility) && !is_hidden(attributes) {
                let line = format!("{shown}: {head} {{ {}{} }}", cfg(attributes), text(signature));
                self.lines.insert(line);
            }
        }
    }
}

/// Returns the items that a macro of this crate makes in an `impl`, by its last rule.
fn made_by(modules: &Modules, call: &syn::Macro) -> Option<Vec<ImplItem>> {
    let name = call.path.get_ident()?;
    let mut items = modules.0.values().flat_map(|module| &module.items);
    let rules = items.find_map(|item| match item {
        Item::Macro(found) if found.ident.as_ref() == Some(name) => Some(&found.mac.tokens),
        _ => None,
    })?;
    let groups = rules.clone().into_iter().filter_map(|token| match token {
        TokenTree::Group(group) => Some(group.stream()),
        _ => None,
    });
    let body = without_dollars(groups.last()?);
    Some(syn::parse2::<syn::ItemImpl>(quote!(impl Made { #body })).ok()?.items)
}

/// Lists an item's own line and its variants, fields or methods.
fn members(item: &Item, path: &str) -> Vec<String> {
    let cfgs = cfg(attributes(item));
    let head = |tokens: TokenStream, generics: &Generics| {
        let (parameters, clause) = (generics_with_bounds(generics), &generics.where_clause);
        format!("{path}: {cfgs}{}{}", marks(attributes(item)), text(quote!(#tokens #parameters #clause)))
    };
    match item {
        Item::Struct(item) => {
            let mut lines = vec![head(quote!(struct), &item.generics)];
            lines.extend(fields(&item.fields, path, true));
            lines
        }
        Item::Enum(item) => {
            let mut lines = vec![head(quote!(enum), &item.generics)];
            for variant in item.variants.iter().filter(|it| !is_hidden(&it.attrs)) {
                let path = format!("{path}::{}", variant.ident);
                lines.push(format!("{path}: {}{}variant", cfg(&variant.attrs), marks(&variant.attrs)));
                lines.extend(fields(&variant.fields, &path, false));
            }
            lines
        }
        Item::Trait(item) => {
            let (parents, unsafety) = (&item.supertraits, &item.unsafety);
            let parents = (!parents.is_empty()).then(|| quote!(: #parents));
            let mut lines = vec![head(quote!(#unsafety trait #parents), &item.generics)];
            for member in &item.items {
                let (attributes, signature, provided) = match member {
                    TraitItem::Fn(it) => (&it.attrs, it.sig.to_token_stream(), it.default.is_some()),
                    TraitItem::Type(it) => (&it.attrs, it.to_token_stream(), it.default.is_some()),
                    TraitItem::Const(it) => (&it.attrs, it.to_token_stream(), it.default.is_some()),
                    _ => continue,
                };
                if !is_hidden(attributes) {
                    let signature = text(without_attributes(signature)).trim_end_matches(';').to_owned();
                    let provided = if provided { "provided " } else { "" };
                    lines.push(format!("{path}: trait {{ {}{provided}{signature} }}", cfg(attributes)));
                }
            }
            lines
        }
        Item::Fn(item) => vec![format!("{path}: {cfgs}{}", text(item.sig.to_token_stream()))],
        Item::Type(item) => {
            let ty = &item.ty;
            vec![head(quote!(type = #ty), &item.generics)]
        }
        Item::Const(item) => {
            let ty = &item.ty;
            vec![format!("{path}: {cfgs}{}", text(quote!(const #ty)))]
        }
        Item::Static(item) => {
            let ty = &item.ty;
            vec![format!("{path}: {cfgs}{}", text(quote!(static #ty)))]
        }
        Item::Macro(_) => vec![format!("{path}: {cfgs}macro")],
        _ => vec![],
    }
}

fn fields(fields: &Fields, path: &str, with_visibility: bool) -> Vec<String> {
    let shown = |field: &&syn::Field| (!with_visibility || is_public(&field.vis)) && !is_hidden(&field.attrs);
    let lines = fields.iter().enumerate().filter(|(_, field)| shown(field)).map(|(index, field)| {
        let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
        format!("{path}.{name}: {}{}", cfg(&field.attrs), text(field.ty.to_token_stream()))
    });
    lines.collect()
}

fn is_public_item(item: &Item) -> bool {
    let visibility = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Macro(item) => return item.attrs.iter().any(|it| it.path().is_ident("macro_export")),
        _ => &Visibility::Inherited,
    };
    is_public(visibility) && !is_hidden(attributes(item))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    let hidden = |attribute: &Attribute| {
        attribute.path().is_ident("doc")
            && attribute.parse_args::<Meta>().is_ok_and(|meta| meta.path().is_ident("hidden"))
    };
    attributes.iter().any(hidden)
}

/// Returns the conditions of an item, as the sources write them.
fn cfg(attributes: &[Attribute]) -> String {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.map(|attribute| text(attribute.to_token_stream()) + " ").collect()
}

/// Returns the attributes that change how an item may be used.
fn marks(attributes: &[Attribute]) -> String {
    let marks = attributes.iter().filter(|attribute| {
        ["non_exhaustive", "derive", "deprecated"].iter().any(|name| attribute.path().is_ident(name))
    });
    marks.map(|attribute| text(attribute.to_token_stream()) + " ").collect()
}

/// Returns the path of a type that has one; references and boxes are those of what they hold.
fn self_path(ty: &Type) -> Option<&syn::Path> {
    match ty {
        Type::Path(ty) => Some(&ty.path),
        Type::Reference(ty) => self_path(&ty.elem),
        _ => None,
    }
}

fn generics_with_bounds(generics: &Generics) -> Option<TokenStream> {
    let parameters = &generics.params;
    (!parameters.is_empty()).then(|| quote!(<#parameters>))
}
