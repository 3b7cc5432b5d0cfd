//! A call whose endpoint's client was not ready at once, so that another endpoint's is asked too.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use reattempt_core::guard::{Arrival, BodyEnd};
use reattempt_engine::error::ErrorMode;
use reattempt_engine::wall::frame::{Frame, Late, Pick};
use reattempt_guard::Pass;
use reattempt_guard::contract::GuardOutcome;
use reattempt_guard::wall::{Shared, cut_off, judge_error, poll_timeout};
use tokio::time::Sleep;
use tower_service::Service;

use super::guard::{EndpointGuard, Picked};
use super::send::Sent;

/// A call that waits for the first of two clients to be ready.
///
/// The client that is ready first sends the request. The other attempt is abandoned, so that its wait is a lower bound
/// of its endpoint's latency. A client that fails leaves the race, and the last one's error is the call's.
// R-1, P-7
pub(super) struct Race<C: Send + Sync + 'static, Req, E, P> {
    /// The picked endpoint's client and that of its rival, as far as they have not failed.
    contenders: Vec<Contender<C, E, P>>,
    /// `None` once it is sent.
    request: Option<Req>,
    frame: Late,
    /// The endpoint that has decided the call, or the first one.
    pick: Pick,
    /// Created at the first poll, if attempts have a time limit.
    timer: Option<Pin<Box<Sleep>>>,
}

/// One of the clients that are asked.
pub(super) struct Contender<C: Send + Sync + 'static, E, P> {
    client: C,
    /// The error that the client has returned already.
    error: Option<E>,
    pass: Pass<EndpointGuard<C>, P>,
    pick: Pick,
}

impl<C: Send + Sync + 'static, E, P> Contender<C, E, P> {
    pub(super) fn new(mut pass: Pass<EndpointGuard<C>, P>, pick: Pick, client: C, error: Option<E>) -> Self {
        pass.polled();
        Self { client, error, pass, pick }
    }

    fn poll_ready<Req>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>>
    where
        C: Service<Req, Error = E>,
    {
        self.error.take().map_or_else(|| self.client.poll_ready(cx), |error| Poll::Ready(Err(error)))
    }
}

impl<C: Send + Sync + 'static, Req, E, P> Race<C, Req, E, P> {
    /// Begins a race of a contender that is not ready. If it has not failed, a rival is picked.
    #[cold]
    pub(super) fn begin(
        shared: &Arc<Shared<EndpointGuard<C>, P>>,
        request: Req,
        arrival: &Arrival<'_>,
        first: Contender<C, E, P>,
    ) -> Self
    where
        C: Clone,
    {
        let pick = first.pick;
        let rival = if first.error.is_none() { shared.guard.pick_rival(&pick, arrival) } else { None };
        let rival = rival.map(|Picked { ticket, pick }| {
            let client = ticket.service().clone();
            Contender::new(Pass::new(Arc::clone(shared), ticket, arrival, None), pick, client, None)
        });
        let contenders = [first].into_iter().chain(rival).collect();
        Self { contenders, request: Some(request), frame: Late::take(), pick, timer: None }
    }

    /// Polls until a client is ready, and sends the request through it. Returns the call's outcome as an error if
    /// nothing is sent.
    pub(super) fn poll_sent<Mode>(&mut self, cx: &mut Context<'_>) -> Poll<Started<C, Req, P, Mode>>
    where
        C: Service<Req, Error = E>,
        P: GuardOutcome<C::Response, E, Mode>,
        Mode: ErrorMode<E>,
    {
        loop {
            let decided =
                self.contenders.iter_mut().enumerate().find_map(|(index, contender)| match contender.poll_ready(cx) {
                    Poll::Ready(readiness) => Some((index, readiness)),
                    Poll::Pending => None,
                });
            let Some((index, readiness)) = decided else {
                let pass = self.contenders.first().map(|contender| &contender.pass);
                let after = ready!(poll_timeout(pass, &mut self.timer, cx));
                let mut passes = mem::take(&mut self.contenders).into_iter().map(|contender| contender.pass);
                let (first, rival) = (passes.next(), passes.next());
                return Poll::Ready(Err(P::own_end(cut_off(first, after, || drop(rival)))));
            };
            let Contender { mut client, pass, pick, .. } = self.contenders.remove(index);
            self.pick = pick;
            let error = match (readiness, self.request.take()) {
                (Ok(()), Some(request)) => {
                    let attempt = self.frame.send(|| {
                        Frame::picked(pick);
                        client.call(request)
                    });
                    return Poll::Ready(Ok(Sent::sent_late(pass, attempt, self.timer.take())));
                }
                (Ok(()), None) => return Poll::Pending,
                (Err(error), request) => {
                    self.request = request;
                    error
                }
            };
            let mut pass = Some(pass);
            let (error, held) = judge_error::<P, C::Response, _, Mode, _>(&mut pass, error);
            drop(client);
            held.into_iter().for_each(|pass| pass.over(BodyEnd::Broken));
            if self.contenders.is_empty() {
                return Poll::Ready(Err(Err(error)));
            }
        }
    }
}

/// The future of a call that was sent, or the outcome of one that was not.
type Started<C, Req, P, Mode> = Result<
    Sent<C, Req, <C as Service<Req>>::Future, P, Mode>,
    Result<
        <P as GuardOutcome<<C as Service<Req>>::Response, <C as Service<Req>>::Error, Mode>>::Guarded<EndpointGuard<C>>,
        <Mode as ErrorMode<<C as Service<Req>>::Error>>::Error,
    >,
>;

/// Tells the outer retry layer which endpoint has decided the call, or the first one if it was dropped earlier. Only
/// the first pick counts, so this does nothing if the call was sent.
impl<C: Send + Sync + 'static, Req, E, P> Drop for Race<C, Req, E, P> {
    fn drop(&mut self) {
        self.frame.send(|| Frame::picked(self.pick));
    }
}
