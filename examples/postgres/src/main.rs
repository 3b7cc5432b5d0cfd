//! A database that starts late: a retried connection, and a retried transaction.
//!
//! `examples/postgres/run` runs this with a real PostgreSQL server, which it starts only after the
//! first attempts to connect have failed.
//!
//! ```sh
//! cargo run -p postgres-example --example postgres -- "host=127.0.0.1 port=5432 user=postgres"
//! ```

use std::error::Error;
use std::io;
use std::time::Duration;

use reattempt::operation::{is_transient_io_error, is_transient_sqlstate};
use reattempt::schedule::Exponential;
use reattempt::{RetryBudget, RetryPolicy, retry};
use tokio_postgres::{Client, IsolationLevel, NoTls};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = std::env::args().nth(1).ok_or("usage: postgres CONNECTION-STRING")?;

    // At its start, a program may wait a long time for its database. No success could fill a budget meanwhile, so there
    // is none.
    let patient = RetryPolicy::operations()
        .backoff(Exponential::full_jitter(Duration::from_millis(100)).max_delay(Duration::from_secs(1)))
        .max_attempts(u32::MAX)
        .max_elapsed(Duration::from_secs(60))
        .budget(RetryBudget::unlimited());
    let mut client = retry(patient, || connect(&config))
        .when(is_transient)
        .notify(|error, delay| {
            println!("{}; again in {delay:.0?}", with_causes(error));
        })
        .await?;
    println!("connected");

    // Afterwards: three attempts, and a budget that all transactions share.
    let policy = RetryPolicy::operations();
    let total = count_rows(&mut client, &policy).await?;
    println!("a serialisable transaction counted {total} rows");
    Ok(())
}

/// Runs one transaction again whenever the database rolls it back in favour of another.
async fn count_rows(
    client: &mut Client,
    policy: &RetryPolicy<reattempt::operation::Operations>,
) -> Result<i64, Box<dyn Error>> {
    let client = &tokio::sync::Mutex::new(client);
    let count = async || {
        let mut client = client.lock().await;
        let serializable = client.build_transaction().isolation_level(IsolationLevel::Serializable);
        let transaction = serializable.start().await?;
        let row = transaction.query_one("SELECT count(*) FROM generate_series(1, 42)", &[]).await?;
        transaction.commit().await?;
        row.try_get(0)
    };
    Ok(retry(policy, count).when(is_transient).await?)
}

/// Connects a client, and runs its connection in a task.
async fn connect(config: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(config, NoTls).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            eprintln!("the connection was lost: {}", with_causes(&error));
        }
    });
    Ok(client)
}

/// Returns `true` if another attempt may succeed, depending on the server's SQLSTATE if it responded, or else on the
/// connection's state.
fn is_transient(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(state) => is_transient_sqlstate(state.code()),
        None => match error.source().and_then(|cause| cause.downcast_ref::<io::Error>()) {
            Some(cause) => is_transient_io_error(cause),
            None => error.is_closed(),
        },
    }
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
