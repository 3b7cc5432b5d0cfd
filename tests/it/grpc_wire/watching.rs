//! The end of an answer: credit, debit, and trailers that a client can read.

use rand::{RngExt, SeedableRng};
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt::grpc::service_config::{RetryThrottle, RetryThrottling};

use super::*;

/// Returns the outcome of a call that the server answers by this script, and the tokens left in a
/// bucket. The bucket has room for four tokens and starts with three; a success adds half a token.
async fn left(script: Vec<Step>) -> (Result<String, Status>, Option<u32>) {
    let server = Server::start([script]).await;
    let throttle = RetryThrottle::from(RetryThrottling::new(4.0, 0.5));
    throttle.failed();
    let policy = policy().budget(throttle.clone());
    let answer = client_of(&server, policy).say(Text::new("hello")).await;
    assert_eq!(server.calls(), 1);
    (answer.map(|answer| answer.into_inner().text), throttle.tokens_thousandths())
}

fn answered(status: &'static [u8]) -> Vec<Step> {
    let trailers = Step::Trailers(fields(&[("grpc-status", status)]));
    vec![Step::Read, Step::Head(head(&[])), Step::Echo, trailers]
}

// THR-4
#[tokio::test]
async fn thr_4_success_is_credited_by_trailers() {
    let (answer, tokens) = left(answered(b"0")).await;
    assert_eq!((answer.unwrap(), tokens), ("hello".to_owned(), Some(3_500)));
}

// THR-3
#[tokio::test]
async fn thr_3_failure_after_commit_costs_a_token() {
    for (status, expected) in [(&b"14"[..], 2_000), (b"8", 2_000), (b"13", 3_000), (b"17", 3_000)] {
        let (answer, tokens) = left(answered(status)).await;
        assert!(answer.is_err());
        assert_eq!(tokens, Some(expected), "{status:?}");
    }
    // Reset in the midst of the body: RESOURCE_EXHAUSTED and INTERNAL.
    for (reset, expected) in [(Reason::ENHANCE_YOUR_CALM, 2_000), (Reason::INTERNAL_ERROR, 3_000)] {
        let script = vec![Step::Read, Step::Head(head(&[])), Step::Reset(reset)];
        let (answer, tokens) = left(script).await;
        assert!(answer.is_err());
        assert_eq!(tokens, Some(expected), "{reset}");
    }
}

// TN-7
#[tokio::test]
async fn tn_7_unreadable_details_are_removed() {
    for details in [&b"!"[..], b"====", b"A", b"\xff\xfe", b"CA4=CA4="] {
        let status = [("grpc-status", &b"3"[..]), ("grpc-message", b"no"), ("grpc-status-details-bin", details)];
        let only = vec![Step::Read, Step::Only(head(&status))];
        let late = vec![Step::Read, Step::Head(head(&[])), Step::Trailers(fields(&status))];
        for script in [only, late] {
            let shown = format!("{script:?}");
            let (server, answer, _) = call([script]).await;
            let status = answer.unwrap_err();
            assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "no"), "{shown}");
            assert_eq!((status.details(), server.calls()), (&b""[..], 1), "{shown}");
        }
    }
}

// TN-7
#[tokio::test]
async fn tn_7_readable_details_are_kept() {
    for details in [&b"CA4"[..], b"CA4=", b""] {
        let status = [("grpc-status", &b"3"[..]), ("grpc-status-details-bin", details)];
        let (_, answer, _) = call([vec![Step::Only(head(&status))]]).await;
        let expected: &[u8] = if details.is_empty() { b"" } else { b"\x08\x0e" };
        assert_eq!(answer.unwrap_err().details(), expected);
    }
}

// ST-5
#[tokio::test]
async fn st_5_headers_then_trailers_by_opt_in() {
    let script = || {
        let trailers = fields(&[("grpc-status", b"14"), ("grpc-retry-pushback-ms", b"0")]);
        vec![Step::Read, Step::Head(head(&[])), Step::Trailers(trailers)]
    };
    let message_first = vec![
        Step::Read,
        Step::Head(head(&[])),
        Step::Data(message("one")),
        Step::Trailers(fields(&[("grpc-status", b"14")])),
    ];
    for (scripts, calls) in [(vec![script(), script()], 3), (vec![message_first], 1)] {
        let server = Server::start(scripts).await;
        let channel = ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(PeekTrailersLayer::new(Duration::from_secs(60)))
            .service(server.channel());
        let answer = EchoClient::new(channel).say(Text::new("hello")).await;
        assert_eq!((server.calls(), answer.is_ok()), (calls, calls > 1));
    }
}

/// Returns bytes that a field may contain on the wire, many of them hard to parse.
fn garbage(random: &mut impl RngExt) -> Vec<u8> {
    let pieces: [&[u8]; 12] =
        [b"0", b"14", b"-1", b"=", b"%", b"%F", b"%ff", b" ", b"\t", b"\xff", b"CA4", b"4294967296"];
    (0..random.random_range(0..4)).flat_map(|_| pieces[random.random_range(0..12)].to_vec()).collect()
}

#[tokio::test]
async fn call_with_garbage_fields_ends() {
    let names = [
        "grpc-status",
        "grpc-message",
        "grpc-status-details-bin",
        "grpc-retry-pushback-ms",
        "grpc-encoding",
        "x-other-bin",
    ];
    let mut random = rand::rngs::SmallRng::seed_from_u64(7);
    for round in 0..300 {
        let mut script = || {
            let mut odd = HeaderMap::new();
            for name in names {
                for _ in 0..random.random_range(0..3) {
                    // No wait is asked for that anybody would notice.
                    let value = match name {
                        "grpc-retry-pushback-ms" if random.random() => b"0".to_vec(),
                        "grpc-retry-pushback-ms" => [b"x", &*garbage(&mut random)].concat(),
                        _ => garbage(&mut random),
                    };
                    odd.append(name, HeaderValue::from_bytes(&value).unwrap());
                }
            }
            let mut head = head_of([200, 200, 404, 503][random.random_range(0..4)], &[]);
            if random.random() {
                head.headers_mut().extend(odd);
                return vec![Step::Read, Step::Only(head)];
            }
            vec![Step::Read, Step::Head(head), Step::Echo, Step::Trailers(odd)]
        };
        let scripts = [script(), script(), script(), script()];
        let shown = format!("{round}: {scripts:?}");
        let (server, answer, _) = call(scripts).await;
        assert!((1..=3).contains(&server.calls()), "{shown}: {answer:?}");
    }
}
