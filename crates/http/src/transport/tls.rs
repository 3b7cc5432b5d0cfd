//! Refusals in TLS, which the libraries report only in their error texts, each with its own spelling.

use std::error::Error;

use super::source;
use super::texts::Letters;

/// Refused certificates, of the server or of the client.
const CERTIFICATE: &[&str] = &[
    // rustls, and its next version
    "invalid peer certificate",
    "invalid certificate revocation list",
    "peer sent no certificates",
    "did not support the certificate",
    "found the certificate",
    "rejected the certificate",
    "required a client certificate",
    "the peer denied access",
    "failed to perform a handshake cryptographic operation",
    // OpenSSL, BoringSSL and native-tls, with the reasons of OpenSSL's verification
    "certificate verify failed",
    "cert verification failed",
    "self-signed certificate",
    "unable to get local issuer certificate",
    // the alerts of RFC 8446 §6.2 that concern a certificate, in every library's spelling
    "bad certificate",
    "unsupported certificate",
    "certificate revoked",
    "certificate expired",
    "alert certificate unknown",
    "alert certificate required",
    "alert unknown ca",
    "alert access denied",
    "alert decrypt error",
    // Secure Transport
    "certificate was not trusted",
    "certificate is not trusted",
    "certificate not trusted",
    "invalid certificate",
    // SChannel, whose texts depend on the language: expired, untrusted, chain, other name, revoked; the same and
    // another name from the security package
    "os error -2146762495",
    "os error -2146762487",
    "os error -2146762486",
    "os error -2146762481",
    "os error -2146762484",
    "os error -2146893019",
    "os error -2146893017",
    "os error -2146893016",
    "os error -2146893022",
];

/// Protocols, versions and names that one side refused in the handshake. In TLS 1.2, handshake_failure may also mean
/// that the client has no certificate (RFC 5246 §7.4.6).
const PROTOCOL: &[&str] = &[
    "alert handshake failure",
    "alert protocol version",
    "alert insufficient security",
    "alert inappropriate fallback",
    "alert unrecognised name",
    "tlsv1 unrecognized name",
    "alert no application protocol",
    "peer is incompatible",
    "peer doesn't support any known protocol",
    "presented server name type wasn't supported",
    "http/2 was not negotiated",
];

/// Returns `true` if the text is that of a certificate or protocol refused in the handshake.
pub(super) fn is_refused(text: &Letters) -> bool {
    text.contains_any(CERTIFICATE) || text.contains_any(PROTOCOL)
}

/// Returns `true` if a certificate was refused on an established connection. In TLS 1.3 the client's certificate is
/// verified after the handshake.
pub(super) fn is_certificate_refused(error: &(dyn Error + 'static)) -> bool {
    let mut links = std::iter::successors(Some(error), |&error| source(error));
    links.any(|error| Letters::of(&error.to_string()).contains_any(CERTIFICATE))
}
