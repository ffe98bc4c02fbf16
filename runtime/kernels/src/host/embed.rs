//! Operators of models that read their operands at computed places: rotary embeddings, sampling by a grid, sums of products
//! named by letters, and matrices with ones on a diagonal.

use rayon::prelude::*;

use super::{Made, each, least};
use crate::element::{Number, Stored, dispatch};
use crate::kernel::{Io, Kernel};
use crate::meaning::{Rows, count, strides};
use crate::spec::{Spec, SpecError, refuse};

/// `EyeLike`: ones on the diagonal `k` of a matrix of zeros.
pub(crate) fn eye(spec: &Spec<'_>) -> Made {
    let dims = spec.result_dims(0)?;
    let [_, columns] = dims[..] else {
        return refuse(format!("result 0 has the extents {dims:?}; expected a matrix"));
    };
    let k = spec.int("k")?;
    let one_at = move |at: usize| ((at % columns) as i64).checked_sub((at / columns) as i64) == Some(k);
    if spec.result(0)?.element == lmsc_ir::ElementType::Bool {
        return Ok(Kernel::new(move |mut io: Io<'_>| {
            each::parts(io.take::<u8>(0), |start, out| {
                out.iter_mut().enumerate().for_each(|(i, out)| *out = u8::from(one_at(start + i)));
            });
        }));
    }
    dispatch!(number spec.result(0)?.element, T => Ok(Kernel::new(move |mut io: Io<'_>| {
        let [zero, one] = [<T as Stored>::Math::ZERO, <T as Stored>::Math::ONE].map(<T as Stored>::write);
        each::parts(io.take::<T>(0), |start, out| {
            out.iter_mut().enumerate().for_each(|(i, out)| *out = if one_at(start + i) { one } else { zero });
        });
    })))
}

/// `Hardmax`: 1 at the first largest element along the axis, else 0.
pub(crate) fn hardmax(spec: &Spec<'_>) -> Made {
    let dims = spec.dims(0)?;
    spec.expect_like(0, 0)?;
    let old = spec.opset < 13;
    let axis = spec.axis(spec.int("axis")?, dims.len())?;
    let rows = if old { Rows::from(&dims, axis) } else { Rows::at(&dims, axis) };
    dispatch!(float spec.element(0)?, T => Ok(Kernel::new(move |mut io: Io<'_>| {
        let (x, out) = (io.get::<T>(0), io.take::<T>(0));
        out.fill(T::write(<T as Stored>::Math::ZERO));
        for row in 0..rows.outer * rows.inner {
            let at = |k: usize| (row / rows.inner * rows.axis + k) * rows.inner + row % rows.inner;
            if let Some(best) = (0..rows.axis).reduce(|best, k| if x[at(k)].read() > x[at(best)].read() { k } else { best }) {
                out[at(best)] = T::write(<T as Stored>::Math::ONE);
            }
        }
    })))
}

/// `LpNormalization`: each row along the axis divided by its norm; rows of zeros stay.
pub(crate) fn lp_normalization(spec: &Spec<'_>) -> Made {
    let dims = spec.dims(0)?;
    spec.expect_like(0, 0)?;
    let rows = Rows::at(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let squares = match spec.int("p")? {
        1 => false,
        2 => true,
        other => return refuse(format!("attribute `p` is {other}; expected 1 or 2")),
    };
    dispatch!(float spec.element(0)?, T => Ok(Kernel::new(move |mut io: Io<'_>| {
        let (x, out) = (io.get::<T>(0), io.take::<T>(0));
        for row in 0..rows.outer * rows.inner {
            let at = |k: usize| (row / rows.inner * rows.axis + k) * rows.inner + row % rows.inner;
            let value = |k: usize| x[at(k)].read().to_f64();
            let sum: f64 = (0..rows.axis).map(|k| if squares { value(k) * value(k) } else { value(k).abs() }).sum();
            let norm = if squares { sum.sqrt() } else { sum };
            for k in 0..rows.axis {
                let normed = if norm == 0.0 { 0.0 } else { value(k) / norm };
                out[at(k)] = T::write(<T as Stored>::Math::of_f64(normed));
            }
        }
    })))
}

/// The extents of a rotary embedding.
#[derive(Clone, Copy)]
struct Rotary {
    heads: usize,
    length: usize,
    /// Elements of a head, and how many pairs of them are rotated.
    size: usize,
    pairs: usize,
    /// Whether heads come before the sequence.
    heads_first: bool,
    interleaved: bool,
    /// Rows of the tables.
    rows: usize,
    /// Operands: cosines, sines, positions.
    tables: [usize; 3],
    /// Whether there are positions; else the tables have a row for each place.
    has_positions: bool,
    /// Whether there is one position, of the first place.
    is_offset: bool,
}

