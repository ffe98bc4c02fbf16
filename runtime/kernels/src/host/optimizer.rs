//! Optimizers and gradient accumulators.
//!
//! The elements of a sequence of tensors are contiguous, one tensor behind the other, so one loop serves sequences too.

use super::{Made, each, movement};
use crate::kernel::{Io, Kernel};
use crate::spec::{Spec, SpecError, refuse};
use crate::vector::vectorized;

/// State that an optimizer updates: an operand, and the result that is its new value.
#[derive(Clone, Copy)]
struct State {
    operand: usize,
    result: usize,
    in_place: bool,
}

impl State {
    /// Refuses a new value whose size differs from that of the old one, or from that of operand `like`.
    fn new(spec: &Spec<'_>, operand: usize, result: usize, like: usize) -> Result<State, SpecError> {
        let size = |ty: &lmsc_ir::Type| ty.byte_size();
        let given = |i: usize| spec.operands.get(i).copied().flatten().map(|o| o.ty);
        let (Some(own), Some(other)) = (given(operand), given(like)) else {
            return refuse(format!("operand {operand} or {like} is missing"));
        };
        let new = spec.results.get(result).copied().flatten();
        if size(own) != size(other) || new.is_some_and(|new| size(new) != size(own)) {
            let new = new.map_or(String::new(), |new| format!(", result {result} is {new}"));
            return refuse(format!(
                "operand {operand} is {own}, operand {like} is {other}{new}; expected one size"
            ));
        }
        Ok(State { operand, result, in_place: spec.is_in_place(operand, result) })
    }

    /// The result, initialized with the old value.
    fn take<'a>(self, io: &mut Io<'a>) -> &'a mut [f32] {
        let out = io.take::<f32>(self.result);
        if !self.in_place && !out.is_empty() {
            movement::copy(io.get(self.operand), out);
        }
        out
    }
}

/// Refuses operands, tensors or sequences, that are not `float`.
fn expect_float(spec: &Spec<'_>, operands: impl IntoIterator<Item = usize>) -> Result<(), SpecError> {
    for operand in operands {
        match spec.operands.get(operand).and_then(|o| o.as_ref()).map(|o| o.ty) {
            Some(lmsc_ir::Type::Sequence(list)) => {
                if let Some(other) = list.iter().find(|t| t.element != lmsc_ir::ElementType::Float) {
                    return refuse(format!("operand {operand} holds {other}; this kernel takes float"));
                }
            }
            _ => spec.expect_floats([operand])?,
        }
        if !spec.has(operand) {
            return refuse(format!("operand {operand} is missing"));
        }
    }
    Ok(())
}

/// Runs `f(w, g, m, v)` for each element, on all threads.
fn each4(
    w: &mut [f32],
    g: &[f32],
    m: &mut [f32],
    v: &mut [f32],
    f: impl Fn(&mut f32, f32, &mut f32, &mut f32) + Sync,
) {
    use rayon::prelude::*;
    vectorized! {
        fn part(w: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32], f: impl Fn(&mut f32, f32, &mut f32, &mut f32)) {
            for (((w, m), v), &g) in w.iter_mut().zip(m).zip(v).zip(g) {
                f(w, g, m, v);
            }
        }
    }
    let size = super::GRAIN;
    let state = w.par_chunks_mut(size).zip(m.par_chunks_mut(size)).zip(v.par_chunks_mut(size));
    state.zip(g.par_chunks(size)).for_each(|(((w, m), v), g)| part(w, g, m, v, &f));
}

/// Runs `f(w, g, m)` for each element.
fn each3(w: &mut [f32], g: &[f32], m: &mut [f32], f: impl Fn(&mut f32, f32, &mut f32)) {
    w.iter_mut().zip(m).zip(g).for_each(|((w, m), &g)| f(w, g, m));
}

