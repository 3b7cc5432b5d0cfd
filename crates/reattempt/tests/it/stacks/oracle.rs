//! The rules that every stack keeps, checked with the servers' ledger and the ends of the calls alone.
//!
//! | exception | reason |
//! |---|---|
//! | [`earlier_attempt_is_unknown`] | in a retry layer outside a fallback, which [`reattempt::order`] advises against: a time limit ends the attempt whose backup works, or a redirect outside both starts another call |
//! | [`last_hop_refused`] | the 429 is the outcome of a later hop of `FollowRedirect` outside, perhaps one that a layer answered itself; tower-http returns it unchanged |
//! | [`worker_is_gone`] | a panic below a `Buffer` ends its worker, and an instance that is never ready blocks it forever |
//! | [`worker_holds`] | the worker of a `Buffer` keeps the place that it took for a dropped call |
//! | [`worker_starves`] | if that is the last place, a redirect, a retry, a resume or a call that a guard made wait below the `Buffer` waits for it until another call arrives |
//! | [`tier_is_hidden`] | [`reattempt::endpoints`] advises against the order: a `Buffer` above the set moves calls to another task; of two retry layers, or two sets, neither knows the attempts of the other |
//! | [`inner_hop_is_hidden`] | the outer of two `FollowRedirect` layers replaces the address that the inner one recorded |
//! | [`hedge_falls_back`] | a fallback inside hedging responds for a refused hedge, before the first attempt ends |
//! | [`handle_is_kept`] | `FollowRedirect` keeps its called handle, and so a place in a queue, until its call ends; a service with a nested call keeps the one that it will call |
//! | [`may_hang`] | a server that does not respond, and no layer with a time limit around it; that of endpoints is for requests for their base URL |

use std::collections::BTreeMap;

use http::Method;

use super::cluster::{Arrival, Place, torn};
use super::file;
use super::intruders::FIRST_NESTED;
use super::plan::{self, Answer, Call, Layer, Mark, Plan};
use super::running::{End, Read, Record};

type Verdict = Result<(), (&'static str, String)>;

pub(crate) fn judge(plan: &Plan, record: &Record) -> Verdict {
    for (number, call) in plan.calls.iter().enumerate() {
        carried_out_once(plan, record, number, call)?;
        keyed_post_stays_in_its_tier(plan, record, number, call)?;
        only_broken_files_are_resumed(plan, record, number, call)?;
    }
    nested_orders_are_carried_out_once(record)?;
    no_target_leaves_its_set(record)?;
    files_are_intact(plan, record)?;
    every_call_ends(plan, record)?;
    panics_unwind(plan, record)?;
    nothing_is_missing(plan, record)
}

fn of(record: &Record, number: usize) -> impl Iterator<Item = &Arrival> {
    record.ledger.arrivals.iter().filter(move |arrival| arrival.call == number)
}

/// Checks that a request that must not be repeated is carried out once, and that no end of a call claims the contrary.
fn carried_out_once(plan: &Plan, record: &Record, number: usize, call: &Call) -> Verdict {
    let posts = || of(record, number).filter(|arrival| arrival.method == Method::POST);
    let done = || posts().filter(|arrival| arrival.carried_out);
    let case = || format!("call {number}: {:?}", of(record, number).collect::<Vec<_>>());
    if call.is_unsafe() {
        if done().count() > 1 {
            return Err(("a request that is not repeatable is carried out once", case()));
        }
        let proves = matches!(record.ends[number], End::Status(425 | 429));
        if proves && done().count() > 0 && !last_hop_refused(plan, record, number) {
            return Err(("no proof is given that a processed request was not", case()));
        }
    }
    let by = |place| done().any(|arrival| arrival.place == place);
    let both = by(Place::Primary) && by(Place::Backup);
    if call.mark == Mark::Key && both && !earlier_attempt_is_unknown(plan, record, number) {
        return Err(("a request with a key is carried out by one server", case()));
    }
    Ok(())
}

/// Checks that a call inside the stack is a call of its own, whose order is carried out once.
fn nested_orders_are_carried_out_once(record: &Record) -> Verdict {
    let done = |arrival: &&Arrival| arrival.call >= FIRST_NESTED && arrival.carried_out;
    let mut orders: Vec<_> = record.ledger.arrivals.iter().filter(done).map(|arrival| arrival.call).collect();
    orders.sort_unstable();
    match orders.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(("a nested order is carried out once", format!("order {}", pair[0]))),
        None => Ok(()),
    }
}

