//! Reductions. Floats are summed in double precision, in a fixed order.

use super::{Made, chunks, least};
use crate::element::{Number, Stored, dispatch};
use crate::kernel::{Io, Kernel};
use crate::meaning::{Reduction, Rows};
use crate::spec::{Spec, SpecError, refuse};
use crate::vector::{LANES, merged, vectorized};

/// A fold of elements into one: the first running value, its step, the merge of two running values, and the final computation.
#[derive(Clone, Copy)]
struct Fold<A, B> {
    first: f64,
    step: A,
    merge: B,
    finish: fn(f64, usize) -> f64,
}

/// The reduction over the axes that an operand or an attribute names.
pub fn reduction(spec: &Spec<'_>) -> Result<Reduction, SpecError> {
    let dims = spec.dims(0)?;
    let listed = if spec.knows("axes") { spec.ints("axes")? } else { None };
    let axes = match listed {
        Some(axes) => Some(axes.to_vec()),
        None => spec.constants(1)?,
    };
    let axes = axes.unwrap_or_default();
    let mut reduced = vec![axes.is_empty() && !spec.flag("noop_with_empty_axes")?; dims.len()];
    for axis in axes {
        reduced[spec.axis(axis, dims.len())?] = true;
    }
    let plan = Reduction::new(&dims, &reduced);
    spec.expect_result(0, spec.element(0)?)?;
    spec.expect_result_count(0, plan.kept())?;
    Ok(plan)
}

/// Number of columns that are summed at a time.
const COLUMNS: usize = 256;

/// Number of results, each of a contiguous row, that are computed by one call.
const ROWS: usize = 16;

vectorized! {
    if S::Math::IS_VECTORIZED;
    /// Folds a run of a row into interleaved values.
    fn fold_run<S: Element>(row: &[S], values: &mut [f64; LANES], step: impl Fn(f64, f64) -> f64) {
        let (chunks, rest) = row.as_chunks::<LANES>();
        for chunk in chunks {
            values.iter_mut().zip(chunk).for_each(|(value, e)| *value = step(*value, e.read().to_f64()));
        }
        values.iter_mut().zip(rest).for_each(|(value, e)| *value = step(*value, e.read().to_f64()));
    }
}

vectorized! {
    if S::Math::IS_VECTORIZED;
    /// Folds a row of some columns into the values of these columns.
    fn fold_columns<S: Element>(row: &[S], values: &mut [f64; COLUMNS], step: impl Fn(f64, f64) -> f64) {
        values.iter_mut().zip(row).for_each(|(value, e)| *value = step(*value, e.read().to_f64()));
    }
}

/// A storage type of numbers.
trait Element: Stored<Math: Number> {}

impl<S: Stored<Math: Number>> Element for S {}

fn run<S: Element>(
    plan: &Reduction,
    x: &[S],
    out: &mut [S],
    Fold { first, step, merge, finish }: Fold<
        impl Fn(f64, f64) -> f64 + Sync,
        impl Fn(f64, f64) -> f64 + Sync,
    >,
) {
    let n = plan.reduced();
    let (inner, together) = plan.inner();
    if together {
        chunks(out, ROWS, least(ROWS * n), &|i, out| {
            for (i, out) in (i * ROWS..).zip(out) {
                let base = plan.first(i);
                let mut values = [first; LANES];
                for run in 0..n / inner.max(1) {
                    fold_run(&x[base + plan.run(run)..][..inner], &mut values, &step);
                }
                *out = S::write(S::Math::of_f64(finish(merged(values, &merge), n)));
            }
        });
        return;
    }
    let width = inner.max(1);
    chunks(out, width, least(width * n), &|i, out| {
        let base = plan.first(i);
        let part = |c: usize, out: &mut [S]| {
            let mut values = [first; COLUMNS];
            for run in 0..n {
                let row = &x[base + plan.run(run) + c * COLUMNS..][..out.len()];
                fold_columns(row, &mut values, &step);
            }
            out.iter_mut().zip(&values).for_each(|(o, &v)| *o = S::write(S::Math::of_f64(finish(v, n))));
        };
        chunks(out, COLUMNS, least(COLUMNS * n), &part);
    });
}

/// Integers are folded as integers, one result after the other.
fn integer<T: Number>(plan: Reduction, first: T, step: fn(T, T) -> T, mean: bool) -> Kernel {
    Kernel::new(move |mut io: Io<'_>| {
        let (x, out) = (io.get::<T>(0), io.take::<T>(0));
        let (inner, together) = plan.inner();
        let n = plan.reduced();
        for (i, out) in out.iter_mut().enumerate() {
            let mut value = first;
            if together {
                for run in 0..n / inner.max(1) {
                    let row = &x[plan.first(i) + plan.run(run)..][..inner];
                    value = row.iter().fold(value, |a, &x| step(a, x));
                }
            } else {
                let (row, column) = (i / inner.max(1), i % inner.max(1));
                value = (0..n).fold(value, |a, run| step(a, x[plan.first(row) + column + plan.run(run)]));
            }
            *out = if mean { value.over(T::of_f64(n as f64)) } else { value };
        }
    })
}

