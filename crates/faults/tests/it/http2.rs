//! Tests of the HTTP/2 and gRPC server, with `h2`'s client, which reports every frame, and with tonic's channel.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, client};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use reattempt_faults::{Arrival, Chances, End, Http2, Per, Read, Reply, Script, Server, Step, Unsupported};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::ServiceExt;

/// Reached only by a hanging test.
const HANGS: Duration = Duration::from_secs(30);

/// Connects an `h2` client, whose connection runs in a task.
async fn connect(server: &Server) -> client::SendRequest<Bytes> {
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (client, connection) = client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Sends a request with this body. Returns the response as text.
async fn call(client: &client::SendRequest<Bytes>, path: &str, body: &'static str) -> String {
    timeout(HANGS, exchange(client, path, body)).await.unwrap().unwrap_or_else(|error| {
        let by = match (error.is_reset(), error.is_go_away(), error.is_io()) {
            (true, ..) => "reset",
            (_, true, _) => "goaway",
            (.., true) => "io",
            _ => "other",
        };
        format!("{by} {:?}, remote: {}", error.reason(), error.is_remote())
    })
}

async fn exchange(client: &client::SendRequest<Bytes>, path: &str, body: &'static str) -> Result<String, h2::Error> {
    let mut client = client.clone().ready().await?;
    let request = Request::post(format!("http://one{path}")).body(()).unwrap();
    let (mut response, mut upload) = client.send_request(request, false)?;
    upload.send_data(Bytes::from_static(body.as_bytes()), true)?;
    let mut words = String::new();
    // An informational response precedes the final one.
    while let Some(head) = poll_fn(|cx| response.poll_informational(cx)).await {
        words.push_str(&format!("{} ", head?.status().as_str()));
    }
    let response = response.await?;
    words.push_str(response.status().as_str());
    let mut body = response.into_body();
    while let Some(data) = body.data().await {
        match data {
            Ok(data) => words.push_str(&format!(" {:?}", String::from_utf8_lossy(&data))),
            Err(error) => return Ok(format!("{words}, then {:?}", error.reason())),
        }
    }
    if let Some(trailers) = body.trailers().await? {
        words.push_str(&format!(" {}", trailers.len()));
    }
    Ok(words)
}

#[tokio::test]
async fn each_reply_is_seen_as_its_frames() {
    let mut trailers = HeaderMap::new();
    trailers.insert("checksum", HeaderValue::from_static("7"));
    let hello = || Reply::default().body("hello");
    let rows = [
        (hello(), "200 \"hello\""),
        (hello().trailers(trailers.clone()), "200 \"hello\" 1"),
        (hello().trailers(trailers).without_trailers(), "200 \"hello\""),
        (Reply::status(StatusCode::SERVICE_UNAVAILABLE), "503"),
        (hello().informational(StatusCode::EARLY_HINTS), "103 200 \"hello\""),
        (hello().content_length(9), "200, then Some(PROTOCOL_ERROR)"),
        (hello().content_length(3), "200, then Some(PROTOCOL_ERROR)"),
        (Reply::refused_stream(), "reset Some(REFUSED_STREAM), remote: true"),
        (hello().cut(1).end_with(End::ResetStream(2)), "200 \"h\", then Some(INTERNAL_ERROR)"),
        (Reply::default().cut(1).end_with(End::ResetStream(2)), "200, then Some(INTERNAL_ERROR)"),
        (hello().end_with(End::GoAwayAbove(0)), "200 \"hello\""),
        (hello().end_with(End::GoAwayBelow(0)), "goaway Some(NO_ERROR), remote: true"),
        (hello().cut(2).end_with(End::Close), "200 \"he\", then None"),
        (Reply::raw("220 mail.example ESMTP\r\n"), "goaway Some(FRAME_SIZE_ERROR), remote: false"),
    ];
    for (reply, expected) in rows {
        let case = format!("{reply:?}");
        let server = Server::http2([reply]).await.unwrap();
        let client = connect(&server).await;
        assert_eq!(call(&client, "/", "tea").await, expected, "{case}");
        drop(client);
        timeout(HANGS, server.ledger().all_closed()).await.expect(&case);
        let arrival = &server.ledger().arrivals()[0];
        assert_eq!((&*arrival.body, arrival.whole), (&b"tea"[..], true), "{case}");
        let refused = matches!(arrival.answer.as_deref(), Some("resetstream(7)" | "goawaybelow(0)"));
        assert_eq!(arrival.carried_out, !refused, "{case}: {:?}", arrival.answer);
    }
    let server = Server::http2([Reply::reset()]).await.unwrap();
    let end = call(&connect(&server).await, "/", "tea").await;
    assert!(end.starts_with("io "), "{end}");
}

#[tokio::test]
async fn streams_are_few_if_so_set() {
    let settings = Http2::new().max_streams(1);
    let stall = Step::new(Reply::stall()).call("POST /stall");
    let server = Server::http2_with(settings, [stall]).await.unwrap();
    let client = connect(&server).await;
    // The client receives the limit with the settings, before the first response.
    assert_eq!(call(&client, "/", "").await, "200");
    let other = client.clone();
    let stalled = tokio::spawn(async move { call(&other, "/stall", "").await });
    server.ledger().until(|arrivals| arrivals.len() == 2).await;
    let third = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "/third", "").await }
    });
    // On their own connections, with enough time for the third to arrive if it could.
    for _ in 0..3 {
        assert_eq!(call(&connect(&server).await, "/probe", "").await, "200");
    }
    let calls: Vec<_> = server.ledger().arrivals().into_iter().map(|it| it.call).collect();
    assert!(!calls.contains(&"POST /third".to_owned()), "{calls:?}");
    stalled.abort();
    assert_eq!(timeout(HANGS, third).await.unwrap().unwrap(), "200");
}

