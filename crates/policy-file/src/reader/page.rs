//! The page that lists every field of a policy file, generated from the descriptions that the reader uses.

use super::field::{Field, Kind, Range};
use super::{bodies, budget, document, endpoints, guard, policy, profile_names, route, schedule};

/// Returns the page in Markdown.
pub(crate) fn page() -> String {
    let mut page = "Every field of a policy file, with its type, its default and an example.\n\n\
        The test `field_page_is_current` writes this page from the descriptions that the reader and the schema use.\n"
        .to_owned();
    section(&mut page, "Above the first section", document::FIELDS);
    section(&mut page, "A policy: `[NAME]`", policy::FIELDS);
    for kind in schedule::KINDS {
        section(&mut page, &format!("A policy with `schedule = \"{kind}\"`"), schedule::fields_of(kind));
    }
    if let Kind::WordOrTable(_, tables) = budget::BUDGET.kind {
        tables.iter().for_each(|fields| budget_table(&mut page, fields));
    }
    for (kind, fields) in guard::all() {
        guard_section(&mut page, kind, fields);
    }
    section(&mut page, "A route: `[[routes]]`", route::FIELDS);
    section(&mut page, "Response bodies: `[[bodies]]`", bodies::FIELDS);
    section(&mut page, "Servers: `[endpoints.NAME]`", endpoints::FIELDS);
    page
}

fn section(page: &mut String, title: &str, fields: &[&'static Field]) {
    page.push_str(&format!("\n# {title}\n\n"));
    if fields.is_empty() {
        page.push_str("No fields.\n");
        return;
    }
    page.push_str("| field | type | meaning and default | example |\n|---|---|---|---|\n");
    for Field { name, kind, about } in fields {
        let (of_type, about, example) = (type_of(kind), with_code(about), example(name, kind));
        page.push_str(&format!("| `{name}` | {of_type} | {about} | `{example}` |\n"));
    }
}

/// Returns a description with its quoted texts as code.
fn with_code(about: &str) -> String {
    let parts = about.split('"').enumerate();
    parts.map(|(number, part)| if number % 2 == 1 { format!("`\"{part}\"`") } else { part.to_owned() }).collect()
}

fn budget_table(page: &mut String, fields: &[&'static Field]) {
    let first = fields.first().map_or("", |field| field.name);
    section(page, &format!("A policy with `budget = {{ {first} = … }}`"), fields);
}

/// Adds the settings of a guard, which are those of its type in the library.
fn guard_section(page: &mut String, kind: &str, fields: &[&'static Field]) {
    page.push_str(&format!("\n# A guard: `{kind}`\n\n"));
    page.push_str("The [type of the guard](reattempt::guard) has settings with these names.\n\n");
    page.push_str("| field | type | meaning and default | example |\n|---|---|---|---|\n");
    for Field { name, kind: of_field, about } in fields {
        let setting = example(name, of_field).replace(" = ", "=").replace('"', "");
        let (of_type, about) = (type_of(of_field), with_code(about));
        page.push_str(&format!("| `{name}` | {of_type} | {about} | `guards = [\"{kind}:{setting}\"]` |\n"));
    }
}

fn type_of(kind: &Kind) -> String {
    let quoted = |words: &[&str]| words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ");
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Word(words) => quoted(words),
        Kind::Profile => format!("one of {}", profile_names()),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Number(range) => range.wanted(),
        Kind::Count => "a whole number, or `\"none\"`".to_owned(),
        Kind::CountFromOne => "a whole number of at least 1, or `\"none\"`".to_owned(),
        Kind::Duration => "a duration".to_owned(),
        Kind::DurationOrNone => "a duration, or `\"none\"`".to_owned(),
        Kind::Durations => "a list of durations".to_owned(),
        Kind::Bytes => "bytes: a whole number, or a text with a unit".to_owned(),
        Kind::Words(words) => format!("a list of {}", quoted(words)),
        Kind::Guards => "a list of guards".to_owned(),
        Kind::Texts | Kind::Pairs(_) => "a list of texts".to_owned(),
        Kind::TextOrTexts => "a text, or a list of texts".to_owned(),
        Kind::WordOrTable(words, _) => format!("{}, or a table", quoted(words)),
    }
}

/// Returns a line with the field.
fn example(name: &str, kind: &Kind) -> String {
    let value = match kind {
        Kind::Text => match name {
            "base" => "\"http://orders\"",
            "default" | "policy" => "\"patient\"",
            "destination" => "\"https://orders.example\"",
            "dns" => "\"orders.internal:8080\"",
            "grpc" => "\"inventory.Stock/Count\"",
            "path" => "\"/v1/orders/{id}\"",
            _ => "\"orders\"",
        }
        .to_owned(),
        Kind::Word([first, ..]) | Kind::WordOrTable([first, ..], _) => format!("\"{first}\""),
        Kind::Word([]) | Kind::WordOrTable([], _) => String::new(),
        Kind::Profile => "\"stripe\"".to_owned(),
        Kind::Flag => "true".to_owned(),
        Kind::Number(range) => number(range).to_string(),
        Kind::Count | Kind::CountFromOne => "4".to_owned(),
        Kind::Duration | Kind::DurationOrNone => "\"1500ms\"".to_owned(),
        Kind::Durations => "[\"100ms\", \"2s\"]".to_owned(),
        Kind::Bytes => "\"64 KiB\"".to_owned(),
        Kind::Words(words) => format!("[\"{}\"]", words.first().copied().unwrap_or_default()),
        Kind::Guards => "[\"breaker:open_time=10s\", \"bulkhead:limit=64\"]".to_owned(),
        Kind::Pairs(_) | Kind::Texts | Kind::TextOrTexts => match name {
            "delay_headers" => "[\"x-cooldown\"]",
            "method" => "[\"GET\", \"PUT\"]",
            "on_code" => "[\"ABORTED retry\"]",
            "on_status" => "[\"501 retry\", \"429 return\"]",
            "quota_headers" => "[\"x-calls-left x-calls-reset\"]",
            _ => "[\"http://one.internal:8080\", \"http://two.internal:8080\"]",
        }
        .to_owned(),
    };
    format!("{name} = {value}")
}

/// Returns a usual number of this range.
fn number(range: &Range) -> f64 {
    [2.0, 0.5, 10.0, range.most].into_iter().find(|number| range.contains(*number)).unwrap_or(range.least)
}