impl Rotary {
    fn of(spec: &Spec<'_>) -> Result<Rotary, SpecError> {
        let microsoft = !spec.op.domain().is_empty();
        let tables = if microsoft { [2, 3, 1] } else { [1, 2, 3] };
        let [cos, _, positions] = tables;
        let (dims, table) = (spec.dims(0)?, spec.dims(cos)?);
        spec.expect_dims(tables[1], &table)?;
        spec.need(tables[1])?;
        let Some((&pairs, in_front)) = table.split_last() else {
            return refuse("the table of cosines has no extents");
        };
        let heads = usize::try_from(spec.int_if_any("num_heads")?.unwrap_or_default()).unwrap_or(0);
        let rotated = usize::try_from(spec.int("rotary_embedding_dim")?).unwrap_or(0);
        let (batch, heads, length, size, heads_first) = match dims[..] {
            [batch, heads, length, size] => (batch, heads, length, size, true),
            [batch, length, hidden] => {
                let heads = match heads {
                    0 if microsoft && pairs > 0 && rotated == 0 => hidden / (2 * pairs),
                    heads => heads,
                };
                if heads == 0 || hidden % heads != 0 {
                    return refuse(format!(
                        "attribute `num_heads` is {heads}, which does not divide {hidden}"
                    ));
                }
                (batch, heads, length, hidden / heads, false)
            }
            _ => return refuse(format!("operand 0 has the extents {dims:?}; expected three or four")),
        };
        let expected = if rotated == 0 { size } else { rotated };
        if expected != 2 * pairs || expected > size {
            return refuse(format!("tables of {pairs} columns do not rotate {expected} of {size} elements"));
        }
        let has_positions = spec.has(positions);
        let is_offset = has_positions && count(&spec.dims(positions)?) == 1 && batch * length != 1;
        if has_positions && !is_offset {
            spec.expect_count(positions, batch * length)?;
        }
        if !has_positions && count(in_front) != batch * length {
            return refuse(format!("tables {table:?} have no row for each of {batch} × {length} places"));
        }
        if microsoft && (spec.float("scale")? != 1.0 || spec.flag("is_packed_batching")?) {
            return refuse("scaled or packed rotary embeddings are not supported");
        }
        let (interleaved, rows) = (spec.flag("interleaved")?, count(in_front));
        Ok(Rotary {
            heads,
            length,
            size,
            pairs,
            heads_first,
            interleaved,
            rows,
            tables,
            has_positions,
            is_offset,
        })
    }

    /// The row of the tables for a place.
    fn row(&self, positions: &[i64], batch: usize, place: usize) -> usize {
        let at = batch * self.length + place;
        let row = match (self.has_positions, self.is_offset) {
            (false, _) => return at,
            (true, true) => positions.first().map_or(0, |first| first + place as i64),
            (true, false) => positions.get(at).copied().unwrap_or(0),
        };
        usize::try_from(row).unwrap_or(0)
    }

    fn check(&self, operands: &[&[u8]]) -> Result<(), String> {
        let bytes = operands.get(self.tables[2]).copied().unwrap_or_default();
        let positions = bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b));
        let last = if self.is_offset { self.length.saturating_sub(1) as i64 } else { 0 };
        let is_row = |p: i64| p >= 0 && p.checked_add(last).is_some_and(|p| (p as usize) < self.rows);
        match positions.into_iter().find(|&p| !is_row(p)) {
            Some(position) => {
                Err(format!("position {position} is out of range for tables of {} rows", self.rows))
            }
            None => Ok(()),
        }
    }
}

