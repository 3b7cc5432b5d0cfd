//! The public store type and its connection.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use reattempt_fleet::rate::{Rate, Taken};
use reattempt_fleet::{BudgetStore, RateStore, Settling, Taking};
use redis::{FromRedisValue, Value, cmd};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::error::{RedisStoreError, StoreFailed};
use crate::script::{SETTLE, Script, TAKE};
use crate::source::Source;

/// The number of consecutive requests without a reply after which a new connection is opened. The old one may be
/// waiting for a reply that never comes.
const MOST_UNANSWERED: u32 = 3;

/// The time limit for a new connection. It is longer than for a request, because several sentinels may be asked in
/// turn.
const CONNECTING: Duration = Duration::from_secs(10);

/// A store on Redis or Valkey.
///
/// The connection is opened when a budget first asks the store, so a process can start without the server. After an
/// error, or after three consecutive requests without a reply, the next request opens a new connection. Clones share
/// the connection.
///
/// ```
/// use reattempt_redis::{RedisStore, RedisStoreError};
///
/// let store = RedisStore::new("redis://user:password@budget.internal:6379/2")?;
/// assert_eq!(format!("{store:?}"), "RedisStore { servers: one server, .. }");
/// assert_eq!(RedisStore::new("http://budget.internal").unwrap_err(), RedisStoreError::InvalidUrl);
/// # Ok::<(), RedisStoreError>(())
/// ```
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
}

struct Shared {
    source: Source,
    connection: Arc<Mutex<Option<Connection>>>,
    /// The number of consecutive requests without a reply.
    unanswered: AtomicU32,
    /// The mark of the next request. A reply with a different mark belongs to a different request. The first mark is
    /// random, so that a proxy which confuses connections does not pass off the reply to another process.
    next_mark: AtomicU64,
}

/// A server setting that weakens the budget.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreWarning {
    /// The server evicts keys when its memory is full. An evicted bucket is full again.
    EvictsKeys(
        /// The eviction policy that the server reports.
        String,
    ),
}

impl RedisStore {
    /// Creates a store on the server at `url`: `redis://user:password@host:port/database`, `unix:///path`, or
    /// `rediss://` with the feature `tls`. Does not access the network.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is invalid, or if it requires TLS without the feature.
    pub fn new(url: &str) -> Result<Self, RedisStoreError> {
        Source::single(url).map(Self::of)
    }

    /// Creates a store on the cluster that the servers at `urls` belong to. Does not access the network.
    ///
    /// A request whose connection is lost may be sent once more, so a retry may be charged twice.
    ///
    /// # Errors
    ///
    /// Returns an error if the list is empty, a URL is invalid, or a URL requires TLS without the feature.
    #[cfg(feature = "cluster")]
    #[cfg_attr(docsrs, doc(cfg(feature = "cluster")))]
    pub fn cluster(urls: &[&str]) -> Result<Self, RedisStoreError> {
        Source::cluster(urls).map(Self::of)
    }

    /// Creates a store on the server that the sentinels at `urls` report as the primary of `service`. Does not access
    /// the network.
    ///
    /// The first URL's user, password and database are used for the primary, but not for the sentinels.
    ///
    /// # Errors
    ///
    /// Returns an error if the list is empty, a URL is invalid, or a URL requires TLS without the feature.
    #[cfg(feature = "sentinel")]
    #[cfg_attr(docsrs, doc(cfg(feature = "sentinel")))]
    pub fn sentinel(urls: &[&str], service: &str) -> Result<Self, RedisStoreError> {
        Source::sentinel(urls, service).map(Self::of)
    }

    /// Reads the server's settings. Returns a warning for each setting that weakens the budget.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be reached, or if the user has no permission for `INFO`.
    pub async fn warnings(&self) -> Result<Vec<StoreWarning>, StoreFailed> {
        let memory = self.shared.memory().await.inspect_err(|_| self.shared.disconnect())?;
        let mut policies = Vec::new();
        for_each_text(&memory, &mut |text| {
            let setting = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
            let is_bounded = setting("maxmemory:").is_none_or(|most| most.trim() != "0");
            let policy = setting("maxmemory_policy:").map(str::trim);
            policies.extend(policy.filter(|_| is_bounded).map(ToOwned::to_owned));
        });
        policies.retain(|policy| policy != "noeviction" && policy != "volatile-ttl");
        policies.dedup();
        Ok(policies.into_iter().map(StoreWarning::EvictsKeys).collect())
    }

