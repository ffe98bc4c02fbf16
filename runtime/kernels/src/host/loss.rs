//! Losses over classes, and their gradients.

use lmsc_ir::ElementType;
use rayon::prelude::*;

use super::softmax::{forward_row, largest};
use super::{Made, least};
use crate::element::{Stored, dispatch};
use crate::kernel::{Io, Kernel};
use crate::math::exp;
use crate::spec::{Spec, SpecError, refuse};
use crate::vector::vectorized;

/// How the losses of all labels are combined.
#[derive(Clone, Copy, PartialEq)]
pub enum Total {
    /// Not at all.
    Each,
    /// The sum.
    Sum,
    /// The sum divided by the weights of the labels that count.
    Mean,
}

/// Extents and attributes that loss and gradient share: scores are `[batch, classes, positions…]`.
#[derive(Clone, Copy)]
pub struct Loss {
    /// Number of samples.
    pub batch: usize,
    /// Number of classes.
    pub classes: usize,
    /// Number of positions of a sample.
    pub positions: usize,
    /// How losses are combined.
    pub total: Total,
    /// The label that does not count.
    pub ignored: Option<i64>,
    /// The operands with labels (of type int32 if `narrow`, otherwise int64) and with weights of classes.
    pub labels: usize,
    /// Whether labels have 32 bits.
    pub narrow: bool,
    /// The operand with weights of classes.
    pub weights: Option<usize>,
}

impl Loss {
    /// Takes scores and labels from operands `scores` and `scores + 1`.
    pub fn new(spec: &Spec<'_>, scores: usize) -> Result<Loss, SpecError> {
        let weights = Some(scores + 2).filter(|&w| spec.has(w));
        spec.expect_floats([scores].into_iter().chain(weights))?;
        Loss::of_scores(spec, scores)
    }

    /// The same for scores of any type.
    fn of_scores(spec: &Spec<'_>, scores: usize) -> Result<Loss, SpecError> {
        let dims = spec.dims(scores)?;
        let [batch, classes, ..] = dims[..] else { return refuse("scores have fewer than two dimensions") };
        let positions: usize = dims[2..].iter().product();
        let labels = scores + 1;
        let weights = Some(labels + 1).filter(|&w| spec.has(w));
        let narrow = match spec.element(labels)? {
            ElementType::Int64 => false,
            ElementType::Int32 => true,
            other => return refuse(format!("labels are {other}; expected int32 or int64")),
        };
        if spec.dims(labels)?.iter().product::<usize>() != batch * positions {
            return refuse("there are not as many labels as rows of scores");
        }
        let total = match &*spec.string("reduction")? {
            "none" => Total::Each,
            "sum" => Total::Sum,
            "mean" => Total::Mean,
            other => {
                return refuse(format!("attribute `reduction` is `{other}`; expected none, sum or mean"));
            }
        };
        let mut ignored = if spec.knows("ignore_index") { spec.int_if_any("ignore_index")? } else { None };
        if spec.has(labels + 2) {
            ignored = spec.constants(labels + 2)?.and_then(|i| i.first().copied());
        }
        spec.expect_count(labels + 1, classes)?;
        spec.expect_count(labels + 2, 1)?;
        Ok(Loss { batch, classes, positions, total, ignored, labels, narrow, weights })
    }

    /// Number of elements of the loss.
    fn len(&self) -> usize {
        if self.total == Total::Each { self.rows() } else { 1 }
    }

    fn rows(&self) -> usize {
        self.batch * self.positions
    }

