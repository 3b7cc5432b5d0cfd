//! A property of any server: the caller reads a prefix of exactly one version, and a body that ends well is whole.

use std::io::ErrorKind;

use http::{HeaderValue, Request};
use proptest::prelude::*;
use reattempt::resume::Checkpoint;
use tower::ServiceExt;

use super::support::{Answer, LENGTH, Piece, Server, client, content, get, read};

/// An answer of a server that may change its file, lie, break, or fail.
fn any_answer() -> impl Strategy<Value = Answer> {
    let at = prop_oneof![0..=LENGTH, Just(0), Just(100), Just(400), Just(LENGTH)];
    let version = prop_oneof![3 => Just(1), 1 => Just(2_u8)];
    let honest = (version.clone(), at.clone(), at.clone(), at.clone()).prop_map(|(version, start, end, promised)| {
        let (start, end) = (start.min(end), start.max(end));
        // A server that ignores the range, one that sends the rest, and one that sends the beginning of the rest.
        if start == 0 {
            Answer::whole(version, end)
        } else if promised <= end {
            Answer::rest(version, start.min(LENGTH - 1), end.max(start))
        } else {
            let range = format!("bytes {start}-{}/{LENGTH}", promised - 1);
            let length = promised - start;
            Answer::rest(version, start, end).with("content-range", range).with("content-length", length)
        }
    });
    let lying = (version, at.clone(), at).prop_flat_map(|(version, start, end)| {
        let (start, end) = (start.min(end), start.max(end));
        (any_range(start), any_tag(), any_length(), any::<bool>()).prop_map(move |(range, tag, length, whole)| {
            let answer = if whole { Answer::whole(version, end) } else { Answer::rest(version, start, end) };
            let answer = if range.is_empty() { answer } else { answer.with("content-range", range) };
            let answer = if whole { answer } else { answer.with("content-length", length) };
            // A lie about the version would be a broken server: the same tag means the same bytes.
            match tag {
                Some(tag) => answer.with("etag", tag.replace('3', &format!("3{version}"))),
                None => answer,
            }
        })
    });
    let failing = prop::sample::select(vec![
        Answer::status(503),
        Answer::status(416),
        Answer::status(416).with("content-range", "bytes */1000"),
        Answer::status(404),
        Answer::status(304),
        Answer::failing(ErrorKind::ConnectionReset),
        Answer::failing(ErrorKind::InvalidInput),
    ]);
    let last = prop::sample::select(vec![
        None,
        Some(Piece::Error(ErrorKind::ConnectionReset)),
        Some(Piece::Unknown),
        Some(Piece::Stall),
        Some(Piece::Data("".into())),
        Some(Piece::Trailers(http::HeaderMap::new())),
    ]);
    let longer = (1..=2_u8, 0..LENGTH)
        .prop_map(|(version, start)| Answer::rest(version, start, LENGTH).ending(Piece::Data("more".into())));
    let any = prop_oneof![8 => honest, 4 => lying, 2 => failing, 1 => longer];
    (any, prop::option::of(last)).prop_map(|(answer, last)| match last {
        // A first part that stalls has no end.
        Some(Some(Piece::Stall)) if answer.status != 206 => answer,
        Some(last) => answer.ending(last),
        None => answer,
    })
}

/// A range that the body need not have. An empty text leaves the honest one.
fn any_range(start: usize) -> impl Strategy<Value = String> {
    let start = start as u64;
    let number = || prop_oneof![0..1100_u64, Just(u64::MAX), Just(LENGTH as u64)];
    let total = || prop_oneof![3 => Just("1000".to_owned()), 1 => Just("*".to_owned()), 1 => number().prop_map(|total| total.to_string())];
    let first = prop_oneof![Just(start), number()];
    let range = (first, number(), total()).prop_filter_map("the range of other bytes", move |(first, last, total)| {
        // The first byte of this answer is not that of such a range, so it would be a broken server.
        let is_possible = first <= last && last < 1000 && (total == "1000" || total == "*");
        (first == start || !is_possible).then(|| format!("bytes {first}-{last}/{total}"))
    });
    prop_oneof![
        1 => Just(String::new()),
        3 => range,
        1 => "[ -~]{1,20}".prop_filter("no range", |text| !text.starts_with("bytes "))
    ]
}

