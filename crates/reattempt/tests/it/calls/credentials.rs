//! Tests that no text that a user may log contains credentials from the request or the response.

use std::fmt::{Debug, Display};
use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

use http::Request;
use http::request::Parts;
use reattempt::classify::Outcome;
use reattempt::observe::Event;
use reattempt::report::ReportSlot;
use reattempt::retry::AttemptContext;
use reattempt::{CallOptions, RetryLayer, TimedOut, retry};
use reattempt_schedule_fixed::Constant;
use tower::{Layer, Service, ServiceExt};

use crate::calls::support::{Act, Body, Broken, Server, With, get, ms, policy, report_of, request, transient};

const URL: &str = "http://user:secret-1@one.example/path?api_key=secret-2#secret-3";

/// Everything that was formatted, in both forms.
#[derive(Clone, Default)]
struct Texts(Arc<Mutex<Vec<String>>>);

impl Texts {
    fn debug(&self, value: &impl Debug) {
        self.0.lock().unwrap().extend([format!("{value:?}"), format!("{value:#?}")]);
    }

    fn both(&self, value: &(impl Debug + Display)) {
        self.debug(value);
        self.0.lock().unwrap().push(value.to_string());
    }

    fn assert_no_secret(&self, least: usize) {
        let texts = self.0.lock().unwrap();
        assert!(texts.len() >= least, "{} texts", texts.len());
        for text in texts.iter() {
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

/// A peer chooses part of some texts, such as the debug data of HTTP/2. Each report holds up to 64 of them.
#[tokio::test(start_paused = true)]
async fn long_text_is_cut_between_words() {
    for spaces in 900..1050 {
        let text = format!("{}{URL} é{}", " ".repeat(spaces), "secret".repeat(100_000));
        let error = move || io::Error::new(io::ErrorKind::ConnectionReset, text.clone());
        let server = Server::by(move |arrival, _| match arrival {
            1 => Act::Error(error()),
            _ => 200.into(),
        });
        let answer = RetryLayer::new(policy()).layer(server).oneshot(get()).await.unwrap();
        let report = report_of(&answer).to_string();
        assert!(!report.contains("secret") && report.contains('…'), "{spaces}: {report}");
        assert!((900..1200).contains(&report.len()), "{}", report.len());
    }
}

// A peer chooses part of many texts, such as the URL of a redirect. The time for one must not be quadratic.
#[test]
fn long_text_is_searched_at_once() {
    for text in ["://".repeat(1 << 18), "a://b/?".repeat(1 << 17), "a://b/ ".repeat(1 << 17)] {
        let (done, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let error = move || io::Error::new(io::ErrorKind::ConnectionReset, text.clone());
            let client = RetryLayer::new(policy()).layer(Server::by(move |_, _| Act::Error(error())));
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().unwrap();
            let failed = runtime.block_on(client.oneshot(get())).is_err();
            done.send(failed).unwrap();
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}

#[tokio::test(start_paused = true)]
async fn texts_of_a_call_have_no_credentials() {
    let texts = Texts::default();
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("set-cookie", "secret-4").later(ms(10)),
        2 => Act::Error(io::Error::other(format!("error sending request for url ({URL})"))),
        _ => Act::Hang,
    });
    let (of_events, of_hook, of_outcomes) = (texts.clone(), texts.clone(), texts.clone());
    let policy = policy()
        .observe_with(move |destination: &str, event: &Event<'_>| {
            of_events.both(event);
            of_events.both(&destination);
        })
        .before_attempt(move |_: &mut Parts, attempting: AttemptContext| {
            of_hook.debug(&attempting);
            Box::pin(async {})
        })
        .protocol(|http| {
            http.classify(move |outcome: Outcome<'_>| {
                of_outcomes.debug(&outcome);
                outcome.find_error::<Broken>().map(|_| transient(1))
            })
        })
        .attempt_timeout(ms(50));
    texts.debug(&policy);
    let slot = ReportSlot::default();
    let mut client = RetryLayer::new(policy).layer(server);
    let call = request("PUT", URL.split('#').next().unwrap(), "body")
        .header("authorization", "secret-5")
        .header("cookie", "secret-6")
        .with(CallOptions::new().report_to(&slot));
    ServiceExt::<Request<Body>>::ready(&mut client).await.unwrap();
    let mut call = Box::pin(client.call(call));
    let error = loop {
        texts.debug(&call);
        match futures_util::poll!(&mut call) {
            Poll::Ready(result) => break result.unwrap_err(),
            Poll::Pending => tokio::time::advance(ms(10)).await,
        }
    };
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    texts.both(timed_out);
    texts.debug(timed_out.refused().unwrap());
    texts.both(&slot.take().unwrap());
    texts.assert_no_secret(50);
    let texts = texts.0.lock().unwrap();
    assert!(texts.iter().any(|text| text.contains("(http://one.example/path?...)")), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn debug_of_retry_error_hides_credentials() {
    let texts = Texts::default();
    let failing = || async { Err::<(), _>(Broken::new(1, URL)) };
    texts.both(&retry(Constant::new(ms(1)), failing).await.unwrap_err());
    texts.assert_no_secret(3);
}
