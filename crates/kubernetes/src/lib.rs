//! The pods of a Kubernetes service as the servers of one client, from its EndpointSlices.
//!
//! A pod that terminates leaves the set before it refuses connections. A new one gets calls as soon as it is ready. The
//! pods of the client's own zone come first. DNS with a headless service is the way without this crate: it needs no
//! permission, but it finds changes only by asking again, and knows no zones.
//!
//! ```
//! use std::convert::Infallible;
//! use std::future::ready;
//! use std::iter::once;
//! use std::net::SocketAddr;
//!
//! use bytes::Bytes;
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::client::legacy::connect::HttpConnector;
//! use hyper_util::client::legacy::connect::dns::Name;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::{ReplayBody, RetryLayer, RetryPolicy, check};
//! use reattempt_kubernetes::{EndpointSlices, Pod};
//! use tower::{Layer, service_fn};
//!
//! # fn orders(api_server: kube::Client) -> Result<(), reattempt_kubernetes::SlicesError> {
//! let client_to = |pod: &Pod| {
//!     let address: SocketAddr = pod.address();
//!     let fixed = service_fn(move |_: Name| ready(Ok::<_, Infallible>(once(address))));
//!     Client::builder(TokioExecutor::new())
//!         .build::<_, ReplayBody<Full<Bytes>>>(HttpConnector::new_with_resolver(fixed))
//! };
//! let balanced = EndpointSlices::new(api_server, "shop", "orders")? // kube::Client::try_default().await?
//!     .port("http")
//!     .zone(std::env::var("ZONE").unwrap_or_default())
//!     .connect(client_to)
//!     .spill(0.1)
//!     .observe(|event| eprintln!("orders: {event}"))
//!     .http();
//! let client = RetryLayer::new(RetryPolicy::http().boxed_errors()).layer(balanced);
//! # check::<http::Request<Full<Bytes>>, _>(&client);
//! # Ok(())
//! # }
//! ```
//!
//! With tonic, `connect` returns a `Channel` to the address, as on the page
//! [on several servers](https://docs.rs/reattempt/latest/reattempt/guide/servers/index.html#tonic), and `grpc()` stands
//! in place of `http()`. The page
//! [on Kubernetes](https://docs.rs/reattempt/latest/reattempt/guide/kubernetes/index.html) has sizes, zones, rolling
//! restarts, probes and faults.
//!
//! # Which pods
//!
//! | in the slices | the pod |
//! |---|---|
//! | `ready` is true or absent, `terminating` is not true | is used |
//! | `terminating` is true, and `serving` or (if absent) `ready` is true | is used only if no pod is ready, as by kube-proxy |
//! | any other | is not used |
//! | the pod is in two slices, while it moves from one to the other | counts once; terminating wins, then ready |
//! | another UID at the same address | is a new endpoint, without the latency and the failures of the earlier pod |
//! | slices, and no pod in them can be used | The set is empty. Calls are refused with `Reason::Empty`, because the addresses may soon belong to others. |
//! | no slice at all, or none with the port | The last set stays, and an event says so: nobody has said that there are no pods. |
//! | IPv4 and IPv6 slices | One family is used: IPv4, unless [`prefer_ipv6`](EndpointSlices::prefer_ipv6) is set. The other one is used while no pod of the first is ready. |
//! | `hints` | are not read ([`zone`](EndpointSlices::zone)) |
//! | `FQDN` slices, and addresses after the first of an endpoint | are not read; the API gives them no meaning |
//!
//! A pod that is ready, and does not answer, is the matter of the set: it is
//! [ejected](https://docs.rs/reattempt/latest/reattempt/endpoints/index.html#the-pick).
//!
//! # Faults
//!
//! | fault | effect |
//! |---|---|
//! | the API server is down, restarts, or refuses the request (403: the role below is missing) | The last set stays. Observers get an event. The request is repeated after 0.8 s; this wait doubles up to 30 s. |
//! | the watch ends or breaks, also in the middle of a line | It goes on from the last version. No change is lost. |
//! | the version is too old (410), an error event, or something unreadable | All slices are listed again, and the difference is applied. |
//! | a list is not answered | It is given up after 30 s. |
//! | a watch is silently dead | kube ends it after 295 s from its version 4.0. With an older one, set `read_timeout` of its `Config` to this time. |
//! | the API server was never reached | Calls wait for the first list up to 8 s, or until their deadline, and are then refused. |
//!
//! An event contains the error as text. [`EndpointSlices::changes`] returns the stream itself, with a [`SlicesError`].
//! There is no task of this crate. The watch ends with the last client, handle and response body of the set.
//!
//! # What it needs
//!
//! One `list` and one `watch` for each set, so one request to the API server is always open. Calls do not wait for
//! either. A role allows both; RBAC cannot limit them to the slices of one service.
//!
//! ```yaml
//! apiVersion: rbac.authorization.k8s.io/v1
//! kind: Role
//! metadata: { namespace: shop, name: read-endpointslices }
//! rules:
//! - apiGroups: [discovery.k8s.io]
//!   resources: [endpointslices]
//!   verbs: [list, watch]
//! ---
//! apiVersion: rbac.authorization.k8s.io/v1
//! kind: RoleBinding
//! metadata: { namespace: shop, name: cart-reads-endpointslices }
//! roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: read-endpointslices }
//! subjects:
//! - { kind: ServiceAccount, namespace: shop, name: cart }
//! ---
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: { namespace: shop, name: cart }
//! spec:
//!   selector: { matchLabels: { app: cart } }
//!   template:
//!     metadata: { labels: { app: cart } }
//!     spec:
//!       serviceAccountName: cart
//!       containers:
//!       - name: cart
//!         image: registry.example/cart
//!         env:
//!         - name: ZONE # the label is on pods from Kubernetes 1.35; before that, write the zone here
//!           valueFrom: { fieldRef: { fieldPath: "metadata.labels['topology.kubernetes.io/zone']" } }
//! ```
//!
//! The service may be headless or have a cluster IP. In the program's `Cargo.toml`:
//!
//! ```toml
//! kube = { version = "4", default-features = false, features = ["client", "ring", "rustls-tls"] }
//! k8s-openapi = { version = "0.28", features = ["latest"] } # kube needs a version of the API to be chosen
//! reattempt-kubernetes = "0.1"
//! ```
//!
//! This crate works with kube 1 to 5, and turns on neither TLS nor a version of the API. If Cargo resolves it to
//! another kube than the program's, `cargo update kube@5.0.0 --precise 4.0.0` makes them one.

#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod changes;
mod endpoint_slices;
mod error;
mod pod;
mod slice;
mod slices;

pub use changes::SliceChanges;
pub use endpoint_slices::EndpointSlices;
pub use error::SlicesError;
pub use pod::Pod;
