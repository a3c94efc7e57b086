//! Seeded changes of inputs: what a fuzzer does, without its knowledge of what was reached.

use crate::rng::Rng;
use crate::targets::WORDS;

/// The longest input that is made, in bytes.
const LONGEST: usize = 4096;

/// One of the seeds, changed in a few places.
pub(crate) fn mutated(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut input = seeds[rng.below(seeds.len())].clone();
    for _ in 0..=rng.below(2) * rng.below(3) {
        let from = rng.below(input.len() + 1);
        let to = (from + rng.below(24)).min(input.len());
        match rng.below(7) {
            0 if from < input.len() => input[from] ^= 1 << rng.below(8),
            1 => drop(input.drain(from..to)),
            2 => drop(input.splice(from..from, rng.pick(&WORDS).bytes())),
            3 => drop(input.splice(from..to, rng.pick(&WORDS).bytes())),
            4 => input.extend_from_within(from..to),
            5 => {
                let again = input[from..to].repeat(1 + rng.below(40));
                input.splice(from..from, again);
            }
            // The head of one and the tail of another.
            _ => {
                let other = &seeds[rng.below(seeds.len())];
                input.truncate(from);
                input.extend_from_slice(&other[rng.below(other.len() + 1)..]);
            }
        }
        input.truncate(LONGEST);
    }
    input
}
