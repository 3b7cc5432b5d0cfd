//! DNS look-ups of a host name whose addresses are used as endpoints.
//!
//! The look-ups run on a separate thread, because the system's resolver blocks, and there may be no runtime when a file
//! changes.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use reattempt::endpoints::{BaseUrl, EndpointsHandle};

use crate::pause::Pause;
use crate::threads::{LOOK_UPS, Thread};

/// The maximum delay until the next look-up after a failed one.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// A callback for failed look-ups, called with the name and the error.
pub(crate) type Report = Arc<dyn Fn(&str, io::Error) + Send + Sync>;

/// The look-ups of one name. Dropping it ends them.
pub(crate) struct LookUp {
    pause: Arc<Pause>,
    thread: Arc<Thread>,
}

impl LookUp {
    /// Starts the thread. If that fails, the base URL stays the only server.
    pub(crate) fn start(name: String, every: Duration, servers: EndpointsHandle<BaseUrl>, report: Report) -> Self {
        let of_name = name.clone();
        let look_up = move || of_name.to_socket_addrs().map(Vec::from_iter);
        Self::start_with(look_up, every, servers, move |error| report(&name, error))
    }

    /// Starts the thread, which calls `report` for the first of several consecutive failures.
    fn start_with(
        look_up: impl Fn() -> io::Result<Vec<SocketAddr>> + Send + 'static,
        every: Duration,
        servers: EndpointsHandle<BaseUrl>,
        report: impl Fn(io::Error) + Send + 'static,
    ) -> Self {
        let pause = Arc::new(Pause::default());
        let own = Arc::clone(&pause);
        let job = move || {
            let mut has_failed = false;
            loop {
                let addresses = look_up().and_then(|addresses| match addresses.is_empty() {
                    true => Err(io::Error::other("the name has no address")),
                    false => Ok(addresses),
                });
                // Another look-up may have replaced this one in the meantime.
                let Some(found) = own.unless_over(|| addresses.map(|addresses| replace(addresses, &servers))) else {
                    return;
                };
                let had_failed = std::mem::replace(&mut has_failed, found.is_err());
                if let Err(error) = found
                    && !had_failed
                {
                    // A panic in the program's observer must not end the look-ups. The panic hook has already reported
                    // it.
                    let _ = catch_unwind(AssertUnwindSafe(|| report(error)));
                }
                let after = if has_failed { every.min(AFTER_FAILURE) } else { every };
                if own.wait(after) {
                    return;
                }
            }
        };
        Self { pause, thread: LOOK_UPS.start(job) }
    }
}

/// Replaces the servers with these addresses.
fn replace(addresses: Vec<SocketAddr>, servers: &EndpointsHandle<BaseUrl>) {
    let mut urls: Vec<_> = addresses.iter().map(|address| format!("http://{address}")).collect();
    urls.sort_unstable();
    urls.dedup();
    // URLs from addresses are always valid, and there is at least one.
    let _ = servers.update_urls(urls);
}

impl Drop for LookUp {
    fn drop(&mut self) {
        self.pause.end();
        LOOK_UPS.leave(&self.thread);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use reattempt::Http;
    use reattempt::endpoints::{Endpoints, EndpointsLayer};

    use super::*;

    type Answer = io::Result<Vec<SocketAddr>>;

    fn servers() -> EndpointsHandle<BaseUrl> {
        let endpoints = Endpoints::urls(["http://first"]).unwrap_or_else(|error| unreachable!("{error}"));
        EndpointsLayer::with(Http::new(), endpoints).endpoints()
    }

    fn names(servers: &EndpointsHandle<BaseUrl>) -> Vec<String> {
        servers.view().iter().map(|server| server.name.to_string()).collect()
    }

    fn address(port: u16) -> Answer {
        Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))])
    }

    /// Returns a resolver that announces each look-up and waits for its answer.
    fn resolver() -> (impl Fn() -> Answer + Send + 'static, Receiver<()>, Sender<Answer>) {
        let (asked, is_asked) = channel();
        let (answer, answers) = channel::<Answer>();
        // Only one thread's look-ups use this lock.
        let answers = Mutex::new(answers);
        let look_up = move || {
            let _ = asked.send(());
            let answers = answers.lock().map_err(|_| io::Error::other("poisoned"))?;
            answers.recv().unwrap_or_else(|_| Err(io::Error::other("the test is over")))
        };
        (look_up, is_asked, answer)
    }

    /// A look-up that was in flight when it was replaced has no effect.
    #[test]
    fn late_answer_of_the_former_is_dropped() {
        let servers = servers();
        let (former, is_asked, answer) = resolver();
        let former = LookUp::start_with(former, Duration::ZERO, servers.clone(), |_| {});
        assert!(is_asked.recv().is_ok());
        drop(former);
        let (later, is_asked_again, answer_again) = resolver();
        let _later = LookUp::start_with(later, Duration::ZERO, servers.clone(), |_| {});
        assert!(answer_again.send(address(2)).is_ok());
        // The second look-up follows the first answer.
        assert!(is_asked_again.recv().is_ok() && is_asked_again.recv().is_ok());
        assert!(answer.send(address(1)).is_ok());
        // The old thread ends and drops its resolver.
        assert!(is_asked.recv().is_err());
        assert_eq!(names(&servers), ["http://127.0.0.1:2"]);
    }

    /// A resolver that hangs keeps the threads of ended look-ups. Their number is bounded, and later look-ups begin
    /// when they end.
    #[test]
    fn hanging_resolver_makes_few_threads() {
        let (servers, begun) = (servers(), Arc::new(Mutex::new(0)));
        let (release, is_released) = channel::<()>();
        let is_released = Arc::new(Mutex::new(is_released));
        let hanging = || {
            let (begun, is_released) = (Arc::clone(&begun), Arc::clone(&is_released));
            move || {
                *begun.lock().unwrap_or_else(|error| error.into_inner()) += 1;
                let _ = is_released.lock().map(|released| released.recv());
                Err(io::Error::other("the test is over"))
            }
        };
        for _ in 0..400 {
            drop(LookUp::start_with(hanging(), Duration::ZERO, servers.clone(), |_| {}));
        }
        let (later, is_asked, answer) = resolver();
        let _later = LookUp::start_with(later, Duration::ZERO, servers.clone(), |_| {});
        drop(release);
        assert!(is_asked.recv().is_ok(), "the last look-up begins");
        assert!(answer.send(address(3)).is_ok() && is_asked.recv().is_ok());
        assert_eq!(names(&servers), ["http://127.0.0.1:3"]);
        assert!(*begun.lock().unwrap_or_else(|error| error.into_inner()) <= 8);
    }

    /// Only the first of several consecutive failures is reported, and the servers are kept.
    #[test]
    fn first_of_failures_in_a_row_is_reported() {
        let servers = servers();
        let (reports, reported) = channel();
        let (look_up, is_asked, answer) = resolver();
        let look_up = LookUp::start_with(look_up, Duration::ZERO, servers.clone(), move |error| {
            let _ = reports.send(error.to_string());
        });
        let failure = |text: &str| Err(io::Error::other(text.to_owned()));
        for each in [failure("one"), failure("two"), address(1), Ok(Vec::new()), failure("four")] {
            assert!(is_asked.recv().is_ok() && answer.send(each).is_ok());
        }
        assert!(is_asked.recv().is_ok());
        assert_eq!(names(&servers), ["http://127.0.0.1:1"]);
        assert_eq!(reported.try_iter().collect::<Vec<_>>(), ["one", "the name has no address"]);
        drop((look_up, answer));
    }
}
