//! Tests of pairs in which one guard panics: the other one gets its place back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, Guard, Health, Refused, Resume};

const NOW: Duration = Duration::from_secs(1);

/// The step in which a guard panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Admit,
    End,
    Renew,
}

/// A guard that counts its tickets, and holds them until bodies end.
#[derive(Default)]
struct Counting {
    tickets: AtomicU32,
    panics: Option<Step>,
    waits: bool,
}

impl Counting {
    fn panicking(step: Step) -> Self {
        Self { panics: Some(step), ..Self::default() }
    }

    fn tickets(&self) -> u32 {
        self.tickets.load(Ordering::Relaxed)
    }

    fn step(&self, step: Step) {
        assert!(self.panics != Some(step), "the user's own bug");
    }
}

impl Guard for Counting {
    type Ticket = ();

    fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
        self.step(Step::Admit);
        self.tickets.fetch_add(1, Ordering::Relaxed);
        if self.waits { Admit::Waiting(()) } else { Admit::Admitted(()) }
    }

    fn end_ticket(&self, (): (), end: &End, _: Duration) -> Option<()> {
        self.step(Step::End);
        if let End::Judged { .. } = end {
            return Some(());
        }
        self.tickets.fetch_sub(1, Ordering::Relaxed);
        None
    }

    fn resume(&self, (): &mut (), _: &Arrival<'_>, _: &Waker) -> Resume {
        Resume::Admitted
    }

    fn renew(&self, (): (), _: &Arrival<'_>) -> Result<(), Refused> {
        self.step(Step::Renew);
        Ok(())
    }
}

fn arrival() -> Arrival<'static> {
    Arrival::new("a", NOW)
}

type Pair = (Counting, Counting);

fn admitted(pair: &Pair) -> <Pair as Guard>::Ticket {
    match pair.admit(&arrival()) {
        Admit::Admitted(ticket) => ticket,
        _ => unreachable!("both admit"),
    }
}

/// Runs a step of the pair that panics. Returns the tickets of the other guard.
fn others_tickets<T>(pair: &Pair, step: impl FnOnce() -> T) -> u32 {
    assert!(catch_unwind(AssertUnwindSafe(step)).is_err(), "the panic reaches the caller");
    let (first, second) = pair;
    if first.panics.is_none() { first.tickets() } else { second.tickets() }
}

/// Returns a pair whose first guard panics, and one whose second does.
fn pairs(step: Step) -> [Pair; 2] {
    [(Counting::panicking(step), Counting::default()), (Counting::default(), Counting::panicking(step))]
}

// G-11
#[test]
fn panic_in_admit_frees_the_other() {
    for pair in pairs(Step::Admit) {
        assert_eq!(others_tickets(&pair, || admitted(&pair)), 0);
    }
}

// G-11
#[test]
fn panic_in_end_ends_the_other() {
    let served = End::judged(Health::Served, NOW);
    for end in [served, End::Unsent] {
        for pair in pairs(Step::End) {
            let ticket = admitted(&pair);
            assert_eq!(others_tickets(&pair, || pair.end_ticket(ticket, &end, NOW)), 0, "{end:?}");
        }
    }
}

// G-11
#[test]
fn panic_in_renew_ends_the_other() {
    for pair in pairs(Step::Renew) {
        let ticket = admitted(&pair);
        assert_eq!(others_tickets(&pair, || pair.renew(ticket, &arrival())), 0);
    }
}

/// The caller keeps the ticket and ends it.
// G-11
#[test]
fn panic_in_resume_leaves_the_ticket() {
    for first_waits in [true, false] {
        let step = if first_waits { Step::Admit } else { Step::Renew };
        let (mut first, mut second) = (Counting::default(), Counting::default());
        (first.waits, second.waits) = (first_waits, !first_waits);
        let panicking = if first_waits { &mut second } else { &mut first };
        panicking.panics = Some(step);
        let pair = (first, second);
        let (Admit::Waiting(mut ticket) | Admit::Admitted(mut ticket)) = pair.admit(&arrival()) else {
            unreachable!("nothing refuses")
        };
        let resume = || pair.resume(&mut ticket, &arrival(), Waker::noop());
        assert!(catch_unwind(AssertUnwindSafe(resume)).is_err());
        assert!(pair.end_ticket(ticket, &End::Unsent, NOW).is_none());
        assert_eq!(pair.0.tickets() + pair.1.tickets(), u32::from(!first_waits));
    }
}
