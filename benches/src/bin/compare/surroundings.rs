//! The machine, the versions and the date of a measurement.

use std::process::Command;

/// The peers whose versions are stated, as the lock file names them.
const PEERS: &[&str] = &[
    "tower",
    "tower-resilience-retry",
    "reqwest",
    "reqwest-middleware",
    "reqwest-retry",
    "retry-policies",
    "tokio-retry",
    "backon",
    "backoff",
    "exponential-backoff",
    "governor",
    "tonic",
    "hyper-util",
    "hyper",
    "tokio",
    "http",
];

const LOCK: &str = include_str!("../../../../Cargo.lock");

/// Writes one paragraph below the table.
pub(crate) fn describe() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let versions: Vec<String> = PEERS.iter().filter_map(|name| Some(format!("{name} {}", version(name)?))).collect();
    format!(
        "Measured on {} with {processors} processors, {}, {}, {}. Versions: {}.",
        processor(),
        first_line("rustc", &["--version"]),
        first_line("valgrind", &["--version"]),
        first_line("date", &["-u", "+%Y-%m-%d"]),
        versions.join(", "),
    )
}

/// Returns the highest version in the lock file, which is the one that the measurements use.
fn version(package: &str) -> Option<&'static str> {
    let header = format!("name = \"{package}\"");
    let blocks = LOCK.split("[[package]]").filter(|block| block.lines().any(|line| line == header));
    let versions = blocks.filter_map(|block| block.split_once("version = \"")?.1.split_once('"')).map(|(of, _)| of);
    versions.last()
}

/// Returns the system's name of its processor.
fn processor() -> String {
    let described = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = described.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.into(), |(_, model)| model.trim().into())
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().map(|output| output.stdout);
    let text = String::from_utf8(output.unwrap_or_default()).unwrap_or_default();
    text.lines().next().unwrap_or(program).into()
}
