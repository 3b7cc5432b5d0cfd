//! Tests of a set whose source may remove the last endpoint.

use futures_util::stream::unfold;
use reattempt::endpoints::Endpoints;
use reattempt::guard::contract::GuardKind;
use reattempt::guard::{Reason, Refused};
use reattempt_testing::ms;
use reattempt_testing_layers::cluster::{Cluster, get};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep;
use tower::discover::Change;

/// With `allow_empty` the last endpoint leaves, calls are refused at once, and the next one serves them.
// E-10
#[tokio::test(start_paused = true)]
async fn source_may_remove_the_last_endpoint() {
    let cluster = Cluster::default();
    let (sender, receiver) = unbounded_channel();
    let changes = unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|it| (it, receiver)) });
    let client = Endpoints::discover(Box::pin(changes)).allow_empty().http();
    let insert = |name| sender.send(Ok::<_, std::io::Error>(Change::Insert(name, cluster.client(name)))).unwrap();
    insert("a");
    client.send(get()).await.unwrap();
    sender.send(Ok(Change::Remove("a"))).unwrap();
    sleep(ms(1)).await;
    assert_eq!(client.endpoints().view().len(), 0);
    assert_eq!(cluster.alive(), 0);
    let refused = client.send(get()).await.unwrap_err();
    let refused = refused.downcast_ref::<Refused>().unwrap();
    assert_eq!((refused.guard(), refused.reason()), (GuardKind::ENDPOINTS, Reason::Empty));
    insert("b");
    sleep(ms(1)).await;
    client.send(get()).await.unwrap();
    assert_eq!(cluster.seen(), ["a", "b"]);
}
