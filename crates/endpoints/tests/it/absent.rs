//! Tests of look-ups whose answers lack endpoints that are well: rotating, wrong and partial answers.

use std::collections::HashMap;
use std::io::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reattempt::RetryLayer;
use reattempt::endpoints::{Balanced, Endpoints};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Cluster, Does, Node, WELL, get, policy};
use tokio::time::{Instant, sleep};
use tower::Layer;

/// A look-up once per second, whose answer depends on the second, and the number of clients made for each name.
struct Resolver {
    client: Balanced<Node>,
    made: Arc<Mutex<HashMap<String, u32>>>,
}

impl Resolver {
    fn new(cluster: &Cluster, keep: Duration, answer: impl Fn(u64) -> Vec<String> + Send + 'static) -> Self {
        let (began, nodes, made) = (Instant::now(), cluster.clone(), Arc::<Mutex<HashMap<_, _>>>::default());
        let count = Arc::clone(&made);
        let look_up = move || std::future::ready(Ok::<_, Error>(answer(began.elapsed().as_secs())));
        let client = Endpoints::look_up(secs(1), look_up)
            .keep_absent(keep)
            .connect(move |name: String| {
                *count.lock().unwrap().entry(name.clone()).or_default() += 1;
                nodes.client(name)
            })
            .http();
        Self { client, made }
    }

    fn names(&self) -> Vec<String> {
        let views = self.client.endpoints().view();
        views.iter().map(|view| format!("{}{}", view.name, if view.weight == 0 { "-" } else { "" })).collect()
    }
}

fn names(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    numbers.into_iter().map(|number| number.to_string()).collect()
}

/// Answers that rotate through the addresses make one client for each address. Without the setting, each answer makes
/// new ones.
// W-4
#[tokio::test(start_paused = true)]
async fn rotating_answers_make_no_clients() {
    for (keep, at_most) in [(secs(60), 1), (secs(0), 100)] {
        let cluster = Cluster::of([]);
        let rotating = Resolver::new(&cluster, keep, |second| names((0..4).map(|n| (3 * second + n) % 10)));
        for _ in 0..600 {
            rotating.client.send(get()).await.unwrap();
            sleep(ms(50)).await;
        }
        let made = rotating.made.lock().unwrap().clone();
        assert_eq!(made.len(), 10);
        let most = made.values().copied().max().unwrap();
        assert!(most <= at_most && (keep.is_zero() == (most > 1)), "{made:?}");
        assert_eq!(cluster.alive(), if keep.is_zero() { 4 } else { 10 });
        // Each gets its part of the calls: an absent one gets none, because the others are well.
        let seen = cluster.seen();
        let counts = (0..10).map(|number| seen.iter().filter(|name| **name == number.to_string()).count());
        assert!(counts.clone().all(|count| count > 20), "{:?}", counts.collect::<Vec<_>>());
    }
}

/// While an answer has only dead addresses for three seconds, no call fails: the old addresses get the calls, over the
/// connections that they have.
// W-4
#[tokio::test(start_paused = true)]
async fn answer_of_dead_addresses_fails_no_call() {
    for dead in [1, 3, 20] {
        let cluster = Cluster::of([]);
        (100..100 + dead).for_each(|number| cluster.set(&number.to_string(), Does::Refuse));
        let wrong = Resolver::new(&cluster, secs(60), move |second| match second {
            5..8 => names(100..100 + dead),
            _ => names(0..3),
        });
        let client = RetryLayer::new(policy(3)).layer(wrong.client.clone());
        for _ in 0..1200 {
            client.send(get()).await.unwrap();
        }
        let to_dead = cluster.seen().iter().filter(|name| name.len() == 3).count();
        assert!(to_dead <= 60 + usize::try_from(4 * dead).unwrap(), "{to_dead} attempts at {dead} dead ones");
        assert!((0..3).all(|number| wrong.made.lock().unwrap()[&number.to_string()] == 1));
        assert_eq!(wrong.names()[..3], ["0", "1", "2"]);
    }
}

/// An absent endpoint gets no calls while the others are well. It leaves the set after the time, or when it is out of
/// service, and at once by default.
// W-4
#[tokio::test(start_paused = true)]
async fn absent_endpoint_gets_no_calls() {
    let answer = |second| if second < 2 { names(0..3) } else { names(0..2) };
    let cluster = Cluster::of([]);
    let kept = Resolver::new(&cluster, secs(10), answer);
    sleep(ms(2500)).await;
    assert_eq!(kept.names(), ["0", "1", "2-"]);
    for _ in 0..200 {
        kept.client.send(get()).await.unwrap();
    }
    assert!(!cluster.seen().contains(&"2".to_owned()));
    sleep(secs(6)).await;
    assert_eq!(kept.names(), ["0", "1", "2-"]);
    sleep(secs(4)).await;
    assert_eq!(kept.names(), ["0", "1"]);

    let unkept = Resolver::new(&cluster, secs(0), answer);
    sleep(ms(2500)).await;
    assert_eq!(unkept.names(), ["0", "1"]);

    let refusing = Resolver::new(&cluster, secs(60), answer);
    sleep(ms(2500)).await;
    assert_eq!(refusing.names(), ["0", "1", "2-"]);
    ["0", "1", "2"].iter().for_each(|name| cluster.set(name, Does::Refuse));
    for _ in 0..10 {
        drop(RetryLayer::new(policy(3)).layer(refusing.client.clone()).send(get()).await);
    }
    assert!(cluster.seen().contains(&"2".to_owned()), "the others refuse");
    sleep(secs(1)).await;
    assert_eq!(refusing.names(), ["0", "1"]);
    ["0", "1"].iter().for_each(|name| cluster.set(name, WELL));
    sleep(secs(12)).await;
    refusing.client.send(get()).await.unwrap();
}

/// The time that a look-up returns is that until the next one, from one second to an hour.
// W-4
#[tokio::test(start_paused = true)]
async fn ttl_sets_the_next_look_up() {
    let (asked, began) = (Arc::<Mutex<Vec<_>>>::default(), Instant::now());
    let (noted, cluster) = (Arc::clone(&asked), Cluster::of([]));
    let mut ttls = [secs(30), secs(0), Duration::MAX].into_iter();
    let look_up = move || {
        noted.lock().unwrap().push(began.elapsed().as_secs());
        std::future::ready(Ok::<_, Error>((["a"], ttls.next().unwrap_or(secs(4000)))))
    };
    let client = Endpoints::look_up_ttl(look_up).connect(move |name: &str| cluster.client(name)).http();
    sleep(secs(4000)).await;
    assert_eq!(*asked.lock().unwrap(), [0, 30, 31, 3631]);
    client.send(get()).await.unwrap();
}