/// A length that the body need not have. An empty text leaves it out.
fn any_length() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(String::new()), 1 => (0..1100_u64).prop_map(|length| length.to_string())]
}

/// Another tag than that of a version.
fn any_tag() -> impl Strategy<Value = Option<String>> {
    prop::option::of(prop::sample::select(vec![
        "W/\"1\"".to_owned(),
        "\"3\"".to_owned(),
        "1".to_owned(),
        String::new(),
    ]))
}

/// A request for the whole content, for a range of it, or from a stored offset.
fn any_request() -> impl Strategy<Value = Request<String>> {
    let ranged = |range: &'static str| {
        let mut request = get();
        request.headers_mut().insert("range", HeaderValue::from_static(range));
        request
    };
    let mut stored = get();
    Checkpoint::new(100, HeaderValue::from_static("\"1\"")).unwrap().write_to(stored.headers_mut());
    let own = [get(), ranged("bytes=100-699"), ranged("bytes=100-"), ranged("bytes=-900"), stored];
    prop::sample::select(own.to_vec())
}

/// Returns the range of the content that a first answer promises, if its body can be resumed.
fn promised(request: &Request<String>, answer: &Answer) -> Option<std::ops::Range<usize>> {
    let field = |name| answer.fields.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str());
    field("etag").filter(|tag| ["\"1\"", "\"2\""].contains(tag))?;
    match answer.status {
        200 => Some(0..LENGTH),
        206 if request.headers().contains_key("range") => {
            let (first, last) = field("content-range")?.strip_prefix("bytes ")?.split_once('/')?.0.split_once('-')?;
            let range = first.parse().ok()?..last.parse::<usize>().ok()?.checked_add(1)?;
            let is_promised = field("content-length")?.parse() == Ok(range.end.checked_sub(range.start)?);
            (is_promised && range.end <= LENGTH).then_some(range)
        }
        _ => None,
    }
}

proptest! {
    // `PROPTEST_CASES=100000 cargo test -p reattempt-resume --all-features --test it any` for as many servers.
    #[test]
    fn caller_reads_prefix_of_one_version(
        request in any_request(),
        script in prop::collection::vec(any_answer(), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (first, sent) = (script[0].clone(), request.clone());
        let stalls = script.iter().flat_map(|answer| &answer.pieces).any(|piece| matches!(piece, Piece::Stall));
        if first.fails.is_some() || first.pieces.iter().any(|piece| matches!(piece, Piece::Stall)) {
            return Ok(());
        }
        // A part that stalls before its last byte stalls the caller.
        let hangs = std::time::Duration::from_secs(3600);
        let read = runtime.block_on(async {
            let read = async { read(client(&Server::new(script)).oneshot(sent).await.unwrap().into_body()).await };
            tokio::time::timeout(hangs, read).await
        });
        let Ok(read) = read else {
            prop_assert!(stalls, "the layer hangs");
            return Ok(());
        };
        // A first response that is not resumed comes through as it is, errors included.
        let versions = [1, 2].map(content);
        let is_data_sent = first.pieces.iter().any(|piece| matches!(piece, Piece::Data(data) if data == "more"));
        let of_one = versions.iter().any(|version| {
            version.starts_with(&read.data) || version.windows(read.data.len().max(1)).any(|part| part == read.data)
        });
        prop_assert!(of_one || is_data_sent, "{} bytes of no version", read.data.len());
        if let Some(range) = promised(&request, &first).filter(|_| !is_data_sent) {
            let version = versions.iter().find(|version| version[range.clone()].starts_with(&read.data));
            // The first response's own bytes come through, even if they are more than it promises.
            let longer = read.data.len() > range.len();
            prop_assert!(version.is_some() || longer, "the content from its start");
            if read.error.is_none() && !longer {
                prop_assert_eq!(read.data.len(), range.len(), "a body that ends well is whole");
            }
        }
    }
}
