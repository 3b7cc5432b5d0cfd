//! The JSON Schema of policy files, generated from the descriptions that the reader uses.
//!
//! The schema accepts every file that the reader accepts. It does not check which fields belong to which kind of
//! schedule, or compare fields with each other.

use serde_json::{Map, Value, json};

use super::document::{self, BODIES, ENDPOINTS, ROUTES};
use super::field::{Field, Kind, Range};
use super::{bodies, endpoints, guard, policy, profile_names, route, schedule};

/// The pattern of a duration, in humantime's format.
const DURATION: &str = "^ *([0-9]+(\\.[0-9]+)? *(nanos|nsec|ns|usec|us|µs|millis|msec|ms|seconds|second|secs|sec|s|\
                        minutes|minute|min|mins|m|hours|hour|hr|hrs|h|days|day|d|weeks|week|wk|wks|w|months|month|M|\
                        years|year|yr|yrs|y) *)+$|^0$";

/// Returns the formatted schema, with a trailing newline.
pub(crate) fn schema() -> String {
    let policy = policy::FIELDS.iter().copied().chain(schedule::all_fields());
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://github.com/reattempt/reattempt/crates/policy-file/policies.schema.json",
        "title": "Retry policies",
        "description": "A policy file of reattempt. Each table that is not listed here is a policy.",
        "type": "object",
        "properties": document_properties(),
        "additionalProperties": { "$ref": "#/$defs/policy" },
        "$defs": {
            "policy": table(policy, &[]),
            "route": table(route::FIELDS.iter().copied(), &[route::POLICY.name]),
            "bodies": table(bodies::FIELDS.iter().copied(), &[]),
            "endpoints": table(endpoints::FIELDS.iter().copied(), &[]),
        },
    });
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text + "\n"
}

fn document_properties() -> Value {
    let mut properties: Map<_, _> =
        document::FIELDS.iter().map(|field| (field.name.to_owned(), described(field))).collect();
    let default = properties.remove(document::DEFAULT.name).unwrap_or_default();
    // A policy may have this name too.
    properties.insert(document::DEFAULT.name.to_owned(), json!({ "anyOf": [default, { "$ref": "#/$defs/policy" }] }));
    let routes = json!({
        "description": "The requests for which a policy applies. The first route that matches counts.",
        "type": "array",
        "items": { "$ref": "#/$defs/route" },
    });
    properties.insert(ROUTES.to_owned(), routes);
    let bodies = json!({
        "description": "The responses whose bodies are read as part of their attempt. The first section that matches counts.",
        "type": "array",
        "items": { "$ref": "#/$defs/bodies" },
    });
    properties.insert(BODIES.to_owned(), bodies);
    let sections = json!({
        "description": "Servers that do the same work, in sections with a name.",
        "type": "object",
        "additionalProperties": { "$ref": "#/$defs/endpoints" },
    });
    properties.insert(ENDPOINTS.to_owned(), sections);
    properties.into()
}

fn table(fields: impl Iterator<Item = &'static Field>, required: &[&str]) -> Value {
    let properties: Map<_, _> = fields.map(|field| (field.name.to_owned(), described(field))).collect();
    let mut table = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

fn described(field: &Field) -> Value {
    let mut value = of_kind(&field.kind);
    if !field.about.is_empty() {
        value["description"] = field.about.into();
    }
    value
}

fn of_kind(kind: &Kind) -> Value {
    let count = |least: u32| json!({ "anyOf": [{ "type": "integer", "minimum": least, "maximum": u32::MAX }, { "const": "none" }] });
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Profile => {
            let names = profile_names();
            let (names, mut all): (Vec<_>, Vec<String>) = (names.split(", ").collect(), Vec::new());
            for name in names {
                let hyphens = name.replace('_', "-");
                all.extend((hyphens != name).then_some(hyphens));
                all.push(name.to_owned());
            }
            json!({ "enum": all })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Number(range) => number(range),
        Kind::Count => count(0),
        Kind::CountFromOne => count(1),
        Kind::Duration => json!({ "type": "string", "pattern": DURATION }),
        Kind::DurationOrNone => {
            json!({ "anyOf": [{ "type": "string", "pattern": DURATION }, { "const": "none" }] })
        }
        Kind::Durations => json!({ "type": "array", "items": { "type": "string", "pattern": DURATION } }),
        Kind::Bytes => json!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": "^[0-9]+ *(B|kB|KiB|MB|MiB)$" },
        ] }),
        Kind::Words(words) => json!({ "type": "array", "items": { "enum": words } }),
        Kind::Guards => json!({ "type": "array", "items": guards() }),
        Kind::Pairs(pattern) => json!({ "type": "array", "items": { "type": "string", "pattern": pattern } }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::TextOrTexts => {
            json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
        }
        Kind::WordOrTable(words, tables) => {
            let tables = tables.iter().map(|fields| table(fields.iter().copied(), &[]));
            let all: Vec<_> = std::iter::once(json!({ "enum": words })).chain(tables).collect();
            json!({ "anyOf": all })
        }
    }
}

fn number(range: &Range) -> Value {
    let mut number = json!({ "type": "number" });
    number[if range.above { "exclusiveMinimum" } else { "minimum" }] = range.least.into();
    if range.most < f64::MAX {
        number[if range.below { "exclusiveMaximum" } else { "maximum" }] = range.most.into();
    }
    number
}

/// Returns the schema of a guard: its kind and its settings.
fn guards() -> Value {
    let words = guard::all().map(|(kind, fields)| {
        let names: Vec<_> = fields.iter().map(|field| field.name).collect();
        let setting = format!("({})=[^,]+", names.join("|"));
        let about = format!("Settings: {}.", names.join(", "));
        json!({ "type": "string", "pattern": format!("^{kind}(:{setting}(,{setting})*)?$"), "description": about })
    });
    json!({ "anyOf": words.collect::<Vec<_>>() })
}
