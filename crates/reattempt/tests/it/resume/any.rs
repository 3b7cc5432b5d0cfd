//! A property of any server: the caller reads a prefix of exactly one version, and a body that ends well is whole.

use std::io::ErrorKind;

use proptest::prelude::*;

use super::support::{Answer, LENGTH, Piece, Server, content, download};

/// An answer of a server that may change its file, lie, break, or fail.
fn any_answer() -> impl Strategy<Value = Answer> {
    let at = prop_oneof![0..=LENGTH, Just(0), Just(400), Just(LENGTH)];
    let version = 1..=2_u8;
    let honest = (version.clone(), at.clone(), at.clone()).prop_map(|(version, start, end)| {
        let (start, end) = (start.min(end), start.max(end));
        if start == 0 {
            Answer::whole(version, end)
        } else {
            Answer::rest(version, start.min(LENGTH - 1), end.max(start))
        }
    });
    let lying = (version, at.clone(), at, any_range(), any_tag(), any::<bool>()).prop_map(
        |(version, start, end, range, tag, whole)| {
            let (start, end) = (start.min(end), start.max(end));
            let answer = if whole { Answer::whole(version, end) } else { Answer::rest(version, start, end) };
            let answer = if range.is_empty() { answer } else { answer.with("content-range", range) };
            // A lie about the version would be a broken server: the same tag means the same bytes.
            match tag {
                Some(tag) => answer.with("etag", tag),
                None => answer,
            }
        },
    );
    let failing = prop::sample::select(vec![
        Answer::status(503),
        Answer::status(416),
        Answer::status(404),
        Answer::status(304),
        Answer::failing(ErrorKind::ConnectionReset),
        Answer::failing(ErrorKind::InvalidInput),
    ]);
    let last = prop::sample::select(vec![
        None,
        Some(Piece::Error(ErrorKind::ConnectionReset)),
        Some(Piece::Unknown),
        Some(Piece::Data("".into())),
        Some(Piece::Trailers(http::HeaderMap::new())),
    ]);
    (prop_oneof![4 => honest, 1 => lying, 1 => failing], prop::option::of(last)).prop_map(|(answer, last)| match last {
        Some(last) => answer.ending(last),
        None => answer,
    })
}

/// A range that the body need not have. An empty text leaves the honest one.
fn any_range() -> impl Strategy<Value = String> {
    let number = || prop_oneof![0..1100_u64, Just(u64::MAX), Just(LENGTH as u64)];
    let range = (number(), number(), number()).prop_filter_map("the honest range of other bytes", |range| {
        let (first, last, total) = range;
        // The body of this answer is not the part that such a range promises, so it would be a broken server.
        let promises = last == 999 && total == 1000 && first < 1000;
        (!promises).then(|| format!("bytes {first}-{last}/{total}"))
    });
    prop_oneof![Just(String::new()), range, "[ -~]{1,20}".prop_filter("no range", |text| !text.starts_with("bytes "))]
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

proptest! {
    #[test]
    fn caller_reads_prefix_of_one_version(script in prop::collection::vec(any_answer(), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let first = script[0].clone();
        let read = runtime.block_on(async {
            let server = Server::new(script);
            if first.fails.is_some() {
                return None;
            }
            Some(download(&server).await)
        });
        let Some(read) = read else { return Ok(()) };
        // A first response that is not resumed comes through as it is, errors included.
        let versions = [1, 2].map(content);
        let of_one = versions.iter().any(|version| {
            version.starts_with(&read.data) || version.windows(read.data.len().max(1)).any(|part| part == read.data)
        });
        prop_assert!(of_one, "{} bytes of no version", read.data.len());
        let announced = first.status == 200 && first.fields.iter().any(|(name, value)| *name == "etag" && (value == "\"1\"" || value == "\"2\""));
        if announced {
            let version = versions.iter().find(|version| version.starts_with(&read.data));
            prop_assert!(version.is_some(), "the content from its start");
            if read.error.is_none() {
                prop_assert_eq!(read.data.len(), LENGTH, "a body that ends well is whole");
            }
        }
    }
}
