//! The slots of a tier whose endpoints have different weights. A pick draws a slot, and each endpoint has as many
//! as its weight says (W-1).

/// The most slots of one endpoint.
const MOST_SLOTS: u64 = 64;

/// The weights of a tier.
pub(crate) struct Weights {
    largest: u64,
    /// The number of slots of the endpoint with the largest weight.
    rounds: u64,
    weights: Box<[u64]>,
}

impl Weights {
    /// Returns the weights, unless all are equal.
    pub(crate) fn of(weights: impl Iterator<Item = u32>) -> Option<Self> {
        let mut weights: Box<[u64]> = weights.map(u64::from).collect();
        let largest = weights.iter().copied().max()?;
        let common = weights.iter().copied().reduce(common_divisor).filter(|common| *common < largest)?;
        let rounds = (largest / common).min(MOST_SLOTS);
        let least = largest.div_ceil(rounds);
        weights.iter_mut().for_each(|weight| *weight = (*weight).max(least));
        Some(Self { largest, rounds, weights })
    }

    /// Returns the ratio of the largest weight to each, in parts of `unit`.
    pub(crate) fn ratios(&self, unit: u64) -> impl Iterator<Item = u64> {
        self.weights.iter().map(move |weight| unit * self.largest / weight)
    }

    /// Returns the slots: the places of the endpoints, interleaved, so that the slots after that of a tried
    /// endpoint are those of many others.
    pub(crate) fn slots(&self) -> Box<[u32]> {
        let until = |weight: u64, round: u64| (round * weight + self.largest / 2) / self.largest;
        let of_round = |round| {
            let weights = (0..).zip(&self.weights);
            weights.filter(move |(_, weight)| until(**weight, round + 1) > until(**weight, round))
        };
        (0..self.rounds).flat_map(of_round).map(|(place, _)| place).collect()
    }
}

fn common_divisor(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(weights: &[u32]) -> Option<Vec<u32>> {
        Weights::of(weights.iter().copied()).map(|weights| weights.slots().into())
    }

    #[test]
    fn slots_are_interleaved() {
        assert_eq!(slots(&[]), None);
        assert_eq!(slots(&[7]), None);
        assert_eq!(slots(&[300, 300]), None);
        assert_eq!(slots(&[200, 100]).unwrap(), [0, 1, 0]);
        assert_eq!(slots(&[1, 4, 2]).unwrap(), [1, 2, 0, 1, 1, 2, 1]);
    }

    /// Ratios up to 64 are met to a few percent, and larger ones are cut.
    #[test]
    fn slots_have_a_bound() {
        for (weights, expected) in
            [([1000, 1, 500], [64, 1, 32]), ([u32::MAX, 1, u32::MAX], [64, 1, 64]), ([317, 50, 317], [64, 10, 64])]
        {
            let slots = slots(&weights).unwrap();
            let counts = [0, 1, 2].map(|place| slots.iter().filter(|slot| **slot == place).count());
            assert_eq!(counts, expected);
        }
        let weights = Weights::of([1000, 1, 500].into_iter()).unwrap();
        assert_eq!(weights.ratios(8).collect::<Vec<_>>(), [8, 500, 16]);
    }
}