/// `RotaryEmbedding` of ONNX and of onnxruntime: pairs of a head's elements, rotated by the angle of their place.
///
/// # Source
/// Su et al., *RoFormer*, arXiv:2104.09864, section 3.2.
pub(crate) fn rotary(spec: &Spec<'_>) -> Made {
    let plan = Rotary::of(spec)?;
    spec.expect_floats([0, plan.tables[0], plan.tables[1]])?;
    if spec.has(plan.tables[2]) {
        spec.expect(plan.tables[2], lmsc_ir::ElementType::Int64)?;
    }
    spec.expect_like(0, 0)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let [cos, sin] = [plan.tables[0], plan.tables[1]].map(|table| io.get::<f32>(table));
        let (x, positions) = (io.get::<f32>(0), io.get::<i64>(plan.tables[2]));
        let heads = io
            .take::<f32>(0)
            .par_chunks_mut(plan.size.max(1))
            .zip(x.par_chunks(plan.size.max(1)))
            .enumerate();
        heads.with_min_len(least(plan.size)).for_each(|(i, (out, x))| {
            let (batch, rest) = (i / (plan.heads * plan.length), i % (plan.heads * plan.length));
            let place = if plan.heads_first { rest % plan.length } else { rest / plan.heads };
            let table = plan.row(positions, batch, place) * plan.pairs;
            out.copy_from_slice(x);
            for pair in 0..plan.pairs {
                let (c, s) = (cos[table + pair], sin[table + pair]);
                let (a, b) =
                    if plan.interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + plan.pairs) };
                out[a] = c * x[a] - s * x[b];
                out[b] = s * x[a] + c * x[b];
            }
        });
    })
    .checked(move |operands| plan.check(operands)))
}

/// A sum of products: extents and strides of the letters, those of the result first.
struct Sum {
    extents: Vec<usize>,
    /// For each operand, the stride of each letter.
    strides: Vec<Vec<usize>>,
    /// Number of letters of the result.
    kept: usize,
}

/// The letters of a term; an ellipsis stands for the letters `broadcast`, the last of them.
fn letters(term: &str, rank: Option<usize>, broadcast: &[char]) -> Option<Vec<char>> {
    let Some((front, back)) = term.split_once("...") else {
        let all: Vec<char> = term.chars().collect();
        return (all.iter().all(char::is_ascii_alphabetic) && rank.is_none_or(|rank| rank == all.len()))
            .then_some(all);
    };
    let named = front.len() + back.len();
    let stands_for = rank.map_or(Some(broadcast.len()), |rank| rank.checked_sub(named))?;
    let skipped = broadcast.len().checked_sub(stands_for)?;
    let all: Vec<char> =
        front.chars().chain(broadcast[skipped..].iter().copied()).chain(back.chars()).collect();
    let is_letter = |c: char| c.is_ascii_alphabetic();
    (front.chars().all(is_letter) && back.chars().all(is_letter)).then_some(all)
}

impl Sum {
    fn of(spec: &Spec<'_>) -> Result<Sum, SpecError> {
        let text: String = spec.string("equation")?.chars().filter(|c| !c.is_whitespace()).collect();
        let bad = || SpecError(format!("attribute `equation` is `{text}`, which does not fit the operands"));
        let (left, right) = text.split_once("->").map_or((&*text, None), |(left, right)| (left, Some(right)));
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != spec.operands.len() {
            return Err(bad());
        }
        let dims = (0..terms.len()).map(|i| spec.dims(i)).collect::<Result<Vec<_>, _>>()?;
        let stands_for = |(term, dims): (&&str, &Vec<usize>)| {
            if term.contains("...") { (dims.len() + 3).checked_sub(term.len()) } else { Some(0) }
        };
        let most = terms.iter().zip(&dims).map(stands_for).collect::<Option<Vec<_>>>().ok_or_else(bad)?;
        // Digits stand for the axes of the ellipsis: no term can name them.
        let broadcast: Vec<char> =
            (0..most.into_iter().max().unwrap_or(0)).filter_map(|i| char::from_digit(i as u32, 36)).collect();
        let of_terms =
            terms.iter().zip(&dims).map(|(term, dims)| letters(term, Some(dims.len()), &broadcast));
        let of_terms = of_terms.collect::<Option<Vec<_>>>().ok_or_else(bad)?;
        let result = match right {
            Some(right) => letters(right, None, &broadcast).ok_or_else(bad)?,
            None => {
                let all: Vec<char> =
                    of_terms.iter().flatten().copied().filter(|c| !broadcast.contains(c)).collect();
                let mut once: Vec<char> =
                    all.iter().copied().filter(|c| all.iter().filter(|d| *d == c).count() == 1).collect();
                once.sort_unstable();
                broadcast.iter().copied().chain(once).collect()
            }
        };
        let mut order = result.clone();
        for &letter in of_terms.iter().flatten() {
            if !order.contains(&letter) {
                order.push(letter);
            }
        }
        let is_twice = (1..result.len()).any(|i| result[..i].contains(&result[i]));
        if is_twice || result.iter().any(|letter| !of_terms.iter().flatten().any(|other| other == letter)) {
            return Err(bad());
        }
        let mut extents = vec![1; order.len()];
        for (term, dims) in of_terms.iter().zip(&dims) {
            for (letter, &extent) in term.iter().zip(dims) {
                let Some(at) = order.iter().position(|other| other == letter) else { return Err(bad()) };
                match (extents[at], extent) {
                    (known, extent) if known == extent || extent == 1 => {}
                    (1, extent) => extents[at] = extent,
                    _ => return Err(bad()),
                }
            }
        }
        let mut all = Vec::new();
        for (term, dims) in of_terms.iter().zip(&dims) {
            let mut of_letters = vec![0; order.len()];
            for ((letter, &extent), stride) in term.iter().zip(dims).zip(strides(dims)) {
                if let Some(at) = order.iter().position(|other| other == letter).filter(|_| extent != 1) {
                    of_letters[at] += stride;
                }
            }
            all.push(of_letters);
        }
        spec.expect_result_count(0, count(&extents[..result.len()]))?;
        Ok(Sum { extents, strides: all, kept: result.len() })
    }

