//! The report of a failed call.

use std::io::Error;

use reattempt::Report;

fn main() {
    let error = Error::other("no connection");
    let _ = Report::of(&error);
}