/// The second half of the upload waits for a window update, because the window is as long as the first half.
#[tokio::test]
async fn window_is_updated_late() {
    // The client of each server knows the window after its first call.
    let of_pause = |pause| async move {
        let settings = Http2::new().window(4).update_pause(pause);
        let server = Server::http2_with(settings, Vec::<Reply>::new()).await.unwrap();
        let client = connect(&server).await;
        assert_eq!(call(&client, "/", "").await, "200");
        (server, client)
    };
    let (server, client) = of_pause(Duration::from_millis(1)).await;
    assert_eq!(call(&client, "/", "12345678").await, "200");
    assert_eq!(server.ledger().arrivals()[1].body, b"12345678");

    let (server, client) = of_pause(Duration::from_secs(3600)).await;
    let other = client.clone();
    let upload = tokio::spawn(async move { exchange(&other, "/", "12345678").await });
    let first_half = |arrivals: &[Arrival]| arrivals.get(1).is_some_and(|arrival| arrival.body == b"1234");
    timeout(HANGS, server.ledger().until(first_half)).await.unwrap();
    // Calls without a body go on meanwhile, over the same connection.
    for _ in 0..10 {
        assert_eq!(call(&client, "/", "").await, "200");
    }
    assert_eq!((&*server.ledger().arrivals()[1].body, upload.is_finished()), (&b"1234"[..], false));
    upload.abort();
}

#[tokio::test]
async fn early_reply_has_rest_of_body_recorded() {
    let throttled = Reply::status(StatusCode::TOO_MANY_REQUESTS).read(Read::Head);
    let server = Server::http2([throttled]).await.unwrap();
    assert_eq!(call(&connect(&server).await, "/", "tea").await, "429");
    timeout(HANGS, server.ledger().until(|arrivals| arrivals[0].whole)).await.unwrap();
    assert!(!server.ledger().arrivals()[0].carried_out);
}

/// A complete response with RST_STREAM(NO_ERROR) ends an upload that goes on.
#[tokio::test]
async fn early_reply_stops_the_upload() {
    let early = Reply::status(StatusCode::TOO_MANY_REQUESTS).body("later").read(Read::Head);
    let server = Server::http2([early.end_with(End::ResetStream(0))]).await.unwrap();
    let mut client = connect(&server).await.ready().await.unwrap();
    let request = Request::post("http://one/").body(()).unwrap();
    let (response, mut upload) = client.send_request(request, false).unwrap();
    let response = timeout(HANGS, response).await.unwrap().unwrap();
    assert_eq!(response.status(), 429);
    let mut body = response.into_body();
    assert_eq!(timeout(HANGS, body.data()).await.unwrap().unwrap().unwrap(), "later");
    assert!(timeout(HANGS, body.data()).await.unwrap().is_none(), "the response is complete");
    let reset = timeout(HANGS, poll_fn(|cx| upload.poll_reset(cx))).await.unwrap().unwrap();
    assert_eq!(reset, Reason::NO_ERROR);
    drop((client, upload, body));
    timeout(HANGS, server.ledger().all_closed()).await.unwrap();
}

