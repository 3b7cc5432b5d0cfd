//! The number of names on the engine's wall, which layers import.

use syn::Item;

use crate::modules::{Destination, Modules, imports_of, is_public, name_of};
use crate::report::{Rule, Violation};
use crate::rules::{WALL, WALL_NAMES};

/// Counts the names of the module `wall` and of the modules that it exports. Methods and fields are not counted.
pub(crate) fn names(modules: &Modules) -> usize {
    let parts = modules.0.iter().filter(|(path, _)| path.first().is_some_and(|first| first == WALL));
    let mut count = 0;
    for (path, module) in parts {
        for item in &module.items {
            let Item::Use(item) = item else { continue };
            let mut imports = vec![];
            imports_of(item, &mut imports);
            for import in imports.iter().filter(|import| import.name != "*") {
                count += match modules.resolve(path, &import.path) {
                    Some(Destination { module, item: None, .. }) => public_items(modules, &module),
                    _ => 1,
                };
            }
        }
    }
    count
}

fn public_items(modules: &Modules, path: &[String]) -> usize {
    let items = modules.0.get(path).into_iter().flat_map(|module| &module.items);
    let public = |item: &&Item| match item {
        Item::Const(item) => is_public(&item.vis),
        Item::Enum(item) => is_public(&item.vis),
        Item::Fn(item) => is_public(&item.vis),
        Item::Static(item) => is_public(&item.vis),
        Item::Struct(item) => is_public(&item.vis),
        Item::Trait(item) => is_public(&item.vis),
        Item::Type(item) => is_public(&item.vis),
        item => name_of(item).is_some(),
    };
    items.filter(public).count()
}

/// Reports a wall with too many names.
pub(crate) fn violation(modules: &Modules) -> Option<Violation> {
    let count = names(modules);
    let file = modules.0.get([WALL.to_owned()].as_slice())?.file.clone();
    let what = format!("{count} names, at most {WALL_NAMES}");
    (count > WALL_NAMES).then_some(Violation { rule: Rule::Wall, file, line: 1, what })
}
