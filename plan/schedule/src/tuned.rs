//! Tuning constants: numbers that were chosen because they make plans better or planning quicker. Another number would also give
//! valid plans.
//!
//! In ordinary builds a constant is its value. With the feature `sensitivity` one constant at a time can be halved or doubled while
//! the program runs, which `cargo bench -p lmsc-plan --bench sensitivity` does with each; its results stand in
//! `docs/measurements/constants.md`.

/// A tuning constant: `const NAME: Tunable<u64> = Tunable::new(30);`. Its value is a number or an array of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Tunable<T> {
    value: T,
    #[cfg(feature = "sensitivity")]
    place: trial::DefinedAt,
}

impl<T: Copy> Tunable<T> {
    /// A constant of this value.
    #[cfg(not(feature = "sensitivity"))]
    pub const fn new(value: T) -> Tunable<T> {
        Tunable { value }
    }

    /// The value.
    #[cfg(not(feature = "sensitivity"))]
    #[inline(always)]
    pub const fn get(self) -> T {
        self.value
    }
}

/// A mechanism of a search: a part of it that makes plans better, and without which they would still be valid. In ordinary builds
/// it is on. With the feature `sensitivity` one at a time can be switched off while the program runs; the results stand in
/// `docs/measurements/mechanisms.md`.
#[derive(Clone, Copy, Debug)]
pub struct Mechanism {
    /// Its name in the table.
    pub name: &'static str,
    /// A sentence without a full stop.
    pub summary: &'static str,
}

impl Mechanism {
    /// A mechanism with this name and this description.
    pub const fn new(name: &'static str, summary: &'static str) -> Mechanism {
        Mechanism { name, summary }
    }

    /// Whether the search uses it.
    #[cfg(not(feature = "sensitivity"))]
    #[inline(always)]
    pub const fn is_on(self) -> bool {
        true
    }
}

/// Counts steps of an inner loop, for the benchmark. In ordinary builds it does nothing.
#[cfg(not(feature = "sensitivity"))]
#[inline(always)]
pub const fn work(_steps: usize) {}

#[cfg(feature = "sensitivity")]
pub use trial::{DefinedAt, Scale, observed, with, without, work, worked};

/// Trials of other values.
#[cfg(feature = "sensitivity")]
mod trial {
    use std::collections::BTreeSet;
    use std::panic::Location;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::{Mechanism, Tunable};

    /// Where a constant is defined: file and line. It identifies the constant.
    pub type DefinedAt = &'static Location<'static>;

    /// Twice the digest of the constant on trial, plus one if it is doubled; [`NONE`] or [`ALL`].
    static ON_TRIAL: AtomicU64 = AtomicU64::new(NONE);
    const NONE: u64 = 0;
    /// No constant is on trial, and those that are read are noted.
    const ALL: u64 = 1;

    static WORK: AtomicU64 = AtomicU64::new(0);

    /// Counts steps of an inner loop.
    pub fn work(steps: usize) {
        WORK.fetch_add(steps as u64, SeqCst);
    }

    /// The steps counted since the previous call.
    pub fn worked() -> u64 {
        WORK.swap(0, SeqCst)
    }

    static READ: Mutex<BTreeSet<DefinedAt>> = Mutex::new(BTreeSet::new());

    /// Runs the function with the constant halved, or doubled; one run at a time.
    pub fn with<R>(place: DefinedAt, doubled: bool, run: impl FnOnce() -> R) -> R {
        ON_TRIAL.store(2 * digest(place) + u64::from(doubled), SeqCst);
        let result = run();
        ON_TRIAL.store(NONE, SeqCst);
        result
    }

    /// Runs the function with all constants as they are, and returns those that it reads, too; one run at a time.
    pub fn observed<R>(run: impl FnOnce() -> R) -> (R, Vec<DefinedAt>) {
        ON_TRIAL.store(ALL, SeqCst);
        let result = run();
        ON_TRIAL.store(NONE, SeqCst);
        (result, std::mem::take(&mut *READ.lock().expect("no reader panics")).into_iter().collect())
    }

