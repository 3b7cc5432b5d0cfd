//! TLS alerts, which TLS libraries report only in their error texts, each with its own spelling.

use std::error::Error;

use super::source;

/// Returns `true` if either side rejected a certificate or denied access.
pub(super) fn is_refusal(error: &(dyn Error + 'static)) -> bool {
    names(error, &["certificate", "unknownca", "accessdenied"])
}

/// Returns `true` if the server has sent the alert internal_error (80).
pub(super) fn is_internal_error(error: &(dyn Error + 'static)) -> bool {
    names(error, &["alertinternalerror"])
}

/// Returns `true` if any error text in the chain contains one of these words (lower case, letters and digits only).
/// Examples are rustls's "received fatal alert: UnknownCA" and OpenSSL's "tlsv1 alert unknown ca".
fn names(error: &(dyn Error + 'static), words: &[&str]) -> bool {
    std::iter::successors(Some(error), |&error| source(error)).any(|error| {
        let letters = error.to_string().into_bytes().into_iter().filter(u8::is_ascii_alphanumeric);
        let text: Vec<u8> = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        words.iter().any(|word| text.windows(word.len()).any(|part| part == word.as_bytes()))
    })
}
