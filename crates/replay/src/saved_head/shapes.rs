//! A thread-local cache of header maps without their values.
//!
//! Restoring a head consists mostly of parsing, hashing and inserting its names. Clients keep sending requests with the
//! same names, so a cached map with these names is cloned, and only the values are set.

use std::cell::RefCell;

use http::{HeaderMap, HeaderValue};

use super::pairs::Pairs;

/// The number of shapes that each thread caches.
const SHAPES: usize = 8;

/// The maximum number of values in a cached map.
const LONGEST: usize = 32;

/// The names of a map, in order.
#[derive(Default)]
struct Shape {
    mark: u64,
    /// A map with empty values. `None` until a second head with this mark arrives, so that a client whose requests
    /// always differ clones no maps.
    blank: Option<HeaderMap>,
}

thread_local! {
    static HELD: RefCell<Vec<Shape>> = const { RefCell::new(Vec::new()) };
}

/// Returns a hash of these headers' names. Other names may have the same hash.
#[inline]
pub(super) fn mark(headers: Pairs<'_>) -> u64 {
    headers.fold(1, |mark, (name, _)| {
        let first = match name.first_chunk() {
            Some(first) => u64::from_le_bytes(*first),
            None => name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        (mark.rotate_left(5) ^ first ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// Returns the thread's cached map for this mark, with empty values.
#[inline]
pub(super) fn blank(mark: u64) -> Option<HeaderMap> {
    // A thread that is exiting has no cache.
    let held = HELD.try_with(|held| {
        let held = held.try_borrow().ok()?;
        let shape = held.get(slot_of(mark))?;
        if shape.mark == mark { shape.blank.clone() } else { None }
    });
    held.ok()?
}

/// Caches the shape of these headers once two requests in a row had the same mark.
#[cold]
pub(super) fn learn(mark: u64, headers: &HeaderMap) {
    if headers.len() > LONGEST {
        return;
    }
    let _ = HELD.try_with(|held| {
        let mut held = held.try_borrow_mut().ok()?;
        held.resize_with(SHAPES, Shape::default);
        let shape = held.get_mut(slot_of(mark))?;
        let blank = (shape.mark == mark).then(|| blanked(headers));
        *shape = Shape { mark, blank };
        Some(())
    });
}

/// Returns these headers with empty values.
fn blanked(headers: &HeaderMap) -> HeaderMap {
    let mut blank = headers.clone();
    for value in blank.values_mut() {
        *value = HeaderValue::from_static("");
    }
    blank
}

/// Returns the slot for a mark: its highest bits, which are mixed best.
#[inline]
fn slot_of(mark: u64) -> usize {
    (mark >> 61) as usize % SHAPES
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::super::SavedHead;
    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::new(());
        for (name, value) in headers {
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers_mut().append(name, value.parse().unwrap());
        }
        request
    }

    /// Saves and restores this head, and returns its mark.
    fn restore(request: &Request<()>) -> u64 {
        let mut again = Request::new(());
        let kept = SavedHead::new(request);
        let mark = mark(kept.headers());
        kept.move_to(&mut again);
        let pairs = |request: &Request<()>| -> Vec<_> {
            let headers = request.headers().iter();
            headers.map(|(name, value)| (name.clone(), value.clone(), value.is_sensitive())).collect()
        };
        assert_eq!(pairs(&again), pairs(request));
        assert_eq!(again.headers(), request.headers());
        mark
    }

    #[test]
    fn head_of_a_held_shape_comes_back() {
        let names = ["accept", "x-one", "x-two", "x-one", "x-three", "te"];
        for turn in ["a", "b", "c", "d"] {
            let headers: Vec<_> = names.iter().map(|name| (*name, turn)).collect();
            let mut request = request(&headers);
            request.headers_mut().get_mut("x-two").unwrap().set_sensitive(turn != "c");
            let mark = restore(&request);
            assert_eq!(blank(mark).is_some(), turn != "a", "{turn}");
        }
    }

    #[test]
    fn held_shape_has_no_values() {
        let request = request(&[("authorization", "the secret"), ("cookie", "another")]);
        restore(&request);
        let mark = restore(&request);
        let blank = blank(mark).unwrap();
        assert_eq!(blank.len(), 2);
        assert!(blank.values().all(HeaderValue::is_empty));
    }

    #[test]
    fn other_names_of_one_mark_come_back() {
        // The mark covers eight bytes and the length of each name.
        let [one, two] = ["x-header-1", "x-header-2"].map(|name| request(&[(name, "value")]));
        let marks = [&one, &one, &two, &one, &two, &two].map(restore);
        assert_eq!(marks, [marks[0]; 6]);
    }

    #[test]
    fn fewer_or_more_headers_come_back() {
        let all = [("x-a", "1"), ("x-b", "2"), ("x-c", "3"), ("x-d", "4")];
        for _ in 0..3 {
            for count in 0..=all.len() {
                restore(&request(&all[..count]));
            }
        }
    }

    #[test]
    fn long_shape_is_not_held() {
        let names: Vec<_> = (0..=LONGEST).map(|number| format!("x-{number}")).collect();
        let headers: Vec<_> = names.iter().map(|name| (name.as_str(), "value")).collect();
        let request = request(&headers);
        restore(&request);
        assert!(blank(restore(&request)).is_none());
    }

    /// The cache also stores a shape of the maximum length.
    #[test]
    fn several_shapes_are_held_at_a_time() {
        let names: Vec<_> = (0..LONGEST).map(|number| format!("x-{number}")).collect();
        let longest: Vec<_> = names.iter().map(|name| (name.as_str(), "value")).collect();
        let longest = request(&longest);
        restore(&longest);
        assert!(blank(restore(&longest)).is_some());
        let all: Vec<_> = names.iter().map(|name| request(&[(name, "value")])).collect();
        for request in all.iter().chain(&all) {
            restore(request);
        }
        let held = HELD.with(|held| held.borrow().iter().filter(|one| one.mark != 0).count());
        assert!(held > SHAPES / 2, "{held} of {SHAPES}");
    }

    #[test]
    fn other_short_names_have_another_mark() {
        let letters = 'a'..='p';
        let names: Vec<_> = letters.flat_map(|one| [format!("{one}x"), format!("{one}-{one}")]).collect();
        let pairs = names.iter().flat_map(|one| names.iter().map(move |two| [one, two]));
        let mut marks: Vec<_> = pairs
            .map(|[one, two]| {
                let request = request(&[(one, "value"), (two, "value")]);
                mark(SavedHead::new(&request).headers())
            })
            .collect();
        let all = marks.len();
        marks.sort_unstable();
        marks.dedup();
        assert_eq!(marks.len(), all);
    }
}
