//! A set of equivalent endpoints, one of which is picked for each attempt.
//!
//! A retry to the same dead server fails again, while a retry to another server may succeed. A pick therefore prefers
//! endpoints that the call has not tried. Of two random ones, it takes the one with the lower *price*, which grows with
//! latency, load and failures. Ejected endpoints are not picked.
//!
//! | rule | reason |
//! |---|---|
//! | the price is latency × (in flight + 1) × (1 + 32 f), where f is the running failure rate; `price` and `latency_word` have its rules | without f, an endpoint that fails immediately would look fastest and attract calls |
//! | a failure never lowers the latency, and restores the last known one | the same reason |
//! | f is a factor, not an added number of seconds | with an added penalty of 5 s, one failure would exclude a 1 ms endpoint for 85 s |
//! | a return from an ejection forgets the price | what an endpoint was before says nothing about it now, and one call measures it |
//! | 5 consecutive failures, or half of 20 calls in 10 s, eject an endpoint for 5 s; the time doubles up to 10 s, and is randomly lengthened by up to 20 % | a dead endpoint costs few calls, and one that recovers soon gets its share of calls again |
//! | of the attempts that fail with one connection, the first counts as two failures, and the others as none | a well server that loses a busy connection would be ejected, but one that hangs up on each call must be |
//! | an endpoint that accepts no connection is ejected at the first failure, for 1 s; the time doubles up to 10 s | the failure proves that it can serve nothing, and costs little, because the attempt moves on |
//! | an endpoint that asks for a wait is out for that time, up to 60 s | the wait binds the server that asked for it, and not the call |
//! | after its return, one failure before the first success ejects it again | real calls are the probes |
//! | at most half of a set, or of its last tier, is out of service for failures; if more fail, they stay in service | otherwise an overload would remove servers that still work |
//! | endpoints that can serve nothing do not count for that, and are out unless all are | picks of 14 dead servers of 20 would be half of all |
//! | with a spill, a tier takes at most 1.4 times its part in service, and leaves a share to the next tier | a client in a zone opens connections to the next zone before it needs them |
//! | an endpoint of weight 0 is a reserve, which gets calls only for endpoints that are out | an address that a resolver no longer returns may be dead, or may be the only one that works |
//! | a pick draws both endpoints by their weights, and the weight divides the calls in flight, but not the price | a price divided by the weight gives a canary no calls at a low load |
//! | a call that has tried two endpoints of a tier goes to the next one | with three attempts, a call would otherwise meet only dead endpoints of a tier that has just failed |
//! | a call whose request one tier may have processed, under a key, stays in that tier | tiers share no state, so the others do not know the key |
//! | after an outage of all, the first endpoint that returns is not alone in service until it has served a call | it would get the calls of all, and the others may be back too |
//! | instead of an endpoint that fails a quarter of its attempts, and while more than half are ejected, a second pair is drawn | both endpoints of a pair may fail or be slow: with 14 of 20 dead, this is true of every second pair |
//! | in an earlier tier, all may be out of service | the next tier takes their calls |
//! | a tier with less than half of its endpoints in service gets only the corresponding share of the calls, until all ejected endpoints have returned | if it got all calls, the first endpoint to return would be overloaded and ejected again |
//!
//! There are no timers or background tasks: values decay when they are read, and a pick ends expired ejections.
//!
//! - `latency_word`, `words` and `event_word` contain an endpoint's atomic words, and `price` compares two endpoints by
//!   them.
//! - `roster` contains the endpoints in service, and the pick. The list is immutable, and is replaced when an endpoint
//!   is ejected or returns. A pick therefore inspects only one or two pairs, however many endpoints there are, unless
//!   both of a pair are silent.
//! - `names` finds the name of an endpoint by its number, for reports and errors.
//! - `ejections` decides, under a lock, which endpoints are out of service, and `series` for how long.
//! - `place` is an endpoint's tier and weight, `slots` the list that weighted picks draw from, and `subset` the choice
//!   among very many endpoints.
//! - `endpoint_set` is the set that users hold.

mod ejection_rules;
mod ejections;
mod endpoint;
mod endpoint_set;
mod event_word;
mod events;
mod latency_word;
mod names;
mod place;
mod placing;
mod price;
mod roster;
mod series;
mod slots;
mod subset;
mod ticket;
mod trail;
mod view;
mod words;

pub use ejection_rules::EjectionRules;
pub use endpoint::EjectReason;
pub use endpoint_set::EndpointSet;
pub use events::EndpointEvent;
pub use place::Place;
pub use roster::PickedTier;
pub use ticket::{Ended, EndpointTicket, Pick};
pub use trail::{EndpointId, TierId, Trail};
pub use view::EndpointView;
