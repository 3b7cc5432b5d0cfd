//! After any script of changes and faults, the set is what the slices say.

use std::collections::{BTreeMap, BTreeSet};

use reattempt_core::Random;
use reattempt_testing::{Seeded, ms, secs};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::{Api, Fault};
use crate::shop::{Watched, endpoint, orders, slice, slice6};

struct Dice(Seeded);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// Returns a slice of up to four of eight pods, in any condition. A pod that is terminating stays so.
fn any_slice(dice: &mut Dice, name: &str, ended: &mut BTreeSet<String>) -> Value {
    let is_ipv6 = name.ends_with('6');
    let count = dice.below(5);
    let mut addresses: Vec<_> =
        (1..9).map(|pod| if is_ipv6 { format!("fd00::{pod}") } else { format!("10.0.0.{pod}") }).collect();
    let endpoints: Vec<_> = (0..count)
        .map(|_| {
            let address = addresses.remove(usize::try_from(dice.below(addresses.len() as u64)).unwrap());
            let terminating = ended.contains(&address) || dice.below(4) == 0;
            if terminating {
                ended.insert(address.clone());
            }
            let serving = dice.below(3) > 0;
            endpoint(&address, serving && !terminating, serving, terminating)
        })
        .collect();
    let mut slice = if is_ipv6 { slice6(name, endpoints) } else { slice(name, endpoints) };
    if dice.below(8) == 0 {
        slice["ports"] = json!([{ "name": "grpc", "port": 50052 }]);
    }
    slice
}

/// The conditions of an address in each slice that has it: ready, serving, terminating.
type Copies = Vec<(bool, bool, bool)>;

fn terminates(copies: &Copies) -> bool {
    copies.iter().any(|(.., terminating)| *terminating)
}

fn is_ready(copies: &Copies) -> bool {
    !terminates(copies) && copies.iter().any(|(ready, ..)| *ready)
}

fn drains(copies: &Copies) -> bool {
    copies.iter().any(|(_, serving, terminating)| *serving && *terminating)
}

/// The set by the rules, in other words: from the slices alone, without their history. `None` is "as before".
fn expected(slices: &[Value]) -> Option<Vec<String>> {
    let mut pods = BTreeMap::<String, Copies>::new();
    for slice in slices {
        let port = slice["ports"][0]["port"].as_u64().unwrap();
        for endpoint in slice["endpoints"].as_array().unwrap() {
            let address = endpoint["addresses"][0].as_str().unwrap();
            let name = if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") };
            let is = |condition: &str| endpoint["conditions"][condition].as_bool().unwrap();
            pods.entry(name).or_default().push((is("ready"), is("serving"), is("terminating")));
        }
    }
    let of = |test: fn(&Copies) -> bool, ipv6: bool| -> Vec<String> {
        let chosen = pods.iter().filter(|(name, copies)| name.starts_with('[') == ipv6 && test(copies));
        chosen.map(|(name, _)| name.clone()).collect()
    };
    let mut choices = [of(is_ready, false), of(is_ready, true), of(drains, false), of(drains, true)].into_iter();
    (!slices.is_empty()).then(|| choices.find(|chosen| !chosen.is_empty()).unwrap_or_default())
}

/// Draws one step of a script.
fn step(dice: &mut Dice, api: &Api, ended: &mut BTreeSet<String>) {
    let name = *dice.one_of(&["a", "b", "c", "d6"]);
    let fault = dice
        .one_of(&[
            Fault::Status(403),
            Fault::Status(410),
            Fault::Status(500),
            Fault::Text("garbage\n"),
            Fault::Refuse,
            Fault::Hang,
        ])
        .clone();
    match dice.below(16) {
        0..=5 => api.apply(any_slice(dice, name, ended)),
        6 | 7 => api.delete(name),
        8 => api.expire(),
        9 => api.forget(),
        10 => api.bookmark(),
        11 => {
            let slice = any_slice(dice, name, ended);
            api.garble(slice, dice.one_of::<&str>(&["garbage", "{}", r#"{"type":"ADDED","object":{"endpoints":7}}"#]));
        }
        12 => api.error_event(500),
        13 => api.cut(any_slice(dice, name, ended), dice.below(2) == 0),
        14 => api.next_list(fault),
        // A watch that hangs is kube's matter.
        _ if fault != Fault::Hang => api.next_watch(fault),
        _ => api.close(),
    }
}

#[tokio::test(start_paused = true)]
async fn set_is_what_the_slices_say() {
    let (mut checked, mut empty) = (0, 0);
    for seed in 0..150 {
        let mut dice = Dice(Seeded::new(seed));
        let (api, mut ended) = (Api::default(), BTreeSet::new());
        api.pages_of(usize::try_from(dice.below(3)).unwrap());
        let watched = Watched::start(orders(&api)).await;
        for _ in 0..4 {
            for _ in 0..dice.below(12) {
                step(&mut dice, &api, &mut ended);
                sleep(*dice.one_of(&[ms(0), ms(0), ms(1), ms(900), secs(5), secs(40)])).await;
            }
            api.heal();
            sleep(secs(200)).await;
            // Without a slice, the set is that of the last slices that the client has seen.
            let Some(expected) = expected(&api.slices()) else { continue };
            checked += 1;
            empty += usize::from(expected.is_empty());
            assert_eq!(watched.addresses(), expected, "seed {seed}: {}", json!(api.slices()));
        }
    }
    assert!(checked > 400 && empty > 10, "{checked}, {empty}");
}
