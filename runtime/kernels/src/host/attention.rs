//! `Attention`, one head after the other: its products are matrix products, and its weights are in the workspace.

use lmsc_ir::ElementType;

use super::{Made, chunks, least};
use crate::gemm::{self, Extents, Into, Matrix};
use crate::kernel::{Io, Kernel};
use crate::math::{exp, tanh};
use crate::spec::{Spec, SpecError, refuse};

/// Queries, keys or values: `[batch, heads, sequence, width]`, or with the heads inside the last axis.
#[derive(Clone, Copy)]
struct Heads {
    heads: usize,
    sequence: usize,
    width: usize,
    is_flat: bool,
}

impl Heads {
    fn new(spec: &Spec<'_>, operand: usize, attribute: &str) -> Result<(usize, Heads), SpecError> {
        match spec.dims(operand)?[..] {
            [batch, heads, sequence, width] => Ok((batch, Heads { heads, sequence, width, is_flat: false })),
            [batch, sequence, all] => {
                match usize::try_from(spec.int_if_any(attribute)?.unwrap_or_default()) {
                    Ok(heads @ 1..) if all % heads == 0 => {
                        Ok((batch, Heads { heads, sequence, width: all / heads, is_flat: true }))
                    }
                    _ => refuse(format!(
                        "attribute `{attribute}` does not divide the last axis of operand {operand}"
                    )),
                }
            }
            ref dims => refuse(format!("operand {operand} has extents {dims:?}; expected three or four")),
        }
    }

    /// Offset of a head, and the distance between its rows.
    fn place(&self, batch: usize, head: usize) -> (usize, usize) {
        if self.is_flat {
            let row = self.heads * self.width;
            (batch * self.sequence * row + head * self.width, row)
        } else {
            ((batch * self.heads + head) * self.sequence * self.width, self.width)
        }
    }

    /// The rows of a head as a matrix whose elements are contiguous along the sum (`along`) or across it.
    fn matrix<'a>(&self, data: &'a [f32], batch: usize, head: usize, along: bool) -> Matrix<'a> {
        let (first, row) = self.place(batch, head);
        let (lane, k) = if along { (row, 1) } else { (1, row) };
        Matrix { data: data.get(first..).unwrap_or(&[]), lane, k }
    }
}

/// The operand that is added to scores, or that says which scores count.
#[derive(Clone)]
struct Mask {
    is_truth: bool,
    /// Strides along batch, heads and queries; 0 where it is broadcast.
    strides: [usize; 3],
    /// Number of keys that the mask has; keys behind them do not count.
    keys: usize,
}

impl Mask {
    fn new(spec: &Spec<'_>, extents: [usize; 3], keys: usize) -> Result<Option<Mask>, SpecError> {
        if !spec.has(3) {
            return Ok(None);
        }
        let is_truth = spec.element(3)? == ElementType::Bool;
        if !is_truth {
            spec.expect_floats([3])?;
        }
        let dims = spec.dims(3)?;
        let Some((&own, outer)) = dims.split_last() else {
            return refuse("operand 3, the mask, is a scalar");
        };
        if outer.len() > 3 || own > keys {
            return refuse(format!("operand 3, the mask, has extents {dims:?}, and there are {keys} keys"));
        }
        let mut strides = [0; 3];
        let mut step = own;
        for (d, &extent) in outer.iter().enumerate().rev() {
            let at = 3 - outer.len() + d;
            match extent {
                1 => {}
                extent if extent == extents[at] => strides[at] = step,
                _ => {
                    return refuse(format!(
                        "operand 3, the mask, {dims:?}, does not broadcast to {extents:?}"
                    ));
                }
            }
            step *= extent;
        }
        Ok(Some(Mask { is_truth, strides, keys: own }))
    }

