//! The lists of the rules, in one place.

/// The crates whose public API is listed and whose figures are printed, by folder.
pub(crate) const CRATES: &str = "crates";

/// The page of these lists.
pub(crate) const RULES: &str = "checks/structure/src/rules.rs";

/// The most lines of a source file outside tests. A file with one thing in it may be longer, with its reason
/// ([`REASON`]).
pub(crate) const FILE_LINES: usize = 400;

/// The most characters of a line in a comment and in [`PAGE`]. rustfmt bounds the lines of code.
pub(crate) const LINE: usize = 120;

/// The page whose lines are bounded too.
pub(crate) const PAGE: &str = "ARCHITECTURE.md";

/// The most words of a cell in a table of that page.
pub(crate) const CELL_WORDS: usize = 60;

/// The page with the table of costs, and the results that it is copied from.
pub(crate) const README: &str = "README.md";
pub(crate) const RESULTS: &str = "benches/RESULTS.md";

/// The rows of the table of costs, each with its name in the results.
pub(crate) const COST_ROWS: &[(&str, &str)] = &[
    ("first-time success, request cloned from a template", "first-time success, template, empty body"),
    ("first-time success, request built anew, 1 KiB body", "first-time success, fresh, 1 KiB body"),
    (
        "1 KiB PUT over loopback HTTP/1.1, the whole call",
        "1 KiB PUT over loopback HTTP/1.1, the client's side, hyper-util",
    ),
    ("fails once, then succeeds, request built anew", "the same, fresh, 1 KiB body"),
];

/// The columns of the table of costs that have other names in the results.
pub(crate) const COST_COLUMNS: &[(&str, &str)] = &[("tower by hand", "tower by hand, own bucket")];

/// The manifest with the oldest supported versions.
pub(crate) const MANIFEST: &str = "Cargo.toml";

/// The columns of README's table of the oldest supported versions.
pub(crate) const OLDEST: &[&str] = &["Rust", "tokio", "http", "hyper", "hyper-util", "h2", "reqwest", "tonic", "tower"];

/// The most characters in the name of a test.
pub(crate) const TEST_NAME: usize = 40;

/// The number of equal lines in two files that counts as a copy, unless one of them has a reason ([`REASON`]).
pub(crate) const EQUAL_LINES: usize = 12;

/// The start of a comment that turns a broken rule into a warning: the name of the rule, `): ` and a reason follow.
pub(crate) const REASON: &str = "// structure(";

/// The fewest words of a reason.
pub(crate) const REASON_WORDS: usize = 3;

/// The number of functions in a row, with the same names in [`SHELL_FILES`] files, that counts as a shell. Methods of
/// trait implementations alone are none: the trait chose their names.
pub(crate) const SHELL_NAMES: usize = 4;

/// The number of files with the same names that counts as a shell.
pub(crate) const SHELL_FILES: usize = 3;

/// The files whose shells stand, each set with its reason. An entry without a shell is reported.
pub(crate) const SHELLS: &[(&[&str], &str)] = &[];

/// The crate whose types may have one name: it is not published, and each of its commands is a program of its own.
pub(crate) const UNNAMED: &str = "crates/lab";

/// The name that a type has in each module that needs it, as in tower.
pub(crate) const MODULES_OWN: &str = "ResponseFuture";

/// The names that several types of a crate have, each with its reason. A name that occurs once is reported.
pub(crate) const SAME_NAMES: &[(&str, &str, &str)] =
    &[("crates/fleet", "State", "users write `rule::State` and `rate::State`, the same thing in two stores")];

/// The names of observers, as variables, fields and methods, and the function that alone calls them.
pub(crate) const OBSERVERS: &[&str] = &["callback", "observer", "on_event"];
pub(crate) const NOTIFY: &str = "notify";

/// The files and folders that call observers themselves, each with its reason.
pub(crate) const OBSERVERS_CALLED: &[(&str, &str)] = &[
    ("crates/lab/", "a simulation has no calls that unwind"),
    ("crates/policy-file/", "a file's observer runs in `reload` and in the watch, never in a destructor"),
    ("crates/testing", "tests fail by panicking"),
];

/// The words that no doc comment opens with.
pub(crate) const OPENINGS: &[&str] = &["What", "Whether", "Whom", "Whose", "Who", "How", "When", "The same"];

/// The folders in which no module mentions gRPC: a new module is generic until it is listed below.
pub(crate) const GENERIC: &[&str] = &[
    "crates/endpoints/src/",
    "crates/engine/src/",
    "crates/fallback/src/",
    "crates/guard/src/",
    "crates/peek-body/src/",
    "crates/reattempt/src/",
    "crates/resume/src/",
    "crates/telemetry/src/",
];

/// The words that mention gRPC: a library, and the names of codes that HTTP does not have. So do `grpc` inside any word
/// and a service config.
pub(crate) const GRPC_WORDS: &[&str] = &[
    "tonic",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The files and folders below [`GENERIC`] that may mention gRPC, each with its reason.
pub(crate) const GRPC_ALLOWED: &[(&str, &str)] = &[
    ("crates/endpoints/src/grpc.rs", "its part of this layer"),
    ("crates/engine/src/grpc/", "the module of everything that is gRPC's"),
    ("crates/engine/src/protocol/origin.rs", "the compiler's message that names gRPC's layer"),
    ("crates/engine/src/wall.rs", "the names that its part of a layer needs"),
    ("crates/fallback/src/grpc/", "its part of this layer"),
    ("crates/guard/src/grpc.rs", "its part of this layer"),
    ("crates/guard/src/shed/grpc.rs", "its part of this layer"),
    ("crates/peek-body/src/settings.rs", "the content types of streams, gRPC's among them"),
    ("crates/reattempt/src/grpc.rs", "the page of its names"),
    ("crates/reattempt/src/guide/mod.rs", "a page for each client, tonic's among them"),
    ("crates/reattempt/src/order.rs", "the page on the order of layers, gRPC's among them"),
    ("crates/reattempt/src/standard/grpc.rs", "its part of this layer"),
    ("crates/telemetry/src/grpc/", "its part of this layer"),
    ("/lib.rs", "the features, the modules and the re-exports"),
    ("/shed/mod.rs", "the modules"),
    ("/standard/mod.rs", "the modules"),
];

/// The layers inside the engine, from the ground up; no module imports one above it. Each module is listed.
pub(crate) const LAYERS: &[&[&str]] = &[
    &["call"],
    &["accessors", "error_mode", "send", "shared"],
    &["protocol", "reqwest_0_12", "reqwest_ext"],
    &["policy"],
    &["retry", "hedge", "linger", "operation"],
    &[
        "body", "budget", "classify", "deadline", "error", "fallback", "fresh", "observe", "profile", "report",
        "schedule",
    ],
    &["grpc"],
    &["wall"],
];

/// The module whose names the crates above import, and the most names on it.
pub(crate) const WALL: &str = "wall";
pub(crate) const WALL_NAMES: usize = 60;

/// The crate that has these layers.
pub(crate) const LAYERED: &str = "crates/engine";

/// The crate that users depend on, and the crates whose items it exports, by folder.
pub(crate) const FACADE: &str = "crates/reattempt";
pub(crate) const BELOW_FACADE: &[&str] =
    &["endpoints", "engine", "fallback", "guard", "peek-body", "resume", "telemetry"];

/// The imports from a module of that crate that no layer forbids, each pair with its reason.
pub(crate) const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("operation", "protocol", "an operation has no request and no response"),
    ("operation", "retry", "an operation needs no middleware"),
];
