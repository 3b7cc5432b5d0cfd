//! h2's errors: resets, GOAWAYs and what lies under them. Who raised one decides: only the server
//! knows what it left undone.

use std::error::Error;

use ::h2::Reason;
use reattempt_core::{Failure, FailureKind, Verdict};

use super::{LOST, Place, Sign};

/// RFC 9113 §6.8 and §8.7: what a GOAWAY leaves out and what REFUSED_STREAM resets was not acted on.
const REFUSED: Verdict = Verdict::Unprocessed(Failure::new(FailureKind::Network));

pub(super) fn sign(error: &(dyn Error + 'static)) -> Option<Sign> {
    error.downcast_ref::<::h2::Error>().map(|error| {
        if error.is_io() {
            return Sign::At(Place::Connected);
        }
        let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
        let ended = error.is_reset() || error.is_go_away();
        if error.is_remote() {
            // h2 gives the server's GOAWAY to those streams only that lie beyond its last stream.
            Sign::Proof(if refused || error.is_go_away() { REFUSED } else { LOST })
        } else if ended && !error.is_library() {
            // Ended by the code that uses h2: hyper does it when the request's body fails.
            Sign::Proof(Verdict::Permanent)
        } else if error.reason().is_some() {
            // The server broke the protocol; what it did before that is not known.
            Sign::Proof(LOST)
        } else {
            // A misuse of h2.
            Sign::Proof(Verdict::Permanent)
        }
    })
}