    /// Adds a row of the mask to the bias of a row of scores.
    fn add(&self, io: &Io<'_>, at: [usize; 3], bias: &mut [f32]) {
        let first = at.iter().zip(self.strides).map(|(i, stride)| i * stride).sum::<usize>();
        let (known, unknown) = bias.split_at_mut(self.keys);
        if self.is_truth {
            known.iter_mut().zip(&io.get::<u8>(3)[first..]).for_each(|(bias, &counts)| {
                *bias += if counts != 0 { 0.0 } else { f32::NEG_INFINITY };
            })
        } else {
            known.iter_mut().zip(&io.get::<f32>(3)[first..]).for_each(|(bias, &own)| *bias += own)
        }
        unknown.fill(f32::NEG_INFINITY);
    }
}

/// The stage of the scores that is stored in result 3.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Product,
    Capped,
    Biased,
    Weights,
}

#[derive(Clone)]
struct Attention {
    batch: usize,
    q: Heads,
    k: Heads,
    v: Heads,
    past: usize,
    scale: f32,
    cap: f32,
    is_causal: bool,
    /// Number of keys before and behind a query's own that count.
    window: [Option<usize>; 2],
    mask: Option<Mask>,
    kept: Kept,
}

/// Refuses an operand of other extents; it may be left out.
fn expect(spec: &Spec<'_>, operand: usize, dims: &[usize]) -> Result<(), SpecError> {
    if !spec.has(operand) || spec.dims(operand)? == dims {
        Ok(())
    } else {
        refuse(format!("operand {operand} is {}; expected the extents {dims:?}", spec.tensor(operand)?))
    }
}

/// The row of scores of one query.
struct Row {
    batch: usize,
    head: usize,
    query: usize,
}

impl Attention {
    fn new(spec: &Spec<'_>) -> Result<Attention, SpecError> {
        spec.expect_floats([0, 1, 2, 4, 5])?;
        let (batch, q) = Heads::new(spec, 0, "q_num_heads")?;
        let ((k_batch, k), (v_batch, v)) =
            (Heads::new(spec, 1, "kv_num_heads")?, Heads::new(spec, 2, "kv_num_heads")?);
        let fits = [k_batch, v_batch] == [batch; 2]
            && (k.heads, k.sequence, k.width) == (v.heads, v.sequence, q.width)
            && k.heads > 0
            && q.heads % k.heads == 0;
        if !fits {
            return refuse("queries, keys and values do not fit one another");
        }
        if spec.has(4) != spec.has(5) {
            return refuse("of operands 4 and 5, past keys and values, only one is given");
        }
        let past = if spec.has(4) { spec.dims(4)?.get(2).copied().unwrap_or(0) } else { 0 };
        expect(spec, 4, &[batch, k.heads, past, k.width])?;
        expect(spec, 5, &[batch, v.heads, past, v.width])?;
        if spec.has(6) {
            spec.expect(6, ElementType::Int64)?;
            expect(spec, 6, &[batch])?;
            if spec.has(4) {
                return refuse("operand 6, lengths of the keys, is given beside past keys");
            }
        }
        let scale = spec.float_if_any("scale")?.unwrap_or_else(|| 1.0 / (q.width as f32).sqrt());
        let cap = spec.float("softcap")?;
        if !(scale >= 0.0 && cap >= 0.0) {
            return refuse("attribute `scale` or `softcap` is negative");
        }
        let kept = match spec.int("qk_matmul_output_mode")? {
            0 => Kept::Product,
            1 => Kept::Capped,
            2 => Kept::Biased,
            3 => Kept::Weights,
            other => return refuse(format!("attribute `qk_matmul_output_mode` is {other}; it is 0 to 3")),
        };
        // Weights are computed with 32 bits, at least the precision of these types.
        if ![0, 1, 10, 16].contains(&spec.int_if_any("softmax_precision")?.unwrap_or_default()) {
            return refuse("attribute `softmax_precision` asks for more than 32 bits");
        }
        let window = |name: &str| match spec.int(name)? {
            -1 => Ok(None),
            reach => match usize::try_from(reach) {
                Ok(reach) => Ok(Some(reach)),
                Err(_) => refuse(format!("attribute `{name}` is {reach}; it is -1 or not negative")),
            },
        };
        Ok(Attention {
            batch,
            q,
            k,
            v,
            past,
            scale,
            cap,
            is_causal: spec.flag("is_causal")?,
            window: [window("left_window_size")?, window("right_window_size")?],
            mask: Mask::new(spec, [batch, q.heads, q.sequence], past + k.sequence)?,
            kept,
        })
    }