    /// The offsets of the operands for the `index`-th combination of these letters.
    fn offsets(&self, letters: std::ops::Range<usize>, mut index: usize, out: &mut [usize]) {
        for letter in letters.rev() {
            let place = index % self.extents[letter].max(1);
            index /= self.extents[letter].max(1);
            out.iter_mut().zip(&self.strides).for_each(|(out, strides)| *out += place * strides[letter]);
        }
    }
}

/// `Einsum`: for each element of the result, the sum of products over the letters that it does not name.
pub(crate) fn einsum(spec: &Spec<'_>) -> Made {
    let plan = Sum::of(spec)?;
    let element = spec.element(0)?;
    (1..spec.operands.len()).try_for_each(|i| spec.expect(i, element))?;
    spec.expect_result(0, element)?;
    let operands = spec.operands.len();
    dispatch!(number element, T => Ok(Kernel::new(move |mut io: Io<'_>| {
        let sources: Vec<&[T]> = (0..operands).map(|i| io.get::<T>(i)).collect();
        let summed = count(&plan.extents[plan.kept..]);
        let letters = plan.extents.len();
        let out = io.take::<T>(0);
        let size = (super::GRAIN / summed.max(1)).max(1);
        super::chunks(out, size, 1, &|chunk, out| {
            let mut offsets = vec![0; operands];
            for (i, out) in out.iter_mut().enumerate() {
                let mut sum = <T as Stored>::Math::ZERO;
                let mut long = 0.0f64;
                for term in 0..summed {
                    offsets.fill(0);
                    plan.offsets(0..plan.kept, chunk * size + i, &mut offsets);
                    plan.offsets(plan.kept..letters, term, &mut offsets);
                    let factors = sources.iter().zip(&offsets).map(|(source, &at)| source[at].read());
                    if element.is_float() {
                        long += factors.map(Number::to_f64).product::<f64>();
                    } else {
                        sum = sum.plus(factors.fold(<T as Stored>::Math::ONE, Number::times));
                    }
                }
                *out = T::write(if element.is_float() { Number::of_f64(long) } else { sum });
            }
        });
    })))
}

/// How `GridSample` reads outside of the image.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// How `GridSample` reads between places.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Nearest,
    Linear,
    Cubic,
}

#[derive(Clone)]
struct Sampling {
    image: Vec<usize>,
    points: usize,
    channels: usize,
    aligns: bool,
    outside: Outside,
    between: Between,
}

impl Sampling {
    fn of(spec: &Spec<'_>) -> Result<Sampling, SpecError> {
        let (x, grid) = (spec.dims(0)?, spec.dims(1)?);
        let rank = x.len().saturating_sub(2);
        if !(rank == 2 || rank == 3) || grid.len() != x.len() || grid[rank + 1] != rank || grid[0] != x[0] {
            return refuse(format!("an image {x:?} is not sampled by a grid {grid:?}"));
        }
        let outside = match &*spec.string("padding_mode")? {
            "zeros" => Outside::Zeros,
            "border" => Outside::Border,
            "reflection" => Outside::Reflection,
            other => {
                return refuse(format!(
                    "attribute `padding_mode` is `{other}`; expected zeros, border or reflection"
                ));
            }
        };
        let between = match &*spec.string("mode")? {
            "nearest" => Between::Nearest,
            "linear" | "bilinear" => Between::Linear,
            "cubic" | "bicubic" if rank == 2 => Between::Cubic,
            other => {
                return refuse(format!(
                    "attribute `mode` is `{other}`; expected nearest, linear, or cubic of images"
                ));
            }
        };
        let points = count(&grid[1..rank + 1]);
        spec.expect_result_count(0, x[0] * x[1] * points)?;
        let aligns = spec.flag("align_corners")?;
        Ok(Sampling { image: x[2..].to_vec(), points, channels: x[1], aligns, outside, between })
    }

