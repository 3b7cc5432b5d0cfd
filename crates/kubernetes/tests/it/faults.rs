//! Tests of what an API server and the way to it can do to a watch. The last set stays through all of it.

use reattempt_testing::{ms, secs};
use serde_json::json;
use tokio::time::sleep;

use crate::api::{Api, Fault};
use crate::shop::{Watched, arrive, orders, ready, slice};

/// Starts with one pod, and forgets what has happened so far.
async fn started(api: &Api) -> Watched {
    api.apply(slice("a", [ready("10.0.0.1")]));
    let watched = Watched::start(orders(api)).await;
    assert_eq!(watched.events(), ["endpoints found: 1"]);
    api.requests();
    watched
}

fn lists(api: &Api) -> usize {
    api.requests().iter().filter(|uri| !uri.contains("watch=true")).count()
}

/// A version that is too old is listed anew: a slice that vanished meanwhile is gone. Bookmarks are no change.
#[tokio::test(start_paused = true)]
async fn gone_watch_lists_again() {
    let api = Api::default();
    let watched = started(&api).await;
    api.bookmark();
    sleep(secs(60)).await;
    assert_eq!((watched.events(), lists(&api)), (vec![], 0));
    api.expire();
    api.delete("a");
    api.apply(slice("b", [ready("10.0.0.2")]));
    assert_eq!(watched.addresses(), ["10.0.0.1:50051"], "the last set stays");
    sleep(secs(3)).await;
    assert_eq!(watched.addresses(), ["10.0.0.2:50051"]);
    assert_eq!(lists(&api), 1);
    let events = watched.events();
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(events[0].contains("the EndpointSlices of service `shop/orders` are not watched"), "{events:?}");
    assert!(events[0].contains("scripted 410"), "{events:?}");
}

/// A 410 that is the status of the response, not an event: kube alone would ask for the same version for ever.
#[tokio::test(start_paused = true)]
async fn gone_status_lists_again() {
    let api = Api::default();
    let watched = started(&api).await;
    for _ in 0..2 {
        api.next_watch(Fault::Status(410));
    }
    api.forget();
    api.apply(slice("a", [ready("10.0.0.2")]));
    sleep(secs(10)).await;
    assert_eq!(watched.addresses(), ["10.0.0.2:50051"]);
    assert_eq!(lists(&api), 2);
}

/// After a bookmark, a watch resumes from its version, which is younger than that of the last slice.
#[tokio::test(start_paused = true)]
async fn closed_watch_resumes() {
    let api = Api::default();
    let watched = started(&api).await;
    api.delete("nothing");
    api.apply(slice("b", [ready("10.0.0.2")]));
    arrive().await;
    api.close();
    api.apply(slice("c", [ready("10.0.0.3")]));
    arrive().await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051", "10.0.0.2:50051", "10.0.0.3:50051"]);
    let requests = api.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert!(requests[0].ends_with("resourceVersion=3"), "{requests:?}");
    assert!(
        watched.events().iter().all(|event| event.starts_with("endpoints found")),
        "the end of a watch is no error"
    );
}

/// A line that breaks off in the middle, with and without an error of the connection, is sent again by the next watch.
#[tokio::test(start_paused = true)]
async fn event_cut_in_two_is_not_lost() {
    for broken in [false, true] {
        let api = Api::default();
        let watched = started(&api).await;
        api.cut(slice("b", [ready("10.0.0.2")]), broken);
        sleep(secs(5)).await;
        assert_eq!(watched.addresses(), ["10.0.0.1:50051", "10.0.0.2:50051"]);
        assert_eq!(lists(&api), 0, "the watch goes on where it was");
    }
}