/// Checks that a set which lets no request out lets none out: to another host, or out of its servers' prefix.
fn no_target_leaves_its_set(record: &Record) -> Verdict {
    match record.ledger.escaped.first() {
        Some(target) => Err(("no request leaves a closed set of servers", target.clone())),
        None => Ok(()),
    }
}

fn earlier_attempt_is_unknown(plan: &Plan, record: &Record, number: usize) -> bool {
    let last = plan.layers.iter().rposition(|layer| matches!(layer, Layer::Backup { .. }));
    let above = &plan.layers[..last.unwrap_or(0)];
    let limits = |layer: &Layer| match layer {
        Layer::Retry { attempt_timeout, .. }
        | Layer::Guards { attempt_timeout, .. }
        | Layer::Endpoints { attempt_timeout, .. } => attempt_timeout.is_some(),
        layer => matches!(layer, Layer::Timeout(_)),
    };
    let follows = |layer: &Layer| matches!(layer, Layer::Follow { .. });
    let retries = above.iter().position(|layer| matches!(layer, Layer::Retry { .. }));
    retries.is_some_and(|retries| {
        above[retries..].iter().any(limits) || (above.iter().any(follows) && redirected(record, number))
    })
}

/// Checks that no two tiers carry out the same request with a key, because the later tier does not know the key.
fn keyed_post_stays_in_its_tier(plan: &Plan, record: &Record, number: usize, call: &Call) -> Verdict {
    let done = || of(record, number).filter(|arrival| arrival.method == Method::POST && arrival.carried_out);
    let tiers = done().flat_map(|arrival| &arrival.tiers).filter_map(|tier| tier.split_once(':'));
    let mut first = BTreeMap::new();
    for (layer, tier) in tiers {
        let hidden = tier_is_hidden(plan, layer.parse().unwrap());
        if call.mark == Mark::Key && *first.entry(layer).or_insert(tier) != tier && !hidden {
            let case = format!("call {number}: {:?}", of(record, number).collect::<Vec<_>>());
            return Err(("a request with a key is carried out by one tier", case));
        }
    }
    Ok(())
}

fn tier_is_hidden(plan: &Plan, set: usize) -> bool {
    let count = |of: fn(&Layer) -> bool| plan.layers.iter().filter(|layer| of(layer)).count();
    plan.is_below(set, |layer| matches!(layer, Layer::Buffer(_)))
        || count(|layer| matches!(layer, Layer::Retry { .. })) > 1
        || count(|layer| matches!(layer, Layer::Endpoints { .. })) > 1
}

fn inner_hop_is_hidden(plan: &Plan) -> bool {
    plan.layers.iter().filter(|layer| matches!(layer, Layer::Follow { .. })).count() > 1
}

/// Checks that only the response to a GET is resumed, and that no layer multiplies the resumes of another.
fn only_broken_files_are_resumed(plan: &Plan, record: &Record, number: usize, call: &Call) -> Verdict {
    let case = || format!("call {number}: {:?}", of(record, number).collect::<Vec<_>>());
    let resumes = || of(record, number).filter(|arrival| arrival.from.is_some());
    if call.method != plan::Method::Get && resumes().count() > 0 && !redirected(record, number) {
        return Err(("only a download is resumed", case()));
    }
    let of_layer = |layer: &Layer| match layer {
        Layer::Resume { attempts, .. } => attempts.saturating_sub(1) as usize,
        _ => 0,
    };
    let most = plan.layers.iter().map(of_layer).sum::<usize>();
    let backups = plan.layers.iter().filter(|layer| matches!(layer, Layer::Backup { .. })).count();
    let too_many = |arrival: &Arrival| {
        let same = resumes().filter(|other| (other.from, other.place) == (arrival.from, arrival.place));
        same.count() > if arrival.place == Place::Backup { most * backups } else { most }
    };
    let hops = redirected(record, number);
    match resumes().any(too_many) && !hops {
        true => Err(("resumes are not multiplied", case())),
        false => Ok(()),
    }
}

