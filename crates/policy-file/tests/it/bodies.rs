//! Sections of response bodies: the responses that they cover, their bounds and rules, and their mistakes.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use reattempt::PeekBodyLayer;
use reattempt_policy_file::reader::{Document, Format};
use reattempt_policy_file::{PolicyFile, PolicyFileOptions};
use tower::{Layer, Service, service_fn};

use crate::support::{Folder, Sent, get, load};

const POLICY: &str = "[default]\nmax_attempts = 3\nbase = \"0s\"\nbudget = \"none\"\n";

/// A body of a known length that breaks at once, or one of unknown length that never comes.
struct Dying(Option<u64>);

impl Body for Dying {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.0 {
            Some(_) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            None => Poll::Pending,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.0.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// Counts the requests that are sent for one call through the file's layers.
async fn sent<B>(
    file: &PolicyFile,
    uri: &str,
    response: impl Fn() -> Response<B> + Clone + Send + Sync + 'static,
) -> usize
where
    B: Body<Data = Bytes, Error: 'static> + Unpin + Send + 'static,
{
    let count = Arc::new(AtomicUsize::new(0));
    let server = {
        let count = Arc::clone(&count);
        service_fn(move |_: Sent| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Ok::<_, Infallible>(response()))
        })
    };
    let client = file.layer().layer(file.body_layer().layer(server));
    let _ = client.send(get(uri)).await.unwrap().into_body().collect().await;
    count.load(Ordering::SeqCst)
}

fn dying(length: u64) -> impl Fn() -> Response<Dying> + Clone + Send + Sync + 'static {
    move || Response::new(Dying(Some(length)))
}

fn load_with(folder: &Folder, layer: PeekBodyLayer) -> PolicyFile {
    PolicyFileOptions::new().unwatched().bodies(layer).load(folder.file()).unwrap()
}

/// The first section that matches has its bounds, and other responses those of the program.
// B-1, B-2, field 17
#[tokio::test(start_paused = true)]
async fn first_section_has_its_bounds() {
    let folder = Folder::new();
    folder.write(format!(
        "{POLICY}[[bodies]]\ndestination = \"https://a.example\"\npath = \"/small/*\"\nup_to = 100\n\
         [[bodies]]\npath = \"/small/*\"\nup_to = \"1 KiB\"\n[[bodies]]\npath = \"/none\"\nup_to = 0\n"
    ));
    let file = load_with(&folder, PeekBodyLayer::new().up_to(2000));
    for (uri, length, attempts) in [
        ("https://a.example/small/1", 100, 3),
        ("https://a.example/small/1", 101, 1),
        ("https://b.example/small/1", 1024, 3),
        ("https://b.example/small/1", 1025, 1),
        ("https://b.example/none", 9, 1),
        ("https://b.example/other", 2000, 3),
        ("https://b.example/other", 2001, 1),
    ] {
        assert_eq!(sent(&file, uri, dying(length)).await, attempts, "{uri} {length}");
    }
}

/// The rules of a section judge the body, and a reload changes them for the next attempt.
// B-6
#[tokio::test(start_paused = true)]
async fn rules_follow_the_file() {
    let throttle = || {
        let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}"#;
        Response::builder().status(400).body(Full::<Bytes>::from(body)).unwrap()
    };
    let folder = Folder::new();
    let section = "[[bodies]]\nmethod = \"GET\"\nrules = [\"stripe\", \"aws-json\"]\n";
    folder.write(format!("{POLICY}{section}"));
    let file = load_with(&folder, PeekBodyLayer::new());
    assert_eq!(sent(&file, "http://a/", throttle).await, 3);
    folder.write(format!("{POLICY}{}", section.replace("GET", "PUT")));
    file.reload().unwrap();
    assert_eq!(sent(&file, "http://a/", throttle).await, 1, "the section is for another method");
    folder.write(section);
    file.reload().unwrap();
    assert_eq!(sent(&file, "http://a/", throttle).await, 3, "without a policy, the library's defaults retry");
}

/// The time for which a body of unknown length is held.
// B-3, BI-4
#[tokio::test(start_paused = true)]
async fn section_sets_the_time() {
    let folder = Folder::new();
    folder.write(format!("{POLICY}[[bodies]]\nwithin = \"2s\"\n"));
    let file = load_with(&folder, PeekBodyLayer::new());
    let began = tokio::time::Instant::now();
    let mut client = file.body_layer().layer(service_fn(|_: Request<Full<Bytes>>| {
        std::future::ready(Ok::<_, Infallible>(Response::new(Dying(None))))
    }));
    client.call(get("http://a/")).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 2);
}

/// A file must not have settings that the program ignores.
#[test]
fn program_without_bodies_refuses_them() {
    let folder = Folder::new();
    folder.write(format!("{POLICY}\n[[bodies]]\nup_to = 5\n"));
    let error = PolicyFileOptions::new().unwatched().load(folder.file()).unwrap_err().to_string();
    assert!(error.ends_with("p.toml:6: bodies must not be set, because this program does not read bodies"), "{error}");
    folder.write(POLICY);
    let (file, _) = load(&folder);
    assert_eq!(format!("{:?}", file.body_layer()), format!("{:?}", PeekBodyLayer::new()));
}

/// Every mistake has its line.
#[test]
fn mistakes_have_their_lines() {
    let text = "[a]\n[[bodies]]\nup_to = \"64 KB\"\nwithin = 5\n[[bodies]]\nrules = [\"aws-jsn\"]\npolicy = \"a\"\n\
                destination = \"//\"\n[[bodies]]\nup_to = -1\nrules = \"slack\"\n";
    let problems = Document::read(text, Format::Toml).unwrap_err().problems;
    let problems: Vec<_> = problems.iter().map(|problem| problem.in_file(&"p.toml")).collect();
    let length = "a length like \"64 KiB\", or a whole number of bytes";
    let names = "aws-json, aws-xml, bulk-all-rejected, connect, github, google, openai, shopify, slack, stripe";
    assert_eq!(
        problems,
        [
            format!("p.toml:3: bodies[0].up_to must be {length}, but it is \"64 KB\""),
            "p.toml:4: bodies[0].within must be a duration like \"1500ms\" or \"5s\", but it is 5".into(),
            format!("p.toml:6: bodies[1].rules has \"aws-jsn\": it must be one of {names}; did you mean `aws-json`?"),
            "p.toml:7: bodies[1].policy is not known here; known: destination, method, path, up_to, within, rules"
                .into(),
            "p.toml:8: bodies[1].destination must be a host with an optional port and scheme, such as \
             \"https://orders.example:8443\", but it is \"//\""
                .into(),
            format!("p.toml:10: bodies[2].up_to must be {length}, but it is -1"),
            "p.toml:11: bodies[2].rules must be a list of words, but it is \"slack\"".into(),
        ]
    );
    let problem = Document::read("[a]\n[bodies]\n", Format::Toml).unwrap_err().problems.remove(0);
    assert_eq!(problem.to_string(), "bodies must be a list of tables, such as [[bodies]], but it is a table");
}
