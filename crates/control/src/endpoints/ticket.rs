//! The ticket of an attempt, and the results of picking an endpoint and of recording an end.

use std::fmt;
use std::sync::Arc;

use super::endpoint::Endpoint;
use super::events::EndpointEvent;
use super::roster::PickedTier;
use super::trail::EndpointId;

/// The endpoint picked for an attempt.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pick<T> {
    /// The attempt's ticket. Its [`service`](EndpointTicket::service) sends the attempt.
    pub ticket: EndpointTicket<T>,
    /// `true` if the call can still try another endpoint that is in service.
    pub elsewhere: bool,
    /// The tier of the endpoint, or `None` if the set has only one.
    pub tier: Option<PickedTier>,
    /// Events that this pick caused, such as expired ejections, or `None` if there were none.
    pub events: Option<Box<[EndpointEvent]>>,
}

/// The result of recording the end of an attempt.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended<T> {
    /// The ticket, or `None` if the attempt ended without an outcome. Hold it until the response body ends, and then
    /// drop it.
    pub held: Option<EndpointTicket<T>>,
    /// Events caused by the end of the attempt, such as an ejection, or `None` if there were none.
    pub events: Option<Box<[EndpointEvent]>>,
}

/// An attempt's ticket for its endpoint. The endpoint counts the attempt as in flight until the ticket is dropped.
pub struct EndpointTicket<T> {
    pub(crate) endpoint: Arc<Endpoint<T>>,
    /// The time at which the head of a successful response arrived, in milliseconds.
    pub(crate) head: Option<u64>,
}

impl<T> EndpointTicket<T> {
    #[inline]
    pub(crate) const fn new(endpoint: Arc<Endpoint<T>>) -> Self {
        Self { endpoint, head: None }
    }

    /// Returns the endpoint's id, for the call's [`Trail`](super::Trail).
    #[inline]
    pub fn id(&self) -> EndpointId {
        self.endpoint.named.id
    }

    /// Returns the endpoint's name.
    pub fn name(&self) -> &Arc<str> {
        &self.endpoint.named.name
    }

    /// Returns the value used to send to the endpoint.
    pub fn service(&self) -> &T {
        &self.endpoint.service
    }
}

impl<T> fmt::Debug for EndpointTicket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EndpointTicket").field(self.name()).finish()
    }
}
