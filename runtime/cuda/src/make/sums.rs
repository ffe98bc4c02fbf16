//! Sums of few outputs, in two stages: slices, each summed by one block, and the sums of these.
//!
//! The slices depend on the extents alone, so sums have the same bits on each device of one kind.

use lmsc_kernels::meaning::Rows;

use crate::BLOCK;
use crate::recipe::{Address, Arg, NOWHERE, Recipe, lanes, lanes_across};

/// Blocks that keep the largest devices busy: 132 processors hold eight each.
const ENOUGH_BLOCKS: usize = 2048;

/// Minimum number of packs of a slice: four per thread, which are loaded at once.
const SHORTEST: usize = 4 * BLOCK as usize;

/// Maximum number of slices of a channel or column, whose sums one team of threads adds up.
const MOST_SLICES: usize = 512;

/// Threads of a block that share a column, and columns of a block where each thread has one.
const ROW_LANES: usize = 8;
const ACROSS: usize = BLOCK as usize / ROW_LANES;

/// Minimum number of rows of a slice, whose sums are written and read once more.
const SHORTEST_ROWS: usize = 8 * ROW_LANES;

/// Number of slices, and their length.
fn cut(all: usize, wanted: usize, shortest: usize, most: usize) -> (usize, usize) {
    if all == 0 {
        return (0, 0);
    }
    let wanted = wanted.min(all.div_ceil(shortest)).clamp(1, most);
    let length = all.div_ceil(wanted);
    (all.div_ceil(length), length)
}

/// Number of neighbouring elements that a thread takes together.
pub(super) fn width(neighbours: usize) -> usize {
    if neighbours.is_multiple_of(4) { 4 } else { 1 }
}

/// Channels, each cut into slices, as kernels take them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channels {
    rows: Rows,
    slices: usize,
    length: usize,
}

impl Channels {
    pub(super) fn new(rows: Rows) -> Channels {
        let packs = rows.outer * rows.inner / width(rows.inner);
        let wanted = ENOUGH_BLOCKS.div_ceil(rows.axis.max(1));
        let (slices, length) = cut(packs, wanted, SHORTEST, MOST_SLICES);
        Channels { rows, slices, length }
    }

    pub(super) fn words(self) -> Vec<u64> {
        [self.rows.outer, self.rows.axis, self.rows.inner, self.slices, self.length]
            .map(|n| n as u64)
            .to_vec()
    }

    /// Number of slices of all channels.
    pub(super) fn all(self) -> usize {
        self.rows.axis * self.slices
    }

    /// Launches a kernel with one block per slice.
    pub(super) fn launch(self, recipe: &mut Recipe, kernel: &str, args: Vec<Arg>) {
        recipe.each(kernel, self.all() * BLOCK as usize, args);
    }
}

/// Rows whose columns are summed, cut into slices of rows, as kernels take them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    rows: usize,
    columns: usize,
    slices: usize,
    length: usize,
}

impl Columns {
    pub(super) fn new(rows: usize, columns: usize) -> Columns {
        let tiles = columns.div_ceil(ACROSS * width(columns));
        let wanted = ENOUGH_BLOCKS.div_ceil(tiles.max(1));
        let (slices, length) = cut(rows, wanted, SHORTEST_ROWS, MOST_SLICES);
        Columns { rows, columns, slices, length }
    }

    pub(super) fn words(self) -> Vec<u64> {
        [self.rows, self.columns, self.slices, self.length].map(|n| n as u64).to_vec()
    }

    /// Number of slice sums of all columns.
    pub(super) fn all(self) -> usize {
        self.slices * self.columns
    }

    /// Launches a kernel with one block per slice and tile of columns.
    pub(super) fn launch(self, recipe: &mut Recipe, kernel: &str, args: Vec<Arg>) {
        let tiles = self.columns.div_ceil(ACROSS * width(self.columns));
        recipe.each(kernel, tiles * self.slices * BLOCK as usize, args);
    }

    /// Number of threads that add up the slices of a column.
    pub(super) fn lanes(self) -> usize {
        lanes_across(self.slices)
    }
}

