//! Tests of the saved head: a restored head equals the original.

use super::*;

fn request() -> Request<()> {
    let request = Request::put("https://user@one.example:8443/a?b=c")
        .version(Version::HTTP_2)
        .header("accept", "*/*")
        .header("x-many", "one")
        .header("x-other", "")
        .header("x-many", "two: three:")
        .header("x-binary", HeaderValue::from_bytes(b"\xff\x80 \t~").unwrap())
        .extension(7_u32);
    request.body(()).unwrap()
}

fn copied(kept: &mut SavedHead) -> Request<()> {
    let mut again = Request::new(());
    kept.copy_to(&mut again);
    again
}

fn moved(kept: SavedHead) -> Request<()> {
    let mut again = Request::new(());
    kept.move_to(&mut again);
    again
}

fn assert_same(again: Request<()>, request: &Request<()>) {
    assert_eq!(again.method(), request.method());
    assert_eq!(again.uri(), request.uri());
    assert_eq!(again.version(), request.version());
    assert_eq!(again.headers(), request.headers());
    assert_eq!(again.extensions().get::<u32>(), request.extensions().get::<u32>());
    let order = |request: &Request<()>| -> Vec<_> {
        let headers = request.headers().iter();
        headers.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    assert_eq!(order(&again), order(request));
}

#[test]
fn the_head_comes_back_as_it_was_each_time() {
    let request = request();
    let mut kept = SavedHead::new(&request);
    assert_same(copied(&mut kept), &request);
    assert_same(copied(&mut kept), &request);
    assert_same(moved(kept), &request);
}

// trap 34
#[test]
fn every_form_of_target_comes_back() {
    let parts = |scheme: Option<&str>, authority: Option<&str>, path: Option<&str>| {
        let mut parts = http::uri::Parts::default();
        parts.scheme = scheme.map(|scheme| scheme.parse().unwrap());
        parts.authority = authority.map(|authority| authority.parse().unwrap());
        parts.path_and_query = path.map(|path| path.parse().unwrap());
        Uri::from_parts(parts).unwrap()
    };
    for uri in [
        Uri::from_static("/"),
        Uri::from_static("/a/%20b?c=d:e&f"),
        Uri::from_static("*"),
        Uri::from_static("one.example:443"),
        Uri::from_static("http://one.example"),
        Uri::from_static("http://[::1]:80/x?"),
        Uri::from_static("git+ssh://user:word@one.example/"),
        "http://one.example/\u{e9}?\u{fc}".parse().unwrap(),
        // `OPTIONS *`, as sent to a proxy or by hyper-util.
        parts(Some("http"), Some("one.example"), Some("*")),
        parts(Some("http"), Some("one.example"), Some("?only=a-query")),
        // A scheme that is present but empty.
        Uri::from_static("://a/"),
        parts(Some(""), Some("a"), Some("/")),
        parts(None, None, Some("#")),
        parts(None, None, None),
    ] {
        let request = Request::options(uri).body(()).unwrap();
        let kept = SavedHead::new(&request);
        assert_eq!(kept.uri().as_ref(), Some(request.uri()));
        assert_eq!(kept.scheme(), request.uri().scheme_str());
        let authority = request.uri().authority().map(|authority| authority.as_str());
        assert_eq!(kept.authority(), authority);
        let both = request.uri().scheme_str().zip(authority);
        let origin = both.map(|(scheme, authority)| format!("{scheme}://{authority}"));
        assert_eq!(kept.origin(), origin.as_deref());
        assert_same(moved(kept), &request);
    }
}

#[test]
fn a_method_of_its_own_comes_back() {
    let request = Request::builder().method("PROPFIND").uri("/").body(()).unwrap();
    assert_same(moved(SavedHead::new(&request)), &request);
}

#[test]
fn sensitive_value_is_shared_in_place() {
    let mut request = request();
    let mut secret = HeaderValue::from_static("the secret");
    secret.set_sensitive(true);
    let mut other = HeaderValue::from_static("the other");
    other.set_sensitive(true);
    request.headers_mut().insert("authorization", secret.clone());
    request.headers_mut().append("x-many", other);
    request.headers_mut().append("x-many", secret);
    let mut kept = SavedHead::new(&request);
    assert!(!kept.pairs.windows(10).any(|bytes| bytes == b"the secret"));
    let again = copied(&mut kept);
    let values = again.headers();
    assert!(values["authorization"].is_sensitive());
    assert_same(again, &request);
    let values: Vec<_> = kept.values(&HeaderName::from_static("x-many")).collect();
    assert_eq!(values, [&b"one"[..], b"two: three:", b"the other", b"the secret"]);
}

#[test]
fn headers_are_found_by_their_name() {
    let kept = SavedHead::new(&request());
    let values = |name| -> Vec<_> { kept.values(&HeaderName::from_static(name)).collect() };
    assert_eq!(values("x-many"), [&b"one"[..], b"two: three:"]);
    assert_eq!(values("x-other"), [b""]);
    // The pairs of the method and the target are not headers.
    for missing in ["x-missing", "x-man", "x-many2", "put", "https"] {
        assert_eq!(values(missing), [b""; 0], "{missing}");
        assert!(!kept.contains(&HeaderName::from_static(missing)), "{missing}");
    }
    assert!(kept.contains(&HeaderName::from_static("x-other")));
    assert_eq!(kept.method(), Some(Method::PUT));
}

// trap 34
#[test]
fn a_name_with_a_quotation_mark_comes_back() {
    let mut request = request();
    let quoted = HeaderName::from_lowercase(b"a\"b").unwrap();
    request.headers_mut().insert(quoted, HeaderValue::from_static("value"));
    assert_same(moved(SavedHead::new(&request)), &request);
}

#[test]
fn the_longest_name_and_value_come_back() {
    let name = HeaderName::from_bytes(&[b'n'; u16::MAX as usize]).unwrap();
    let value = HeaderValue::from_bytes(&vec![b'v'; 1 << 20]).unwrap();
    let mut request = request();
    request.headers_mut().insert(name, value);
    assert_same(moved(SavedHead::new(&request)), &request);
}

#[test]
fn spare_buffer_holds_no_header() {
    drop(SavedHead::new(&request()));
    let spare = Buffer::zeros(|| 0);
    assert!(!spare.is_empty());
    assert!(spare.iter().all(|byte| *byte == 0));
}

#[test]
fn long_head_comes_back_and_is_not_spare() {
    let mut request = request();
    for name in ["x-one", "x-two"] {
        request.headers_mut().insert(name, "long".repeat(1000).parse().unwrap());
    }
    let mut kept = SavedHead::new(&request);
    assert_same(copied(&mut kept), &request);
    assert_same(moved(kept), &request);
    drop(Buffer::zeros(|| 0));
    drop(SavedHead::new(&request));
    assert!(Buffer::zeros(|| 0).is_empty());
}

#[test]
fn second_head_in_a_spare_buffer_comes_back() {
    drop(SavedHead::new(&request()));
    let request = Request::get("/").header("te", "trailers").body(()).unwrap();
    assert_same(moved(SavedHead::new(&request)), &request);
}

#[test]
fn parts_of_a_head_are_read() {
    let kept = SavedHead::new(&request());
    assert_eq!((kept.method_name(), kept.path_and_query()), (Some("PUT"), Some("/a?b=c")));
    assert_eq!(kept.origin(), Some("https://user@one.example:8443"));
    assert!(kept.is_restorable());
    assert_eq!(format!("{kept:?}"), "SavedHead { method: Some(PUT), headers: 4, .. }");
}

// trap 34
/// Any buffer content is restored as a request, at worst as one that is rejected.
#[test]
fn broken_head_is_restored_as_refusable() {
    let mut kept = SavedHead::new(&request());
    kept.pairs = Buffer::new(kept.pairs.iter().map(|byte| byte | 0x80).collect());
    for again in [copied(&mut kept), moved(kept)] {
        assert_eq!((again.method(), again.uri()), (&Method::CONNECT, &Uri::default()));
        assert!(again.headers().is_empty());
    }
}
