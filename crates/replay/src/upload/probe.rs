//! The question to a body of any type if it is an upload that can be opened again.
//!
//! Clients often box their bodies, and reqwest's requests have no extensions. So the question is asked through the two
//! methods that every wrapper passes on, and the answer comes through a thread-local value. The upload also answers
//! the methods themselves with values that no body has. A wrapper that changes the length, or adds trailers, does not
//! pass them on unchanged; then only the wrapper knows the content, and the body is not opened again.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http_body::{Body, SizeHint};

use super::source::Source;

/// The length by which an upload answers the question. Twice this number is still a valid length.
const ANSWER: u64 = 0x3F5A_91C4_7E02_B86D;

/// `true` from the first upload on. Until then, no body is asked.
static IN_USE: AtomicBool = AtomicBool::new(false);

thread_local! {
    static QUESTION: RefCell<Option<Question>> = const { RefCell::new(None) };
}

/// A question that is being asked on this thread.
#[derive(Default)]
struct Question {
    found: Option<Arc<Source>>,
}

/// Records that this process has an upload.
pub(super) fn begin() {
    IN_USE.store(true, Ordering::Relaxed);
}

/// Returns `true` if this process may have an upload.
#[inline]
pub(super) fn is_begun() -> bool {
    IN_USE.load(Ordering::Relaxed)
}

/// Returns the length by which an unread upload answers a question, if one is being asked.
pub(super) fn answer(source: &Arc<Source>) -> Option<SizeHint> {
    QUESTION
        .try_with(|question| match question.try_borrow_mut().ok()?.as_mut() {
            Some(question) => {
                question.found = Some(Arc::clone(source));
                Some(SizeHint::with_exact(ANSWER))
            }
            None => None,
        })
        .ok()
        .flatten()
}

/// Returns the way to open `body` again, if it is an unread upload in any number of transparent wrappers.
#[inline]
pub(crate) fn source_of(body: &impl Body) -> Option<Arc<Source>> {
    if is_begun() { ask(body) } else { None }
}

#[inline(never)]
fn ask(body: &impl Body) -> Option<Arc<Source>> {
    if body.is_end_stream() {
        return None;
    }
    QUESTION.try_with(|question| question.replace(Some(Question::default()))).ok()?;
    let asked = Asked;
    let length = body.size_hint().exact();
    let ended = body.is_end_stream();
    let found = QUESTION.try_with(RefCell::take).ok()??.found;
    drop(asked);
    found.filter(|_| ended && length == Some(ANSWER))
}

/// Ends the question, also if the body panics.
struct Asked;

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = QUESTION.try_with(RefCell::take);
    }
}
