//! The pictures in the repository are equal to those that the laboratory draws.

use std::path::PathBuf;

use super::{lab, scratch};

/// Draws the picture again by its documented command, and compares it.
fn as_drawn_now(name: &str, arguments: &[&str]) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let drawn = scratch(&format!("again-{name}"));
    let arguments = [arguments, &["--plot", drawn.to_str().unwrap()]].concat();
    assert!(lab(&arguments).current_dir(&root).output().unwrap().status.success());
    let shown = root.join("crates/lab/pictures").join(name);
    let same = std::fs::read(&shown).unwrap() == std::fs::read(&drawn).unwrap();
    assert!(same, "draw {} anew: {arguments:?}", shown.display());
}

#[test]
fn jitters() {
    as_drawn_now("jitters.svg", &["plan", "--file", "crates/lab/pictures/jitters.toml"]);
}

#[test]
fn storm() {
    let policies = ["none", "naive", "unlimited", "ours", "grpc-throttle", "aws-quota"];
    let scene = ["--clients", "2000", "--duration", "100s", "--at", "20s"];
    as_drawn_now("storm.svg", &[&["storm"], &policies[..], &scene].concat());
}

#[test]
fn capacity() {
    as_drawn_now("capacity.svg", &["capacity", "50", "--clients", "200"]);
}

#[test]
fn breaker() {
    let policies = ["ours", "none+breaker", "ours+breaker", "ours+breaker+bulkhead:limit=64"];
    let scene = ["--clients", "20", "--rate", "50", "--duration", "150s", "--at", "20s"];
    // No multiple of an open time, so that no probe meets the end of the outage by chance.
    let outage = ["--outage", "17s"];
    as_drawn_now("breaker.svg", &[&["storm"], &policies[..], &scene, &outage].concat());
}

#[test]
fn adaptive_limit() {
    let policies = ["unlimited", "unlimited+vegas", "ours", "ours+vegas"];
    let scene = ["--clients", "20", "--rate", "50", "--duration", "100s", "--at", "20s"];
    as_drawn_now("adaptive.svg", &[&["storm"], &policies[..], &scene].concat());
}

#[test]
fn limits() {
    as_drawn_now("limits.svg", &["limits", "--scenes", "step,leak"]);
}

#[test]
fn endpoints() {
    as_drawn_now("endpoints.svg", &["endpoints", "--scenes", "1-of-3,8-of-20,14-of-20"]);
}

#[test]
fn connections() {
    let scenes = "reset,goaway,crash-1000,token,refused-streams,balancer";
    as_drawn_now("connections.svg", &["connections", "--scenes", scenes, "--fault", "20s"]);
}

#[test]
fn frontier() {
    as_drawn_now("frontier.svg", &["frontier"]);
}

#[test]
fn contention() {
    as_drawn_now("contention.svg", &["contention", "--runs", "5"]);
}