/// A reply may wait for a part of the body, whose rest is never sent.
#[tokio::test]
async fn refusal_comes_after_bytes_of_body() {
    let refuses = Reply::refused_stream().read(Read::Body(3));
    let server = Server::http2([refuses]).await.unwrap();
    let mut client = connect(&server).await.ready().await.unwrap();
    let (response, mut upload) = client.send_request(Request::post("http://one/").body(()).unwrap(), false).unwrap();
    upload.send_data(Bytes::from_static(b"te"), false).unwrap();
    server.ledger().until(|arrivals| arrivals.first().is_some_and(|first| first.body == b"te")).await;
    assert_eq!(server.ledger().arrivals()[0].answer, None);
    upload.send_data(Bytes::from_static(b"a"), false).unwrap();
    assert_eq!(timeout(HANGS, response).await.unwrap().unwrap_err().reason(), Some(Reason::REFUSED_STREAM));
}

/// A GOAWAY that excludes one stream leaves an earlier one to end normally.
#[tokio::test]
async fn go_away_spares_earlier_streams() {
    let server =
        Server::http2([Step::new(Reply::default().end_with(End::GoAwayBelow(0))).call("POST /2")]).await.unwrap();
    let client = connect(&server).await;
    let mut first = client.clone().ready().await.unwrap();
    let request = Request::post("http://one/1").body(()).unwrap();
    let (response, mut upload) = first.send_request(request, false).unwrap();
    server.ledger().until(|arrivals| arrivals.len() == 1).await;
    assert_eq!(call(&client, "/2", "tea").await, "goaway Some(NO_ERROR), remote: true");
    upload.send_data(Bytes::from_static(b"tea"), true).unwrap();
    assert_eq!(timeout(HANGS, response).await.unwrap().unwrap().status(), 200);
    let done: Vec<_> = server.ledger().arrivals().iter().map(|it| it.carried_out).collect();
    assert_eq!(done, [true, false]);
}

/// A stream that a GOAWAY has excluded is not carried out, even if the client sends it later.
#[tokio::test]
async fn go_away_excludes_later_streams() {
    let server = Server::http2([Reply::default().end_with(End::GoAwayBelow(0))]).await.unwrap();
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    for stream in [1, 3] {
        // HEADERS with END_HEADERS and END_STREAM: GET http /, by the static table.
        let headers = [0, 0, 3, 1, 5, 0, 0, 0, stream, 0x82, 0x86, 0x84];
        client.write_all(&headers).await.unwrap();
        let answered = |arrivals: &[Arrival]| arrivals.last().is_some_and(|last| last.answer.is_some());
        let arrived = |arrivals: &[Arrival]| arrivals.len() == usize::from(stream).div_ceil(2) && answered(arrivals);
        timeout(HANGS, server.ledger().until(arrived)).await.unwrap();
    }
    assert!(server.ledger().arrivals().iter().all(|it| it.whole && !it.carried_out));
}

/// A GOAWAY that includes the streams so far lets all of them end, and a later stream is excluded.
#[tokio::test]
async fn go_away_above_includes_open_streams() {
    let script = [Step::new(Reply::default().end_with(End::GoAwayAbove(0))).call("POST /1")];
    let server = Server::http2(script).await.unwrap();
    let client = connect(&server).await;
    let open = async |path: &str| {
        let mut client = client.clone().ready().await.unwrap();
        let request = Request::post(format!("http://one{path}")).body(()).unwrap();
        client.send_request(request, false).unwrap()
    };
    let (first, mut first_upload) = open("/1").await;
    let (second, mut second_upload) = open("/2").await;
    server.ledger().until(|arrivals| arrivals.len() == 2).await;
    first_upload.send_data(Bytes::new(), true).unwrap();
    assert_eq!(timeout(HANGS, first).await.unwrap().unwrap().status(), 200);
    second_upload.send_data(Bytes::new(), true).unwrap();
    assert_eq!(timeout(HANGS, second).await.unwrap().unwrap().status(), 200);
    assert!(server.ledger().arrivals().iter().all(|it| it.carried_out));
}

