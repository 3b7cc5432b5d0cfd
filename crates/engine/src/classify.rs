//! Classification: which outcomes are failures, and whether the server asked for a delay or for no retry.
//!
//! [`Http::classify`](crate::Http::classify) takes a function from an [`Outcome`] to a [`Verdict`](crate::Verdict).
//! [`CallOptions::classify`](crate::CallOptions::classify) takes one for a single call.
//!
//! | item | content |
//! |---|---|
//! | [`Outcome`] | the input of a classifier: the response head of an attempt, or its error |
//! | [`RequestView`] | a view of the request that led to an outcome, or that is about to be sent |
//! | [`Classifier`], [`Classification`] | the trait that classifiers implement, and its result: a verdict with a [`ServerHint`] |
//! | [`Hints`], [`Hinted`] | the headers that are read as hints, such as `Retry-After` |
//! | [`verdict_of_status`], [`verdict_of_error`] | the verdicts of the built-in classification |
//! | [`classification_of_response`] | that of a status with its hints, for clients without a layer |
//! | [`github`], [`kubernetes`], [`openai`] | classifiers for well-known services, each part of a [profile](crate::profile) |
//! | [`aws_xml`]; with the feature `json` `aws_json`, `bulk_all_rejected`, `connect`, `google`, `shopify`, `slack`, `stripe` | rules for the bodies of well-known services, for a `PeekBodyLayer`; [`github`] and [`openai`] read bodies there, too |
//! | [`xml_error_code`]; with the feature `json` `json_any` | readers for rules of one's own |
//! | [`is_repeatable`] | which requests may be sent twice, based on their method or idempotency key |
//! | [`IDEMPOTENCY_KEY`], [`new_idempotency_key`] | the header that makes a POST repeatable |

#[cfg(feature = "tower-http")]
pub use crate::protocol::tower_http::TowerHttpClassifier;

#[cfg(feature = "http")]
pub use crate::call::outcome::{Outcome, ProfileClassifier};
#[cfg(feature = "http")]
pub use crate::call::request_view::RequestView;
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub use crate::protocol::services::{aws_json, bulk_all_rejected, connect, google, shopify, slack, stripe};
#[cfg(feature = "http")]
pub use crate::protocol::services::{aws_xml, github, kubernetes, openai};
pub use reattempt_core::{Classification, Classifier, ServerHint};
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub use reattempt_http::json_any;
#[cfg(feature = "http")]
pub use reattempt_http::{
    Hinted, Hints, IDEMPOTENCY_KEY, classification_of_response, is_repeatable, new_idempotency_key, verdict_of_error,
    verdict_of_status, xml_error_code,
};
