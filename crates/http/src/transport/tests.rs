//! Tests of error chains without a server: single and nested io errors.

use std::fmt;
use std::io::ErrorKind;

use super::*;

/// An uninformative error in the chain.
#[derive(Debug)]
struct Wrapper(std::io::Error);

impl fmt::Display for Wrapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wrapper")
    }
}

impl Error for Wrapper {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

const UNREACHABLE: Verdict = Verdict::Transient(Failure::new(FailureKind::Connect));

#[test]
fn a_bare_io_error_is_judged_by_its_kind() {
    for (kind, expected) in [
        (ErrorKind::ConnectionRefused, Some(NOT_CONNECTED)),
        (ErrorKind::AddrNotAvailable, Some(NOT_CONNECTED)),
        (ErrorKind::HostUnreachable, Some(UNREACHABLE)),
        (ErrorKind::NetworkUnreachable, Some(UNREACHABLE)),
        (ErrorKind::NetworkDown, Some(UNREACHABLE)),
        (ErrorKind::ConnectionReset, Some(LOST)),
        (ErrorKind::ConnectionAborted, Some(LOST)),
        (ErrorKind::BrokenPipe, Some(LOST)),
        (ErrorKind::NotConnected, Some(LOST)),
        (ErrorKind::UnexpectedEof, Some(LOST)),
        (ErrorKind::TimedOut, Some(TIMED_OUT)),
        (ErrorKind::NotFound, None),
        (ErrorKind::PermissionDenied, None),
        (ErrorKind::InvalidData, None),
        (ErrorKind::Other, None),
    ] {
        let error = std::io::Error::from(kind);
        assert_eq!(verdict_of_error(&error), expected, "{kind:?}");
        assert_eq!(verdict_of_error(&Wrapper(error)), expected, "wrapped {kind:?}");
    }
}

/// An error on an established connection is a lost connection, unless TLS rejected a certificate.
#[cfg(feature = "hyper")]
#[test]
fn io_error_on_connection_is_lost() {
    for (error, expected) in [
        (ErrorKind::ConnectionReset.into(), Some(LOST)),
        (ErrorKind::UnexpectedEof.into(), Some(LOST)),
        (std::io::Error::from_raw_os_error(i32::MAX), Some(LOST)),
        (std::io::Error::other("bytes remaining on stream"), Some(LOST)),
        (ErrorKind::TimedOut.into(), Some(TIMED_OUT)),
        (std::io::Error::other("tlsv13 alert certificate required"), Some(Verdict::Permanent)),
        (ErrorKind::InvalidInput.into(), None),
        (ErrorKind::InvalidData.into(), Some(LOST)),
    ] {
        assert_eq!(walk(&error, Phase::Connected), expected, "{error:?}");
    }
}

/// The texts of rustls, OpenSSL 1 and 3, and BoringSSL give these verdicts, on an established connection and during the
/// handshake.
// trap 24
#[cfg(feature = "hyper")]
#[test]
fn tls_alerts_are_known_by_their_texts() {
    let (permanent, lost, unsent) = (Verdict::Permanent, LOST, NOT_CONNECTED);
    for (text, connected, connecting) in [
        ("received fatal alert: CertificateRequired", permanent, permanent),
        ("received fatal alert: UnknownCA", permanent, permanent),
        ("received fatal alert: AccessDenied", permanent, permanent),
        ("received fatal alert: DecryptError", permanent, permanent),
        ("received fatal alert: the peer found the certificate was not issued by a trusted CA", permanent, permanent),
        ("invalid peer certificate: Expired", permanent, permanent),
        ("SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:SSL alert 48", permanent, permanent),
        ("SSL routines:ssl3_read_bytes:tlsv1 alert decrypt error:SSL alert 51", permanent, permanent),
        ("SSL routines::ssl/tls alert bad certificate:SSL alert 42", permanent, permanent),
        ("SSL routines:OPENSSL_internal:TLSV1_ALERT_ACCESS_DENIED", permanent, permanent),
        ("SSL routines:OPENSSL_internal:TLSV1_ALERT_DECRYPT_ERROR", permanent, permanent),
        ("received fatal alert: HandshakeFailure", lost, permanent),
        ("SSL routines:ssl3_read_bytes:sslv3 alert handshake failure:SSL alert 40", lost, permanent),
        ("[TLSV1_ALERT_PROTOCOL_VERSION]", lost, permanent),
        ("received fatal alert: BadRecordMac", lost, unsent),
        ("received fatal alert: DecodeError", lost, unsent),
        ("cannot decrypt peer's message", lost, unsent),
        ("received corrupt message of type InvalidContentType", lost, unsent),
        ("SSL routines:ssl3_get_record:decryption failed or bad record mac", lost, unsent),
        ("SSL routines:ssl3_get_record:wrong version number", lost, unsent),
        ("received fatal alert: InternalError", lost, unsent),
        ("SSL routines:ssl3_read_bytes:tlsv1 alert internal error:SSL alert 80", lost, unsent),
        ("SSL routines:OPENSSL_internal:TLSV1_ALERT_INTERNAL_ERROR", lost, unsent),
        ("closed for an unknown cause", lost, unsent),
    ] {
        let kinds = [ErrorKind::InvalidData, ErrorKind::Other];
        for error in kinds.map(|kind| std::io::Error::new(kind, text)) {
            assert_eq!(walk(&error, Phase::Connected), Some(connected), "{error:?}");
            let wrapped = std::io::Error::other(Wrapper(error));
            assert_eq!(walk(&wrapped, Phase::Connected), Some(connected), "{wrapped:?}");
            assert_eq!(connecting::is_final(&wrapped), connecting == permanent, "{wrapped:?}");
        }
    }
}

/// Refused certificates in the texts of TLS libraries, as they arrive while connecting.
// trap 63
#[test]
fn refused_certificate_is_final_in_any_text() {
    for text in [
        "invalid peer certificate: certificate not valid for name \"a.example\"",
        "peer sent no certificates",
        "error:0A000086:SSL routines:tls_post_process_server_certificate:certificate verify failed:ssl/statem/statem_clnt.c\
         :1889: (self-signed certificate)",
        "error:1416F086:SSL routines:tls_process_server_certificate:certificate verify failed:../ssl/statem/\
         statem_clnt.c:1913: (Hostname mismatch)",
        "TLS handshake failed: cert verification failed - unable to get local issuer certificate \
         [CERTIFICATE_VERIFY_FAILED]",
        "TLS handshake failed [TLSV1_ALERT_CERTIFICATE_REQUIRED]",
        "The certificate was not trusted.",
        "\u{201c}a.example\u{201d} certificate is not trusted",
        "Die Zertifikatkette wurde nicht als vertrauenswürdig eingestuft. (os error -2146762487)",
        "The target principal name is incorrect. (os error -2146893022)",
    ] {
        let error: Box<dyn Error + Send + Sync> = text.into();
        assert!(connecting::is_final(&*error), "{text}");
    }
}

/// Proxies, resolvers and connectors of other crates, by the texts in their sources: hyper-http-proxy, tokio-socks,
/// async-socks5, hickory.
// trap 63
#[test]
fn texts_of_connectors_by_their_meaning() {
    for (text, is_final) in [
        ("unsuccessful tunnel (HTTP/1.1 407 Pro)", true),
        ("unsuccessful tunnel (HTTP/1.1 403 For)", true),
        ("unsuccessful tunnel (HTTP/1.0 403 For)", true),
        ("unsuccessful tunnel (HTTP/1.1 502 Bad)", false),
        ("unexpected EOF while tunnel reading", false),
        ("proxy authentication required", true),
        ("unsuccessful tunnel", false),
        ("No acceptable auth methods", true),
        ("Connection not allowed by ruleset", true),
        ("Unsuccessful reply: ConnectionNotAllowedByRule", true),
        ("Password auth failure, code: 1", true),
        ("Host unreachable", false),
        ("TTL expired", false),
        ("Proxy server unreachable", false),
        ("proto error: io error: Connection refused (os error 111)", false),
        ("request timed out", false),
        ("deadline has elapsed", false),
        ("TLS handshake timeout.", false),
        ("could not load the client certificate: the agent is not ready", false),
        ("Connecting to HTTPS without TLS enabled", true),
        ("HTTP/2 was not negotiated.", true),
        ("uri missing host", true),
    ] {
        let error: Box<dyn Error + Send + Sync> = text.into();
        assert_eq!(connecting::is_final(&*error), is_final, "{text}");
    }
}

#[test]
fn error_inside_io_error_is_seen() {
    let inner = std::io::Error::from(ErrorKind::ConnectionReset);
    let outer = std::io::Error::other(Wrapper(std::io::Error::other(inner)));
    assert_eq!(verdict_of_error(&outer), Some(LOST));
}

#[test]
fn the_inner_of_two_io_errors_wins() {
    let refused = std::io::Error::from(ErrorKind::ConnectionRefused);
    let outer = std::io::Error::new(ErrorKind::UnexpectedEof, refused);
    assert_eq!(verdict_of_error(&outer), Some(NOT_CONNECTED));
}

#[test]
fn bare_error_without_a_kind_is_unknown() {
    let uncategorized = std::io::Error::from_raw_os_error(i32::MAX);
    assert_eq!(verdict_of_error(&uncategorized), None);
}

#[cfg(feature = "tonic")]
#[test]
fn errors_of_connecting_by_io_kind() {
    for (error, expected) in [
        (std::io::Error::from(ErrorKind::ConnectionRefused), NOT_CONNECTED),
        (std::io::Error::from(ErrorKind::HostUnreachable), NOT_CONNECTED),
        (std::io::Error::from(ErrorKind::NetworkUnreachable), NOT_CONNECTED),
        (std::io::Error::from(ErrorKind::TimedOut), NOT_CONNECTED),
        (std::io::Error::from(ErrorKind::ConnectionReset), NOT_CONNECTED),
        (std::io::Error::from(ErrorKind::UnexpectedEof), NOT_CONNECTED),
        (std::io::Error::from(ErrorKind::InvalidData), NOT_CONNECTED),
        (std::io::Error::from(ErrorKind::Other), NOT_CONNECTED),
        (std::io::Error::from_raw_os_error(i32::MAX), NOT_CONNECTED),
        (std::io::Error::from(ErrorKind::InvalidInput), Verdict::Permanent),
        (std::io::Error::from(ErrorKind::PermissionDenied), Verdict::Permanent),
        (std::io::Error::from(ErrorKind::Unsupported), Verdict::Permanent),
        (std::io::Error::other("unsupported scheme"), Verdict::Permanent),
    ] {
        let text = format!("{error:?}");
        let error = ::tonic::ConnectError(Box::new(error));
        assert_eq!(verdict_of_error(&error), Some(expected), "{text}");
    }
    let unknown = ::tonic::ConnectError("certificate verify failed".into());
    assert_eq!(verdict_of_error(&unknown), Some(Verdict::Permanent));
}
