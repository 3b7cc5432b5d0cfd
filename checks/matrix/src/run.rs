//! One cell: its servers, its calls, and the differences from the expectation.

use std::collections::HashSet;
use std::net::SocketAddr;

use futures_util::future::join_all;
use reattempt_faults::{Faults, Http2, Ledger, Relay, Reply, Rule, Script, Server, Step, Tls, WireFault};
use tokio::runtime::Builder;
use tokio::task::yield_now;
use tokio::time::timeout;
use tower::BoxError;

use crate::call::call;
use crate::cell::{Cell, Fault, Kind, Protocol, Security, Stack};
use crate::client::{ATTEMPT_TIMEOUT, Client, HEDGE_DELAY, Target, client};
use crate::exchange::{End, Exchange, Observed};
use crate::expected::{exceptions, objection};
use crate::fault;
use crate::leaks::Leaks;

/// The outcome of a cell's calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) calls: usize,
    pub(crate) served: usize,
    /// Attempts below the layers.
    pub(crate) attempts: usize,
    /// Requests that reached a server again.
    pub(crate) repeats: usize,
}

/// Runs a cell. Its differences from the expectation are the error.
pub(crate) fn run(cell: Cell, tls: &Tls, other: &Tls) -> Result<Counts, String> {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (release, released) = std::sync::mpsc::channel::<()>();
    // A paused clock moves by itself while there is nothing to do, unless a blocking task is running.
    runtime.spawn_blocking(move || released.recv());
    let ended = runtime.block_on(async {
        let certificate = if cell.fault == Fault::Certificate { other } else { tls };
        check(cell, tls, certificate).await.unwrap_or_else(|error| Err(error.to_string()))
    });
    drop(release);
    ended
}

/// Returns the base URL of a server.
pub(crate) fn url(security: Security, address: SocketAddr) -> String {
    match security {
        Security::Plain => format!("http://{address}"),
        Security::Tls => format!("https://{address}"),
    }
}

async fn check(cell: Cell, trusted: &Tls, certificate: &Tls) -> Result<Result<Counts, String>, BoxError> {
    let ledger = Ledger::new();
    let servers = if cell.stack == Stack::Endpoints { 2 } else { 1 };
    let mut places = Vec::new();
    for number in 0..servers {
        places.push(Place::new(cell, certificate, format!("server {number}"), &ledger).await?);
    }
    let addresses = places.iter().map(|place| place.address).collect::<Vec<_>>();
    let (exchange, mut leaks) = (Exchange::new(cell), Leaks::default());
    let client = client(&exchange, &Target { addresses: &addresses, tls: trusted }, &mut leaks)?;
    let base = url(cell.security, addresses[0]);
    let calls = (0..cell.calls).map(|number| {
        let (client, exchange, base) = (cloned(&client), &exchange, &base);
        async move {
            let call = call(client, cell, base, number);
            let end = match cell.stack {
                // A client alone has no time limit.
                Stack::Bare => timeout(ATTEMPT_TIMEOUT, call).await.unwrap_or(End::Stalled),
                _ => call.await,
            };
            exchange.call_over();
            (number, end)
        }
    });
    let ends = tokio::select! {
        ends = join_all(calls) => ends,
        ended = recovery(&exchange, &ledger, &mut places) => {
            return ended.map(|()| Err("the recovery has ended".to_owned()));
        }
    };
    drop(client);
    let observe = |(number, end)| Observed { attempts: exchange.attempts(number), end };
    let all = ends.into_iter().map(observe).collect::<Vec<_>>();
    let arrivals = ledger.arrivals();
    let counts = Counts {
        calls: cell.calls,
        served: all.iter().filter(|observed| observed.end == End::Served).count(),
        attempts: all.iter().map(|observed| observed.attempts).sum(),
        repeats: arrivals.len() - arrivals.iter().map(|arrival| &arrival.call).collect::<HashSet<_>>().len(),
    };
    if cell.stack == Stack::Bare {
        return Ok(Ok(counts));
    }
    let mut objections = all.iter().enumerate().filter_map(|(number, observed)| {
        objection(&cell, observed).map(|objection| format!("call {number}: {objection}"))
    });
    let mut found = leaks.found(base.strip_prefix("http://").unwrap_or(&base));
    if let Some(first) = objections.next() {
        found.push(format!("{first}, and {} more", objections.count()));
    }
    let (exceptions, connections) = (exceptions(&cell, all.iter()), ledger.connections());
    if exceptions > connections {
        found.push(format!("{exceptions} exceptions over {connections} connections"));
    }
    // Handles to endpoints keep their channels, and a relay keeps the connections that it stalls.
    drop(leaks);
    places.iter_mut().for_each(|place| place.relay = None);
    ledger.all_closed().await;
    found.extend(violations(cell, &ledger));
    Ok(if found.is_empty() { Ok(counts) } else { Err(found.join("; ")) })
}