    /// The class of each row of scores with its weight, if the row counts.
    fn read<'a>(&self, io: &Io<'a>) -> impl Fn(usize) -> Option<(usize, f32)> + use<'a> {
        let (wide, narrow) = if self.narrow {
            (&[][..], io.get::<i32>(self.labels))
        } else {
            (io.get::<i64>(self.labels), &[][..])
        };
        let weights = self.weights.map_or(&[][..], |w| io.get::<f32>(w));
        let Loss { classes, ignored, .. } = *self;
        move |row| {
            let label = wide.get(row).copied().or_else(|| narrow.get(row).map(|&l| i64::from(l)))?;
            let class = usize::try_from(label).ok().filter(|&c| c < classes && Some(label) != ignored)?;
            Some((class, weights.get(class).copied().unwrap_or(1.0)))
        }
    }

    /// Whether each label is a class, or the one that does not count.
    fn check(&self, operands: &[&[u8]]) -> Result<(), String> {
        let bytes = operands.get(self.labels).copied().unwrap_or_default();
        let is_label = |label: i64| {
            Some(label) == self.ignored || usize::try_from(label).is_ok_and(|class| class < self.classes)
        };
        let wrong = if bytes.is_empty() {
            None
        } else if self.narrow {
            bytemuck::cast_slice::<_, i32>(bytes).iter().map(|&l| i64::from(l)).find(|&l| !is_label(l))
        } else {
            bytemuck::cast_slice::<_, i64>(bytes).iter().copied().find(|&l| !is_label(l))
        };
        wrong.map_or(Ok(()), |label| Err(no_class(label, self.classes)))
    }

    /// The sum of the weights of the labels that count.
    fn weight(&self, of: &impl Fn(usize) -> Option<(usize, f32)>) -> f64 {
        (0..self.rows()).filter_map(of).map(|(_, w)| f64::from(w)).sum()
    }

    /// Offset of a row's score of class 0.
    fn first(&self, row: usize) -> usize {
        row / self.positions * self.classes * self.positions + row % self.positions
    }

    /// Writes the loss, given the log-probability of a row's class.
    fn write(
        &self,
        out: &mut [f32],
        log: impl Fn(usize, usize) -> f32,
        of: &impl Fn(usize) -> Option<(usize, f32)>,
    ) {
        let each = |row: usize| of(row).map_or(0.0, |(class, weight)| -log(row, class) * weight);
        if self.total == Total::Each {
            out.iter_mut().enumerate().for_each(|(row, out)| *out = each(row));
            return;
        }
        let sum: f64 = (0..self.rows()).map(|row| f64::from(each(row))).sum();
        out[0] = if self.total == Total::Mean { sum / self.weight(of) } else { sum } as f32;
    }
}

/// The message about a label that is out of range.
pub fn no_class(label: i64, classes: usize) -> String {
    format!("label {label} is out of range for {classes} classes")
}

/// `SoftmaxCrossEntropyLoss(scores, labels, weights) → loss, log-probabilities`.
pub(crate) fn cross_entropy(spec: &Spec<'_>) -> Made {
    let loss = Loss::new(spec, 0)?;
    let wants_log = spec.wants(1);
    spec.expect_float_result(0, loss.len())?;
    spec.expect_float_result(1, loss.rows() * loss.classes)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let scores = io.get::<f32>(0);
        let of = loss.read(&io);
        let (out, log) = (io.take::<f32>(0), io.take::<f32>(1));
        let Loss { classes, positions, .. } = loss;
        if wants_log && positions == 1 && classes > 0 {
            let rows = log.par_chunks_mut(classes).zip(scores.par_chunks(classes));
            rows.with_min_len(least(8 * classes)).for_each(|(out, x)| forward_row(x, out, true));
        } else if wants_log && classes > 0 {
            let size = classes * positions;
            let samples = log.par_chunks_mut(size).zip(scores.par_chunks(size));
            samples.with_min_len(least(8 * size)).for_each(|(out, x)| {
                for p in 0..positions {
                    let total = log_sum(x, p, classes, positions);
                    (0..classes).for_each(|c| out[c * positions + p] = x[c * positions + p] - total);
                }
            });
        }
        let log: &[f32] = log;
        let of_row = |row: usize, class: usize| {
            let at = loss.first(row) + class * positions;
            if log.is_empty() {
                scores[at] - log_sum(scores, loss.first(row), classes, positions)
            } else {
                log[at]
            }
        };
        loss.write(out, of_row, &of);
    })
    .checked(move |operands| loss.check(operands)))
}

