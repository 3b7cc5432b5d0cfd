//! The messages that the compiler shows for the natural mistakes.
//!
//! A new compiler may change the frame around them:
//! `TRYBUILD=overwrite cargo test -p reattempt-mistakes` writes them anew, to be reviewed.

#[test]
fn natural_mistakes_name_their_remedy() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