/// Slices of the channels of a normalization: of each channel, or, where channels are neighbours in memory, of rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slices {
    OfChannels(Channels),
    OfColumns(Columns),
}

impl Slices {
    pub(super) fn new(rows: Rows) -> Slices {
        match rows.inner {
            1 => Slices::OfColumns(Columns::new(rows.outer, rows.axis)),
            _ => Slices::OfChannels(Channels::new(rows)),
        }
    }

    /// Number of slices of all channels.
    pub(super) fn all(self) -> usize {
        match self {
            Slices::OfChannels(channels) => channels.all(),
            Slices::OfColumns(columns) => columns.all(),
        }
    }

    /// Launches the kernel for slices of channels, or that for slices of columns, with the slices before the other arguments.
    pub(super) fn launch(self, recipe: &mut Recipe, [channels, columns]: [&str; 2], args: &[Address]) {
        let after =
            |words| std::iter::once(Arg::Words(words)).chain(args.iter().map(|&at| at.into())).collect();
        match self {
            Slices::OfChannels(of) => of.launch(recipe, channels, after(of.words())),
            Slices::OfColumns(of) => of.launch(recipe, columns, after(of.words())),
        }
    }

    /// The layout of the slices' results, as kernels take it, and the number of threads that fold those of a channel.
    pub(super) fn parts(self) -> (Vec<u64>, usize) {
        let (words, lanes) = match self {
            Slices::OfChannels(Channels { rows, slices, length }) => {
                let (elements, length) = (rows.outer * rows.inner, length * width(rows.inner));
                ([rows.axis, elements, slices, length, slices, 1], lanes(slices))
            }
            Slices::OfColumns(of) => ([of.columns, of.rows, of.slices, of.length, 1, of.columns], of.lanes()),
        };
        (words.map(|n| n as u64).to_vec(), lanes)
    }
}

/// Layout of partial sums: those of one output are `apart` elements apart, and those of the next output begin `next` elements
/// later.
struct Parts {
    outputs: usize,
    count: usize,
    next: usize,
    apart: usize,
    lanes: usize,
}

fn add_up(recipe: &mut Recipe, parts: Parts, factor: f64, from: Address, out: Address) {
    let Parts { outputs, count, next, apart, lanes } = parts;
    let mut args: Vec<Arg> = [outputs, count, next, apart, lanes].map(Arg::from).to_vec();
    args.extend([factor.into(), from.into(), out.into()]);
    recipe.teams("part_sums", outputs, lanes, args);
}

/// The sum of each channel, times a factor.
pub(super) fn of_channels(recipe: &mut Recipe, rows: Rows, factor: f64, from: Address, out: Address) {
    let channels = Channels::new(rows);
    let parts = if channels.slices == 1 { NOWHERE } else { recipe.room::<f64>(channels.all()) };
    let args = vec![Arg::Words(channels.words()), factor.into(), from.into(), parts.into(), out.into()];
    channels.launch(recipe, "channel_sums", args);
    if channels.slices != 1 {
        let lanes = lanes(channels.slices);
        let parts_of =
            Parts { outputs: rows.axis, count: channels.slices, next: channels.slices, apart: 1, lanes };
        add_up(recipe, parts_of, factor, parts, out);
    }
}

/// The sum of each column, times a factor.
pub(super) fn of_columns(
    recipe: &mut Recipe,
    [rows, columns]: [usize; 2],
    factor: f64,
    from: Address,
    out: Address,
) {
    let of = Columns::new(rows, columns);
    let parts = if of.slices == 1 { NOWHERE } else { recipe.room::<f64>(of.all()) };
    let args = vec![Arg::Words(of.words()), factor.into(), from.into(), parts.into(), out.into()];
    of.launch(recipe, "column_sums", args);
    if of.slices != 1 {
        let parts_of =
            Parts { outputs: columns, count: of.slices, next: 1, apart: columns, lanes: of.lanes() };
        add_up(recipe, parts_of, factor, parts, out);
    }
}

/// Number and length of slices of `values` values, each summed by one block.
pub(super) fn slices(values: usize) -> (usize, usize) {
    cut(values, MOST_SLICES, SHORTEST, MOST_SLICES)
}
