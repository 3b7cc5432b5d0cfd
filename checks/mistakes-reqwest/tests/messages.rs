//! The compiler's messages for programs with another major version of reqwest.
//!
//! `TRYBUILD=overwrite cargo test -p reattempt-mistakes-reqwest` writes them again; review the changes.

#[test]
fn another_version_is_named() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
