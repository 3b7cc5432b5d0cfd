//! The head of a request, saved for a retry and restored, beside a clone of it.
//!
//! This row decides if the saved head stays one buffer: a clone is the least code that does the same.

use std::hint::black_box;

use http::Request;
use reattempt_replay::SavedHead;

use super::{Row, Work, above, alone};
use crate::requests::{Body, fresh, fresh_unknown, template};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "head",
        title: "the head of a fresh request, saved",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(fresh, |_| ())),
            above("ours", "bare", || each(fresh, SavedHead::new)),
            above("clone", "bare", || each(fresh, cloned)),
            alone("bare-template", || each(template(), |_| ())),
            above("ours-template", "bare-template", || each(template(), SavedHead::new)),
            above("clone-template", "bare-template", || each(template(), cloned)),
        ],
    },
    Row {
        name: "head-restored",
        title: "the head of a fresh request, saved and restored",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(fresh_unknown, |_| ())),
            above("ours", "bare", || each(fresh_unknown, restored)),
            above("clone", "bare", || each(fresh_unknown, cloned)),
        ],
    },
];

/// Makes one request after another, and saves the head of each.
fn each<T: 'static>(mut make: impl FnMut() -> Request<Body> + 'static, save: fn(&Request<Body>) -> T) -> Work {
    Box::new(move |operations| {
        for _ in 0..operations {
            let request = make();
            black_box(save(black_box(&request)));
        }
    })
}

fn restored(request: &Request<Body>) -> Request<()> {
    let mut again = Request::new(());
    SavedHead::new(request).move_to(&mut again);
    again
}

fn cloned(request: &Request<Body>) -> Request<()> {
    let mut again = Request::new(());
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.version_mut() = request.version();
    *again.headers_mut() = request.headers().clone();
    *again.extensions_mut() = request.extensions().clone();
    again
}
