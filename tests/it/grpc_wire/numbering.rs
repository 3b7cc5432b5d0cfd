//! The field `grpc-previous-rpc-attempts` (§10), and the other fields of each attempt.

use tonic::metadata::MetadataValue;

use super::*;

// RPH-1
#[tokio::test]
async fn rph_1_each_retry_has_its_number() {
    let (server, answer, _) = call([refused(), refused()]).await;
    assert_eq!(answer.unwrap(), "hello");
    let previous = server.fields("grpc-previous-rpc-attempts");
    assert_eq!(previous, [None, Some("1".to_owned()), Some("2".to_owned())]);
}

// RET-6
#[tokio::test]
async fn ret_6_each_attempt_has_call_metadata() {
    let server = Server::start([refused(), refused()]).await;
    let (mut client, _) = client(&server);
    let mut request = Request::new(Text::new("hello"));
    request.metadata_mut().insert("x-of-the-caller", "one".parse().unwrap());
    request.metadata_mut().append("x-of-the-caller", "two".parse().unwrap());
    request.metadata_mut().insert_bin("x-of-the-caller-bin", MetadataValue::from_bytes(&[1, 255]));
    client.say(request).await.unwrap();
    let arrivals = server.arrivals();
    assert_eq!(arrivals.len(), 3);
    for arrival in &arrivals {
        assert_eq!(arrival.path, "/reattempt.testing.Echo/Say");
        let own: Vec<_> = arrival.headers.get_all("x-of-the-caller").iter().collect();
        assert_eq!(own, ["one", "two"]);
        let mut headers = arrival.headers.clone();
        headers.remove("grpc-previous-rpc-attempts");
        assert_eq!(headers, arrivals[0].headers);
        assert_eq!(arrival.body.as_deref(), Some(&message("hello")[..]));
    }
}

/// tonic removes some names from a caller's metadata, but not this one.
// RPH-4, TN-5
#[tokio::test]
async fn tn_5_callers_own_number_is_removed() {
    let server = Server::start([refused()]).await;
    let (mut client, _) = client(&server);
    let mut request = Request::new(Text::new("hello"));
    request.metadata_mut().insert("grpc-previous-rpc-attempts", "7".parse().unwrap());
    client.say(request).await.unwrap();
    assert_eq!(server.fields("grpc-previous-rpc-attempts"), [None, Some("1".to_owned())]);
}

// RPH-5
#[tokio::test]
async fn rph_5_the_response_does_not_tell_of_it() {
    let own = ("grpc-previous-rpc-attempts", &b"7"[..]);
    let script =
        vec![Step::Read, Step::Head(head(&[own])), Step::Echo, Step::Trailers(fields(&[("grpc-status", b"0")]))];
    let server = Server::start([refused(), script]).await;
    let (mut client, _) = client(&server);
    let answer = client.say(Text::new("hello")).await.unwrap();
    assert_eq!(answer.metadata().get("grpc-previous-rpc-attempts").unwrap(), "7");
    let answer = client.say(Text::new("hello")).await.unwrap();
    assert!(answer.metadata().get("grpc-previous-rpc-attempts").is_none());
}

/// The message is read before it is sent, but the attempt still has no length.
// TN-2
#[tokio::test]
async fn tn_2_attempt_has_the_fields_of_a_call() {
    let server = Server::start([]).await;
    let mut bare = EchoClient::new(server.channel());
    bare.say(Text::new("hello")).await.unwrap();
    let (mut client, _slot) = client(&server);
    client.say(Text::new("hello")).await.unwrap();
    let arrivals = server.arrivals();
    let [bare, ours] = &arrivals[..] else { panic!("two calls") };
    assert_eq!((&bare.headers, &bare.body), (&ours.headers, &ours.body));
    assert!(!ours.headers.contains_key("content-length"));
}
