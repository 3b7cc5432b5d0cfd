//! The classification of transport errors, based on the known types in an error's source chain.
//!
//! Each submodule recognises one client's error types.

mod connecting;
mod io;
mod texts;

#[cfg(feature = "hyper")]
mod h2;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(any(feature = "reqwest", feature = "reqwest-0-12"))]
mod reqwest;
mod tls;
#[cfg(feature = "tonic")]
mod tonic;
#[cfg(feature = "ureq")]
mod ureq;

use std::any::Any;
use std::error::Error;

use reattempt_core::{Failure, FailureKind, Fault, Undone, Verdict};
use reattempt_replay::ReplayError;

/// Returns the verdict for a transport error.
///
/// Returns `None` if the source chain contains no known error type. Treat such an error as permanent.
///
/// | cause | verdict |
/// |---|---|
/// | no connection was made, for any reason that is not known to be final: refused, unreachable, timed out, name not found, TLS handshake broken off, a proxy that fails, an error of an unknown type | not processed, [`Connect`](FailureKind::Connect) |
/// | the call waited for a connection that another call gave up or failed to open | not processed, [`Connect`](FailureKind::Connect) |
/// | the request was never passed to its connection (hyper's `is_canceled`, `is_closed`) | not processed, [`Connect`](FailureKind::Connect) |
/// | the server's HTTP/2 GOAWAY excluded the request, or the server reset the stream with REFUSED_STREAM | not processed, [`Network`](FailureKind::Network) |
/// | the connection was lost later: reset, closed during the response, another HTTP/2 reset, a protocol error detected by the client, a TLS alert, an unreadable TLS record | transient, [`Network`](FailureKind::Network) |
/// | the response is not HTTP | transient, [`Network`](FailureKind::Network) |
/// | no response in time | transient, [`Timeout`](FailureKind::Timeout) |
/// | no connection, for a [final](#errors-of-connecting) reason: certificate or protocol rejected in the TLS handshake, invalid URI or scheme, a proxy that requires credentials or forbids the target | permanent |
/// | the server rejected the client's certificate after the TLS handshake, as in TLS 1.3 | permanent |
/// | the caller's body failed, or the client cancelled the request | permanent |
/// | a `reqwest::Error` or `ureq::Error` created from a status | that of [`verdict_of_status`](crate::verdict_of_status) |
///
/// Among `std::io` errors, only those of failed connections are recognised. This crate's features `hyper` (hyper,
/// hyper-util's legacy client, h2), `reqwest`, `reqwest-0-12`, `tonic` and `ureq` add the errors of these clients.
/// Layer timeouts, such as `tower::timeout::error::Elapsed`, are recognised only by the layers of `reattempt`.
///
/// An `io::Error` that is not wrapped in a client's error does not show whether a request was sent. Only a refused
/// connection or an unusable local address proves that it was not. An unreachable host or network is therefore
/// transient, [`Connect`](FailureKind::Connect).
///
/// # Errors of connecting
///
/// Whatever fails while a client connects has sent nothing. So an error of an unknown type is "no connection", and is
/// retried for every request. The final reasons are recognised by type where it is public, otherwise by the text of
/// the library:
///
/// | final reason | recognised |
/// |---|---|
/// | a refused certificate, of the server or of the client | the texts of rustls, OpenSSL, BoringSSL and native-tls |
/// | a refused protocol, version or name: the TLS alerts handshake_failure, protocol_version, insufficient_security, unrecognized_name and no_application_protocol | the same |
/// | a URI or scheme that the connector does not accept | `http::uri::InvalidUri`; `io::Error`s of the kinds `InvalidInput`, `PermissionDenied` and `Unsupported`; the texts of the connectors |
/// | a proxy that requires credentials: 407, no acceptable SOCKS method, refused credentials | the texts of hyper-util and other crates |
/// | a proxy that forbids the target: reply 2 of SOCKS 5, and a 403 if the text names it. hyper-util's `Tunnel` and reqwest report a 403 like a 503 | the same |
///
/// A request to a proxy that never responds is not an error of connecting, unless the client limits the time to
/// connect. A limit on the whole attempt shows nothing about the stage.
///
/// # TLS alerts
///
/// An alert is recognised in the text of the TLS library's error. On an established connection it is treated as a lost
/// connection, unless it refuses a certificate: bad, unsupported, revoked, expired or unknown certificate, unknown CA,
/// access denied, decrypt_error, certificate required. During the handshake, the alerts in the table above are
/// permanent, too. After every other alert the next attempt may succeed. A server sends internal_error if it cannot
/// continue for a reason unrelated to the client. Servers without a certificate for the requested name send it too.
/// Calls to such servers are retried in vain, as often as the policy allows.
///
/// # REFUSED_STREAM
///
/// According to RFC 9113 §8.7, a reset with REFUSED_STREAM proves that the request was not processed. Some proxies,
/// such as haproxy 2.6, send it after their backend has processed the request. Behind such a proxy, give requests an
/// idempotency key, or set `refused_stream_is_proof(false)` in `reattempt::Http`.
///
/// # Redirects
///
/// If a client follows redirects itself, the first server may have processed the request before the connection to the
/// next one fails. The error does not show this. For requests that must not be repeated, turn redirects off (in
/// reqwest: `redirect::Policy::none()`), or follow them in a layer outside the retry layer.
///
/// ```
/// use std::io::{Error, ErrorKind};
/// # use reattempt_core::Verdict;
/// # use reattempt_http::verdict_of_error;
///
/// let refused = Error::from(ErrorKind::ConnectionRefused);
/// assert!(matches!(verdict_of_error(&refused), Some(Verdict::NotProcessed(_))));
/// let reset = Error::from(ErrorKind::ConnectionReset);
/// assert!(matches!(verdict_of_error(&reset), Some(Verdict::Transient(_))));
/// assert_eq!(verdict_of_error(&std::fmt::Error), None);
/// ```
#[must_use]
pub fn verdict_of_error(error: &(dyn Error + 'static)) -> Option<Verdict> {
    walk(error, Phase::Unknown)
}

/// Returns the party whose fault the error is, if it shows nothing about the server.
///
/// It is the [caller's](Fault::Caller) if its request body failed, the request could not be built, or the client
/// stopped the upload. It is [local](Fault::Local) if this machine has no free port, file descriptor or memory, if a
/// name could not be resolved, or if a proxy failed to open a tunnel. Returns `None` for every other error.
///
/// The error types of resolvers and proxies are private, so they are recognised by their texts: hyper-util's `dns
/// error`, `tunnel error: …` and `SOCKS error: …`, and those of reqwest's SOCKS. A proxy that is used without a tunnel,
/// as for `http` URLs, is not recognised, because its errors look like the server's.
#[must_use]
pub fn fault_of_error(error: &(dyn Error + 'static)) -> Option<Fault> {
    let mut links = std::iter::successors(Some(error), |&error| source(error));
    links.find_map(|error| {
        if error.downcast_ref().is_some_and(io::is_local) {
            return Some(Fault::Local);
        }
        #[cfg(feature = "hyper")]
        if hyper::is_callers_own(error) || h2::is_callers_own(error) {
            return Some(Fault::Caller);
        }
        if connecting::is_on_the_way(error) {
            return Some(Fault::Local);
        }
        #[cfg(any(feature = "reqwest", feature = "reqwest-0-12"))]
        if reqwest::is_builder(error) {
            return Some(Fault::Caller);
        }
        #[cfg(feature = "ureq")]
        if error.downcast_ref().is_some_and(ureq::is_on_the_way) {
            return Some(Fault::Local);
        }
        error.is::<ReplayError>().then_some(Fault::Caller)
    })
}

/// Returns the stage at which the request ended unprocessed, if it can be sent again immediately.
///
/// HTTP and gRPC (as a transparent retry) replace such an attempt once per call. Returns `None` for every other
/// failure. This includes a connection that the call itself failed to open, because a server that is down must not be
/// called again immediately.
#[must_use]
pub fn undone(error: &(dyn Error + 'static)) -> Option<Undone> {
    let mut link = Some(error);
    while let Some(error) = link {
        match sign(error, Phase::Unknown) {
            Sign::Undone(undone, _) => return Some(undone),
            Sign::Proof(_) | Sign::Connecting => return None,
            Sign::None | Sign::Presumption(_) | Sign::Connected => link = source(error),
        }
    }
    None
}

/// Returns the HTTP/2 error code of the server's stream reset (RFC 9113 §7).
///
/// Returns `None` if the server did not reset the stream. Always returns `None` without the feature `hyper`.
#[must_use]
pub fn reset_reason(error: &(dyn Error + 'static)) -> Option<u32> {
    #[cfg(feature = "hyper")]
    return std::iter::successors(Some(error), |&error| source(error)).find_map(h2::reset);
    #[cfg(not(feature = "hyper"))]
    {
        let _ = error;
        None
    }
}

/// Returns `true` if the error shows that its connection used HTTP/2.
///
/// Returns `false` if the error does not show the version. This is so for a reset of a connection whose client uses
/// HTTP/2 without negotiating it. Always returns `false` without the feature `hyper`.
#[must_use]
pub fn is_of_http2(error: &(dyn Error + 'static)) -> bool {
    #[cfg(feature = "hyper")]
    return std::iter::successors(Some(error), |&error| source(error)).any(hyper::is_of_http2);
    #[cfg(not(feature = "hyper"))]
    {
        let _ = error;
        false
    }
}

/// Returns an error of a response body as a trait object, if its type is known.
///
/// The known types are boxed errors, `std::io::Error`, and the errors of hyper, h2, reqwest and tonic behind their
/// features. The error type of a body need not implement [`Error`], so it is recognised by its type.
#[must_use]
pub fn view_error<E: 'static>(error: &E) -> Option<&(dyn Error + 'static)> {
    let error: &dyn Any = error;
    if let Some(boxed) = error.downcast_ref::<Box<dyn Error + Send + Sync>>() {
        return Some(&**boxed);
    }
    #[cfg(feature = "hyper")]
    if let Some(error) = view_as::<::hyper::Error>(error).or_else(|| view_as::<::h2::Error>(error)) {
        return Some(error);
    }
    #[cfg(any(feature = "reqwest", feature = "reqwest-0-12"))]
    if let Some(error) = reqwest::view(error) {
        return Some(error);
    }
    #[cfg(feature = "tonic")]
    if let Some(error) = view_as::<::tonic::Status>(error) {
        return Some(error);
    }
    view_as::<std::io::Error>(error)
}

fn view_as<E: Error + 'static>(error: &dyn Any) -> Option<&(dyn Error + 'static)> {
    error.downcast_ref::<E>().map(|error| error as _)
}

const NOT_CONNECTED: Verdict = Verdict::NotProcessed(Failure::new(FailureKind::Connect));
const LOST: Verdict = Verdict::Transient(Failure::new(FailureKind::Network));
const TIMED_OUT: Verdict = Verdict::Transient(Failure::new(FailureKind::Timeout));

/// The stage at which an error occurred, as shown by the outer errors in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Unknown,
    /// On an established connection: a request may have been sent.
    Connected,
}

/// The evidence from one error in the chain.
#[cfg_attr(not(feature = "hyper"), expect(dead_code, reason = "only a client's error tells"))]
#[derive(Debug)]
enum Sign {
    /// No evidence.
    None,
    /// A verdict that holds regardless of the inner errors.
    Proof(Verdict),
    /// Proof that the request was not processed, regardless of the inner errors, with the kind of failure.
    Undone(Undone, FailureKind),
    /// A verdict, unless the inner errors have one.
    Presumption(Verdict),
    /// The inner errors occurred while a connection was being established: no request can have been sent.
    Connecting,
    /// The inner errors occurred on an established connection.
    Connected,
}

/// Walks the chain. Outer errors take precedence, because they show which side caused an inner one. For example, a
/// broken pipe may come from the server or from the caller's own request body.
fn walk(error: &(dyn Error + 'static), phase: Phase) -> Option<Verdict> {
    let below = |phase| source(error).and_then(|source| walk(source, phase));
    match sign(error, phase) {
        Sign::None => below(phase),
        Sign::Proof(verdict) => Some(verdict),
        Sign::Undone(_, kind) => Some(Verdict::NotProcessed(Failure::new(kind))),
        Sign::Presumption(verdict) => below(phase).or(Some(verdict)),
        Sign::Connecting if connecting::is_final(error) => Some(Verdict::Permanent),
        Sign::Connecting => Some(NOT_CONNECTED),
        Sign::Connected => below(Phase::Connected),
    }
}

fn sign(error: &(dyn Error + 'static), phase: Phase) -> Sign {
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return io::sign(error, phase);
    }
    if let Some(ReplayError::Superseded | ReplayError::NotKept) = error.downcast_ref() {
        // The client stopped the upload, for whatever reason.
        return Sign::Proof(Verdict::Permanent);
    }
    #[cfg(feature = "hyper")]
    if let Some(sign) = hyper::sign(error).or_else(|| h2::sign(error)) {
        return sign;
    }
    #[cfg(any(feature = "reqwest", feature = "reqwest-0-12"))]
    if let Some(sign) = reqwest::sign(error) {
        return sign;
    }
    #[cfg(feature = "tonic")]
    if let Some(sign) = tonic::sign(error) {
        return sign;
    }
    #[cfg(feature = "ureq")]
    if let Some(error) = error.downcast_ref() {
        return ureq::sign(error);
    }
    Sign::None
}

/// Returns the next error in the chain. [`Error::source`] is not enough for three types: an `io::Error` skips its
/// wrapped error, and the errors of h2 and ureq return `None`.
fn source<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return error.get_ref().map(|inner| inner as &(dyn Error + 'static));
    }
    #[cfg(feature = "hyper")]
    if let Some(error) = error.downcast_ref::<::h2::Error>() {
        return error.get_io().map(|inner| inner as &(dyn Error + 'static));
    }
    #[cfg(feature = "ureq")]
    if let Some(error) = error.downcast_ref() {
        return ureq::source(error);
    }
    error.source()
}

#[cfg(test)]
mod tests;
