//! Many calls on one connection whose server dies, and answers that no server should give.

use super::*;

/// Returns scripts for twenty calls on one connection, which ends once all have arrived.
fn all_at_once(end: Step) -> Vec<Vec<Step>> {
    let waiting = std::iter::repeat_n(vec![Step::Read, Step::Hang], 19);
    waiting.chain([vec![Step::Read, end]]).collect()
}

/// Makes twenty calls in parallel, and returns their results.
async fn twenty(client: &Client, options: &CallOptions) -> Vec<Result<String, Code>> {
    let mut calls = Vec::new();
    for number in 0..20 {
        let (mut client, options) = (client.clone(), options.clone());
        calls.push(tokio::spawn(async move {
            let mut request = Request::new(Text::new(number.to_string()));
            request.extensions_mut().insert(options);
            let answer = tokio::time::timeout(Duration::from_secs(60), client.say(request)).await;
            answer.unwrap().map(|text| text.into_inner().text).map_err(|status| status.code())
        }));
    }
    let mut ends = Vec::new();
    for call in calls {
        ends.push(call.await.unwrap());
    }
    ends
}

// OUT-2, trap 45
#[tokio::test]
async fn out_2_twenty_calls_outlive_the_server() {
    let server = Server::start(all_at_once(Step::Cut)).await;
    let (client, _) = client(&server);
    let ends = twenty(&client, &CallOptions::new().repeatable(true)).await;
    let expected: Vec<_> = (0..20).map(|number| Ok(number.to_string())).collect();
    assert_eq!(ends, expected);
}

/// Calls that must not be carried out twice reach the server once each, and all callers get
/// UNAVAILABLE.
// OUT-2
#[tokio::test]
async fn out_2_twenty_lost_calls_are_unavailable() {
    let server = Server::start(all_at_once(Step::Cut)).await;
    let client = client_of(&server, unmarked());
    let ends = twenty(&client, &CallOptions::new()).await;
    assert_eq!(ends, vec![Err(Code::Unavailable); 20]);
    assert_eq!(server.calls(), 20);
}

/// Calls that are dropped while they wait for their turn release everything.
// TR-9
#[tokio::test]
async fn tr_9_dropped_while_waiting_for_its_turn() {
    let server = Server::start([succeeds(), vec![Step::Read, Step::Hang]]).await;
    server.allow(1);
    let (mut client, _) = client(&server);
    client.say(Text::new("so that the limit is known")).await.unwrap();
    let holding = {
        let mut client = client.clone();
        tokio::spawn(async move { client.say(Text::new("one")).await })
    };
    server.until(|seen| seen.len() == 2).await;
    for _ in 0..50 {
        let mut client = client.clone();
        let mut waiting = Box::pin(client.say(Text::new("waits")));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        tokio::task::yield_now().await;
    }
    holding.abort();
    let answer = tokio::time::timeout(Duration::from_secs(60), client.say(Text::new("last"))).await;
    assert_eq!(answer.unwrap().unwrap().into_inner(), Text::new("last"));
}
