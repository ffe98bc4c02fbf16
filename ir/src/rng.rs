//! Deterministic random choices: the same seed gives the same sequence on every machine.

/// A source of choices. A closure that returns words is one: under `arbtest`, `|| u.arbitrary().unwrap_or(0)`.
///
/// An exhausted source returns zeros, with which every choice is the simplest one.
pub trait Source {
    /// Any 64 bits.
    fn word(&mut self) -> u64;

    /// A number below `n`; 0 if `n` is 0.
    fn below(&mut self, n: usize) -> usize {
        (self.word() % n.max(1) as u64) as usize
    }

    /// True with a probability of `percent` percent.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) + percent >= 100
    }
}

impl<F: FnMut() -> u64> Source for F {
    fn word(&mut self) -> u64 {
        self()
    }
}

/// A deterministic source: SplitMix64.
///
/// # Source
/// Steele, Lea, Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The source of this seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }
}

impl Source for Rng {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