    /// Number of keys of a query.
    fn keys(&self) -> usize {
        self.past + self.k.sequence
    }

    fn scores_of(&self, keys: usize) -> Extents {
        Extents { m: self.q.sequence, n: keys, k: self.q.width }
    }

    fn results_of(&self, keys: usize) -> Extents {
        Extents { m: self.q.sequence, n: self.v.width, k: keys }
    }

    /// Workspace of the products, in elements.
    fn products(&self) -> usize {
        let all = [self.past, self.k.sequence]
            .map(|keys| self.scores_of(keys).parallel().max(self.results_of(keys).parallel()));
        all[0].max(all[1])
    }

    /// Past keys or values; their heads are not in the last axis.
    fn past_of(&self, of: Heads) -> Heads {
        Heads { sequence: self.past, is_flat: false, ..of }
    }

    /// The bias of a row of scores.
    fn bias(&self, io: &Io<'_>, Row { batch, head, query }: Row, bias: &mut [f32]) {
        bias.fill(0.0);
        if let Some(mask) = &self.mask {
            mask.add(io, [batch, head, query], bias);
        }
        let length = io.get::<i64>(6).get(batch).copied();
        let before = match length {
            Some(length) => length.saturating_sub(self.q.sequence as i64),
            None => self.past as i64,
        };
        let own = before.saturating_add(query as i64);
        let [left, right] =
            self.window.map(|reach| reach.map(|reach| i64::try_from(reach).unwrap_or(i64::MAX)));
        let first = left.map_or(i64::MIN, |reach| own.saturating_sub(reach));
        let mut last = right.map_or(i64::MAX, |reach| own.saturating_add(reach));
        if self.is_causal {
            last = last.min(own);
        }
        if let Some(length) = length {
            last = last.min(length.saturating_sub(1));
        }
        for (key, bias) in (0..).zip(bias) {
            if key < first || key > last {
                *bias = f32::NEG_INFINITY;
            }
        }
    }

    /// Turns a row of scores into weights; the stage that result 3 stores is copied to `kept`.
    fn weigh(&self, scores: &mut [f32], bias: &[f32], kept: &mut [f32]) {
        let mut keep = |step: Kept, scores: &[f32]| {
            if self.kept == step && !kept.is_empty() {
                kept.copy_from_slice(scores);
            }
        };
        keep(Kept::Product, scores);
        if self.cap > 0.0 {
            scores.iter_mut().for_each(|s| *s = self.cap * tanh(*s / self.cap));
        }
        keep(Kept::Capped, scores);
        scores.iter_mut().zip(bias).for_each(|(s, b)| *s += b);
        keep(Kept::Biased, scores);
        // A query for which no key counts has zero weights.
        if bias.iter().all(|&b| b == f32::NEG_INFINITY) {
            scores.fill(0.0)
        } else {
            let most = scores.iter().fold(f32::NEG_INFINITY, |most, &s| if s > most { s } else { most });
            let most = if most == f32::NEG_INFINITY { 0.0 } else { most };
            scores.iter_mut().for_each(|s| *s = exp(*s - most));
            let sum = super::softmax::sum(scores.len(), |i| scores[i]);
            let by = if sum == 0.0 { 1.0 } else { (1.0 / sum) as f32 };
            scores.iter_mut().for_each(|s| *s *= by);
        }
        keep(Kept::Weights, scores);
    }

