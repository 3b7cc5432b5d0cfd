//! Whatever a text is, it gives a script, or an error with a place in the text.

use reattempt_faults::{Recording, Reply, Script, ScriptError, ServiceFault, WireFault};

/// Reads a text as each kind of script.
pub(crate) fn check(text: &str) {
    let read = |result: Result<(), ScriptError>| {
        if let Err(error) = result {
            assert!(!error.to_string().is_empty());
        }
    };
    read(Script::<ServiceFault>::from_toml(text).map(drop));
    read(Script::<WireFault>::from_toml(text).map(drop));
    read(Script::<Reply>::from_toml(text).map(drop));
    read(Recording::from_toml(text).map(drop));
}
