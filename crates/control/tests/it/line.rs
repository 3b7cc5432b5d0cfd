//! Tests of the line of waiting calls against a plain list.

use reattempt_control::{Line, Patience, Turn};
use reattempt_core::Random;
use reattempt_core::guard::Arrival;
use reattempt_testing::Seeded;

use crate::guards::{HOST, NOW, SECOND, at};

/// If calls enter and leave anywhere, each place is still the number of calls ahead.
#[test]
fn line_keeps_places_like_a_list() {
    let mut random = Seeded::new(1);
    for most in [3, 40, 300] {
        let mut line = Line::new(Patience { calls: most, time: SECOND });
        let (mut list, mut gone): (Vec<Turn>, Vec<Turn>) = Default::default();
        for _ in 0..2000 {
            let drawn = usize::try_from(random.next_u64() % 1000).unwrap();
            assert_eq!(line.is_full(), list.len() >= most);
            if drawn < 500 && !line.is_full() {
                list.push(line.push(&Arrival::new(HOST, NOW)));
            } else if !list.is_empty() {
                let turn = list.remove(drawn % list.len());
                line.leave(turn).wake();
                gone.push(turn);
            }
            for (place, turn) in list.iter().enumerate() {
                assert_eq!(line.place_of(*turn), Some(place));
            }
            assert_eq!(gone.last().and_then(|turn| line.place_of(*turn)), None);
            assert_eq!((line.len(), line.is_empty()), (list.len(), list.is_empty()));
        }
    }
}

#[test]
fn call_gives_up_at_its_deadline_or_before() {
    let mut line = Line::new(Patience { calls: 9, time: SECOND });
    let mut arrival = Arrival::new(HOST, NOW);
    let patient = line.push(&arrival);
    arrival.latest = Some(at(200));
    let hurried = line.push(&arrival);
    assert_eq!((line.give_up(patient), line.give_up(hurried)), (at(1000), at(200)));
    line.leave(patient).wake();
    assert!(line.give_up(patient).is_zero());
}
