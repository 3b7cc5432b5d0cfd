//! The script, sent as its hash, or in full to a server that does not have it.

use std::sync::LazyLock;

use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind, cmd};

use crate::connection::Connection;

/// The script as it is sent.
static SCRIPT: LazyLock<redis::Script> = LazyLock::new(|| redis::Script::new(include_str!("settle.lua")));

/// Sends the script to `connection`. Returns its answer, and the mark that the answer repeats.
///
/// A server without the script has run nothing, so the full script is sent. Nothing else is sent twice.
pub(crate) async fn settle(
    connection: &mut Connection,
    key: &str,
    (earned, cost): (u64, u64),
    mark: u64,
) -> RedisResult<(bool, u64)> {
    let message = |mut command: Cmd| {
        command.arg(1).arg(key).arg(earned).arg(cost).arg(mark);
        command
    };
    let (mut short, mut whole) = (cmd("EVALSHA"), cmd("EVAL"));
    short.arg(SCRIPT.get_hash());
    let reply = match connection.send(&message(short)).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            whole.arg(include_str!("settle.lua"));
            connection.send(&message(whole)).await?
        }
        reply => reply?,
    };
    <(bool, u64)>::from_redis_value(reply).map_err(RedisError::from)
}
