//! The end of an attempt's ticket with its outcome.

use std::error::Error;

use reattempt_core::Verdict;
use reattempt_core::guard::Guard;
use reattempt_engine::error::ErrorMode;

use super::pass::Pass;
use super::protocol::GuardOutcome;

/// The purposes for which a response is watched to its end.
#[derive(Default)]
pub(super) struct Followed {
    /// `true` if the outcome is read from the end of the response.
    pub(super) open: bool,
    /// `true` if the pass ends with the response.
    pub(super) holds: bool,
}

/// Ends an attempt's ticket with its outcome, unless only the end of the response shows the outcome.
#[inline]
pub(super) fn judge<P, R, E, Mode, G>(pass: &mut Pass<G, P>, outcome: Result<&R, &(dyn Error + 'static)>) -> Followed
where
    P: GuardOutcome<R, E, Mode>,
    Mode: ErrorMode<E>,
    G: Guard,
{
    if pass.has_terms() {
        return judge_apart::<P, R, E, Mode, G>(pass, outcome);
    }
    match judge_head::<P, R, E, Mode, G>(pass, outcome, false) {
        Some(followed) => followed,
        None => judge_slowly::<P, R, E, Mode, G>(pass, outcome),
    }
}

/// Ends an attempt's ticket with its service's error, and returns the layer's error. If the guard holds its place, the
/// pass is returned too, to be ended once the attempt is dropped.
pub fn judge_error<P, R, E, Mode, G>(pass: &mut Option<Pass<G, P>>, error: E) -> (Mode::Error, Option<Pass<G, P>>)
where
    P: GuardOutcome<R, E, Mode>,
    Mode: ErrorMode<E>,
    G: Guard,
{
    let error = Mode::own(error);
    let holds = |pass: &mut Pass<G, P>| judge::<P, R, E, Mode, G>(pass, Err(Mode::view(&error))).holds;
    let held = if pass.as_mut().is_some_and(holds) { pass.take() } else { None };
    (error, held)
}

/// Ends the ticket of an attempt with unusual terms.
#[inline(never)]
fn judge_apart<P, R, E, Mode, G>(pass: &mut Pass<G, P>, outcome: Result<&R, &(dyn Error + 'static)>) -> Followed
where
    P: GuardOutcome<R, E, Mode>,
    Mode: ErrorMode<E>,
    G: Guard,
{
    if let Some(followed) = judge_head::<P, R, E, Mode, G>(pass, outcome, true) {
        return followed;
    }
    let followed = judge_slowly::<P, R, E, Mode, G>(pass, outcome);
    if followed.open && followed.holds {
        pass.record_latency();
    }
    followed
}

/// Ends the ticket of an attempt that its head alone shows to be served. `has_terms` is that of the pass.
#[inline(always)]
fn judge_head<P, R, E, Mode, G>(
    pass: &mut Pass<G, P>,
    outcome: Result<&R, &(dyn Error + 'static)>,
    has_terms: bool,
) -> Option<Followed>
where
    P: GuardOutcome<R, E, Mode>,
    Mode: ErrorMode<E>,
    G: Guard,
{
    let options = if has_terms { pass.options() } else { None };
    let served = outcome.ok().and_then(|response| pass.shared.protocol.served(response, options))?;
    if has_terms {
        pass.record_latency();
    }
    Some(Followed { open: false, holds: pass.judge(served) })
}

/// Ends the ticket of an attempt that its head alone does not show to be served.
// Always inlined, because the plain path of protocols with trailers goes through it.
#[inline(always)]
fn judge_slowly<P, R, E, Mode, G>(pass: &mut Pass<G, P>, outcome: Result<&R, &(dyn Error + 'static)>) -> Followed
where
    P: GuardOutcome<R, E, Mode>,
    Mode: ErrorMode<E>,
    G: Guard,
{
    let protocol = &pass.shared.protocol;
    if protocol.facts(outcome).refused_here {
        pass.refused();
        return Followed::default();
    }
    let (classification, judged) = protocol.health(outcome, pass.options());
    let succeeded = classification.verdict == Verdict::Success;
    let open = outcome.is_ok_and(|response| protocol.is_open(response, succeeded));
    Followed { open, holds: open && succeeded || pass.judge(judged) }
}
