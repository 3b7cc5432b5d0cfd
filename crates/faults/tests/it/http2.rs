//! Tests of the HTTP/2 and gRPC server, with `h2`'s client, which reports every frame, and with tonic's channel.

use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, client};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use reattempt_faults::{Arrival, End, Http2, Read, Reply, Server, Step, Unsupported};
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
    let (response, mut upload) = client.send_request(request, false)?;
    upload.send_data(Bytes::from_static(body.as_bytes()), true)?;
    let response = response.await?;
    let mut words = response.status().as_str().to_owned();
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
        (hello().trailers(trailers), "200 \"hello\" 1"),
        (Reply::status(StatusCode::SERVICE_UNAVAILABLE), "503"),
        (hello().informational(StatusCode::EARLY_HINTS), "200 \"hello\""),
        (hello().content_length(9), "200, then Some(PROTOCOL_ERROR)"),
        (Reply::refused_stream(), "reset Some(REFUSED_STREAM), remote: true"),
        (hello().cut(1).end_with(End::ResetStream(2)), "200 \"h\", then Some(INTERNAL_ERROR)"),
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

#[tokio::test]
async fn grpc_replies_reach_a_channel() {
    let missing = Reply::grpc("hello").without_trailers();
    let server = Server::http2([Reply::grpc("hello"), Reply::grpc_error(14), missing]).await.unwrap();
    let endpoint = tonic::transport::Endpoint::from_shared(server.url("")).unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
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
    let expected = [(None, hello(), code("0")), (code("14"), Bytes::new(), None), (None, hello(), None)];
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
        assert_eq!(unsupported.step_number(), 1);
    }
}