fn cloned(client: &Client) -> Client {
    match client {
        Client::Http(client) => Client::Http(client.clone()),
        Client::Reqwest(client) => Client::Reqwest(client.clone()),
        Client::Grpc(client) => Client::Grpc(client.clone()),
    }
}

/// Checks the ledger of all servers.
fn violations(cell: Cell, ledger: &Ledger) -> Vec<String> {
    let mut rules = vec![Rule::BodiesIntact, Rule::AtMostAttempts(3), Rule::NothingLeftOpen];
    if cell.kind == Kind::Post || cell.kind == Kind::Unmarked && cell.stack != Stack::Hedge {
        rules.push(Rule::NoUnsafeRepeat);
    }
    rules.into_iter().filter_map(|rule| ledger.check(rule).err()).map(|broken| format!("UNSAFE: {broken}")).collect()
}

/// Lets the servers recover once all first attempts have failed, and lets time pass for those that stall.
async fn recovery(exchange: &Exchange, ledger: &Ledger, places: &mut [Place]) -> Result<(), BoxError> {
    let cell = exchange.cell;
    if cell.is_stuck() {
        // Every attempt ends by time alone.
        loop {
            exchange.all_running().await;
            tokio::time::advance(ATTEMPT_TIMEOUT).await;
            yield_now().await;
        }
    }
    if cell.stalls() {
        match cell.fault {
            Fault::Accept(_) => {
                while places.iter().map(Place::connections).sum::<usize>() < cell.calls {
                    yield_now().await;
                }
            }
            // An attempt that fails before it stalls needs no time.
            _ => {
                while stalled(ledger) + exchange.number_of_firsts_over() < cell.calls {
                    yield_now().await;
                }
            }
        }
    } else {
        exchange.firsts_over().await;
    }
    for place in places {
        place.recover()?;
    }
    exchange.recover();
    if cell.stalls() {
        let time = if cell.stack == Stack::Hedge { HEDGE_DELAY } else { ATTEMPT_TIMEOUT };
        tokio::time::advance(time).await;
    }
    std::future::pending().await
}

/// Returns the number of requests that get no answer.
fn stalled(ledger: &Ledger) -> usize {
    ledger.arrivals().iter().filter(|arrival| arrival.open && arrival.answer.is_some()).count()
}

/// A server at the address that its clients use.
struct Place {
    address: SocketAddr,
    server: Server,
    relay: Option<(Faults<WireFault>, Relay)>,
}

impl Place {
    async fn new(cell: Cell, tls: &Tls, name: String, ledger: &Ledger) -> Result<Self, BoxError> {
        let script = match fault::reply(&cell) {
            Some(reply) => Script::new([Step::new(reply).always()]).may_remain(),
            None => Script::default(),
        };
        let faults: Faults<Reply> = Faults::in_cluster(script.otherwise(fault::healthy(cell.protocol)), name, ledger);
        let server = match (cell.security, cell.protocol) {
            (Security::Plain, Protocol::Http1) => Server::http1(faults).await?,
            (Security::Plain, _) => Server::http2(faults).await?,
            (Security::Tls, Protocol::Http1) => Server::http1_tls(tls, faults).await?,
            (Security::Tls, _) => Server::http2_tls(tls, Http2::new(), faults).await?,
        };
        let (mut address, mut relay) = (server.address(), None);
        let is_down = cell.fault == Fault::Down;
        let fault = fault::wire(cell.fault);
        if is_down || fault.is_some() {
            let faults = Faults::new(Script::new(fault.map(|fault| Step::new(fault).always())).may_remain());
            let mut opened = faults.relay(address).await?;
            if is_down {
                opened.close().await?;
            }
            address = opened.address();
            relay = Some((faults, opened));
        }
        Ok(Self { address, server, relay })
    }

    /// Returns the number of connections that clients have opened.
    fn connections(&self) -> usize {
        self.relay.as_ref().map_or(0, |(faults, _)| faults.ledger().connections())
    }

    fn recover(&mut self) -> Result<(), BoxError> {
        self.server.recover();
        if let Some((faults, relay)) = &mut self.relay {
            faults.recover();
            relay.open()?;
        }
        Ok(())
    }
}
