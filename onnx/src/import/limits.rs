//! Limits of the import: models beyond them are refused.

/// Maximum nesting of subgraphs and functions that is followed.
pub(super) const MOST_DEPTH: usize = 32;

/// Maximum number of elements of all sequences of the graph together.
pub(super) const MOST_SEQUENCE_ELEMENTS: usize = 1 << 22;
