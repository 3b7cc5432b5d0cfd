//! A reader of JSON bodies, which looks for values along one path.
//!
//! Bodies come from any server, so the reader is total: each byte is read once, nothing is kept, and only the steps of
//! the caller's path nest.

// BI-6

use std::fmt;

use serde_core::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Returns `true` if `body` is a JSON document with a value at `path` for which `is_match` returns `true`.
///
/// A step of the path is the name of a member. `*` stands for every member of an object, or every element of an array.
/// The value of a string is its text without quotes. Numbers, booleans and `null` have the text of JSON, a number with
/// a fraction or an exponent its shortest form, such as `0.5` or `1e300`. Objects and arrays at the end of the path
/// have no value. If an object has a name twice, both values count.
///
/// Returns `false` if the body is not JSON, even if a value before the error matches. `is_match` may then have been
/// called.
///
/// ```
/// # use reattempt_http::json_any;
/// let body = br#"{"errors": [{"code": 7}, {"code": 9, "text": "slow down"}]}"#;
/// assert!(json_any(body, &["errors", "*", "code"], &mut |code| code == "9"));
/// assert!(!json_any(&body[..40], &["errors", "*", "code"], &mut |code| code == "7"), "the body is cut off");
/// ```
#[must_use]
pub fn json_any(body: &[u8], path: &[&str], is_match: &mut dyn FnMut(&str) -> bool) -> bool {
    let mut document = serde_json::Deserializer::from_slice(body);
    let mut found = false;
    let walk = Walk { path, is_match, found: &mut found };
    let is_json = walk.deserialize(&mut document).is_ok() && document.end().is_ok();
    found && is_json
}

/// A walk along a path. It nests as deeply as the path is long, because values beside the path are skipped without
/// recursion.
struct Walk<'a> {
    path: &'a [&'a str],
    is_match: &'a mut dyn FnMut(&str) -> bool,
    found: &'a mut bool,
}

impl Walk<'_> {
    fn meet(self, value: &str) {
        if self.path.is_empty() && !*self.found {
            *self.found = (self.is_match)(value);
        }
    }

    /// Has the value of a number in its shortest form: `1e300` has six letters, and not 301 as `Display` writes it.
    fn meet_number(self, value: impl fmt::Debug) {
        if self.path.is_empty() {
            self.meet(&format!("{value:?}"));
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<(), D::Error> {
        document.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.meet(value);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.meet(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.meet("null");
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.meet_number(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.meet_number(value);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.meet_number(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let rest = match self.path.split_first() {
            Some((&"*", rest)) => rest,
            _ => return skip_elements(elements),
        };
        while !*self.found {
            let walk = Walk { path: rest, is_match: &mut *self.is_match, found: &mut *self.found };
            if elements.next_element_seed(walk)?.is_none() {
                return Ok(());
            }
        }
        skip_elements(elements)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let (step, rest) = self.path.split_first().map_or((NUMBER, self.path), |(step, rest)| (*step, rest));
        while let Some(is_step) = members.next_key_seed(IsStep(Some(step).filter(|_| !*self.found)))? {
            if is_step {
                members.next_value_seed(Walk { path: rest, is_match: &mut *self.is_match, found: &mut *self.found })?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

fn skip_elements<'de, A: SeqAccess<'de>>(mut elements: A) -> Result<(), A::Error> {
    while elements.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// The name under which serde_json passes the text of a number, if another crate enables its `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

/// Compares the name of a member with a step of the path.
struct IsStep<'a>(Option<&'a str>);

impl<'de> DeserializeSeed<'de> for IsStep<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<bool, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for IsStep<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(self.0.is_some_and(|step| step == "*" || step == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(body: &str, path: &[&str]) -> Vec<String> {
        let mut values = Vec::new();
        let _ = json_any(body.as_bytes(), path, &mut |value| {
            values.push(value.to_owned());
            false
        });
        values
    }

    // BI-6
    #[test]
    fn json_values_are_found_by_path() {
        let body = r#"{"a": {"b": ["x", 7, -1.5, true, null, {"b": "deep"}, []]}, "\u0061": {"b": "twice"}, "c": "d"}"#;
        assert_eq!(values(body, &["a", "b", "*"]), ["x", "7", "-1.5", "true", "null"]);
        assert_eq!(values(body, &["a", "b"]), ["twice"]);
        assert_eq!(values(body, &["*", "b", "*", "b"]), ["deep"]);
        assert_eq!(values(body, &["c"]), ["d"]);
        assert_eq!(values(body, &[]), [""; 0]);
        assert_eq!(values("\"text\"", &[]), ["text"]);
        assert_eq!(values("[1e300, 1e9, -0.25, 429]", &["*"]), ["1e300", "1000000000.0", "-0.25", "429"]);
    }

    // BI-6
    #[test]
    fn invalid_json_matches_nothing() {
        for body in
            ["", "{", r#"{"a": "x""#, r#"{"a": "x"} {"#, r#"{"a": "x",}"#, r#"{"a": "x", "b": tru}"#, "{\"a\": \"\n\"}"]
        {
            assert!(!json_any(body.as_bytes(), &["a"], &mut |_| true), "{body}");
        }
        assert!(!json_any(b"{\"a\": \"\xff\"}", &["a"], &mut |_| true));
        assert!(json_any(br#" {"a": "x", "b": [1, {"c": 2}]} "#, &["a"], &mut |_| true));
    }

    /// Values beside the path are skipped without recursion, and a path nests only as deeply as it is long.
    // BI-6
    #[test]
    fn nested_json_needs_no_stack() {
        let deep = "[".repeat(60_000) + &"]".repeat(60_000);
        assert!(json_any(format!(r#"{{"deep": {deep}, "a": "x"}}"#).as_bytes(), &["a"], &mut |_| true));
        let stars = ["*"; 32];
        assert!(!json_any(deep.as_bytes(), &stars, &mut |_| true));
        assert!(!json_any("[".repeat(60_000).as_bytes(), &stars, &mut |_| true));
    }
}
