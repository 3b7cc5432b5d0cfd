//! The search for observers that are called directly. A dropped call may notify them while its thread unwinds, so one
//! function calls them all: `reattempt_core::user_code::notify`.

use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprMethodCall, ImplItemFn, Item, Member};

use crate::report::{Rule, Violation};
use crate::rules::{CRATES, NOTIFY, OBSERVERS, OBSERVERS_CALLED};
use crate::source::{Source, Sources, attributes, is_test};

/// Finds the calls of observers outside that function.
pub(crate) fn violations(sources: &Sources) -> Vec<Violation> {
    let of_crates = sources.values().filter(|source| source.path.starts_with(CRATES) && !source.is_test);
    let checked = of_crates.filter(|source| !OBSERVERS_CALLED.iter().any(|(path, _)| source.path.starts_with(path)));
    checked.flat_map(calls).collect()
}

fn calls(source: &Source) -> Vec<Violation> {
    let mut search = Search { notified: false, found: vec![] };
    search.visit_items(&source.items);
    let violation = |(name, line)| {
        let what = format!("`{name}` is called directly");
        Violation { rule: Rule::Observer, file: source.path.clone(), line, what }
    };
    search.found.into_iter().map(violation).collect()
}

struct Search {
    /// `true` inside a call of the function, and inside an observer that passes its event on.
    notified: bool,
    found: Vec<(String, usize)>,
}

impl Search {
    fn visit_items(&mut self, items: &[Item]) {
        items.iter().filter(|item| !is_test(attributes(item))).for_each(|item| self.visit_item(item));
    }

    fn record(&mut self, name: &syn::Ident) {
        if !self.notified && OBSERVERS.iter().any(|observer| name == observer) {
            self.found.push((name.to_string(), name.span().start().line));
        }
    }

    fn notified(&mut self, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.notified, true);
        visit(self);
        self.notified = before;
    }
}

impl<'ast> Visit<'ast> for Search {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let name = callee(&call.func);
        if name.is_some_and(|name| name == NOTIFY) {
            return self.notified(|search| visit::visit_expr_call(search, call));
        }
        if let Some(name) = name {
            self.record(name);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        // A method without an argument returns the observer.
        if !call.args.is_empty() {
            self.record(&call.method);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_impl_item_fn(&mut self, method: &'ast ImplItemFn) {
        if OBSERVERS.iter().any(|observer| method.sig.ident == observer) {
            return self.notified(|search| visit::visit_impl_item_fn(search, method));
        }
        visit::visit_impl_item_fn(self, method);
    }
}

/// Returns the name of a called function, variable or field.
fn callee(called: &Expr) -> Option<&syn::Ident> {
    match called {
        Expr::Path(path) => path.path.segments.last().map(|last| &last.ident),
        Expr::Paren(inner) => callee(&inner.expr),
        Expr::Field(field) => match &field.member {
            Member::Named(name) => Some(name),
            Member::Unnamed(_) => None,
        },
        _ => None,
    }
}
