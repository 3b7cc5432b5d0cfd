//! Whatever look-ups answer, the set has the endpoints of the last usable answer, and each has one client.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::Empty;
use reattempt::endpoints::Endpoints;
use tokio::time::{Instant, sleep};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, service_fn};

use super::input::Input;

#[derive(Debug, Clone)]
enum Answer {
    Keys(Vec<u8>),
    Error,
    Hang,
}

type Body = Empty<bytes::Bytes>;
type Client = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// The answers of a run, and what it has seen.
#[derive(Debug, Default)]
struct Course {
    /// The answers, the next one last.
    answers: Vec<Answer>,
    asked: usize,
    made: Vec<u8>,
}

/// Plays a course of answers in virtual time.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let answers: Vec<_> = (0..1 + input.below(6)).map(|_| answer(&mut input)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play(answers));
}

fn answer(input: &mut Input<'_>) -> Answer {
    match input.below(8) {
        0 => Answer::Error,
        1 => Answer::Hang,
        _ => Answer::Keys((0..input.below(8)).map(|_| input.below(5)).collect()),
    }
}

async fn play(answers: Vec<Answer>) {
    let course = Course { answers: answers.iter().rev().cloned().collect(), ..Course::default() };
    let course = Arc::new(Mutex::new(course));
    let (asked, made) = (Arc::clone(&course), Arc::clone(&course));
    let look_up = move || {
        let next = {
            let mut course = asked.lock().unwrap();
            course.asked += 1;
            course.answers.pop()
        };
        async move {
            match next {
                Some(Answer::Keys(keys)) => Ok(keys),
                Some(Answer::Hang) => pending().await,
                Some(Answer::Error) | None => Err(BoxError::from("no answer")),
            }
        }
    };
    let connect = move |key: u8| -> Client {
        made.lock().unwrap().made.push(key);
        let answer = service_fn(|_: Request<Body>| async { Ok(Response::new(Body::new())) });
        BoxCloneSyncService::new(answer)
    };
    let balanced = Endpoints::look_up(Duration::from_secs(1), look_up).connect(connect).http();
    let handle = balanced.endpoints();

    let (mut expected, mut opened) = (BTreeSet::new(), 0);
    for (number, answer) in answers.iter().enumerate() {
        // A look-up takes 10 s at most, and the next one comes at most 30 s later.
        let latest = Instant::now() + Duration::from_secs(45);
        while course.lock().unwrap().asked <= number {
            assert!(Instant::now() < latest, "no look-up after {number} of {answers:?}");
            sleep(Duration::from_millis(250)).await;
        }
        if let Answer::Keys(keys) = answer
            && !keys.is_empty()
        {
            let found: BTreeSet<_> = keys.iter().map(u8::to_string).collect();
            opened += found.difference(&expected).count();
            expected = found;
        }
        sleep(Duration::from_millis(1)).await;
        let names: BTreeSet<_> = handle.view().iter().map(|view| view.name.to_string()).collect();
        assert_eq!(names, expected, "after {} of {answers:?}", number + 1);
        assert_eq!(course.lock().unwrap().made.len(), opened, "after {} of {answers:?}", number + 1);
        if !expected.is_empty() {
            balanced.send(Request::new(Body::new())).await.unwrap();
        }
    }
}