/// The attributes of an AdamW optimizer.
#[derive(Clone, Copy)]
pub struct AdamW {
    /// Decay of the mean of gradients.
    pub alpha: f32,
    /// Decay of the mean of their squares.
    pub beta: f32,
    /// Added to the root of the mean of squares.
    pub epsilon: f32,
    /// Decay of weights.
    pub decay: f32,
    /// Whether the means are corrected for their zero start.
    pub corrects: bool,
    /// Whether weights decay before the step, as in PyTorch, or after it, as in Hugging Face's transformers.
    pub decays_first: bool,
}

impl AdamW {
    /// From the attributes.
    pub fn new(spec: &Spec<'_>) -> Result<AdamW, SpecError> {
        Ok(AdamW {
            alpha: spec.float("alpha")?,
            beta: spec.float("beta")?,
            epsilon: spec.float("epsilon")?,
            decay: spec.float("weight_decay")?,
            corrects: spec.flag("correct_bias")?,
            decays_first: spec.int("adam_mode")? == 0,
        })
    }

    fn run(self, rate: f32, step: i64, [w, m, v]: [&mut [f32]; 3], g: &[f32]) {
        let AdamW { alpha, beta, epsilon, decay, .. } = self;
        let correction =
            |base: f32| if self.corrects { 1.0 - f64::from(base).powf(step as f64) } else { 1.0 };
        let (first, second) = (correction(alpha), correction(beta));
        let moments = |g: f32, m: &mut f32, v: &mut f32| {
            *m = alpha * *m + (1.0 - alpha) * g;
            *v = beta * *v + (1.0 - beta) * g * g;
        };
        if self.decays_first {
            let (rate_first, root) = ((f64::from(rate) / first) as f32, second.sqrt() as f32);
            each4(w, g, m, v, |w, g, m, v| {
                moments(g, m, v);
                *w *= 1.0 - rate * decay;
                *w -= rate_first * (*m / (v.sqrt() / root + epsilon));
            });
        } else {
            let corrected = (f64::from(rate) * second.sqrt() / first) as f32;
            each4(w, g, m, v, |w, g, m, v| {
                moments(g, m, v);
                *w -= corrected * (*m / (v.sqrt() + epsilon));
                *w -= rate * decay * *w;
            });
        }
    }
}

/// `AdamWOptimizer(rate, step, w, g, m, v)`: for one variable, with results w, m and v; or for sequences, with a flag as the
/// first result. For one variable a seventh operand and fourth result are the weight as the step reads it, in another precision.
pub(crate) fn adamw(spec: &Spec<'_>) -> Made {
    let attributes = AdamW::new(spec)?;
    expect_float(spec, [0, 2, 3, 4, 5])?;
    spec.expect(1, lmsc_ir::ElementType::Int64)?;
    let lead = usize::from(spec.op.domain() != lmsc_ir::LMSC_DOMAIN);
    (0..2).try_for_each(|i| spec.expect_count(i, 1))?;
    let of = |o, r| State::new(spec, o, r, 3);
    let state = [of(2, lead)?, of(4, lead + 1)?, of(5, lead + 2)?];
    let has_copy = lead == 0 && spec.has(6);
    if has_copy {
        spec.expect_floats([6])?;
        spec.expect_count(6, crate::meaning::count(&spec.dims(2)?))?;
        spec.expect_float_result(3, crate::meaning::count(&spec.dims(2)?))?;
    }
    if has_copy && !(state.iter().all(|s| spec.wants(s.result) || s.in_place)) {
        return refuse("the weight in another precision is asked for without the weight and its moments");
    }
    if state.iter().any(|s| spec.wants(s.result) || s.in_place)
        && !state.iter().all(|s| spec.wants(s.result) || s.in_place)
    {
        return refuse("new weights and new moments are asked for only in part");
    }
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (rate, step, g) = (io.get::<f32>(0)[0], io.get::<i64>(1)[0], io.get::<f32>(3));
        let [w, m, v] = state.map(|s| s.take(&mut io));
        attributes.run(rate, step, [&mut *w, m, v], g);
        if has_copy {
            let copy = io.take::<f32>(3);
            if !copy.is_empty() {
                movement::copy(w, copy);
            }
        }
        if lead == 1 {
            io.take::<u8>(0).fill(1);
        }
    }))
}

