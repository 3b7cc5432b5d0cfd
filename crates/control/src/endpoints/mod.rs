//! Several equivalent endpoints: which of them an attempt is sent to.
//!
//! A retry to the same dead server is worth nothing, and a retry to another one is worth a call. So a pick prefers
//! endpoints that the call has not tried, among these the cheaper one of two, and no endpoint that is out of service.
//!
//! | rule | reason |
//! |---|---|
//! | the price is latency × (in flight + 1) × (1 + 32 f), where f is the running failure rate | an endpoint that fails at once would look fastest and draw the calls |
//! | a failure never lowers the latency, and restores the last known one | the same |
//! | f is a factor, not seconds that are added | after an added penalty of 5 s, one failure bars an endpoint of 1 ms for 85 s |
//! | an unknown latency is that of the rival, for one call at a time | a default would starve the endpoint, or flood it |
//! | 5 failures in a row, or half of 20 calls in 10 s, put an endpoint out for 5 s, doubling to 30 s, plus up to 20 % | a dead one costs few calls, and one that is back gets its share soon |
//! | after its return, one failure before the first success puts it out again | the calls are the probes |
//! | in a set, or in its last tier, at most half are out. If more qualify, none is | otherwise an overload puts out what still works |
//! | while the majority fails and is in service, two pairs are drawn | both of one pair may well fail: with 14 of 20 dead, every second pair |
//! | in an earlier tier all may be out | the next tier takes their calls |
//!
//! No sweep and no timer runs: values decay when they are read, and the pick notices that an ejection is over.
//!
//! - `words` has the atomic words of an endpoint, and `endpoint` joins them to a price.
//! - `roster` has the endpoints in service and the pick. The list is immutable, and replaced when one goes out or
//!   returns. So a pick takes one or two pairs, whatever the size of the set and the number of endpoints that are out.
//! - `names` finds the name of an endpoint by its number, for reports and errors.
//! - `ejections` decides, behind a lock, which endpoints are out.
//! - `endpoint_set` is the set that users hold.

mod ejections;
mod endpoint;
mod endpoint_set;
mod events;
mod names;
mod roster;
mod trail;
mod view;
mod words;

pub use endpoint::EjectReason;
pub use endpoint_set::{Ended, EndpointSet, EndpointTicket, Pick};
pub use events::EndpointEvent;
pub use trail::{EndpointId, Trail};
pub use view::EndpointView;
