//! Matrix products and contractions.

use lmsc_ir::words::count;
use lmsc_ir::{ElementType, TensorType};

use super::{Answer, Cx, Refusal, broadcast, broadcast_or, extent, one, show, wrong};

/// The extents of `a · b`, as in NumPy's `matmul`; they are those of the operands at `of`, possibly transposed.
fn multiplied(cx: &Cx<'_>, of: [usize; 2], a: &[u64], b: &[u64]) -> Result<Vec<u64>, Refusal> {
    let scalar = |i: usize| wrong(format!("{} is a scalar; a factor has at least one axis", cx.typed(of[i])));
    let Some((&inner_a, rest_a)) = a.split_last() else { return scalar(0) };
    let (inner_b, batch_b, columns) = match *b {
        [inner] => (inner, &[][..], None),
        [.., inner, columns] => (inner, &b[..b.len() - 2], Some(columns)),
        [] => return scalar(1),
    };
    if inner_a != inner_b {
        let (a, b) = (cx.typed(of[0]), cx.typed(of[1]));
        return wrong(format!(
            "{a} cannot be multiplied by {b}: the inner extents are {inner_a} and {inner_b}"
        ));
    }
    let (batch_a, rows) = match rest_a.split_last() {
        Some((&rows, batch)) => (batch, Some(rows)),
        None => (&[][..], None),
    };
    let mut dims = broadcast_or(&[batch_a, batch_b], |_, _| {
        let (a, b) = (cx.typed(of[0]), cx.typed(of[1]));
        format!("{a} cannot be multiplied by {b}: {} and {} do not broadcast", show(batch_a), show(batch_b))
    })?;
    dims.extend(rows);
    dims.extend(columns);
    Ok(dims)
}

/// Refuses factors whose elements differ in type.
fn same_elements(cx: &Cx<'_>) -> Result<(), Refusal> {
    if cx.tensor(0)?.element == cx.tensor(1)?.element {
        Ok(())
    } else {
        wrong(format!("{} and {} have elements of different types", cx.typed(0), cx.typed(1)))
    }
}

/// `MatMul`.
pub(super) fn matmul(cx: &Cx<'_>) -> Answer {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    same_elements(cx)?;
    one(a.element, multiplied(cx, [0, 1], &a.dims, &b.dims)?)
}

/// `MatMulInteger`.
pub(super) fn matmul_integer(cx: &Cx<'_>) -> Answer {
    one(ElementType::Int32, multiplied(cx, [0, 1], cx.dims(0)?, cx.dims(1)?)?)
}

/// `MatMulIntegerToFloat` and `DynamicQuantizeMatMul`.
pub(super) fn matmul_to_float(cx: &Cx<'_>) -> Answer {
    one(ElementType::Float, multiplied(cx, [0, 1], cx.dims(0)?, cx.dims(1)?)?)
}

/// `QLinearMatMul(a, scale, zero, b, scale, zero, y scale, y zero)`.
pub(super) fn qlinear_matmul(cx: &Cx<'_>) -> Answer {
    one(cx.tensor(7)?.element, multiplied(cx, [0, 3], cx.dims(0)?, cx.dims(3)?)?)
}

/// The extents of a factor, transposed as the flags say.
fn transposed(dims: &[u64], trans: bool, trans_batch: bool) -> Vec<u64> {
    let mut dims = dims.to_vec();
    let rank = dims.len();
    if trans_batch && rank >= 3 {
        // [batch…, rows, …] is stored as [rows, batch…, …].
        let rows = dims.remove(0);
        dims.insert(rank - 2, rows);
    }
    if trans && rank >= 2 {
        dims.swap(rank - 2, rank - 1);
    }
    dims
}

/// `com.microsoft.FusedMatMul` and `TransposeMatMul`.
pub(super) fn fused_matmul(cx: &Cx<'_>) -> Answer {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let batch = |name| Ok::<_, Refusal>(cx.knows(name) && cx.flag(name)?);
    let a_dims = transposed(&a.dims, cx.flag("transA")?, batch("transBatchA")?);
    let b_dims = transposed(&b.dims, cx.flag("transB")?, batch("transBatchB")?);
    one(a.element, multiplied(cx, [0, 1], &a_dims, &b_dims)?)
}

/// `Gemm`.
pub(super) fn gemm(cx: &Cx<'_>) -> Answer {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    if let Some(i) = [0, 1].into_iter().find(|&i| cx.dims(i).is_ok_and(|d| d.len() != 2)) {
        return wrong(format!("{} is no matrix", cx.typed(i)));
    }
    same_elements(cx)?;
    let dims = multiplied(
        cx,
        [0, 1],
        &transposed(&a.dims, cx.flag("transA")?, false),
        &transposed(&b.dims, cx.flag("transB")?, false),
    )?;
    if let Some(c) = cx.maybe(2)
        && broadcast(&[&dims, &c.dims]).ok().as_ref() != Some(&dims)
    {
        return wrong(format!("{} does not broadcast to the product's {}", cx.typed(2), show(&dims)));
    }
    one(a.element, dims)
}

