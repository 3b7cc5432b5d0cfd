//! The servers that a store connects to.

use redis::{Client, ConnectionInfo, IntoConnectionInfo, RedisResult};

use crate::connection::Connection;
use crate::error::RedisStoreError;

/// The source of a store's connections.
pub(crate) enum Source {
    Single(Box<Client>),
    #[cfg(feature = "cluster")]
    Cluster(Box<redis::cluster::ClusterClient>),
    #[cfg(feature = "sentinel")]
    Sentinel(Box<tokio::sync::Mutex<redis::sentinel::SentinelClient>>),
}

impl Source {
    pub(crate) fn single(url: &str) -> Result<Self, RedisStoreError> {
        let client = Client::open(parse(url)?).map_err(|_| RedisStoreError::InvalidUrl)?;
        Ok(Self::Single(Box::new(client)))
    }

    #[cfg(feature = "cluster")]
    pub(crate) fn cluster(urls: &[&str]) -> Result<Self, RedisStoreError> {
        use crate::connection::LONGEST;

        let nodes = parse_all(urls)?;
        // The client counts a redirection as a retry. With a higher limit, a message whose connection was lost could be
        // executed twice.
        let client = redis::cluster::ClusterClientBuilder::new(nodes).retries(1);
        let client = client.connection_timeout(LONGEST).response_timeout(LONGEST).build();
        client.map(|client| Self::Cluster(Box::new(client))).map_err(|_| RedisStoreError::InvalidUrl)
    }

    #[cfg(feature = "sentinel")]
    pub(crate) fn sentinel(urls: &[&str], service: &str) -> Result<Self, RedisStoreError> {
        use redis::RedisConnectionInfo;
        use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};

        let urls = parse_all(urls)?;
        let own = urls.first().map(|first| first.redis_settings().clone()).unwrap_or_default();
        let mut node = SentinelNodeConnectionInfo::default().set_redis_connection_info(own);
        // If a URL requires TLS, the primary's password must not be sent without TLS.
        for url in &urls {
            if let redis::ConnectionAddr::TcpTls { insecure, .. } = url.addr() {
                let mode = if *insecure { redis::TlsMode::Insecure } else { redis::TlsMode::Secure };
                node = node.set_tls_mode(mode);
            }
        }
        // Owned, because the client requires that without TLS.
        let service = String::from(service);
        let bare = |info: ConnectionInfo| info.set_redis_settings(RedisConnectionInfo::default());
        let client = SentinelClient::build(
            urls.into_iter().map(bare).collect(),
            service,
            Some(node),
            SentinelServerType::Master,
        );
        let client = client.map_err(|_| RedisStoreError::InvalidUrl)?;
        Ok(Self::Sentinel(Box::new(tokio::sync::Mutex::new(client))))
    }

    /// Creates a connection.
    pub(crate) async fn connect(&self) -> RedisResult<Connection> {
        match self {
            Self::Single(client) => Connection::to_server(client).await,
            #[cfg(feature = "cluster")]
            Self::Cluster(client) => client.get_async_connection().await.map(Connection::Cluster),
            #[cfg(feature = "sentinel")]
            Self::Sentinel(client) => {
                let primary = client.lock().await.async_get_client().await?;
                Connection::to_server(&primary).await
            }
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Single(_) => "one server",
            #[cfg(feature = "cluster")]
            Self::Cluster(_) => "a cluster",
            #[cfg(feature = "sentinel")]
            Self::Sentinel(_) => "sentinels",
        }
    }
}

#[cfg(any(feature = "cluster", feature = "sentinel"))]
fn parse_all(urls: &[&str]) -> Result<Vec<ConnectionInfo>, RedisStoreError> {
    if urls.is_empty() {
        return Err(RedisStoreError::NoUrl);
    }
    urls.iter().map(|url| parse(url)).collect()
}

/// Parses a URL. The error contains no part of it, because it may contain a password.
fn parse(url: &str) -> Result<ConnectionInfo, RedisStoreError> {
    let parsed = redis::parse_redis_url(url).ok_or(RedisStoreError::InvalidUrl)?;
    if ["rediss", "valkeys"].contains(&parsed.scheme()) {
        use_tls()?;
    }
    url.into_connection_info().map_err(|_| RedisStoreError::InvalidUrl)
}

#[cfg(not(feature = "tls"))]
fn use_tls() -> Result<(), RedisStoreError> {
    Err(RedisStoreError::TlsFeatureOff)
}

/// Installs a cryptography provider for rustls, which panics without one, unless the program has installed one.
#[cfg(feature = "tls")]
fn use_tls() -> Result<(), RedisStoreError> {
    let _installed_before = rustls::crypto::ring::default_provider().install_default();
    Ok(())
}