/// The logarithm of the sum of exponentials of a row.
fn log_sum(x: &[f32], first: usize, classes: usize, stride: usize) -> f32 {
    let row = || (0..classes).map(|c| x[first + c * stride]);
    let most = if stride == 1 {
        largest(&x[first..first + classes])
    } else {
        row().fold(f32::NEG_INFINITY, f32::max)
    };
    let sum: f64 = row().map(|x| f64::from(exp(x - most))).sum();
    most + sum.ln() as f32
}

/// `SoftmaxCrossEntropyLossGrad(dloss, log-probabilities, labels, weights) → dscores`.
pub(crate) fn cross_entropy_grad(spec: &Spec<'_>) -> Made {
    // Operand 5 is a bias that is added to the gradient.
    if spec.has(5) {
        return refuse("operand 5, what is added to the gradient, is not supported");
    }
    let is_short = matches!(spec.element(1)?, ElementType::Float16 | ElementType::Bfloat16);
    if is_short && !spec.has(3) && spec.element(0)? == spec.element(1)? {
        let loss = Loss::of_scores(spec, 1)?;
        return dispatch!(@ spec.element(1)?, T, gradient::<T>(spec, loss), [Float16 half::f16, Bfloat16 half::bf16]);
    }
    gradient::<f32>(spec, Loss::new(spec, 1)?)
}

/// The gradient for scores that are stored as `T`; so is the gradient of the loss.
fn gradient<T: Stored<Math = f32>>(spec: &Spec<'_>, loss: Loss) -> Made {
    spec.need(0)?;
    spec.expect(0, spec.element(1)?)?;
    spec.expect_count(0, loss.len())?;
    spec.expect_result(0, spec.element(1)?)?;
    spec.expect_result_count(0, loss.rows() * loss.classes)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (dloss, log) = (io.get::<T>(0), io.get::<T>(1));
        let of = loss.read(&io);
        let Loss { classes, positions, total, .. } = loss;
        let divisor = if total == Total::Mean { loss.weight(&of) as f32 } else { 1.0 };
        let out = io.take::<T>(0);
        let size = classes * positions;
        if size == 0 {
            return;
        }
        let samples = out.par_chunks_mut(size).zip(log.par_chunks(size)).enumerate();
        samples.with_min_len(least(8 * size)).for_each(|(n, (out, log))| {
            for p in 0..positions {
                let row = n * positions + p;
                let Some((class, weight)) = of(row) else {
                    (0..classes).for_each(|c| out[c * positions + p] = T::write(0.0));
                    continue;
                };
                let d = if total == Total::Each { dloss[row] } else { dloss[0] };
                let scale = if divisor == 0.0 { 0.0 } else { d.read() * weight / divisor };
                if positions == 1 {
                    scaled_exponentials(log, out, scale);
                } else {
                    (0..classes).for_each(|c| {
                        out[c * positions + p] = T::write(exp(log[c * positions + p].read()) * scale);
                    });
                }
                let at = class * positions + p;
                out[at] = T::write(exp(log[at].read()) * scale - scale);
            }
        });
    })
    .checked(move |operands| loss.check(operands)))
}

vectorized! {
    /// `out` = exp(x) · factor.
    fn scaled_exponentials<T: Stored<Math = f32>>(x: &[T], out: &mut [T], factor: f32) {
        out.iter_mut().zip(x).for_each(|(o, x)| *o = T::write(exp(x.read()) * factor));
    }
}

/// `NegativeLogLikelihoodLoss(log-probabilities, labels, weights) → loss`.
pub(crate) fn negative_log_likelihood(spec: &Spec<'_>) -> Made {
    let loss = Loss::new(spec, 0)?;
    spec.expect_float_result(0, loss.len())?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let log = io.get::<f32>(0);
        let of = loss.read(&io);
        loss.write(io.take(0), |row, class| log[loss.first(row) + class * loss.positions], &of);
    })
    .checked(move |operands| loss.check(operands)))
}
