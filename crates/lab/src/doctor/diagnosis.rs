//! The retriers of a lock file, and the most attempts that one call may become.

use std::collections::HashMap;

use semver::Version;
use serde::Serialize;

use super::lock::{Lock, Package};
use super::retriers::RETRIERS;
use super::table::{Kind, Retrier, SILENT_BEFORE};

/// The retriers of a dependency tree.
#[derive(Debug, Serialize)]
pub(super) struct Diagnosis {
    /// The number of packages in the file.
    pub(super) packages: usize,
    /// The attempts of the calls that the program retries.
    pub(super) attempts: u32,
    /// The most attempts that one of these calls may become, of the retriers whose number is known.
    pub(super) most_attempts: u64,
    /// The retriers, those that act by default first.
    pub(super) retriers: Vec<Found>,
}

/// A retrier in a dependency tree.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(rename = "crate")]
    pub(super) name: String,
    pub(super) version: String,
    /// The manner in which it retries; absent if its version is not in the table.
    #[serde(flatten)]
    pub(super) kind: Option<Kind>,
    /// The retriers below it whose attempts multiply with its own, from the top.
    pub(super) through: Vec<String>,
    /// The most attempts of one call through it and those below, times those of the program.
    pub(super) most_attempts: Option<u64>,
    pub(super) after: Option<&'static str>,
    pub(super) off: Option<&'static str>,
    pub(super) source: Option<String>,
    /// The versions whose source was read.
    pub(super) read: [&'static str; 2],
    /// `true` if the version is newer than these, so it may differ.
    pub(super) is_newer: bool,
}

/// The state of a package's version in the table.
enum Entry {
    Known(&'static Retrier),
    /// Its versions are in the table, but this one is older.
    TooOld(&'static Retrier),
}

impl Diagnosis {
    /// Finds the retriers of a lock file, for calls that the program retries with this many attempts.
    pub(super) fn of(lock: &Lock, attempts: u32) -> Self {
        let entries: Vec<_> = lock.packages.iter().map(entry).collect();
        let mut chains = chains(lock, &entries);
        let found = |(package, entry): (usize, &Option<Entry>)| {
            let chain = chains.remove(&package);
            Some(found(&lock.packages[package], entry.as_ref()?, chain, attempts))
        };
        let mut retriers: Vec<_> = entries.iter().enumerate().filter_map(found).collect();
        retriers.sort_by_cached_key(|it| (rank(it.kind), it.name.clone(), it.version.clone()));
        let most = retriers.iter().filter_map(|it| it.most_attempts).max();
        Self {
            packages: lock.packages.len(),
            attempts,
            most_attempts: most.unwrap_or_else(|| attempts.into()),
            retriers,
        }
    }

    /// Returns `true` if a crate repeats requests by default.
    pub(super) fn multiplies(&self) -> bool {
        self.retriers.iter().any(Found::acts)
    }
}

impl Found {
    /// Returns `true` if it repeats requests that were sent, without being asked.
    pub(super) fn acts(&self) -> bool {
        matches!(self.kind, Some(Kind::Attempts(_) | Kind::Uncounted))
    }
}

fn rank(kind: Option<Kind>) -> u8 {
    match kind {
        Some(Kind::Attempts(_)) => 0,
        Some(Kind::Uncounted) => 1,
        Some(Kind::Unsent) => 2,
        Some(Kind::Connections) => 3,
        Some(Kind::OnDemand) => 4,
        Some(Kind::Once) => 5,
        None => 6,
    }
}

/// Looks a package up in the table; `None` if it is no retrier.
fn entry(package: &Package) -> Option<Entry> {
    let of_crate = || RETRIERS.iter().filter(|it| it.name == package.name);
    let oldest = |it: &Retrier| Version::parse(it.read.0).is_ok_and(|from| package.version >= from);
    match of_crate().rfind(|it| oldest(it)) {
        Some(retrier) => Some(Entry::Known(retrier)),
        None => of_crate().next().filter(|it| !SILENT_BEFORE.contains(&it.name)).map(Entry::TooOld),
    }
}

fn found(package: &Package, entry: &Entry, chain: Option<Chain>, attempts: u32) -> Found {
    let Package { name, version, .. } = package;
    let (Entry::Known(retrier) | Entry::TooOld(retrier)) = entry;
    let known = matches!(entry, Entry::Known(_));
    let (product, through) = chain.unzip();
    Found {
        name: name.clone(),
        version: version.to_string(),
        kind: known.then_some(retrier.kind),
        through: through.unwrap_or_default(),
        most_attempts: product.map(|product| product.saturating_mul(attempts.into())),
        after: known.then_some(retrier.after),
        off: known.then_some(retrier.off),
        source: known.then(|| retrier.source()),
        read: [retrier.read.0, retrier.read.1],
        is_newer: Version::parse(retrier.read.1).is_ok_and(|newest| *version > newest),
    }
}

/// The most attempts of one request through a retrier, and the retriers below it that multiply, from the top.
type Chain = (u64, Vec<String>);

/// Returns the chain of each retrier whose attempts are counted, by its place in the file.
fn chains(lock: &Lock, entries: &[Option<Entry>]) -> HashMap<usize, Chain> {
    let mut counted = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        if let Some(Entry::Known(Retrier { kind: Kind::Attempts(attempts), .. })) = entry {
            counted.insert(index, (u64::from(*attempts), lock.below(index)));
        }
    }
    let mut order: Vec<_> = counted.keys().copied().collect();
    // A retrier has more packages below it than those below it have, so theirs are known first.
    order.sort_by_key(|index| (counted[index].1.len(), *index));
    let mut chains = HashMap::<usize, Chain>::new();
    for index in order {
        let (attempts, below) = &counted[&index];
        let mut best = (1, vec![]);
        for under in below {
            // Development dependencies may close a circle, which counts once.
            let Some((product, names)) = chains.get(under) else { continue };
            if *product > best.0 && !counted[under].1.contains(&index) {
                let name = lock.packages[*under].name.clone();
                best = (*product, std::iter::once(name).chain(names.iter().cloned()).collect());
            }
        }
        chains.insert(index, (best.0.saturating_mul(*attempts), best.1));
    }
    chains
}
