//! A connection to a server or to a cluster.

use std::io;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, RedisConnectionInfo, RedisResult, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::bounded::Bounded;

/// The time limit for connecting and for a reply. The budget never waits longer than this.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// A connection that many tasks can use concurrently. Clones share it.
#[derive(Clone)]
pub(crate) enum Connection {
    Single(MultiplexedConnection),
    #[cfg(feature = "cluster")]
    Cluster(redis::cluster_async::ClusterConnection),
}

impl Connection {
    /// Connects to a client's server.
    pub(crate) async fn to_server(client: &Client) -> RedisResult<Self> {
        let info = client.get_connection_info();
        let connecting = async {
            match info.addr() {
                ConnectionAddr::Tcp(host, port) => Self::over(tcp(host, *port).await?, info.redis_settings()).await,
                #[cfg(unix)]
                ConnectionAddr::Unix(path) => {
                    Self::over(tokio::net::UnixStream::connect(path).await?, info.redis_settings()).await
                }
                // With TLS the driver connects, and the peer is no stranger.
                _ => {
                    let connection = client.get_multiplexed_async_connection_with_config(&settings()).await;
                    connection.map(Self::Single)
                }
            }
        };
        timeout(LONGEST, connecting).await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        of_server: &RedisConnectionInfo,
    ) -> RedisResult<Self> {
        let new = MultiplexedConnection::new_with_config(of_server, Bounded::new(stream), settings()).await;
        let (connection, driver) = new?;
        // The driver ends with the last clone of the connection.
        tokio::spawn(driver);
        Ok(Self::Single(connection))
    }

    pub(crate) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        let reply = match self {
            Self::Single(connection) => connection.req_packed_command(command).await,
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => connection.req_packed_command(command).await,
        };
        reply.and_then(Value::extract_error)
    }
}

fn settings() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(Some(LONGEST)).set_response_timeout(Some(LONGEST))
}

/// Connects to all addresses of a host at once. Returns the first connection.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut connecting: JoinSet<_> = lookup_host((host, port)).await?.map(TcpStream::connect).collect();
    let mut result = Err(io::ErrorKind::NotFound.into());
    while let Some(Ok(next)) = connecting.join_next().await {
        result = next;
        if result.is_ok() {
            break;
        }
    }
    let stream = result?;
    // A question must not wait for the acknowledgement of the one before.
    stream.set_nodelay(true)?;
    Ok(stream)
}
