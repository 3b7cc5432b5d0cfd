//! The drawing of a plan from its seed.

use std::ops::Range;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::file;
use super::plan::{Act, Answer, Call, Content, Foreign, Kind, Layer, Mark, Method, Plan, Readiness, Source, TARGETS};

/// The kinds of trouble that a run may have.
struct Trouble {
    hangs: bool,
    panics: bool,
    unready: bool,
    drops: bool,
    deadlines: bool,
    redirects: bool,
    files: bool,
    upsets: bool,
    targets: bool,
    /// `true` if a layer hides that requests were sent.
    hides: bool,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut trouble = Trouble {
            hangs: random.random_ratio(1, 4),
            panics: random.random_ratio(1, 6),
            unready: random.random_ratio(1, 4),
            drops: random.random_ratio(1, 2),
            deadlines: random.random_ratio(1, 4),
            redirects: random.random_ratio(1, 4),
            files: random.random_ratio(1, 2),
            upsets: random.random_ratio(1, 4),
            targets: random.random_ratio(1, 4),
            hides: false,
        };
        let mut layers = layers(&mut random);
        trouble.hides = layers.contains(&Layer::DropsBodies);
        state_the_truth_about_redirects(&mut layers);
        admit_the_servers_of_outer_sets(&mut layers);
        let count = random.random_range(1..=5);
        let calls = (0..count).map(|_| call(&mut random, &trouble)).collect();
        let acts = (0..24).map(|_| act(&mut random, &trouble)).collect();
        let readiness = match trouble.unready {
            true => (0..12).map(|_| readiness(&mut random, &trouble)).collect(),
            false => Vec::new(),
        };
        let upsets = (0..if trouble.upsets { 40 } else { 0 }).map(|_| random.random_ratio(1, 6)).collect();
        let own_answers = (0..8).map(|_| pick(&mut random, &[None, Some(200), Some(429), Some(503)])).collect();
        Self { seed, layers, calls, acts, readiness, upsets, own_answers }
    }
}

/// Makes the setting that no redirects are followed below agree with the layers.
fn state_the_truth_about_redirects(layers: &mut [Layer]) {
    for index in 0..layers.len() {
        let follows = layers[index..].iter().any(|below| matches!(below, Layer::Follow { .. }));
        if let Layer::Retry { redirects_below, .. } | Layer::Backup { redirects_below, .. } = &mut layers[index]
            && *redirects_below == Some(false)
            && follows
        {
            *redirects_below = Some(true);
        }
    }
}

/// Opens the sets below another set of URLs, whose servers are other hosts to them.
fn admit_the_servers_of_outer_sets(layers: &mut [Layer]) {
    let sets = layers.iter_mut().filter_map(|layer| match layer {
        Layer::Endpoints { source: Source::Urls, foreign, .. } => Some(foreign),
        _ => None,
    });
    sets.skip(1).for_each(|foreign| *foreign = Foreign::Pass);
}

fn pick<T: Copy>(random: &mut SmallRng, from: &[T]) -> T {
    from[random.random_range(0..from.len())]
}

/// Returns layers of any kinds, or the layers of this crate in any order, most of them.
fn layers(random: &mut SmallRng) -> Vec<Layer> {
    if random.random_ratio(2, 3) {
        let length = random.random_range(1..=7);
        let mut layers = Vec::new();
        for _ in 0..length {
            let kind = random.random_range(KINDS);
            layers.push(layer(random, kind));
        }
        // The two together hide from the layers above that a request was sent.
        if let Some(at) = layers.iter().position(|layer| *layer == Layer::DropsBodies)
            && random.random()
        {
            layers.insert(at + 1, Layer::Follow { clones: random.random() });
        }
        return layers;
    }
    let mut kinds = OWN.to_vec();
    kinds.shuffle(random);
    kinds.retain(|_| random.random_ratio(2, 3));
    kinds.into_iter().map(|kind| layer(random, kind)).collect()
}

/// The numbers from which a layer's kind is drawn.
const KINDS: Range<u32> = 0..36;
/// A number of each kind of layer that this crate has and that sends, refuses or replaces calls, and of a service that
/// calls one of them.
const OWN: [u32; 8] = [0, 5, 7, 14, 23, 26, 30, 32];