    /// A number other than 0 for each place, the same for equal places.
    const fn digest(place: DefinedAt) -> u64 {
        fnv(place.file().as_bytes(), 0xcbf2_9ce4_8422_2325 ^ place.line() as u64)
    }

    /// A number other than 0 for a text (FNV-1a).
    const fn fnv(text: &[u8], begin: u64) -> u64 {
        let (mut at, mut digest) = (0, begin);
        while at < text.len() {
            digest = (digest ^ text[at] as u64).wrapping_mul(0x100_0000_01b3);
            at += 1;
        }
        digest >> 1 | 1
    }

    /// The digest of the mechanism that is off; 0 if none is.
    static OFF: AtomicU64 = AtomicU64::new(0);

    impl Mechanism {
        const fn digest(self) -> u64 {
            fnv(self.name.as_bytes(), 0xcbf2_9ce4_8422_2325)
        }

        /// Whether the search uses it.
        pub fn is_on(self) -> bool {
            OFF.load(SeqCst) != self.digest()
        }
    }

    /// Runs the function without the mechanism; one run at a time.
    pub fn without<R>(mechanism: Mechanism, run: impl FnOnce() -> R) -> R {
        OFF.store(mechanism.digest(), SeqCst);
        let result = run();
        OFF.store(0, SeqCst);
        result
    }

    impl<T: Scale> Tunable<T> {
        /// A constant of this value.
        #[track_caller]
        pub const fn new(value: T) -> Tunable<T> {
            Tunable { value, place: Location::caller() }
        }

        /// The value, or half or twice of it on trial.
        pub fn get(self) -> T {
            match ON_TRIAL.load(SeqCst) {
                NONE => self.value,
                ALL => {
                    READ.lock().expect("no reader panics").insert(self.place);
                    self.value
                }
                trial if trial >> 1 == digest(self.place) => self.value.scaled(trial & 1 == 1),
                _ => self.value,
            }
        }
    }

    /// A number or an array of numbers.
    pub trait Scale: Copy {
        /// Twice the number, or half of it, rounded down, but not to 0.
        fn scaled(self, doubled: bool) -> Self;
    }

    macro_rules! integers {
        ($($integer:ty)*) => {
            $(impl Scale for $integer {
                fn scaled(self, doubled: bool) -> $integer {
                    if doubled { self.saturating_mul(2) } else { (self / 2).max(self.min(1)) }
                }
            })*
        };
    }
    integers!(u32 u64 usize);

    impl Scale for f64 {
        fn scaled(self, doubled: bool) -> f64 {
            if doubled { self * 2.0 } else { self / 2.0 }
        }
    }

    impl<T: Scale, const N: usize> Scale for [T; N] {
        fn scaled(self, doubled: bool) -> [T; N] {
            self.map(|number| number.scaled(doubled))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        const PAIR: Tunable<[u64; 2]> = Tunable::new([1, 6]);
        const ONE: Tunable<f64> = Tunable::new(1.0);

        #[test]
        fn only_the_constant_on_trial_changes() {
            let values = || (PAIR.get(), ONE.get());
            let (found, read) = observed(values);
            assert_eq!((found, read.len()), (([1, 6], 1.0), 2));
            assert_eq!(with(PAIR.place, true, values), ([2, 12], 1.0));
            assert_eq!(with(PAIR.place, false, values), ([1, 3], 1.0));
            assert_eq!(with(ONE.place, false, values), ([1, 6], 0.5));
            assert_eq!(values(), ([1, 6], 1.0));
        }

        #[test]
        fn only_the_mechanism_on_trial_is_off() {
            let (first, other) = (Mechanism::new("first", ""), Mechanism::new("other", ""));
            assert_eq!(without(first, || (first.is_on(), other.is_on())), (false, true));
            assert!(first.is_on());
        }
    }
}
