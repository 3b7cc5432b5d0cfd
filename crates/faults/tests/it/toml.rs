//! Tests of scripts in TOML, valid and invalid.

use std::fmt::Debug;
use std::io::ErrorKind;

use http::{HeaderMap, HeaderValue, StatusCode};
use reattempt_faults::{Break, Chances, End, Per, Read, Reply, Script, ServiceFault, Step, WireFault};

use crate::support::{BUSY, ms};

#[track_caller]
fn equal<F: Debug>(read: Script<F>, expected: Script<F>) {
    assert_eq!(format!("{read:?}"), format!("{expected:?}"));
}

#[test]
fn every_service_fault_can_be_written() {
    let script = Script::from_toml(
        "may-remain = true\notherwise = { status = 503 }\n\
        step = [{ fault = \"no-fault\" }, { fault = { status = 503 }, times = 2, delay-ms = 9 },\n\
        { fault = { error = \"connection-reset\" }, always = true, call = \"GET /\" },\n\
        { fault = { lose-response = \"timed-out\" }, connection = 3 },\n\
        { fault = \"hang\", from-ms = 1, to-ms = 2 }, { fault = \"never-ready\", to-ms = 2 },\n\
        { fault = \"panic\" }, { fault = \"panic-in-call\" }, { fault = { grpc = 14 } }]\n\
        chances = { seed = 7, per = { period-ms = 5 }, faults = [{ per-mille = 10, fault = \"hang\" }] }",
    );
    let expected = Script::new([
        Step::new(ServiceFault::NoFault),
        Step::new(BUSY).times(2).delay(ms(9)),
        Step::new(ServiceFault::Error(ErrorKind::ConnectionReset)).always().call("GET /"),
        Step::new(ServiceFault::LoseResponse(ErrorKind::TimedOut)).connection(3),
        Step::new(ServiceFault::Hang).during(ms(1)..ms(2)),
        Step::new(ServiceFault::NeverReady).during(ms(0)..ms(2)),
        Step::new(ServiceFault::Panic),
        Step::new(ServiceFault::PanicInCall),
        Step::new(ServiceFault::Grpc(14)),
    ]);
    let chances = Chances::new(7, Per::Period(ms(5))).fault(10, ServiceFault::Hang);
    equal(script.unwrap(), expected.chances(chances).otherwise(BUSY).may_remain());
}

#[test]
fn connections_and_replies_can_be_written() {
    let script = Script::from_toml(
        "step = [{ fault = \"refuse\" }, { fault = \"time-out\" },\n\
        { fault = { break = { direction = \"read\", after = 7, how = \"stall\" } } },\n\
        { fault = { break = { direction = \"write\", after = 0, how = { drip = 9 } } } },\n\
        { fault = { break = { direction = \"read\", after = 0, how = { garbage = \"?\" } } } }]",
    );
    let expected = [
        WireFault::Refuse,
        WireFault::TimeOut,
        WireFault::read(7, Break::Stall),
        WireFault::write(0, Break::Drip(ms(9))),
        WireFault::read(0, Break::Garbage("?".into())),
    ];
    equal(script.unwrap(), expected.into());

    let script = Script::from_toml(
        "step = [{ fault = {} }, { fault = { raw = \"?\", read = { bytes = 3 }, end = \"close\" } },\n\
        { fault = { read = { body = 7 } } },\n\
        { fault = { status = 503, informational = [103], headers = { retry-after = \"3\" },\n\
        trailers = { a = \"b\" }, content-length = 9, body = \"no\", cut = 2,\n\
        end = { reset-stream = 7 }, carried-out = true, read = \"head\" } }]",
    );
    let trailers = HeaderMap::from_iter([("a".parse().unwrap(), HeaderValue::from_static("b"))]);
    let busy = Reply::status(StatusCode::SERVICE_UNAVAILABLE)
        .informational(StatusCode::EARLY_HINTS)
        .header(http::header::RETRY_AFTER, HeaderValue::from_static("3"))
        .trailers(trailers)
        .content_length(9)
        .body("no")
        .cut(2)
        .end_with(End::ResetStream(7))
        .carried_out(true)
        .read(Read::Head);
    let raw = Reply::raw("?").read(Read::Bytes(3)).end_with(End::Close);
    equal(script.unwrap(), [Reply::default(), raw, Reply::default().read(Read::Body(7)), busy].into());
}

