//! The table, lock files of each version, and products of attempts.

use semver::Version;

use super::diagnosis::Diagnosis;
use super::lock::Lock;
use super::retriers::RETRIERS;
use super::table::Kind;

/// Returns a lock file of version 4 with these packages: name, version, dependencies.
fn lock(packages: &[(&str, &str, &[&str])]) -> String {
    let mut text = "version = 4\n".to_owned();
    for (name, version, dependencies) in packages {
        text += &format!("[[package]]\nname = {name:?}\nversion = {version:?}\n");
        text += &format!("dependencies = {dependencies:?}\n");
    }
    text
}

fn diagnosis(packages: &[(&str, &str, &[&str])]) -> Diagnosis {
    Diagnosis::of(&Lock::parse(&lock(packages)).unwrap(), 3)
}

#[test]
fn table_is_sorted_by_name_and_version() {
    let keys = RETRIERS.iter().map(|it| {
        let [oldest, newest] = [it.read.0, it.read.1].map(|text| Version::parse(text).unwrap());
        assert!(oldest <= newest, "{}", it.name);
        (it.name, oldest)
    });
    assert!(keys.is_sorted());
}

#[test]
fn table_has_every_text() {
    for retrier in RETRIERS {
        for text in [retrier.after, retrier.off, retrier.file] {
            assert!(!text.is_empty() && !text.contains("  "), "{}: {text:?}", retrier.name);
        }
    }
}

#[test]
fn every_version_of_the_format_is_read() {
    let first = r#"
        [root]
        name = "app"
        version = "0.1.0"
        dependencies = ["reqwest 0.13.1 (registry+https://github.com/rust-lang/crates.io-index)"]

        [[package]]
        name = "reqwest"
        version = "0.13.1"
        source = "registry+https://github.com/rust-lang/crates.io-index"

        [metadata]
        "checksum reqwest 0.13.1 (registry+https://github.com/rust-lang/crates.io-index)" = "00"
    "#;
    let later = r#"
        version = VERSION

        [[package]]
        name = "app"
        version = "0.1.0"
        dependencies = ["reqwest 0.13.1", "reqwest 0.12.30"]

        [[package]]
        name = "reqwest"
        version = "0.12.30"

        [[package]]
        name = "reqwest"
        version = "0.13.1"
        source = "registry+https://github.com/rust-lang/crates.io-index"
        checksum = "00"
    "#;
    let second = later.replace("version = VERSION\n", "");
    let texts = [first.to_owned(), second]
        .into_iter()
        .chain([3, 4].map(|version| later.replace("VERSION", &version.to_string())));
    for text in texts {
        let lock = Lock::parse(&text).unwrap();
        let below = lock.below(0);
        assert!(below.iter().any(|&it| lock.packages[it].version.minor == 13), "{text}");
        assert_eq!(below.len(), lock.packages.len() - 1, "{text}");
    }
}

#[test]
fn attempts_multiply_along_a_path() {
    let found = diagnosis(&[
        ("app", "0.1.0", &["object_store", "octocrab"]),
        ("object_store", "0.14.0", &["helper"]),
        ("helper", "1.0.0", &["reqwest", "hyper-util"]),
        ("reqwest", "0.13.5", &["hyper-util", "tower"]),
        ("octocrab", "0.54.0", &["hyper-util"]),
        ("hyper-util", "0.1.20", &[]),
        ("tower", "0.5.3", &[]),
    ]);
    let products = found.retriers.iter().map(|it| (&*it.name, it.most_attempts));
    assert_eq!(
        products.collect::<Vec<_>>(),
        [
            ("object_store", Some(11 * 3 * 3)),
            ("octocrab", Some(4 * 3)),
            ("reqwest", Some(3 * 3)),
            ("hyper-util", None),
            ("tower", None),
        ]
    );
    assert_eq!(found.retriers[0].through, ["reqwest"]);
    assert_eq!((found.most_attempts, found.multiplies()), (99, true));
}

#[test]
fn circle_of_dependencies_is_followed_once() {
    let found = diagnosis(&[("reqwest", "0.13.5", &["octocrab"]), ("octocrab", "0.54.0", &["reqwest"])]);
    assert_eq!(found.most_attempts, 4 * 3);
}

#[test]
fn version_selects_the_entry() {
    let kind = |name, version| {
        let found = diagnosis(&[(name, version, &[])]);
        found.retriers.first().map(|it| (it.kind, it.off.unwrap_or_default()))
    };
    assert_eq!(kind("kube-client", "3.1.0"), None);
    assert_eq!(kind("kube-client", "4.0.0").unwrap().0, Some(Kind::Attempts(16)));
    assert_eq!(kind("reqwest", "0.11.0").unwrap().0, None);
    assert_eq!(kind("reqwest", "0.12.22").unwrap().1, "nothing before 0.12.23");
    assert!(kind("reqwest", "0.14.0").unwrap().1.starts_with("ClientBuilder::retry"));
    let newer = |version| diagnosis(&[("reqwest", version, &[])]).retriers[0].is_newer;
    assert_eq!([newer("0.12.30"), newer("0.13.5"), newer("0.13.6")], [false, false, true]);
    assert_eq!(kind("serde", "1.0.0"), None);
    let is = |name, version, expected: Kind| assert_eq!(kind(name, version).unwrap().0, Some(expected), "{name}");
    is("axiom-rs", "0.11.6", Kind::Uncounted);
    is("azure_core", "0.19.0", Kind::Attempts(9));
    // The retries of typespec_client_core would count twice.
    is("azure_core", "0.30.0", Kind::Once);
    is("azure_core", "1.1.0", Kind::OnDemand);
    is("hf-hub", "0.4.3", Kind::OnDemand);
    is("hf-hub", "1.0.0", Kind::Attempts(6));
    is("rumqttc", "0.24.0", Kind::Uncounted);
    is("rumqttc", "0.25.1", Kind::OnDemand);
    is("async-openai", "0.28.1", Kind::Uncounted);
}

/// A crate that sends each request once multiplies nothing, but those below it do.
#[test]
fn crate_that_retries_nothing_adds_nothing() {
    let found = diagnosis(&[("elasticsearch", "8.19.0-alpha.1", &["reqwest"]), ("reqwest", "0.13.5", &[])]);
    let products = found.retriers.iter().map(|it| (&*it.name, it.most_attempts, it.acts()));
    assert!(products.eq([("reqwest", Some(9), true), ("elasticsearch", None, false)]));
    assert_eq!(found.most_attempts, 9);
}