    /// Computes one head of one sample.
    fn head(&self, io: &Io<'_>, (batch, head): (usize, usize), out: Out<'_>, workspace: &mut [f32]) {
        let Attention { q, k, v, past, .. } = *self;
        let (rows, keys) = (q.sequence, self.keys());
        let of = head / (q.heads / k.heads);
        let (scores, rest) = workspace.split_at_mut(rows * keys);
        let (biases, room) = rest.split_at_mut(rows * keys);
        let queries = q.matrix(io.get(0), batch, head, true);
        let places = [(4, self.past_of(k), 0), (1, k, past)];
        for (operand, of_keys, first) in places.into_iter().filter(|(_, of_keys, _)| of_keys.sequence > 0) {
            let right = of_keys.matrix(io.get(operand), batch, of, true);
            let into = Into { row: keys, alpha: self.scale, add: false };
            let x = self.scores_of(of_keys.sequence);
            gemm::parallel(x, &queries, &right, scores.get_mut(first..).unwrap_or(&mut []), into, room);
        }
        chunks(biases, keys, least(keys), &|query, bias| self.bias(io, Row { batch, head, query }, bias));
        for (query, (scores, bias)) in scores.chunks_mut(keys).zip(biases.chunks(keys)).enumerate() {
            let kept = out.kept.get_mut(query * keys..(query + 1) * keys).unwrap_or(&mut []);
            self.weigh(scores, bias, kept);
        }
        let places = [(5, self.past_of(v), 0), (2, v, past)];
        let mut add = false;
        for (operand, of_values, first) in
            places.into_iter().filter(|(_, of_values, _)| of_values.sequence > 0)
        {
            let left = Matrix { data: scores.get(first..).unwrap_or(&[]), lane: keys, k: 1 };
            let right = of_values.matrix(io.get(operand), batch, of, false);
            let into = Into { row: out.row, alpha: 1.0, add };
            gemm::parallel(self.results_of(of_values.sequence), &left, &right, out.y, into, room);
            add = true;
        }
    }

    /// Writes past keys or values, followed by the new ones.
    fn present(&self, past: &[f32], new: &[f32], of: Heads, out: &mut [f32]) {
        let size = self.keys() * of.width;
        for (i, out) in out.chunks_mut(size.max(1)).enumerate() {
            let (batch, head) = (i / of.heads, i % of.heads);
            let (old, out) = out.split_at_mut(self.past * of.width);
            old.copy_from_slice(&past[i * old.len()..][..old.len()]);
            let (first, row) = of.place(batch, head);
            for (r, out) in out.chunks_mut(of.width.max(1)).enumerate() {
                out.copy_from_slice(&new[first + r * row..][..of.width]);
            }
        }
    }
}

/// The outputs of one head.
struct Out<'a> {
    /// The results, and the distance between their rows.
    y: &'a mut [f32],
    row: usize,
    /// The scores to be stored; empty if result 3 is unused.
    kept: &'a mut [f32],
}

/// `Attention(Q, K, V, mask, past K, past V, lengths → Y, present K, present V, scores)`.
///
/// # Source
/// Vaswani et al., *Attention Is All You Need*, arXiv:1706.03762; heads that share keys: Ainslie et al., *GQA*,
/// arXiv:2305.13245.
pub(crate) fn attention(spec: &Spec<'_>) -> Made {
    let a = Attention::new(spec)?;
    if spec.wants(3) && a.kept == Kept::Product && a.cap > 0.0 {
        return refuse("whether scores are kept before `softcap` is not defined alike; ask for another mode");
    }
    let scores = a.q.sequence.checked_mul(a.keys());
    let Some((scores, twice)) = scores.and_then(|scores| Some((scores, scores.checked_mul(2)?))) else {
        return refuse("the scores of a head are more than memory has addresses");
    };
    let workspace = twice + a.products();
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (y, [keys, values, kept]) = (io.take::<f32>(0), [1, 2, 3].map(|i| io.take::<f32>(i)));
        let workspace = io.workspace::<f32>();
        if a.keys() == 0 {
            return y.fill(0.0);
        }
        let results = Heads { width: a.v.width, ..a.q };
        for i in 0..a.batch * a.q.heads {
            let (batch, head) = (i / a.q.heads, i % a.q.heads);
            let (first, row) = results.place(batch, head);
            let kept = kept.get_mut(i * scores..(i + 1) * scores).unwrap_or(&mut []);
            let out = Out { y: y.get_mut(first..).unwrap_or(&mut []), row, kept };
            a.head(&io, (batch, head), out, workspace);
        }
        a.present(io.get(4), io.get(1), a.k, keys);
        a.present(io.get(5), io.get(2), a.v, values);
    });
    Ok(kernel.with_workspace::<f32>(workspace))
}
