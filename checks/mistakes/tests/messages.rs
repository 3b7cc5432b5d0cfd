//! The compiler's messages for natural mistakes.
//!
//! A new compiler may change the frame around them. `TRYBUILD=overwrite cargo test -p
//! reattempt-mistakes` writes the messages again; review the changes.

// trap 47
#[test]
fn natural_mistakes_name_their_remedy() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

#[test]
fn natural_spellings_compile() {
    trybuild::TestCases::new().pass("tests/works/*.rs");
}