/// Defines constructors: for floats the first running value, step, merge and finish; for integers, if there is a kernel, the
/// first value, the step, and whether the result is divided by the number of values.
macro_rules! reductions {
    ($($name:ident: $first:expr, $step:expr, $merge:expr, $finish:expr
       $(, integers $whole:ident $with:ident $mean:literal)?;)*) => { $(
        pub(crate) fn $name(spec: &Spec<'_>) -> Made {
            let plan = reduction(spec)?;
            $(if !spec.element(0)?.is_float() {
                return dispatch!(integer spec.element(0)?, T => {
                    Ok(integer::<T>(plan, <T as Number>::$whole, <T as Number>::$with, $mean))
                });
            })?
            dispatch!(float spec.element(0)?, T => Ok(Kernel::new(move |mut io: Io<'_>| {
                let fold = Fold { first: $first, step: $step, merge: $merge, finish: $finish };
                run::<T>(&plan, io.get(0), io.take(0), fold);
            })))
        }
    )* };
}

fn larger(a: f64, b: f64) -> f64 {
    a.larger(b)
}

fn smaller(a: f64, b: f64) -> f64 {
    a.smaller(b)
}

reductions! {
    sum: 0.0, |a, x| a + x, |a, b| a + b, |a, _| a, integers ZERO plus false;
    mean: 0.0, |a, x| a + x, |a, b| a + b, |a, n| a / n as f64, integers ZERO plus true;
    max: f64::NEG_INFINITY, larger, larger, |a, _| a, integers LEAST larger false;
    min: f64::INFINITY, smaller, smaller, |a, _| a, integers LARGEST smaller false;
    product: 1.0, |a, x| a * x, |a, b| a * b, |a, _| a, integers ONE times false;
    l1: 0.0, |a, x: f64| a + x.abs(), |a, b| a + b, |a, _| a;
    l2: 0.0, |a, x| a + x * x, |a, b| a + b, |a, _| a.sqrt();
    sum_square: 0.0, |a, x| a + x * x, |a, b| a + b, |a, _| a;
    log_sum: 0.0, |a, x| a + x, |a, b| a + b, |a, _| a.ln();
}

/// `ReduceLogSumExp`: relative to the largest element, so that nothing overflows.
pub(crate) fn log_sum_exp(spec: &Spec<'_>) -> Made {
    let plan = reduction(spec)?;
    spec.expect_floats([0])?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (x, out) = (io.get::<f32>(0), io.take::<f32>(0));
        let (inner, together) = plan.inner();
        let n = plan.reduced();
        let runs = if together { n / inner.max(1) } else { n };
        chunks(out, 1, least(n), &|i, out| {
            let (first, width) =
                if together { (plan.first(i), inner) } else { (plan.first(i / inner) + i % inner, 1) };
            let elements = || (0..runs).flat_map(|run| &x[first + plan.run(run)..][..width]);
            let largest = elements().fold(f32::NEG_INFINITY, |a, &x| a.larger(x));
            let shift = if largest.is_finite() { f64::from(largest) } else { 0.0 };
            let sum: f64 = elements().map(|&x| (f64::from(x) - shift).exp()).sum();
            out[0] = (sum.ln() + shift) as f32;
        });
    }))
}

/// `ArgMax` and `ArgMin`: the first index, or the last one if the attribute says so. NaN is both the largest and the smallest
/// element, as in `ReduceMax` and `ReduceMin`.
pub fn arg(spec: &Spec<'_>, largest: bool) -> Made {
    let dims = spec.dims(0)?;
    let rows = Rows::at(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let last = spec.flag("select_last_index")?;
    if rows.axis == 0 {
        return refuse("the axis has no elements");
    }
    spec.expect_result(0, lmsc_ir::ElementType::Int64)?;
    spec.expect_result_count(0, rows.outer * rows.inner)?;
    fn run<S: Stored<Math: Number>>(rows: Rows, largest: bool, last: bool) -> Kernel {
        Kernel::new(move |mut io: Io<'_>| {
            let (x, out) = (io.get::<S>(0), io.take::<i64>(0));
            for (i, out) in out.iter_mut().enumerate() {
                let base = i / rows.inner * rows.axis * rows.inner + i % rows.inner;
                let at = |k: usize| x[base + k * rows.inner].read();
                let mut best = 0;
                for k in 1..rows.axis {
                    let (new, old) = (at(k), at(best));
                    let [is_new_none, is_old_none] = [new, old].map(|x| x.partial_cmp(&x).is_none());
                    let is_better =
                        if largest { new > old } else { new < old } || (is_new_none && !is_old_none);
                    if is_better || (last && (new == old || is_new_none)) {
                        best = k;
                    }
                }
                *out = best as i64;
            }
        })
    }
    dispatch!(number spec.element(0)?, T => Ok(run::<T>(rows, largest, last)))
}