#[test]
fn wrong_scripts_are_named_with_their_place() {
    for (text, place, problem) in [
        ("[[step]]\nfault = \"hiccup\"", (2, 9), "unknown variant `hiccup`, expected one of `no-fault`"),
        ("[[step]]\nfault = \"hang\"\ntimes = -1", (3, 9), "invalid value: integer `-1`"),
        ("[[step]]\nfault = \"hang\"\ntimes = 0", (3, 9), "invalid value: integer `0`"),
        ("[[step]]\nfault = { status = 99 }", (2, 9), "status 99 is not from 100 to 999"),
        ("[[step]]\nfault = { error = \"bad\" }", (2, 9), "unknown kind of error `bad`"),
        ("[[step]]\nfault = \"hang\"\nwhen = 3", (3, 1), "unknown field `when`"),
        ("[[step]]\ntimes = 3", (1, 1), "missing field `fault`"),
        ("\n[[step]]\nfault = \"hang\"\ntimes = 1\nalways = true", (2, 1), "`times` and `always` exclude"),
        ("[[step]]\nfault = \"hang\"\nfrom-ms = 3\nto-ms = 3", (1, 1), "`to-ms` must be given"),
        ("[[step]]\nfault = \"hang\"\nconnection = 0", (3, 14), "invalid value: integer `0`"),
        (
            "[chances]\nseed = 1\nper = \"call\"\nfaults = [{ per-mille = 1001, fault = \"hang\" }]",
            (1, 1),
            "more than a thousand",
        ),
        ("[[step]", (1, 8), ""),
    ] {
        let error = Script::<ServiceFault>::from_toml(text).unwrap_err();
        assert_eq!((error.line(), error.column()), (Some(place.0), Some(place.1)), "{text}: {error}");
        assert!(error.to_string().contains(problem), "{text}: {error}");
    }
    for (text, field) in [
        ("[[step]]\nfault = \"hang\"\ntimes = -1", Some("times")),
        ("step = [{ fault = \"hang\", from-ms = -5 }]", Some("from-ms")),
        ("[[step]]\nfault = \"hiccup\"", Some("fault")),
        ("[[step]]\ntimes = 3", None),
        // What stands before the name is longer than a byte.
        ("\u{feff}W=A", Some("W")),
    ] {
        let error = Script::<ServiceFault>::from_toml(text).unwrap_err();
        assert_eq!(error.field(), field, "{text}: {error}");
    }
    let header = "[[step]]\nfault = { headers = { \"a b\" = \"c\" } }";
    let error = Script::<Reply>::from_toml(header).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 9: fault: \"a b\" = \"c\" is no header");
    let both = Script::<Reply>::from_toml("[[step]]\nfault = { raw = \"?\", body = \"no\" }");
    assert!(both.unwrap_err().to_string().contains("`raw` excludes"));
}

#[test]
fn wrong_script_file_is_named() {
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wrong.toml");
    let _ = std::fs::remove_file(&path);
    let error = Script::<ServiceFault>::from_file(&path).unwrap_err();
    assert_eq!((error.line(), error.file()), (None, Some(&*path)));
    assert!(error.to_string().starts_with(&format!("{}: No such file", path.display())), "{error}");
    std::fs::write(&path, "[[step]]\nfault = \"hang\"\ntimes = -1").unwrap();
    let error = Script::<ServiceFault>::from_file(&path).unwrap_err();
    let place = format!("{}: line 3, column 9: times: invalid value: integer `-1`", path.display());
    assert!(error.to_string().starts_with(&place), "{error}");
    std::fs::write(&path, "[[step]]\nfault = \"hang\"").unwrap();
    equal(Script::from_file(&path).unwrap(), [ServiceFault::Hang].into());
}

/// Each text that a script can be cut into or changed to. The fuzz target `scripts` in `fuzz/` runs the same function.
#[cfg(feature = "record")]
#[test]
fn cut_or_changed_script_has_a_defined_end() {
    const FULL: &str = "may-remain = true\notherwise = { status = 503 }\n\
        step = [{ fault = \"hang\", from-ms = 1, to-ms = 2, always = true }, { fault = { error = \"timed-out\" } },\n\
        { fault = { break = { direction = \"read\", after = 7, how = { drip = 9 } } }, times = 2 }]\n\
        chances = { seed = 7, per = { period-ms = 5 }, faults = [{ per-mille = 10, fault = \"hang\" }] }\n\
        recording = { calls-ms = [1, 2], end-ms = 9 }";
    for (at, _) in FULL.char_indices() {
        crate::any_script::check(&FULL[..at]);
        for other in ["\"", "{", "0", "-", "999999999999999999999", "é"] {
            crate::any_script::check(&format!("{}{other}{}", &FULL[..at], &FULL[at + 1..]));
        }
    }
}
