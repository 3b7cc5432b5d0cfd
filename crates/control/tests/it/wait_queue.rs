//! Tests of the queue of waiting calls against a plain list.

use reattempt_control::{Patience, WaitQueue, WaiterId};
use reattempt_core::Random;
use reattempt_core::guard::Arrival;
use reattempt_testing::Seeded;

use crate::guards::{HOST, NOW, SECOND, at};

/// If calls enter and leave anywhere, each place is still the number of calls ahead.
#[test]
fn line_keeps_places_like_a_list() {
    let mut random = Seeded::new(1);
    for most in [3, 40, 300] {
        let mut queue = WaitQueue::new(Patience { calls: most, time: SECOND });
        let (mut list, mut gone): (Vec<WaiterId>, Vec<WaiterId>) = Default::default();
        for _ in 0..2000 {
            let drawn = usize::try_from(random.next_u64() % 1000).unwrap();
            assert_eq!(queue.is_full(), list.len() >= most);
            if drawn < 500 && !queue.is_full() {
                list.push(queue.push(&Arrival::new(HOST, NOW)));
            } else if !list.is_empty() {
                let waiter = list.remove(drawn % list.len());
                queue.leave(waiter).wake();
                gone.push(waiter);
            }
            for (place, waiter) in list.iter().enumerate() {
                assert_eq!(queue.position_of(*waiter), Some(place));
            }
            assert_eq!(gone.last().and_then(|waiter| queue.position_of(*waiter)), None);
            assert_eq!((queue.len(), queue.is_empty()), (list.len(), list.is_empty()));
        }
    }
}

#[test]
fn call_gives_up_at_its_deadline_or_before() {
    let mut queue = WaitQueue::new(Patience { calls: 9, time: SECOND });
    let mut arrival = Arrival::new(HOST, NOW);
    let patient = queue.push(&arrival);
    arrival.latest = Some(at(200));
    let hurried = queue.push(&arrival);
    assert_eq!((queue.waits_until(patient), queue.waits_until(hurried)), (at(1000), at(200)));
    queue.leave(patient).wake();
    assert!(queue.waits_until(patient).is_zero());
}