    /// The place along an axis of this extent that a coordinate from -1 to 1 names.
    fn place(&self, coordinate: f64, extent: usize) -> f64 {
        let n = extent as f64;
        if self.aligns { (coordinate + 1.0) / 2.0 * (n - 1.0) } else { ((coordinate + 1.0) * n - 1.0) / 2.0 }
    }

    /// The place within the image that is read for another one; none if zeros are.
    fn within(&self, place: f64, extent: usize) -> f64 {
        let (low, high) = if self.aligns { (0.0, extent as f64 - 1.0) } else { (-0.5, extent as f64 - 0.5) };
        match self.outside {
            Outside::Zeros => place,
            Outside::Border => place.clamp(0.0, extent as f64 - 1.0),
            Outside::Reflection if high <= low => 0.0,
            Outside::Reflection => {
                let (range, from) = (high - low, (place - low).abs());
                let (flips, rest) = ((from / range).floor(), from % range);
                if flips % 2.0 == 0.0 { low + rest } else { high - rest }
            }
        }
    }

    /// The element at whole places; 0 outside if zeros are read there.
    fn element(&self, x: &[f32], places: &[f64]) -> f64 {
        let mut at = 0;
        for (&place, &extent) in places.iter().zip(&self.image) {
            let place = match self.outside {
                Outside::Zeros => place,
                _ => self.within(place, extent).round_ties_even().clamp(0.0, extent as f64 - 1.0),
            };
            if !(place >= 0.0 && place < extent as f64) {
                return 0.0;
            }
            at = at * extent + place as usize;
        }
        f64::from(x[at])
    }

    /// The taps along one axis: whole places and their weights.
    fn taps(&self, place: f64, out: &mut [(f64, f64); 4]) -> usize {
        let (base, t) = (place.floor(), place - place.floor());
        match self.between {
            Between::Nearest => {
                out[0] = (place.round_ties_even(), 1.0);
                1
            }
            Between::Linear => {
                (out[0], out[1]) = ((base, 1.0 - t), (base + 1.0, t));
                2
            }
            Between::Cubic => {
                // Keys' kernel with a = -3/4.
                let a = -0.75;
                let near = |d: f64| ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
                let far = |d: f64| ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
                let weights = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)];
                (0..4).for_each(|i| out[i] = (base + i as f64 - 1.0, weights[i]));
                4
            }
        }
    }

    /// The value of a plane at a point of the grid, whose last coordinate is that of the first axis.
    fn sample(&self, x: &[f32], point: &[f32]) -> f32 {
        let rank = self.image.len();
        let mut taps = [[(0.0, 0.0); 4]; 3];
        let mut counts = [1; 3];
        for (axis, &extent) in self.image.iter().enumerate() {
            let place = self.place(f64::from(point[rank - 1 - axis]), extent);
            // Places are finite, so that taps are.
            let place = if place.is_finite() { place } else { -1e9 };
            let place = if self.between == Between::Cubic { place } else { self.within(place, extent) };
            counts[axis] = self.taps(place, &mut taps[axis]);
        }
        let mut sum = 0.0;
        let mut places = [0.0; 3];
        for index in 0..counts[..rank].iter().product() {
            let (mut rest, mut weight): (usize, f64) = (index, 1.0);
            for axis in 0..rank {
                let (place, part) = taps[axis][rest % counts[axis]];
                rest /= counts[axis];
                (places[axis], weight) = (place, weight * part);
            }
            if weight != 0.0 {
                sum += weight * self.element(x, &places[..rank]);
            }
        }
        sum as f32
    }
}

/// `GridSample(X, grid)`: the image at the points of a grid.
pub(crate) fn grid_sample(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0, 1])?;
    let plan = Sampling::of(spec)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (x, grid) = (io.get::<f32>(0), io.get::<f32>(1));
        let (plane, rank) = (count(&plan.image), plan.image.len());
        let planes = io.take::<f32>(0).par_chunks_mut(plan.points.max(1)).enumerate();
        planes.with_min_len(least(plan.points * 8)).for_each(|(i, out)| {
            let points = &grid[i / plan.channels * plan.points * rank..];
            for (out, point) in out.iter_mut().zip(points.chunks_exact(rank)) {
                *out = plan.sample(&x[i * plane..][..plane], point);
            }
        });
    }))
}
