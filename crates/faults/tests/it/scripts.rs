//! Tests of the selection of steps, and of scripts with unused steps.

use reattempt_faults::{Faults, Script, ServiceFault, Step};

use crate::support::{BUSY, ms, panic_of, request, retry};

async fn statuses(faults: &Faults<ServiceFault>, targets: &[&str]) -> Vec<u16> {
    let mut server = faults.service();
    let mut statuses = Vec::new();
    for target in targets {
        let answer = retry(&mut server, 1, &request("GET", target, "")).await.unwrap();
        statuses.push(answer.status().as_u16());
    }
    statuses
}

#[tokio::test(start_paused = true)]
async fn step_selects_its_call() {
    let faults = Faults::new([Step::new(BUSY).call("GET /two").times(2)]);
    let seen = statuses(&faults, &["/one", "/two", "/one", "/two", "/two"]).await;
    assert_eq!(seen, [200, 503, 200, 503, 200]);
}

#[tokio::test(start_paused = true)]
async fn step_selects_its_period() {
    let faults = Faults::new([Step::new(BUSY).during(ms(100)..ms(200)).always()]);
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.extend(statuses(&faults, &["/"]).await);
        tokio::time::sleep(ms(50)).await;
    }
    assert_eq!(seen, [200, 200, 503, 503, 200]);
}

#[tokio::test(start_paused = true)]
async fn unused_steps_are_named_with_their_place() {
    let steps = || [Step::new(BUSY).times(2), Step::new(ServiceFault::Hang).call("pay-7")];
    let faults = Faults::new(steps());
    statuses(&faults, &["/"]).await;
    let expected = "the script was not used up: \
                    step 1: Status(503): used 1 of 2 times; \
                    step 2: Hang, call \"pay-7\": used 0 of 1 times";
    assert_eq!(faults.finish().unwrap_err().to_string(), expected);
    let faults = Faults::new(steps());
    statuses(&faults, &["/"]).await;
    assert_eq!(panic_of(|| drop(faults)), expected);
    drop(Faults::new(Script::from(steps()).may_remain()));
}

#[test]
fn step_for_every_arrival_must_select_one() {
    let faults = Faults::new([Step::new(BUSY).always()]);
    let unused = faults.finish().unwrap_err();
    assert_eq!(unused.steps(), ["step 1: Status(503): used 0 of any number of times"]);
}

#[tokio::test(start_paused = true)]
async fn arrivals_without_a_step_take_otherwise() {
    let pass = Step::new(ServiceFault::NoFault);
    let faults = Faults::new(Script::from([pass.call("GET /two")]).otherwise(BUSY));
    assert_eq!(statuses(&faults, &["/one", "/two", "/two"]).await, [503, 200, 503]);
    faults.recover();
    assert_eq!(statuses(&faults, &["/one"]).await, [503]);
}
