//! The end of a series that grows with every step.

use std::collections::VecDeque;

/// Values of a series that are kept: those of the last steps. With losses and times of steps, 65,536 of each take less than 2 MiB.
const KEPT: usize = 1 << 16;

/// The last 65,536 values of a series, and the number of all of them.
///
/// A run may have any number of steps, and its memory does not grow with them.
#[derive(Clone, Debug)]
pub struct Recent<T> {
    count: u64,
    kept: VecDeque<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent { count: 0, kept: VecDeque::new() }
    }
}

impl<T> Recent<T> {
    /// Appends a value.
    pub fn push(&mut self, value: T) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(value);
        self.count += 1;
    }

    /// Appends a series that followed this one.
    pub fn append(&mut self, next: Recent<T>) {
        let left_out = next.count - next.kept.len() as u64;
        next.kept.into_iter().for_each(|value| self.push(value));
        self.count += left_out;
    }

    /// Number of all values, also of those that are not kept.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there was no value.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values that are kept, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.kept.iter()
    }

    /// The values that are kept, without the first of the series.
    pub fn after_first(&self) -> impl Iterator<Item = &T> {
        let has_first = self.count == self.kept.len() as u64;
        self.kept.iter().skip(usize::from(has_first))
    }

    /// The last value.
    pub fn last(&self) -> Option<&T> {
        self.kept.back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(count: u64) -> Recent<u64> {
        let mut series = Recent::default();
        (0..count).for_each(|k| series.push(k));
        series
    }

    #[test]
    fn the_last_values_are_kept_and_all_are_counted() {
        let long = series(KEPT as u64 + 3);
        assert_eq!(
            (long.len(), long.iter().count(), long.iter().next(), long.last()),
            (65_539, KEPT, Some(&3), Some(&65_538))
        );
        assert_eq!((series(3).after_first().count(), long.after_first().count()), (2, KEPT));
    }

    #[test]
    fn a_series_goes_on_where_another_one_ended() {
        let mut both = series(5);
        both.append(series(KEPT as u64 + 3));
        assert_eq!((both.len(), both.iter().count(), both.iter().next()), (65_544, KEPT, Some(&3)));
        assert!(Recent::<u8>::default().is_empty());
    }
}
