//! `retry()` in a runtime other than tokio: async-io's timer wakes the call.
//!
//! The server begins to listen after two attempts to connect were refused.

use std::error::Error;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use async_io::{Async, Timer};
use reattempt::operation::is_transient_io_error;
use reattempt::retry;
use reattempt::schedule::Constant;

fn main() -> Result<(), Box<dyn Error>> {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let (mut refused, mut listener) = (0, None);
    let call = retry(Constant::new(Duration::from_millis(20)), || Async::<TcpStream>::connect(address))
        .when(is_transient_io_error)
        .notify(|error, delay| {
            println!("{error}; again in {delay:?}");
            refused += 1;
            if refused == 2 {
                listener = TcpListener::bind(address).ok();
            }
        })
        .sleep_with(Timer::after);
    let connection = async_io::block_on(call.into_future())?;
    println!("connected to {}", connection.get_ref().peer_addr()?);
    assert_eq!(refused, 2, "the call waited twice");
    assert!(tokio::runtime::Handle::try_current().is_err(), "there is no runtime of tokio");
    Ok(())
}
