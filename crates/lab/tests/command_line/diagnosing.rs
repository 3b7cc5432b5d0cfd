//! `lab doctor`.

use super::{run, run_with, scratch};

const LOCK: &str = r#"version = 4

[[package]]
name = "app"
version = "0.1.0"
dependencies = ["octocrab", "tower"]

[[package]]
name = "octocrab"
version = "0.54.9"
dependencies = ["tower"]

[[package]]
name = "tower"
version = "0.5.3"
"#;

#[test]
fn retriers_are_listed() {
    let (code, text, errors) = run_with(&["doctor", "-"], LOCK);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(
        text,
        "\
<stdin>: 3 packages, 1 of which repeat requests by default
One call with 3 attempts of its own may become 12, if every crate repeats the same failure.

octocrab 0.54.9: 4 attempts; 12 with the 3 of the program
  after   429, 5xx and every transport error, at once and for every method whose body can be copied
  off     OctocrabBuilder::add_retry_config(RetryConfig::None)
  source  https://docs.rs/crate/octocrab/0.54.9/source/src/service/middleware/retry.rs

Without effect on the number of requests, unless the program asks for it:

tower 0.5.3: only if the program asks for it
  after   the outcomes that the policy selects
  off     remove its layer or call
  source  https://docs.rs/crate/tower/0.5.3/source/src/retry/mod.rs
"
    );
}

/// A client of a kind that usually retries is listed, too, if it sends each request once.
#[test]
fn client_without_retries_is_listed() {
    let lock = "[[package]]\nname = \"tokio-postgres\"\nversion = \"0.7.18\"\n";
    let (code, text, errors) = run_with(&["doctor", "-", "--strict"], lock);
    assert_eq!((code, &*errors), (0, ""));
    let (_, entry) = text.split_once("\n\n").unwrap().1.split_once("\n\n").unwrap();
    assert_eq!(
        entry,
        "\
tokio-postgres 0.7.18: sends each request once
  after   nothing: a lost connection fails its queries, and a pool makes the next one
  off     nothing to turn off
  source  https://docs.rs/crate/tokio-postgres/0.7.18/source/src/client.rs
"
    );
}

/// A version that nobody has read yet is taken for the newest one, and the output names that one.
#[test]
fn newer_version_is_marked() {
    let (_, text, _) = run_with(&["doctor", "-"], &LOCK.replace("0.54.9", "0.99.0"));
    let expected =
        "\noctocrab 0.99.0: 4 attempts; 12 with the 3 of the program (in 0.54.9, the newest version that was read)\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn diagnosis_is_json_and_strict() {
    let (code, text, errors) = run_with(&["doctor", "-", "--json", "--strict", "--attempts", "5"], LOCK);
    assert_eq!((code, &*errors), (1, ""));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&document["attempts"], &document["most_attempts"]), (&5.into(), &20.into()));
    let first = &document["retriers"][0];
    assert_eq!((&first["crate"], &first["kind"]), (&"octocrab".into(), &"attempts".into()));
    assert_eq!((&first["attempts"], &document["retriers"][1]["kind"]), (&4.into(), &"on_demand".into()));

    let harmless = "[[package]]\nname = \"tower\"\nversion = \"0.5.3\"\n";
    assert_eq!(run_with(&["doctor", "-", "--strict"], harmless).0, 0);
}

#[test]
fn lock_file_errors_name_the_problem() {
    let missing = scratch("no such.lock");
    let (code, text, errors) = run(&["doctor", missing.to_str().unwrap()]);
    assert_eq!((code, &*text), (2, ""));
    let begins = format!("error: cannot read {}: ", missing.display());
    assert!(errors.starts_with(&begins), "{errors}");
    assert!(errors.ends_with("(`cargo generate-lockfile` writes a lock file)\n"), "{errors}");

    for (text, message) in [
        ("version = 9\n", "it has version 9; versions 1 to 4 are read"),
        ("[dependencies]\n", "it has no list of packages, so it is no Cargo.lock"),
        ("", "it has no list of packages, so it is no Cargo.lock"),
        ("version = 4\n\n[[package]]\nname = \"a\"\n", "line 3 is not part of a Cargo.lock: missing field `version`"),
        ("version = \"four\"\n", "line 1 is not part of a Cargo.lock: invalid type: string \"four\", expected u32"),
        (
            "[[package]]\nname = \"a\"\nversion = \"one\"\n",
            "package a has the version \"one\": unexpected character 'o' while parsing major version number",
        ),
        (
            "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\ndependencies = [\"b 2.0.0\"]\n",
            "package a depends on \"b 2.0.0\", which is not in the file",
        ),
    ] {
        let (code, out, errors) = run_with(&["doctor", "-"], text);
        assert_eq!((code, &*out), (2, ""), "{text}");
        assert_eq!(errors, format!("error: <stdin>: {message}\n"), "{text}");
    }
}