    fn of(source: Source) -> Self {
        let first_mark = RandomState::new().build_hasher().finish();
        let (unanswered, next_mark) = (AtomicU32::new(0), AtomicU64::new(first_mark));
        Self { shared: Arc::new(Shared { source, connection: Arc::default(), unanswered, next_mark }) }
    }
}

impl BudgetStore for RedisStore {
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64, least: u64) -> Settling<'a> {
        Box::pin(async move {
            let granted = |answer: i64| [0, 1].contains(&answer).then_some(answer == 1);
            Ok(self.shared.run(&SETTLE, key, &[earned, cost, least], granted).await?)
        })
    }
}

impl RateStore for RedisStore {
    fn take<'a>(&'a self, key: &'a str, rate: Rate, wanted: u32) -> Taking<'a> {
        Box::pin(async move {
            let arguments = [rate.per_second(), rate.burst(), wanted].map(u64::from);
            let taken = |(granted, granted_at): (i64, i64)| {
                let granted = u32::try_from(granted).ok().filter(|granted| *granted <= wanted)?;
                Some(Taken { granted, granted_at: u64::try_from(granted_at).ok()? })
            };
            Ok(self.shared.run(&TAKE, key, &arguments, taken).await?)
        })
    }
}

impl Shared {
    /// Runs a script, whose answer `read` checks. After an error, the next request opens a new connection.
    async fn run<A: FromRedisValue, T>(
        self: &Arc<Self>,
        script: &Script,
        key: &str,
        arguments: &[u64],
        read: impl FnOnce(A) -> Option<T>,
    ) -> Result<T, StoreFailed> {
        let answer = self.ask(script, key, arguments, read).await;
        if answer.is_err() {
            self.disconnect();
        }
        answer
    }

    async fn ask<A: FromRedisValue, T>(
        self: &Arc<Self>,
        script: &Script,
        key: &str,
        arguments: &[u64],
        read: impl FnOnce(A) -> Option<T>,
    ) -> Result<T, StoreFailed> {
        let mut watch = Watch { shared: self, is_answered: false };
        let mut connection = self.connection().await?;
        let mark = self.next_mark.fetch_add(1, Ordering::Relaxed);
        let (answer, repeated) = script.run(&mut connection, key, arguments, mark).await?;
        if repeated != mark {
            return Err(StoreFailed::new("the reply is another message's"));
        }
        let answer = read(answer).ok_or(StoreFailed::new("the reply is no answer of the script"))?;
        watch.is_answered = true;
        Ok(answer)
    }

    async fn memory(self: &Arc<Self>) -> Result<Value, StoreFailed> {
        let mut connection = self.connection().await?;
        Ok(connection.send(cmd("INFO").arg("memory")).await?)
    }

    /// Returns the connection, and opens one if necessary. Only one is opened at a time.
    ///
    /// A separate task opens it, so that a request that stops waiting does not interrupt it.
    async fn connection(self: &Arc<Self>) -> Result<Connection, StoreFailed> {
        let mut place = Arc::clone(&self.connection).lock_owned().await;
        if let Some(connection) = &*place {
            return Ok(connection.clone());
        }
        let shared = Arc::clone(self);
        let connecting = tokio::spawn(async move {
            let new = timeout(CONNECTING, shared.source.connect()).await;
            let new = new.map_err(|_| StoreFailed::new("no connection in time"))??;
            Ok(place.insert(new).clone())
        });
        connecting.await.unwrap_or(Err(StoreFailed::new("the runtime has ended")))
    }

    /// Drops the connection, unless another task is opening one.
    fn disconnect(&self) {
        if let Ok(mut connection) = self.connection.try_lock() {
            *connection = None;
        }
    }
}

/// A guard for the wait for an answer. The budget drops it if the answer is late.
struct Watch<'a> {
    shared: &'a Shared,
    is_answered: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            self.shared.unanswered.store(0, Ordering::Relaxed);
        } else if self.shared.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_UNANSWERED {
            self.shared.unanswered.store(0, Ordering::Relaxed);
            self.shared.disconnect();
        }
    }
}

/// Calls `act` for each text in a reply. A cluster's reply has one text per server.
fn for_each_text(value: &Value, act: &mut impl FnMut(&str)) {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).into_iter().for_each(act),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => act(text),
        Value::Array(values) => values.iter().for_each(|value| for_each_text(value, act)),
        Value::Map(pairs) => pairs.iter().for_each(|(_, value)| for_each_text(value, act)),
        _ => {}
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("servers", &format_args!("{}", self.shared.source.kind()))
            .finish_non_exhaustive()
    }
}