fn layer(random: &mut SmallRng, kind: u32) -> Layer {
    let redirects = [None, Some(false), Some(true)];
    match kind {
        0..=4 => Layer::Retry {
            attempts: random.random_range(2..=4),
            delay: pick(random, &[0, 10, 100]),
            attempt_timeout: pick(random, &[None, None, None, Some(150)]),
            clone_per_call: random.random_ratio(1, 4),
            redirects_below: pick(random, &redirects),
        },
        5..=6 => Layer::Hedge { delay: pick(random, &[0, 20]) },
        7..=9 => Layer::Backup { retries: random.random_ratio(1, 3), redirects_below: pick(random, &redirects) },
        10 => Layer::Spare,
        11..=13 => Layer::Follow { clones: random.random() },
        14..=17 => Layer::Guards {
            kinds: (0..random.random_range(1..=3)).map(|_| guard(random)).collect(),
            attempt_timeout: pick(random, &[None, None, Some(120)]),
        },
        18..=19 => Layer::LoadShed,
        20..=21 => Layer::Limit(pick(random, &[1, 1, 2, 3])),
        22 => Layer::Buffer(pick(random, &[1, 4])),
        23..=25 => {
            let source = pick(random, &[Source::Urls, Source::List, Source::LookUp]);
            Layer::Endpoints {
                servers: random.random_range(1..=4),
                source,
                tiers: source != Source::LookUp && random.random_ratio(1, 3),
                ejects: random.random_ratio(3, 4),
                attempt_timeout: pick(random, &[None, None, Some(120)]),
                foreign: pick(random, &[Foreign::Pass, Foreign::Refuse, Foreign::Base]),
                prefix: random.random_ratio(1, 4),
            }
        }
        26..=28 => Layer::Resume { attempts: random.random_range(2..=4), delay: pick(random, &[0, 10, 100]) },
        29 => Layer::Timeout(pick(random, &[50, 200, 2_000])),
        32..=33 => Layer::Nested,
        34 => Layer::Answers,
        35 => Layer::DropsBodies,
        _ => Layer::Peek { within: pick(random, &[20, 100, 500]) },
    }
}

fn guard(random: &mut SmallRng) -> Kind {
    use Kind::*;
    let kinds = [
        Breaker,
        Rate,
        Rate,
        RateNoQueue,
        Bulkhead,
        BulkheadQueue,
        Adaptive,
        Throttle,
        SendRate,
        Pace,
        PaceNoQueue,
        Pause,
        PauseNoQueue,
    ];
    pick(random, &kinds)
}

fn call(random: &mut SmallRng, trouble: &Trouble) -> Call {
    let method = pick(random, &[Method::Get, Method::Put, Method::Post, Method::Post, Method::Post]);
    let content = match method {
        Method::Get => Content::Empty,
        _ => pick(random, &[Content::Empty, Content::Memory, Content::Memory, Content::Streamed]),
    };
    let mark = match method {
        Method::Post => pick(random, &[Mark::None, Mark::None, Mark::None, Mark::Key, Mark::Repeatable]),
        _ => Mark::None,
    };
    let dropped = trouble.drops && random.random_ratio(1, 2);
    let late = trouble.deadlines && random.random_ratio(1, 2);
    let target = if trouble.targets { random.random_range(0..TARGETS.len()) } else { 0 };
    Call {
        target,
        method,
        content,
        mark,
        starts: pick(random, &[0, 0, 0, 10, 30, 100]),
        deadline: late.then(|| random.random_range(0..400)),
        dropped_after: dropped.then(|| random.random_range(0..400)),
    }
}

fn act(random: &mut SmallRng, trouble: &Trouble) -> Act {
    use Answer::*;
    let answer = match random.random_range(0..20) {
        0..=4 => Ok,
        5 => SlowBody,
        6 => TornBody,
        7..=8 => SeeOther,
        9 => pick(random, &[TemporaryRedirect, SeeOtherHost]),
        10..=12 => TooMany { retry_after: pick(random, &[None, None, Some(1)]) },
        13 => Unavailable,
        14 => Error,
        15..=16 => NotConnected,
        17..=18 => Lost,
        _ if trouble.hangs && random.random_ratio(1, 2) => Hang,
        _ if trouble.panics => pick(random, &[Panic, PanicInCall]),
        _ => Ok,
    };
    let redirects = trouble.redirects && random.random_ratio(1, 3);
    let answer = if redirects { SeeOther } else { answer };
    let answer = if trouble.hides { pick(random, &[answer, SeeOther, Lost]) } else { answer };
    let answer = if trouble.files && random.random_ratio(2, 3) { file(random) } else { answer };
    let works = match answer {
        Ok | SlowBody | TornBody | File { .. } | SeeOther | SeeOtherHost | Error => true,
        TemporaryRedirect | TooMany { .. } | NotConnected | PanicInCall => false,
        Unavailable | Lost | Hang | Panic => random.random(),
    };
    let reads = works || (answer != NotConnected && random.random());
    let after = pick(random, &[0, 0, 5, 20, 60, 150, 400]);
    Act { answer, after, works, early: random.random(), reads }
}

fn file(random: &mut SmallRng) -> Answer {
    let bytes = pick(random, &[0, 1, 10, 30, 30, file::LENGTH]);
    Answer::File { version: pick(random, &[1, 1, 1, 2]), bytes, slow: random.random_ratio(1, 4) }
}

fn readiness(random: &mut SmallRng, trouble: &Trouble) -> Readiness {
    match random.random_range(0..8) {
        0..=4 => Readiness::Now,
        5..=6 => Readiness::After(pick(random, &[1, 20, 300])),
        _ if trouble.panics => Readiness::Panic,
        _ if trouble.hangs => Readiness::Never,
        _ => Readiness::Now,
    }
}
