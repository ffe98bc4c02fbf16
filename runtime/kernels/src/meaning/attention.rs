//! Attention by tiles: `ai.lmsc.Attention` and `ai.lmsc.AttentionGrad`.

use lmsc_ir::ElementType;

use super::{count, strides};
use crate::spec::{Spec, SpecError, refuse};

/// The operand that is added to scores, or that says which scores count.
#[derive(Clone, Copy, Debug)]
pub struct ScoreMask {
    /// The operand.
    pub operand: usize,
    /// Whether its elements are truth values; a score whose element is false does not count.
    pub is_truth: bool,
    /// Strides along batch, heads, queries and keys; 0 where it is broadcast.
    pub strides: [usize; 4],
}

impl ScoreMask {
    fn new(spec: &Spec<'_>, operand: usize, extents: [usize; 4]) -> Result<Option<ScoreMask>, SpecError> {
        if !spec.has(operand) {
            return Ok(None);
        }
        let is_truth = spec.element(operand)? == ElementType::Bool;
        if !is_truth {
            spec.expect_floats([operand])?;
        }
        let dims = spec.dims(operand)?;
        let unfit = || {
            refuse(format!(
                "operand {operand}, the mask, has extents {dims:?}, which do not broadcast to {extents:?}"
            ))
        };
        let Some(first) = extents.len().checked_sub(dims.len()) else { return unfit() };
        let mut found = [0; 4];
        for (d, (&extent, stride)) in dims.iter().zip(strides(&dims)).enumerate() {
            match extent {
                1 => {}
                _ if extent == extents[first + d] => found[first + d] = stride,
                _ => return unfit(),
            }
        }
        Ok(Some(ScoreMask { operand, is_truth, strides: found }))
    }
}

/// Extents and attributes that attention and its gradient share. Queries are `[batch, heads, rows, width]`, keys
/// `[batch, groups, keys, width]`, values and results are `value_width` wide. Neighbouring heads share the keys of a group.
#[derive(Clone, Copy, Debug)]
pub struct TiledAttention {
    /// Number of samples.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub groups: usize,
    /// Queries of a head.
    pub rows: usize,
    /// Keys of a head.
    pub keys: usize,
    /// Elements of a query and of a key.
    pub width: usize,
    /// Elements of a value.
    pub value_width: usize,
    /// Factor of the products of queries and keys.
    pub scale: f32,
    /// Whether query `i` sees only the keys up to `i`.
    pub is_causal: bool,
    /// The mask, if there is one.
    pub mask: Option<ScoreMask>,
}

impl TiledAttention {
    /// `Attention(Q, K, V, mask → Y, maxima, sums)`.
    pub fn forward(spec: &Spec<'_>) -> Result<TiledAttention, SpecError> {
        let all = TiledAttention::new(spec, 0, 3)?;
        spec.expect_float_result(0, all.statistics().saturating_mul(all.value_width))?;
        (1..3).try_for_each(|result| spec.expect_float_result(result, all.statistics()))?;
        Ok(all)
    }

    /// `AttentionGrad(dY, Q, K, V, Y, maxima, sums, mask → dQ, dK, dV)`.
    pub fn gradient(spec: &Spec<'_>) -> Result<TiledAttention, SpecError> {
        let all = TiledAttention::new(spec, 1, 7)?;
        spec.expect_floats([0, 4, 5, 6])?;
        let result = [all.batch, all.heads, all.rows, all.value_width];
        for (operand, dims) in [(0, &result[..]), (4, &result), (5, &result[..3]), (6, &result[..3])] {
            spec.need(operand)?;
            spec.expect_dims(operand, dims)?;
        }
        for result in 0..3 {
            spec.expect_float_result(result, count(&spec.dims(1 + result)?))?;
        }
        Ok(all)
    }

    /// Queries, keys and values are operands `first` to `first + 2`.
    fn new(spec: &Spec<'_>, first: usize, mask: usize) -> Result<TiledAttention, SpecError> {
        spec.expect_floats(first..first + 3)?;
        let headed = |operand: usize| match spec.dims(operand)?[..] {
            [batch, heads, rows, width] => Ok([batch, heads, rows, width]),
            ref dims => refuse(format!("operand {operand} has extents {dims:?}; expected four")),
        };
        let [q, k, v] = [headed(first)?, headed(first + 1)?, headed(first + 2)?];
        let ([batch, heads, rows, width], [_, groups, keys, _]) = (q, k);
        let fits = k == [batch, groups, keys, width]
            && v == [batch, groups, keys, v[3]]
            && (heads == groups || groups > 0 && heads % groups == 0);
        if !fits {
            return refuse(format!("queries {q:?}, keys {k:?} and values {v:?} do not fit one another"));
        }
        Ok(TiledAttention {
            batch,
            heads,
            groups,
            rows,
            keys,
            width,
            value_width: v[3],
            scale: spec.float_if_any("scale")?.unwrap_or_else(|| 1.0 / (width as f32).sqrt()),
            is_causal: spec.flag("is_causal")?,
            mask: ScoreMask::new(spec, mask, [batch, heads, rows, keys])?,
        })
    }

    /// Number of rows of scores, each of which has a largest score and a sum.
    pub fn statistics(&self) -> usize {
        count(&[self.batch, self.heads, self.rows])
    }

    /// Number of heads that share keys.
    pub fn sharing(&self) -> usize {
        self.heads.checked_div(self.groups).unwrap_or(1)
    }
}