/// Checks that a caller reads the file that the head of its response names, whole or up to the break that it gets.
fn files_are_intact(plan: &Plan, record: &Record) -> Verdict {
    for (number, read) in &record.reads {
        let case = || format!("call {number}: {read:?}, {:?}", of(record, *number).collect::<Vec<_>>());
        let file = file::content(&read.name);
        let intact = file.starts_with(&read.data) || inner_hop_is_hidden(plan);
        if !intact || record.ends[*number] != End::Status(200) {
            return Err(("the caller reads one file", case()));
        }
        match &read.error {
            None if read.data.len() < file.len() => return Err(("a file that ends well is whole", case())),
            Some(error) if !has_attempt_timeout(plan) && !is_its_break(record, read, error) => {
                return Err(("a broken file ends with its break", case()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns `true` if this error ended the response that brought the last byte, or the first response.
fn is_its_break(record: &Record, read: &Read, error: &str) -> bool {
    record.ledger.arrivals.iter().enumerate().any(|(number, arrival)| {
        let Answer::File { bytes, .. } = arrival.answer else { return false };
        let from = arrival.from.unwrap_or(0);
        let brought = from + bytes == read.data.len() && (bytes > 0 || from == 0);
        brought && torn(number).to_string() == error
    })
}

fn has_attempt_timeout(plan: &Plan) -> bool {
    plan.layers.iter().any(|layer| match layer {
        Layer::Guards { attempt_timeout, .. } | Layer::Endpoints { attempt_timeout, .. } => attempt_timeout.is_some(),
        _ => false,
    })
}

fn redirected(record: &Record, number: usize) -> bool {
    let redirects = [Answer::SeeOther, Answer::SeeOtherHost, Answer::TemporaryRedirect];
    of(record, number).any(|arrival| redirects.contains(&arrival.answer))
}

fn last_hop_refused(plan: &Plan, record: &Record, number: usize) -> bool {
    let last = of(record, number).last();
    let arrived = last.is_some_and(|last| last.method == Method::GET);
    redirected(record, number) && (arrived || plan.layers.contains(&Layer::Answers))
}

/// Checks that every call ends, unless a server hangs.
fn every_call_ends(plan: &Plan, record: &Record) -> Verdict {
    match record.ends.iter().position(|end| *end == End::Stuck) {
        Some(number) if !may_hang(plan, record) => Err(("every call ends", format!("call {number}"))),
        _ => Ok(()),
    }
}

/// Checks that an attempt's panic unwinds to the caller. One in `call` below a `Buffer` unwinds to the worker's task.
fn panics_unwind(plan: &Plan, record: &Record) -> Verdict {
    let caught = |number: &&usize| {
        let end = record.ends.get(**number);
        end.is_some_and(|end| !matches!(end, End::Panicked)) && !worker_is_gone(plan, record)
    };
    match record.ledger.panics.iter().find(caught) {
        Some(number) => Err(("a panic unwinds to the caller", format!("call {number}"))),
        None => Ok(()),
    }
}

fn may_hang(plan: &Plan, record: &Record) -> bool {
    let limits = |(index, layer): (usize, &Layer)| match layer {
        Layer::Timeout(_) => true,
        Layer::Retry { attempt_timeout, .. } | Layer::Guards { attempt_timeout, .. } => attempt_timeout.is_some(),
        Layer::Endpoints { attempt_timeout, .. } => attempt_timeout.is_some() && gets_its_base(plan, index),
        _ => false,
    };
    // A backup is called by its fallback, and a nested call by its service, so only a limit outside limits its time.
    let calls = |layer: &Layer| matches!(layer, Layer::Backup { .. } | Layer::Nested);
    let limited = plan.layers.iter().enumerate().take_while(|(_, layer)| !calls(layer)).any(limits);
    let hangs = record.ledger.stalled || (record.ledger.hung && !limited);
    hangs || worker_is_gone(plan, record) || worker_starves(plan)
}

/// Returns `true` if all requests are for the base URL of this set of servers.
fn gets_its_base(plan: &Plan, set: usize) -> bool {
    let changes = |layer: &Layer| matches!(layer, Layer::Endpoints { .. } | Layer::Follow { .. });
    plan.calls.iter().all(Call::is_for_base) && !plan.is_below(set, changes)
}

/// Checks that once all calls have ended, nothing is held, a call goes through, and nothing outlives the client.
fn nothing_is_missing(plan: &Plan, record: &Record) -> Verdict {
    let gone = worker_is_gone(plan, record);
    if let Some(leak) = record.leaks.first().filter(|_| !gone) {
        return Err(("guards, budgets and memory hold nothing for calls that have ended", leak.clone()));
    }
    for (layer, missing) in &record.missing_at_end {
        if !gone && *missing > worker_holds(plan, *layer) {
            return Err(("no permit is missing at the end", format!("layer {layer}: {missing}")));
        }
    }
    for (layer, missing) in &record.missing {
        let innermost = plan.layers[*layer..]
            .iter()
            .all(|below| matches!(below, Layer::Limit(_) | Layer::LoadShed | Layer::Timeout(_)));
        let excused = gone || !innermost || handle_is_kept(plan, *layer);
        if !excused && *missing > worker_holds(plan, *layer) {
            let case = format!("layer {layer}: {missing}");
            return Err(("no permit is out while no attempt is under way", case));
        }
    }
    let arrived = record.probe_arrived || hedge_falls_back(plan);
    if !gone && (record.probe != End::Status(200) || !arrived) {
        return Err(("a call after all others goes through", format!("{:?}", record.probe)));
    }
    let (tasks, instances, out) = record.left;
    if !gone && (tasks, instances, out) != (0, 0, 0) {
        let left = format!("{tasks} tasks, {instances} instances, {out} permits");
        return Err(("nothing outlives the client", left));
    }
    Ok(())
}

fn worker_is_gone(plan: &Plan, record: &Record) -> bool {
    plan.has_buffer() && (record.ledger.panicked || record.ledger.stalled)
}

fn worker_holds(plan: &Plan, limit: usize) -> usize {
    plan.layers[..limit].iter().filter(|layer| matches!(layer, Layer::Buffer(_))).count()
}

fn worker_starves(plan: &Plan) -> bool {
    let clones = |layer: &Layer| match layer {
        Layer::Guards { kinds, .. } => kinds.iter().any(|kind| kind.makes_wait()),
        Layer::Follow { .. } | Layer::Retry { .. } | Layer::Hedge { .. } | Layer::Resume { .. } => true,
        _ => false,
    };
    plan.layers.iter().enumerate().any(|(index, layer)| {
        let all = matches!(layer, Layer::Limit(size) if *size <= worker_holds(plan, index));
        all && plan.is_below(index, clones)
    })
}

fn hedge_falls_back(plan: &Plan) -> bool {
    let replaces = |layer: &Layer| matches!(layer, Layer::Backup { .. } | Layer::Spare);
    let last = plan.layers.iter().rposition(replaces).unwrap_or(0);
    plan.is_below(last, |layer| matches!(layer, Layer::Hedge { .. }))
}

fn handle_is_kept(plan: &Plan, limit: usize) -> bool {
    plan.is_below(limit, |layer| matches!(layer, Layer::Follow { .. } | Layer::Nested))
}
