//! A map from addresses to values.

use std::collections::BTreeMap;
use std::ops::Range;

/// For every address, the value that was put there last, if any.
#[derive(Clone, Debug)]
pub struct Spans<T> {
    /// For each first address, the end and the value.
    segments: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Spans<T> {
    fn default() -> Spans<T> {
        Spans { segments: BTreeMap::new() }
    }
}

impl<T: Clone> Spans<T> {
    /// The values at the addresses, in address order; segments are cut at the ends of the span.
    pub fn over(&mut self, span: Range<u64>) -> impl Iterator<Item = (Range<u64>, &mut T)> {
        self.cut(span.start);
        self.cut(span.end);
        self.segments.range_mut(span).map(|(&start, (end, what))| (start..*end, what))
    }

    /// Whether every address of the span has a value.
    pub fn covers(&mut self, span: Range<u64>) -> bool {
        self.over(span.clone()).map(|(part, _)| part.end - part.start).sum::<u64>() == span.end - span.start
    }

    /// Puts a value at the addresses, replacing the old ones.
    pub fn put(&mut self, span: Range<u64>, what: T) {
        if span.is_empty() {
            return;
        }
        self.cut(span.start);
        self.cut(span.end);
        let old: Vec<u64> = self.segments.range(span.clone()).map(|(&start, _)| start).collect();
        for start in old {
            self.segments.remove(&start);
        }
        self.segments.insert(span.start, (span.end, what));
    }

    /// Makes a segment end at the address.
    fn cut(&mut self, at: u64) {
        if let Some((_, (end, what))) = self.segments.range_mut(..at).next_back()
            && *end > at
        {
            let rest = (std::mem::replace(end, at), what.clone());
            self.segments.insert(at, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_span_replaces_those_it_covers() {
        let mut spans = Spans::default();
        spans.put(0..10, 'a');
        spans.put(10..20, 'b');
        spans.put(5..12, 'c');
        spans.put(3..3, 'd');
        let all =
            |spans: &mut Spans<char>, span| spans.over(span).map(|(r, &mut c)| (r, c)).collect::<Vec<_>>();
        assert_eq!(all(&mut spans, 0..30), [(0..5, 'a'), (5..12, 'c'), (12..20, 'b')]);
        assert_eq!(all(&mut spans, 4..6), [(4..5, 'a'), (5..6, 'c')]);
        assert!(spans.covers(0..20) && !spans.covers(0..21));
    }
}