/// Plain gradient descent: for one variable `(rate, w, g → w)`, or for sequences, with a flag as the first result.
pub(crate) fn sgd(spec: &Spec<'_>) -> Made {
    expect_float(spec, 0..3)?;
    let sequences = spec.op.name() == "SGDOptimizerV2";
    spec.expect_count(0, 1)?;
    let weights = State::new(spec, 1, usize::from(sequences), 2)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (rate, g) = (io.get::<f32>(0)[0], io.get::<f32>(2));
        each::parts(weights.take(&mut io), |start, w| {
            w.iter_mut().zip(&g[start..]).for_each(|(w, g)| *w -= rate * g);
        });
        if sequences {
            io.take::<u8>(0).fill(1);
        }
    }))
}

/// `com.microsoft.AdamOptimizer(rate, step, w, g, m, v → step, m, v, w)`; the given step counts from 1.
pub(crate) fn adam(spec: &Spec<'_>) -> Made {
    expect_float(spec, [0, 2, 3, 4, 5])?;
    spec.expect(1, lmsc_ir::ElementType::Int64)?;
    if (6..spec.operands.len()).any(|i| spec.has(i)) || (4..spec.results.len()).any(|i| spec.wants(i)) {
        return refuse("operands for mixed precision are not supported");
    }
    let (alpha, beta) = (spec.float("alpha")?, spec.float("beta")?);
    let (epsilon, lambda) = (spec.float("epsilon")?, spec.float("lambda")?);
    let corrects = spec.flag("do_bias_correction")?;
    let decays_behind = spec.int("weight_decay_mode")? != 0;
    let step_in_place = spec.is_in_place(1, 0);
    (0..2).try_for_each(|i| spec.expect_count(i, 1))?;
    spec.expect_result_count(0, 1)?;
    let of = |o, r| State::new(spec, o, r, 3);
    let state = [of(2, 3)?, of(4, 1)?, of(5, 2)?];
    // One loop computes all of them.
    if state.iter().any(|s| !spec.wants(s.result) && !s.in_place) {
        return refuse("new weights and new moments are not all asked for");
    }
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (rate, g) = (io.get::<f32>(0)[0], io.get::<f32>(3));
        let new_step = io.take::<i64>(0);
        let step = if step_in_place { new_step[0] } else { io.get::<i64>(1)[0] };
        if let Some(out) = new_step.first_mut() {
            *out = step + 1;
        }
        let correction = |base: f32| if corrects { 1.0 - f64::from(base).powf(step as f64) } else { 1.0 };
        let (first, second) = (correction(alpha) as f32, correction(beta) as f32);
        let [w, m, v] = state.map(|s| s.take(&mut io));
        each4(w, g, m, v, |w, g, m, v| {
            *m = alpha * *m + (1.0 - alpha) * g;
            *v = beta * *v + (1.0 - beta) * g * g;
            let step = (*m / first) / ((*v / second).sqrt() + epsilon);
            if decays_behind {
                *w -= rate * step;
                *w -= rate * lambda * *w;
            } else {
                *w -= rate * (step + lambda * *w)
            }
        });
    }))
}

/// `InPlaceAccumulatorV2(buffer, new, overwrite → flag, buffer)`.
pub(crate) fn accumulate_in_place(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..2)?;
    if spec.has(2) {
        spec.expect(2, lmsc_ir::ElementType::Bool)?;
    }
    spec.expect_count(2, 1)?;
    let buffer = State::new(spec, 0, 1, 1)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let new = io.get::<f32>(1);
        let overwrite = io.get::<u8>(2).first().is_some_and(|&o| o != 0);
        let out = if overwrite { io.take(1) } else { buffer.take(&mut io) };
        accumulate_into(out, new, overwrite);
        io.take::<u8>(0).fill(1);
    }))
}

