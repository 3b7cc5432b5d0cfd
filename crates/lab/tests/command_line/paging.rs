//! The page of each command.

use std::collections::BTreeSet;

use super::getting::nobody;
use super::replaying::{RECORDING, recorded};
use super::{run, scratch, wrote};

/// Returns the parts of a page before, in and after the document.
fn parts(page: &str) -> [&str; 3] {
    let (before, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (document, after) = rest.split_once("</script>").unwrap();
    [before, document, after]
}

/// Each command writes a page that has its JSON document and its picture, and that refers to nothing else.
#[test]
fn every_command_writes_one_page() {
    let (_port, url) = nobody();
    let recording = recorded("paged.toml", RECORDING);
    let lock = scratch("paged.lock");
    std::fs::write(&lock, "[[package]]\nname = \"tower\"\nversion = \"0.5.3\"\n").unwrap();
    let lock = lock.to_str().unwrap();
    let policies = recorded("paged-policies.toml", "[orders]\nmax_attempts = 2\n");
    let commands: [(&[&str], i32, bool); 15] = [
        (&["plan"], 0, true),
        (&["check", &policies], 0, false),
        (&["doctor", lock], 0, false),
        (&["get", &url, "--policy", "constant:base=1ms,max_attempts=2"], 1, true),
        (&["responsive", "--calls", "16"], 0, true),
        (&["contention", "--clients", "1,5", "--runs", "2"], 0, true),
        (&["breaker", "--duration", "20s"], 0, true),
        (&["limits", "vegas", "--scenes", "idle"], 0, true),
        (&["endpoints", "ours", "--scenes", "1-of-3", "--fault", "5s"], 0, true),
        (&["connections", "none", "--scenes", "reset", "--fleets", "10x1/s", "--fault", "5s"], 0, true),
        (&["capacity", "50", "--clients", "20"], 0, true),
        (&["budgets", "--calls", "50", "--duration", "20s", "--failure-rates", "1"], 0, true),
        (&["frontier", "--clients", "100"], 0, true),
        (&["replay", &recording], 0, false),
        (&["storm", "none", "--clients", "20", "--duration", "60s", "--at", "5s", "--outage", "5s"], 0, true),
    ];
    let (_, help, _) = run(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let known: BTreeSet<_> = list
        .lines()
        .map_while(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let tried = commands.iter().map(|(arguments, ..)| arguments[0]).chain(["help"]).collect();
    assert_eq!(known, tried, "{help}");

    for (arguments, expected, has_picture) in commands {
        let path = scratch(&format!("{}.html", arguments[0]));
        let page = [arguments, &["--json", "--html", path.to_str().unwrap()]].concat();
        let (code, json, errors) = run(&page);
        assert_eq!((code, errors), (expected, wrote(&path)), "{arguments:?}");
        let page = std::fs::read_to_string(path).unwrap();
        let [before, document, after] = parts(&page);
        assert_eq!(document.replace("\\u003c", "<"), json.trim_end(), "{arguments:?}");
        assert_eq!(before.contains("<svg "), has_picture, "{arguments:?}");
        for reference in ["http://", "https://", "href=", "src=", "url(", "@import"] {
            let own = before.replace(&url, "");
            assert!(!own.contains(reference) && !after.contains(reference), "{arguments:?}: {reference}");
        }
        assert!(before.contains("default-src 'none'"), "{before}");
    }
}

#[test]
fn page_keeps_secrets_of_get_out() {
    let (_port, url) = nobody();
    let page = scratch("secret.html");
    run(&["get", &url, "-p", "constant:max_attempts=1", "-H", "authorization: hush", "--html", page.to_str().unwrap()]);
    assert!(!std::fs::read_to_string(page).unwrap().contains("hush"));
    let (code, _, errors) = run(&["get", "http://me:hush@localhost/"]);
    assert_eq!(code, 2);
    assert!(errors.contains("it must have no user and no password"), "{errors}");
}

/// Names of policies and files may contain anything.
#[test]
fn hostile_names_stay_text() {
    let name = "</script><script>alert(1)</script><!--&";
    let file = recorded("a<b>&.toml", &format!("[{name:?}]\nmax_attempts = 2\n"));
    let page = scratch("hostile.html");
    let (code, _, errors) = run(&["plan", "--file", &file, "--html", page.to_str().unwrap()]);
    assert_eq!((code, errors), (0, wrote(&page)));
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "the document's and the page's own");
    assert_eq!(page.matches("<!--").count(), 0);
    assert!(page.contains("a&lt;b&gt;&amp;.toml") && !page.contains("a<b>"), "{page}");
    assert!(parts(&page)[1].contains(r"\u003c/script>\u003cscript>alert(1)"), "{page}");
}

#[test]
fn unwritable_page_is_an_error() {
    let (code, _, errors) = run(&["plan", "--html", "no/such/place.html"]);
    assert_eq!(code, 2);
    assert!(errors.starts_with("error: cannot write no/such/place.html: No such file"), "{errors}");
}

/// A misspelt name of any list has a suggestion.
#[test]
fn misspelt_names_have_a_suggestion() {
    let file = recorded("misspelt.toml", "[orders]\nmax_attempts = 2\n");
    for (arguments, name) in [
        (
            "storm our",
            "nor one of none, naive, unlimited, ours, for-rate, grpc-throttle, aws-quota, ratio, fleet, former; did you mean `ours`?",
        ),
        ("storm strpe", "did you mean `stripe`?"),
        ("storm ours+braker", "did you mean `breaker`?"),
        ("storm ours+vegas:mots=3", "did you mean `most`?"),
        ("storm --fault stal", "'stall'"),
        ("plan exponental", "did you mean `exponential`?"),
        ("plan stripe:max_atempts=1", "did you mean `max_attempts`?"),
        ("plan exponential:jitter=ful", "did you mean `full`?"),
        ("plan --failure conect", "did you mean `connect`?"),
        ("limits vega", "did you mean `vegas`?"),
        ("limits --scenes stepp", "'step'"),
        ("endpoints our", "'ours'"),
        ("endpoints --scenes mixd", "'mixed'"),
        ("responsive --service windw", "'window'"),
        ("breaker countin", "did you mean `counting`?"),
        ("strom", "'storm'"),
    ] {
        let (code, _, errors) = run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 2, "{arguments}: {errors}");
        assert!(errors.contains(name), "{arguments}: {errors}");
    }
    let (code, _, errors) = run(&["get", "http://localhost/", "--file", &file, "--policy", "order"]);
    assert_eq!(code, 2);
    assert!(errors.ends_with("has no policy of the name order; did you mean `orders`?\n"), "{errors}");
}