#[tokio::test]
async fn recovered_server_has_no_faults() {
    let server = Server::http2([Step::new(Reply::refused_stream()).always()]).await.unwrap();
    let client = connect(&server).await;
    for _ in 0..2 {
        assert_eq!(call(&client, "/", "").await, "reset Some(REFUSED_STREAM), remote: true");
    }
    server.recover();
    assert_eq!(call(&client, "/", "").await, "200");
    let chances = Chances::new(1, Per::Arrival).fault(1000, Reply::refused_stream());
    let server = Server::http2(Script::default().chances(chances)).await.unwrap();
    let client = connect(&server).await;
    assert_eq!(call(&client, "/", "").await, "reset Some(REFUSED_STREAM), remote: true");
    server.recover();
    assert_eq!(call(&client, "/", "").await, "200");
}

#[tokio::test]
async fn grpc_replies_reach_a_channel() {
    let missing = Reply::grpc("hello").without_trailers();
    let late = Reply::grpc("hello").grpc_status(14);
    let server = Server::http2([Reply::grpc("hello"), Reply::grpc_error(14), missing, late]).await.unwrap();
    let endpoint = tonic::transport::Endpoint::from_shared(server.url("")).unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        let request = Request::post(server.url("/service/method"));
        let request = request.body(tonic::body::Body::empty()).unwrap();
        let response = endpoint.connect_lazy().oneshot(request).await.unwrap();
        let head = response.headers().get("grpc-status").cloned();
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap();
        let status = body.trailers().and_then(|trailers| trailers.get("grpc-status")).cloned();
        seen.push((head, body.to_bytes(), status));
    }
    let hello = || Bytes::from_static(b"\0\0\0\0\x05hello");
    let code = |code| Some(HeaderValue::from_static(code));
    let expected = [
        (None, hello(), code("0")),
        (code("14"), Bytes::new(), None),
        (None, hello(), None),
        (None, hello(), code("14")),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn reply_of_other_protocol_is_named() {
    let early = Reply::default().read(Read::Bytes(3));
    let error = Server::http2([Reply::default(), early]).await.unwrap_err();
    assert_eq!(error.to_string(), "step 2: the reply is not possible in HTTP/2");
    for end in [End::ResetStream(Reason::CANCEL.into()), End::GoAwayAbove(0), End::GoAwayBelow(0)] {
        let error = Server::http1([Reply::default().end_with(end)]).await.unwrap_err();
        let unsupported = error.get_ref().unwrap().downcast_ref::<Unsupported>().unwrap();
        assert_eq!(unsupported.step_number(), Some(1));
    }
    let error = Server::http2([Reply::default().informational(StatusCode::OK)]).await.unwrap_err();
    assert_eq!(error.to_string(), "step 1: the reply is not possible in HTTP/2");
    let random = Chances::new(1, Per::Arrival).fault(1, Reply::refused_stream());
    let error = Server::http1(Script::default().chances(random)).await.unwrap_err();
    assert_eq!(error.to_string(), "a reply outside the steps is not possible in HTTP/1.1");
    let script = Script::<Reply>::default().otherwise(Reply::refused_stream());
    assert!(Server::http1(script).await.is_err());
}

/// The ledger has the code with which the client resets a stream: after its request, in the middle of its upload, and
/// of its response. A stream that was served has none.
#[tokio::test]
async fn reset_of_the_client_is_recorded() {
    let cut = Reply::default().body("hello").cut(2).end_with(End::Stall);
    let server = Server::http2([Reply::default(), Reply::stall(), Reply::default(), cut]).await.unwrap();
    let client = connect(&server).await;
    assert_eq!(call(&client, "/0", "pay").await, "200");
    for (number, ends) in [(1, true), (2, false), (3, true)] {
        let mut client = timeout(HANGS, client.clone().ready()).await.unwrap().unwrap();
        let request = Request::post(format!("http://one/{number}")).body(()).unwrap();
        let (response, mut upload) = client.send_request(request, false).unwrap();
        upload.send_data("pay".into(), ends).unwrap();
        let arrived = server.ledger().until(|arrivals| arrivals.len() > number && arrivals[number].body == b"pay");
        timeout(HANGS, arrived).await.unwrap();
        let response = match number {
            3 => Ok(timeout(HANGS, response).await.unwrap().unwrap()),
            _ => Err(response),
        };
        upload.send_reset(Reason::CANCEL);
        timeout(HANGS, server.ledger().until(|arrivals| !arrivals[number].open)).await.unwrap();
        drop(response);
    }
    let codes = server.ledger().arrivals().iter().map(|arrival| arrival.reset).collect::<Vec<_>>();
    assert_eq!(codes, [None, Some(8), Some(8), Some(8)]);
}