/// An event that cannot be read may have been any change. kube alone would skip it.
#[tokio::test(start_paused = true)]
async fn unreadable_event_lists_again() {
    let lines =
        ["garbage", "{}", "[]", r#"{"type":"ADDED","object":{"endpoints":7}}"#, r#"{"type":"ODD","object":{}}"#];
    for line in lines {
        let api = Api::default();
        let watched = started(&api).await;
        api.garble(slice("a", [ready("10.0.0.2")]), line);
        sleep(secs(5)).await;
        assert_eq!(watched.addresses(), ["10.0.0.2:50051"], "{line}");
        assert_eq!(lists(&api), 1, "{line}");
        let events = watched.events();
        assert!(events[0].contains("are not watched"), "{line}: {events:?}");
    }
}

/// An error event may stand for lost ones, whatever its code.
#[tokio::test(start_paused = true)]
async fn error_event_lists_again() {
    let api = Api::default();
    let watched = started(&api).await;
    api.error_event(500);
    sleep(secs(5)).await;
    assert_eq!(lists(&api), 1);
    assert!(watched.events()[0].contains("scripted 500"));
    api.apply(slice("a", [ready("10.0.0.2")]));
    arrive().await;
    assert_eq!(watched.addresses(), ["10.0.0.2:50051"]);
}

/// Whatever a list answers, the last set stays, and the list is asked for again.
#[tokio::test(start_paused = true)]
async fn failed_list_keeps_the_set() {
    let faults = [
        Fault::Status(403),
        Fault::Status(500),
        Fault::Text("garbage"),
        Fault::Text("{}"),
        Fault::Text(r#"{"kind":"EndpointSliceList","apiVersion":"v1","metadata":{},"items":[]}"#),
        Fault::Text(r#"{"metadata":{"resourceVersion":"9"},"items":[{"endpoints":7}]}"#),
        Fault::Refuse,
    ];
    for fault in faults {
        let api = Api::default();
        let watched = started(&api).await;
        api.next_list(fault.clone());
        api.forget();
        sleep(secs(10)).await;
        assert_eq!(watched.addresses(), ["10.0.0.1:50051"]);
        let events = watched.events();
        assert!(events.iter().any(|event| event.contains("are not watched")), "{fault:?}: {events:?}");
        api.apply(slice("a", [ready("10.0.0.2")]));
        sleep(secs(10)).await;
        assert_eq!(watched.addresses(), ["10.0.0.2:50051"], "{fault:?}");
    }
}

/// A list that is not answered is given up after 30 s. kube's client has no limit of its own.
#[tokio::test(start_paused = true)]
async fn hanging_list_is_given_up() {
    let api = Api::default();
    api.next_list(Fault::Hang);
    api.apply(slice("a", [ready("10.0.0.1")]));
    let watched = Watched::start(orders(&api)).await;
    sleep(secs(27)).await;
    assert_eq!(watched.addresses(), Vec::<String>::new());
    sleep(secs(5)).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051"]);
    assert!(watched.events()[0].contains("took more than 30 s"));
}

/// The waits grow although each list succeeds, so clients do not add to the load of a struggling server.
#[tokio::test(start_paused = true)]
async fn waits_grow_with_each_error() {
    let api = Api::default();
    let watched = started(&api).await;
    for _ in 0..100 {
        api.next_watch(Fault::Text("garbage\n"));
    }
    api.close();
    sleep(secs(110)).await;
    // 0.8 s doubling to 30 s, with jitter; at a fixed pace there would be 60 or more.
    let count = lists(&api);
    assert!((5..=9).contains(&count), "{count} lists");
    api.heal();
    api.apply(slice("a", [ready("10.0.0.2")]));
    sleep(secs(61)).await;
    assert_eq!(watched.addresses(), ["10.0.0.2:50051"]);
}

/// A service without slices is missing, not empty: the last set stays. It is said once.
#[tokio::test(start_paused = true)]
async fn no_slice_keeps_the_set() {
    let api = Api::default();
    let watched = started(&api).await;
    api.delete("a");
    sleep(secs(60)).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051"]);
    let text = "no endpoints found, next look-up in 1s: service `shop/orders` has no EndpointSlice";
    assert_eq!(watched.events(), [text]);
    api.expire();
    sleep(secs(5)).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051"], "an empty list, too");
    api.apply(slice("a", [ready("10.0.0.2")]));
    sleep(secs(2)).await;
    assert_eq!(watched.addresses(), ["10.0.0.2:50051"]);
}

/// The loss of the last slice is reported although the watch fails at the same moment.
#[tokio::test(start_paused = true)]
async fn problems_at_once_are_all_reported() {
    let api = Api::default();
    let watched = started(&api).await;
    api.delete("a");
    api.error_event(500);
    sleep(secs(10)).await;
    let events = watched.events();
    assert!(events[0].contains("has no EndpointSlice") && events[1].contains("scripted 500"), "{events:?}");
    assert_eq!(events.len(), 2, "{events:?}");
}

/// A server with an endless supply of events does not stop the other tasks of its thread.
#[tokio::test(start_paused = true)]
async fn flood_of_events_leaves_time() {
    let api = Api::default();
    let watched = started(&api).await;
    for number in 0..10_000 {
        api.apply(json!({ "metadata": { "name": "b" }, "addressType": "IPv4", "endpoints": [], "number": number }));
    }
    api.apply(slice("b", [ready("10.0.0.2")]));
    sleep(ms(10)).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051", "10.0.0.2:50051"]);
}