/// `com.microsoft.MatMulNBits`: the extents of the packed operand are in attributes.
pub(super) fn matmul_bits(cx: &Cx<'_>) -> Answer {
    let a = cx.tensor(0)?;
    let mut dims = a.dims.clone();
    let n = extent(cx.int("N")?, || "attribute `N`".to_owned())?;
    match dims.last_mut() {
        Some(last) => *last = n,
        None => return wrong(format!("{} is a scalar", cx.typed(0))),
    }
    one(a.element, dims)
}

/// `Det`: the extents without the last two axes.
pub(super) fn determinant(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    match &*x.dims {
        [batch @ .., a, b] if a == b => one(x.element, batch),
        _ => wrong(format!("{} is no square matrix", cx.typed(0))),
    }
}

/// `Einsum`.
pub(super) fn einsum(cx: &Cx<'_>) -> Answer {
    let equation: String = cx.string("equation")?.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (&*equation, None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != cx.operand_count() {
        let (terms, operands) = (count(terms.len(), "term"), count(cx.operand_count(), "operand"));
        return wrong(format!("attribute `equation` is `{equation}`, with {terms} for {operands}"));
    }
    // Extent by letter, in alphabetical order; and the broadcast extents of `...`.
    let mut letters: std::collections::BTreeMap<char, (u64, u32)> = Default::default();
    let mut ellipsis: Option<Vec<u64>> = None;
    for (i, term) in terms.iter().enumerate() {
        let dims = cx.dims(i)?;
        let (head, tail) = term.split_once("...").unwrap_or((term, ""));
        let named = head.chars().count() + tail.chars().count();
        let fits = if term.contains("...") { named <= dims.len() } else { named == dims.len() };
        if !fits || !head.chars().chain(tail.chars()).all(|c| c.is_ascii_alphabetic()) {
            let operand = cx.typed(i);
            return wrong(format!(
                "attribute `equation` is `{equation}`, whose term `{term}` does not fit {operand}; expected one letter \
                 for each axis"
            ));
        }
        let (first, last) = (head.chars().count(), dims.len() - tail.chars().count());
        if term.contains("...") {
            ellipsis = Some(broadcast(&[ellipsis.as_deref().unwrap_or(&[]), &dims[first..last]])?);
        }
        let axes = (0..first).chain(last..dims.len());
        for (c, at) in head.chars().chain(tail.chars()).zip(axes) {
            let (extent, uses) = letters.entry(c).or_insert((dims[at], 0));
            *uses += 1;
            if *extent != dims[at] && *extent != 1 && dims[at] != 1 {
                let (other, operand) = (dims[at], cx.typed(i));
                return wrong(format!(
                    "`{c}` of attribute `equation`, `{equation}`, is {extent} and, in {operand}, {other}"
                ));
            }
            *extent = (*extent).max(dims[at]);
        }
    }
    let ellipsis = ellipsis.unwrap_or_default();
    let mut dims = Vec::new();
    match right {
        // Without a right side: letters that occur once, in alphabetical order, behind the broadcast extents.
        None => {
            dims.extend(&ellipsis);
            dims.extend(letters.values().filter(|(_, uses)| *uses == 1).map(|(extent, _)| extent));
        }
        Some(right) => {
            let (head, tail) = right.split_once("...").unwrap_or((right, ""));
            for (part, then) in [(head, right.contains("...")), (tail, false)] {
                for c in part.chars() {
                    match letters.get(&c) {
                        Some((extent, _)) => dims.push(*extent),
                        None => {
                            let c = format!("`{c}` of attribute `equation`, `{equation}`,");
                            return wrong(format!("{c} is in no operand"));
                        }
                    }
                }
                if then {
                    dims.extend(&ellipsis);
                }
            }
        }
    }
    one(cx.tensor(0)?.element, dims)
}

/// ONNX's `Attention(Q, K, V, mask, past K, past V)`: the result, all keys and values so far, the weights.
pub(super) fn attention(cx: &Cx<'_>) -> Answer {
    let (q, k, v) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let mismatch = || {
        let (q, k, v) = (cx.typed(0), cx.typed(1), cx.typed(2));
        let past = cx.operand(4).map_or(String::new(), |_| format!(", past keys {}", cx.typed(4)));
        Refusal::Wrong(format!("queries {q}, keys {k} and values {v} do not fit one another{past}").into())
    };
    // `[batch, heads, sequence, width]` of an operand whose heads may be part of the last axis.
    let headed = |index: usize, heads: &str| match *cx.dims(index)? {
        [batch, heads, sequence, width] => Ok([batch, heads, sequence, width]),
        [batch, sequence, width] => match cx.int_if_any(heads)? {
            Some(h @ 1..) if width.is_multiple_of(h as u64) => {
                Ok([batch, h as u64, sequence, width / h as u64])
            }
            Some(h) => wrong(format!(
                "attribute `{heads}` is {h}, which does not divide the last axis of {}",
                cx.typed(index)
            )),
            None => {
                wrong(format!("attribute `{heads}` is missing, and {} has no axis of heads", cx.typed(index)))
            }
        },
        _ => Err(mismatch()),
    };
    let [batch, q_heads, rows, q_width] = headed(0, "q_num_heads")?;
    let [k_batch, kv_heads, columns, k_width] = headed(1, "kv_num_heads")?;
    let [v_batch, v_heads, v_columns, v_width] = headed(2, "kv_num_heads")?;
    if [k_batch, v_batch] != [batch; 2] || q_width != k_width || v_heads != kv_heads || v_columns != columns {
        return Err(mismatch());
    }
    let past = match cx.maybe(4).map(|t| &*t.dims) {
        Some(&[_, _, past, _]) => past,
        Some(_) => return Err(mismatch()),
        None => 0,
    };
    let Some(total) = past.checked_add(columns) else { return Err(mismatch()) };
    let dims = match q.dims.len() {
        3 => vec![batch, rows, super::result_extent(2, i128::from(q_heads) * i128::from(v_width))?],
        _ => vec![batch, q_heads, rows, v_width],
    };
    Ok(vec![
        Some(TensorType::new(q.element, dims).into()),
        Some(TensorType::new(k.element, [batch, kv_heads, total, k_width]).into()),
        Some(TensorType::new(v.element, [batch, kv_heads, total, v_width]).into()),
        Some(TensorType::new(q.element, [batch, q_heads, rows, total]).into()),
    ])
}

/// Refuses queries, keys and values, operands `first` to `first + 2`, that do not fit one another, and a mask that is not
/// broadcast to the scores; returns the extents `[batch, heads, rows, width of values]` of the result.
fn attended(cx: &Cx<'_>, first: usize, mask: usize) -> Result<[u64; 4], Refusal> {
    let headed = |index: usize| match *cx.dims(index)? {
        [batch, heads, rows, width] => Ok([batch, heads, rows, width]),
        _ => wrong(format!("{} has no four axes: batch, heads, rows and width", cx.typed(index))),
    };
    let [q, k, v] = [headed(first)?, headed(first + 1)?, headed(first + 2)?];
    let ([batch, heads, rows, width], [_, groups, keys, _]) = (q, k);
    let shares = heads == groups || groups > 0 && heads.is_multiple_of(groups);
    if k != [batch, groups, keys, width] || v[..3] != k[..3] || !shares {
        let [q, k, v] = [0, 1, 2].map(|i| cx.typed(first + i));
        return wrong(format!("queries {q}, keys {k} and values {v} do not fit one another"));
    }
    if let Some(own) = cx.maybe(mask) {
        let scores = [batch, heads, rows, keys];
        let fits = |d: usize| {
            own.dims[own.dims.len() - 1 - d] == 1 || own.dims[own.dims.len() - 1 - d] == scores[3 - d]
        };
        if own.dims.len() > 4 || !(0..own.dims.len()).all(fits) {
            return wrong(format!("{} is not broadcast to scores of {}", cx.typed(mask), show(&scores)));
        }
    }
    Ok([batch, heads, rows, v[3]])
}

/// `ai.lmsc.Attention(Q, K, V, mask)`: the result, and by row of scores the largest one and the sum of exponentials.
pub(super) fn tiled_attention(cx: &Cx<'_>) -> Answer {
    let dims = attended(cx, 0, 3)?;
    let statistic = || Some(TensorType::new(ElementType::Float, &dims[..3]).into());
    Ok(vec![Some(TensorType::new(cx.tensor(0)?.element, dims).into()), statistic(), statistic()])
}

/// `ai.lmsc.AttentionGrad(dY, Q, K, V, Y, maxima, sums, mask)`: the gradients of Q, K and V.
pub(super) fn tiled_attention_gradient(cx: &Cx<'_>) -> Answer {
    let dims = attended(cx, 1, 7)?;
    for (index, dims) in [(0, &dims[..]), (4, &dims), (5, &dims[..3]), (6, &dims[..3])] {
        if cx.dims(index)? != dims {
            return wrong(format!("{} does not have the extents {}", cx.typed(index), show(dims)));
        }
    }
    cx.like(&[1, 2, 3])
}
