//! The Lua scripts. Only their hash is sent, unless the server does not have them.

use std::sync::LazyLock;

use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind, cmd};

use crate::connection::Connection;

/// The rule of the retry budget.
pub(crate) static SETTLE: Script =
    Script { text: include_str!("settle.lua"), hash: LazyLock::new(|| hash_of(&SETTLE)) };

/// The rule of the rate limit.
pub(crate) static TAKE: Script = Script { text: include_str!("take.lua"), hash: LazyLock::new(|| hash_of(&TAKE)) };

/// A script with one key.
pub(crate) struct Script {
    text: &'static str,
    hash: LazyLock<String>,
}

fn hash_of(script: &Script) -> String {
    redis::Script::new(script.text).get_hash().to_owned()
}

impl Script {
    /// Runs the script on `connection`. Returns its answer and the mark that it repeats.
    ///
    /// If the server does not have the script, nothing was executed, so the full script is sent. Nothing else is sent
    /// twice.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        connection: &mut Connection,
        key: &str,
        arguments: &[u64],
        mark: u64,
    ) -> RedisResult<(T, u64)> {
        let message = |mut command: Cmd| {
            command.arg(1).arg(key).arg(arguments).arg(mark);
            command
        };
        let (mut short, mut whole) = (cmd("EVALSHA"), cmd("EVAL"));
        short.arg(&*self.hash);
        let reply = match connection.send(&message(short)).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                whole.arg(self.text);
                connection.send(&message(whole)).await?
            }
            reply => reply?,
        };
        <(T, u64)>::from_redis_value(reply).map_err(RedisError::from)
    }
}