fn accumulate_into(out: &mut [f32], new: &[f32], overwrite: bool) {
    each::parts(out, |start, out| {
        if overwrite {
            out.copy_from_slice(&new[start..start + out.len()])
        } else {
            out.iter_mut().zip(&new[start..]).for_each(|(o, n)| *o += n)
        }
    });
}

/// `InPlaceAccumulator(buffer, new → buffer)` and `GradientAccumulator`.
pub(crate) fn accumulate(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..2)?;
    if spec.has(2) {
        return refuse("operand 2, the signal to add, is not supported");
    }
    let buffer = State::new(spec, 0, 0, 1)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let new = io.get::<f32>(1);
        accumulate_into(buffer.take(&mut io), new, false);
    }))
}

/// ONNX's own optimizers `(rate, count, X…, G…, states…)`, whose results are X… and each state.
pub(crate) fn preview(spec: &Spec<'_>, states: usize) -> Made {
    let tensors = spec.operands.len().saturating_sub(2) / (states + 2);
    expect_float(spec, std::iter::once(0).chain(2..spec.operands.len()))?;
    spec.expect(1, lmsc_ir::ElementType::Int64)?;
    if tensors == 0 || spec.operands.len() != 2 + tensors * (states + 2) {
        return refuse("operands behind rate and count are not in groups of equal size");
    }
    let op = spec.op.name().to_owned();
    // Each of the operators has some of these.
    let float = |name| if spec.knows(name) { spec.float(name) } else { Ok(0.0) };
    let (alpha, beta) = (float("alpha")?, float("beta")?);
    let (epsilon, norm) = (float("epsilon")?, float("norm_coefficient")?);
    let (decay, after) = (float("decay_factor")?, float("norm_coefficient_post")?);
    let mode = spec.knows("mode").then(|| spec.string("mode")).transpose()?;
    let nesterov = match mode.as_deref() {
        None | Some("standard") => false,
        Some("nesterov") => true,
        Some(other) => {
            return refuse(format!("attribute `mode` is `{other}`; expected `standard` or `nesterov`"));
        }
    };
    let state_of = |i: usize, k: usize| {
        let operand = 2 + if k == 0 { i } else { (k + 1) * tensors + i };
        State::new(spec, operand, k * tensors + i, 2 + tensors + i)
    };
    (0..2).try_for_each(|i| spec.expect_count(i, 1))?;
    let all = (0..tensors).map(|i| (0..=states).map(|k| state_of(i, k)).collect());
    let all = all.collect::<Result<Vec<Vec<State>>, SpecError>>()?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (rate, count) = (io.get::<f32>(0)[0], io.get::<i64>(1)[0]);
        for (i, state) in all.iter().enumerate() {
            let g = io.get::<f32>(2 + tensors + i);
            let (x, first) = (state[0].take(&mut io), state[1].take(&mut io));
            match &*op {
                "Adagrad" => {
                    let rate = rate / (1.0 + count as f32 * decay);
                    each3(x, g, first, |x, g, h| {
                        let g = g + norm * *x;
                        *h += g * g;
                        *x -= rate * g / (h.sqrt() + epsilon);
                    });
                }
                "Momentum" => {
                    let beta = if count > 0 { beta } else { 1.0 };
                    each3(x, g, first, |x, g, v| {
                        let g = g + norm * *x;
                        *v = alpha * *v + beta * g;
                        *x -= rate * if nesterov { g + alpha * *v } else { *v };
                    });
                }
                _ => {
                    let second = state[2].take(&mut io);
                    let correction = |base: f32| 1.0 - f64::from(base).powf(count as f64);
                    let corrected = if count > 0 {
                        (f64::from(rate) * correction(beta).sqrt() / correction(alpha)) as f32
                    } else {
                        rate
                    };
                    each4(x, g, first, second, |x, g, v, h| {
                        let g = g + norm * *x;
                        *v = alpha * *v + (1.0 - alpha) * g;
                        *h = beta * *h + (1.0 - beta) * g * g;
                        *x -= corrected * *v / (h.sqrt() + epsilon);
                        *x *= 1.0 - after;
                    });
                }
            }
        }
    }))
}