/// The rows of `TopK`, and the number of elements chosen from each.
pub fn chosen(spec: &Spec<'_>) -> Result<(Rows, usize), SpecError> {
    let dims = spec.dims(0)?;
    let axis = spec.axis(spec.int("axis")?, dims.len())?;
    let rows = Rows::at(&dims, axis);
    let Some(result) = [0, 1].into_iter().find(|&result| spec.wants(result)) else { return Ok((rows, 0)) };
    let mut to = spec.result_dims(result)?;
    let count = to.get(axis).copied().unwrap_or_default();
    if to.len() != dims.len() || count > rows.axis {
        return refuse(format!(
            "result {result} does not have up to {} elements along axis {axis}",
            rows.axis
        ));
    }
    to[axis] = rows.axis;
    if to != dims {
        return refuse(format!("result {result} differs from operand 0 in other axes than {axis}"));
    }
    let all = rows.outer * count * rows.inner;
    if spec.wants(0) {
        spec.expect_result(0, spec.element(0)?)?;
        spec.expect_result_count(0, all)?;
    }
    if spec.wants(1) {
        spec.expect_result(1, lmsc_ir::ElementType::Int64)?;
        spec.expect_result_count(1, all)?;
    }
    Ok((rows, count))
}

/// `TopK(X, k → Values, Indices)`: the largest or smallest elements in order, equal ones by index; NaN counts as larger than all
/// numbers. Each element is the best one after the previous one, so nothing is stored besides the results.
pub fn top(spec: &Spec<'_>) -> Made {
    let (rows, count) = chosen(spec)?;
    let largest = spec.flag("largest")?;
    fn run<S: Stored<Math: Number>>(rows: Rows, count: usize, largest: bool) -> Kernel {
        let is_number = |v: &S::Math| v.partial_cmp(v).is_some();
        let before = move |a: S::Math, b: S::Math| match (is_number(&a), is_number(&b)) {
            (true, true) => (largest && a > b) || (!largest && a < b),
            (false, true) => largest,
            (true, false) => !largest,
            (false, false) => false,
        };
        Kernel::new(move |mut io: Io<'_>| {
            let (x, values, indices) = (io.get::<S>(0), io.take::<S>(0), io.take::<i64>(1));
            for row in 0..rows.outer * rows.inner {
                let (outer, inner) = (row / rows.inner, row % rows.inner);
                let at = |k: usize| x[(outer * rows.axis + k) * rows.inner + inner].read();
                let mut last: Option<usize> = None;
                for rank in 0..count {
                    let is_behind = |k: usize| {
                        last.is_none_or(|last| {
                            before(at(last), at(k)) || (k > last && !before(at(k), at(last)))
                        })
                    };
                    let behind = (0..rows.axis).filter(|&k| is_behind(k));
                    let best = behind.reduce(|best, k| if before(at(k), at(best)) { k } else { best });
                    let best = best.expect("there are as many as are chosen");
                    let to = (outer * count + rank) * rows.inner + inner;
                    if let Some(value) = values.get_mut(to) {
                        *value = x[(outer * rows.axis + best) * rows.inner + inner];
                    }
                    if let Some(index) = indices.get_mut(to) {
                        *index = best as i64;
                    }
                    last = Some(best);
                }
            }
        })
    }
    dispatch!(number spec.element(0)?, T => Ok(run::<T>(rows, count, largest)))
}

/// `CumSum(x, axis)`, or `CumProd`.
pub fn cumulative(spec: &Spec<'_>, product: bool) -> Made {
    let dims = spec.dims(0)?;
    let Some(&[axis]) = spec.constants(1)?.as_deref() else { return refuse("operand 1 is not one integer") };
    let rows = Rows::at(&dims, spec.axis(axis, dims.len())?);
    spec.expect_result(0, spec.element(0)?)?;
    spec.expect_result_count(0, rows.outer * rows.axis * rows.inner)?;
    let (exclusive, reverse) = (spec.flag("exclusive")?, spec.flag("reverse")?);
    fn run<S: Stored<Math: Number>>(rows: Rows, product: bool, exclusive: bool, reverse: bool) -> Kernel {
        Kernel::new(move |mut io: Io<'_>| {
            let (x, out) = (io.get::<S>(0), io.take::<S>(0));
            for o in 0..rows.outer * rows.inner {
                let base = o / rows.inner * rows.axis * rows.inner + o % rows.inner;
                let mut sum = if product { S::Math::ONE } else { S::Math::ZERO };
                for k in 0..rows.axis {
                    let k = if reverse { rows.axis - 1 - k } else { k };
                    let at = base + k * rows.inner;
                    let before = sum;
                    let next = x[at].read();
                    sum = if product { sum.times(next) } else { sum.plus(next) };
                    out[at] = S::write(if exclusive { before } else { sum });
                }
            }
        })
    }
    dispatch!(number spec.element(0)?, T => Ok(run::<T>(rows, product, exclusive, reverse)))
}
