//! Recurrent layers: `LSTM`, `GRU`, their variants that keep gates for the backward pass, and their gradients.

use super::Made;
use crate::gemm::{self, Extents, Into, Matrix};
use crate::kernel::{Io, Kernel};
use crate::math::{Real, tanh};
use crate::spec::{Spec, SpecError, is_addressable, refuse};
use crate::vector::vectorized;

/// Extents that all recurrent operators share.
#[derive(Clone, Copy)]
pub struct Layer {
    /// Length of the sequences.
    pub steps: usize,
    /// Number of sequences.
    pub batch: usize,
    /// Elements of an input.
    pub inputs: usize,
    /// Elements of a hidden state.
    pub hidden: usize,
    /// Number of gates: 4 for an LSTM, 3 for a GRU.
    pub gates: usize,
    /// Number of directions.
    pub directions: usize,
    /// Whether the first direction goes backward.
    reverse: bool,
    /// Whether a GRU applies its reset gate after the product with the recurrent weights.
    pub resets_behind: bool,
}

impl Layer {
    /// From the operands `X` and `R` and the attributes.
    pub fn new(spec: &Spec<'_>, gates: usize) -> Result<Layer, SpecError> {
        let (x, r) = (spec.dims(0)?, spec.dims(2)?);
        let (&[steps, batch, inputs], &[directions, _, hidden]) = (&x[..], &r[..]) else {
            return refuse("X or R has not three dimensions");
        };
        if spec.has(4) && !spec.op.name().ends_with("Grad") {
            return refuse("operand 4, lengths of sequences, is not supported");
        }
        let is_set = |name| Ok(spec.knows(name) && spec.flag(name)?);
        if is_set("layout")? {
            return refuse("attribute `layout` is 1; this kernel takes steps first");
        }
        if is_set("input_forget")?
            || spec.says("clip")
            || spec.says("activations") && !default_activations(spec, gates)?
        {
            return refuse(
                "coupled gates, clipping and other activations than the usual ones are not supported",
            );
        }
        let direction = spec.string("direction")?;
        if !["forward", "reverse", "bidirectional"].contains(&&*direction) {
            return refuse(format!("attribute `direction` is `{direction}`; no such direction is known"));
        }
        let reverse = direction == "reverse";
        if directions != if direction == "bidirectional" { 2 } else { 1 } {
            return refuse(format!(
                "weights have {directions} directions, but attribute `direction` is `{direction}`"
            ));
        }
        let resets_behind = is_set("linear_before_reset")?;
        spec.need(1)?;
        spec.expect_dims(1, &[directions, gates * hidden, inputs])?;
        spec.expect_dims(2, &[directions, gates * hidden, hidden])?;
        // The gates of all steps are the largest tensor of the layer, and may be none of its operands and results.
        let extents = [steps, directions, batch, gates, hidden].map(|extent| extent as u64);
        if !is_addressable(&extents) {
            return refuse(format!(
                "the gates of {steps} steps of {batch} samples are more than memory has addresses"
            ));
        }
        Ok(Layer { steps, batch, inputs, hidden, gates, directions, reverse, resets_behind })
    }

    /// Elements of a state of all directions, of all biases, of the states of all steps, and of their gates.
    fn sizes(&self) -> [usize; 4] {
        let state = self.directions * self.step_hidden();
        let all = self.steps * self.directions;
        [state, self.directions * 2 * self.gates * self.hidden, self.steps * state, all * self.step_gates()]
    }

    /// Refuses operands and results with other numbers of elements than the given ones; each may be left out.
    fn expect<const N: usize, const M: usize>(
        &self,
        spec: &Spec<'_>,
        operands: [(usize, usize); N],
        results: [(usize, usize); M],
    ) -> Result<(), SpecError> {
        operands.into_iter().try_for_each(|(i, n)| spec.expect_count(i, n))?;
        results.into_iter().try_for_each(|(i, n)| spec.expect_float_result(i, n))
    }

    /// Refuses gradients whose sizes differ from those of X, W, R, the bias and the states.
    fn expect_gradients(&self, spec: &Spec<'_>) -> Result<(), SpecError> {
        let [state, bias, ..] = self.sizes();
        let like = |i: usize| spec.dims(i).map(|dims| crate::meaning::count(&dims));
        self.expect(
            spec,
            [],
            [(0, like(0)?), (1, like(1)?), (2, like(2)?), (3, bias), (4, state), (5, state)],
        )
    }

    /// Elements of all gates of one step and direction.
    pub fn step_gates(&self) -> usize {
        self.batch * self.gates * self.hidden
    }

    /// Elements of the hidden states of one step and direction.
    pub fn step_hidden(&self) -> usize {
        self.batch * self.hidden
    }

    /// Index of the direction's part of a step in tensors that keep a part for each step.
    pub fn at(&self, step: usize, direction: usize) -> usize {
        step * self.directions + direction
    }

    /// The steps in the order in which a direction takes them.
    pub fn order(&self, direction: usize) -> impl DoubleEndedIterator<Item = usize> + Clone + use<> {
        let backward = self.reverse || direction == 1;
        let steps = self.steps;
        (0..steps).map(move |t| if backward { steps - 1 - t } else { t })
    }

    /// Extents of the product of a matrix with the transpose of weights `[n, k]`.
    fn times(&self, m: usize, n: usize, k: usize) -> Extents {
        Extents { m, n, k }
    }

    /// Workspace of the products, in elements.
    fn products(&self) -> usize {
        let (h, g, b, i) = (self.hidden, self.gates * self.hidden, self.batch, self.inputs);
        let all = self.steps * b;
        let shapes =
            [(all, g, i), (b, g, h), (all, i, g), (b, h, g), (g, i, all), (g, h, all), (b, h, h), (h, h, b)];
        shapes.into_iter().map(|(m, n, k)| self.times(m, n, k).parallel()).max().unwrap_or(0)
    }
}

fn default_activations(spec: &Spec<'_>, gates: usize) -> Result<bool, SpecError> {
    let usual: &[&str] = if gates == 4 { &["sigmoid", "tanh", "tanh"] } else { &["sigmoid", "tanh"] };
    let named = spec.strings("activations")?;
    Ok(named.iter().zip(usual.iter().cycle()).all(|(name, usual)| name.to_lowercase() == *usual))
}

/// `out` = `a` · `bᵀ`, or that added to `out`.
fn by_rows(x: Extents, a: &[f32], b: &[f32], out: &mut [f32], add: bool, room: &mut [f32]) {
    let (a, b) = (Matrix { data: a, lane: x.k, k: 1 }, Matrix { data: b, lane: x.k, k: 1 });
    gemm::parallel(x, &a, &b, out, Into { add, ..Into::dense(x.n) }, room);
}

/// `out` = `a` · `b`, or that added to `out`; rows of `a` are `row` apart.
fn by_columns(
    x: Extents,
    (a, row): (&[f32], usize),
    b: &[f32],
    out: &mut [f32],
    add: bool,
    room: &mut [f32],
) {
    let (a, b) = (Matrix { data: a, lane: row, k: 1 }, Matrix { data: b, lane: 1, k: x.n });
    gemm::parallel(x, &a, &b, out, Into { add, ..Into::dense(x.n) }, room);
}

/// `out` += `aᵀ` · `b`, where `a` is `[k, m]` with rows `row` apart.
fn transposed(x: Extents, (a, row): (&[f32], usize), b: &[f32], out: &mut [f32], room: &mut [f32]) {
    let (a, b) = (Matrix { data: a, lane: 1, k: row }, Matrix { data: b, lane: 1, k: x.n });
    gemm::parallel(x, &a, &b, out, Into { add: true, ..Into::dense(x.n) }, room);
}

/// The products of all inputs with W, and the biases.
fn inputs_to_gates(
    l: &Layer,
    x: &[f32],
    w: &[f32],
    bias: &[f32],
    both: bool,
    gates: &mut [f32],
    room: &mut [f32],
) {
    let width = l.gates * l.hidden;
    by_rows(l.times(l.steps * l.batch, width, l.inputs), x, w, gates, false, room);
    if !bias.is_empty() {
        let (of_w, of_r) = bias.split_at(width);
        for row in gates.chunks_exact_mut(width) {
            row.iter_mut().zip(of_w).for_each(|(g, b)| *g += b);
            // The last gate of a GRU that resets after the product has its recurrent bias inside the reset.
            let n = if both { width } else { width - l.hidden };
            row[..n].iter_mut().zip(of_r).for_each(|(g, b)| *g += b);
        }
    }
}

vectorized! {
    /// The next state and cell of one sequence, from the sums of its gates i, o, f, c, which become the gates.
    fn lstm_cell(gates: &mut [f32], h: &mut [f32], c: &mut [f32]) {
        let hidden = h.len();
        let (sigmoids, candidates) = gates.split_at_mut(3 * hidden);
        sigmoids.iter_mut().for_each(|g| *g = g.sigmoid());
        candidates.iter_mut().for_each(|g| *g = tanh(*g));
        let [input, output, forget] = [0, 1, 2].map(|g| &sigmoids[g * hidden..][..hidden]);
        let candidate = &candidates[..hidden];
        let c = &mut c[..hidden];
        for i in 0..hidden {
            c[i] = forget[i] * c[i] + input[i] * candidate[i];
            h[i] = output[i] * tanh(c[i]);
        }
    }
}

vectorized! {
    /// The gradients of one sequence's gates i, o, f, c before their activations, from those of its state and cell; `dc` becomes that
    /// of the cell before.
    fn lstm_cell_gradient(
        gates: &[f32],
        cell: &[f32],
        before: &[f32],
        dh: &[f32],
        dc: &mut [f32],
        out: &mut [f32],
    ) {
        let hidden = dh.len();
        let [input, output, forget, candidate] = [0, 1, 2, 3].map(|g| &gates[g * hidden..][..hidden]);
        let (of_input, rest) = out.split_at_mut(hidden);
        let (of_output, rest) = rest.split_at_mut(hidden);
        let (of_forget, of_candidate) = rest.split_at_mut(hidden);
        let (cell, before, dc) = (&cell[..hidden], &before[..hidden], &mut dc[..hidden]);
        let of_candidate = &mut of_candidate[..hidden];
        for i in 0..hidden {
            let tanh_cell = tanh(cell[i]);
            let d_cell = dc[i] + dh[i] * output[i] * (1.0 - tanh_cell * tanh_cell);
            of_input[i] = d_cell * candidate[i] * input[i] * (1.0 - input[i]);
            of_output[i] = dh[i] * tanh_cell * output[i] * (1.0 - output[i]);
            of_forget[i] = d_cell * before[i] * forget[i] * (1.0 - forget[i]);
            of_candidate[i] = d_cell * input[i] * (1.0 - candidate[i] * candidate[i]);
            dc[i] = d_cell * forget[i];
        }
    }
}

/// `LSTM(X, W, R, B, lengths, h0, c0, P → Y, Yh, Yc)` and `LSTMTraining`, which also keeps each cell and the gates i, o,
/// f, c.
pub(crate) fn lstm(spec: &Spec<'_>) -> Made {
    let l = Layer::new(spec, 4)?;
    spec.expect_floats([0, 1, 2, 3, 5, 6])?;
    if spec.has(7) {
        return refuse("operand 7, peepholes, is not supported");
    }
    let [state, bias, states, gates] = l.sizes();
    l.expect(
        spec,
        [(3, bias), (5, state), (6, state)],
        [(0, states), (1, state), (2, state), (3, states), (4, gates)],
    )?;
    let (all, part) = (l.steps * l.step_gates(), l.step_hidden());
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (x, w, r, b) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<f32>(2), io.get::<f32>(3));
        let (h0, c0) = (io.get::<f32>(5), io.get::<f32>(6));
        let [y, last_h, last_c, cells, kept] = std::array::from_fn(|i| io.take::<f32>(i));
        let (gates, rest) = io.workspace::<f32>().split_at_mut(all);
        let (state, room) = rest.split_at_mut(2 * part);
        let (h, c) = state.split_at_mut(part);
        let width = 4 * l.hidden;
        for d in 0..l.directions {
            let weights = |list: &[f32], size: usize| -> std::ops::Range<usize> {
                if list.is_empty() { 0..0 } else { d * size..(d + 1) * size }
            };
            let w = &w[weights(w, width * l.inputs)];
            let r = &r[weights(r, width * l.hidden)];
            inputs_to_gates(&l, x, w, &b[weights(b, 2 * width)], true, gates, room);
            start(h, h0, d * part);
            start(c, c0, d * part);
            for t in l.order(d) {
                let gates = &mut gates[t * l.step_gates()..][..l.step_gates()];
                by_rows(l.times(l.batch, width, l.hidden), h, r, gates, true, room);
                for (n, gates) in gates.chunks_exact_mut(width).enumerate() {
                    let (h, c) = (&mut h[n * l.hidden..][..l.hidden], &mut c[n * l.hidden..][..l.hidden]);
                    lstm_cell(gates, h, c);
                }
                put(y, l.at(t, d), h);
                put(cells, l.at(t, d), c);
                put(kept, l.at(t, d), gates);
            }
            put(last_h, d, h);
            put(last_c, d, c);
        }
    });
    Ok(kernel.with_workspace::<f32>(all + 2 * part + l.products()))
}

/// Sets the first state: the operand's, or zeros.
fn start(state: &mut [f32], given: &[f32], from: usize) {
    if given.is_empty() { state.fill(0.0) } else { state.copy_from_slice(&given[from..from + state.len()]) }
}

/// Writes the `index`-th part of a result, if it is used.
fn put(out: &mut [f32], index: usize, part: &[f32]) {
    if !out.is_empty() {
        out[index * part.len()..][..part.len()].copy_from_slice(part);
    }
}

/// `LSTMGrad(X, W, R, lengths, h0, c0, Y, cells, gates, dY, dYh, dYc → dX, dW, dR, dB, dh0, dc0)`.
pub(crate) fn lstm_grad(spec: &Spec<'_>) -> Made {
    let l = Layer::new(spec, 4)?;
    spec.expect_floats([0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11])?;
    if spec.has(3) {
        return refuse("operand 3, lengths of sequences, is not supported");
    }
    (6..9).try_for_each(|i| spec.need(i))?;
    let [state, _, states, gates] = l.sizes();
    let operands =
        [(4, state), (5, state), (6, states), (7, states), (8, gates), (9, states), (10, state), (11, state)];
    l.expect(spec, operands, [])?;
    l.expect_gradients(spec)?;
    let (all, part, width) = (l.steps * l.step_gates(), l.step_hidden(), 4 * l.hidden);
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let [x, w, r, _, h0, c0, y, cells, gates, dy, dy_h, dy_c] = std::array::from_fn(|i| match i {
            3 => &[][..],
            i => io.get::<f32>(i),
        });
        let [dx, dw, dr, db, dh0, dc0] = std::array::from_fn(|i| io.take::<f32>(i));
        let (dgates, rest) = io.workspace::<f32>().split_at_mut(all);
        let (state, room) = rest.split_at_mut(3 * part);
        let (dh, rest) = state.split_at_mut(part);
        let (dc, first) = rest.split_at_mut(part);
        for out in [&mut *dw, &mut *dr, &mut *db] {
            out.fill(0.0);
        }
        for d in 0..l.directions {
            let w = &w[d * width * l.inputs..][..width * l.inputs];
            let r = &r[d * width * l.hidden..][..width * l.hidden];
            start(dh, dy_h, d * part);
            start(dc, dy_c, d * part);
            let mut order = l.order(d).rev().peekable();
            while let Some(t) = order.next() {
                let here = l.at(t, d);
                if !dy.is_empty() {
                    dh.iter_mut().zip(&dy[here * part..][..part]).for_each(|(h, d)| *h += d);
                }
                start(first, c0, d * part);
                let before: &[f32] = match order.peek() {
                    Some(&previous) => &cells[l.at(previous, d) * part..][..part],
                    None => first,
                };
                let cell = &cells[here * part..][..part];
                let gates = &gates[here * l.step_gates()..][..l.step_gates()];
                let out = &mut dgates[t * l.step_gates()..][..l.step_gates()];
                for n in 0..l.batch {
                    let (row, state) = (n * width..(n + 1) * width, n * l.hidden..(n + 1) * l.hidden);
                    let (cell, before) = (&cell[state.clone()], &before[state.clone()]);
                    let dc = &mut dc[state.clone()];
                    lstm_cell_gradient(&gates[row.clone()], cell, before, &dh[state], dc, &mut out[row]);
                }
                by_columns(l.times(l.batch, l.hidden, width), (out, width), r, dh, false, room);
            }
            put(dh0, d, dh);
            put(dc0, d, dc);
            if !dr.is_empty() {
                let dr = &mut dr[d * width * l.hidden..][..width * l.hidden];
                recurrent_gradients(&l, d, dgates, [y, h0], dr, room);
            }
            input_gradients(&l, d, dgates, x, w, [&mut *dx, &mut *dw], room);
            if !db.is_empty() {
                let db = &mut db[d * 2 * width..][..2 * width];
                sum_rows(dgates, &mut db[..width]);
                db.copy_within(..width, width);
            }
        }
    });
    Ok(kernel.with_workspace::<f32>(all + 3 * part + l.products()))
}

/// dX and dW of one direction, from the gradients of its gates.
fn input_gradients(
    l: &Layer,
    d: usize,
    dgates: &[f32],
    x: &[f32],
    w: &[f32],
    [dx, dw]: [&mut [f32]; 2],
    room: &mut [f32],
) {
    let width = l.gates * l.hidden;
    if !dx.is_empty() {
        by_columns(l.times(l.steps * l.batch, l.inputs, width), (dgates, width), w, dx, d > 0, room);
    }
    if !dw.is_empty() {
        let dw = &mut dw[d * width * l.inputs..][..width * l.inputs];
        transposed(l.times(width, l.inputs, l.steps * l.batch), (dgates, width), x, dw, room);
    }
}

/// dR of one direction of an LSTM: the products of the gradients of its gates with the states before them.
fn recurrent_gradients(
    l: &Layer,
    d: usize,
    dgates: &[f32],
    [y, h0]: [&[f32]; 2],
    dr: &mut [f32],
    room: &mut [f32],
) {
    let (width, part, gates) = (l.gates * l.hidden, l.step_hidden(), l.step_gates());
    let mut add = |steps: usize, from: usize, states: &[f32]| {
        let x = l.times(width, l.hidden, steps * l.batch);
        transposed(x, (&dgates[from * gates..][..steps * gates], width), states, dr, room);
    };
    let Some(first) = l.order(d).next() else { return };
    if !h0.is_empty() {
        add(1, first, &h0[d * part..][..part]);
    }
    let others = l.steps - 1;
    if l.directions > 1 {
        for (before, t) in l.order(d).zip(l.order(d).skip(1)) {
            add(1, t, &y[l.at(before, d) * part..][..part]);
        }
    } else if others > 0 {
        // The states of all steps lie one after another, and so do their gates.
        let (from, before) = if first == 0 { (1, 0) } else { (0, 1) };
        add(others, from, &y[before * part..][..others * part]);
    }
}

/// Sums the rows of a matrix, in double precision.
fn sum_rows(rows: &[f32], out: &mut [f32]) {
    let width = out.len();
    for (i, out) in out.iter_mut().enumerate() {
        *out = rows.iter().skip(i).step_by(width).map(|&x| f64::from(x)).sum::<f64>() as f32;
    }
}

vectorized! {
    /// The activations of gates.
    fn sigmoids(gates: &mut [f32]) {
        gates.iter_mut().for_each(|g| *g = g.sigmoid());
    }
}

vectorized! {
    /// The next state of one sequence, from its gates z and r, the part of its candidate that comes from inputs, which becomes the
    /// candidate, and the part that comes from the state.
    fn gru_state(gates: &mut [f32], recurrent: &[f32], h: &mut [f32]) {
        let hidden = h.len();
        let (activated, candidate) = gates.split_at_mut(2 * hidden);
        let (z, recurrent, candidate) = (&activated[..hidden], &recurrent[..hidden], &mut candidate[..hidden]);
        for i in 0..hidden {
            candidate[i] = tanh(candidate[i] + recurrent[i]);
            h[i] = (1.0 - z[i]) * candidate[i] + z[i] * h[i];
        }
    }
}

/// `GRU(X, W, R, B, lengths, h0 → Y, Yh)` and `GRUTraining`, which also keeps the gates z, r, h.
pub(crate) fn gru(spec: &Spec<'_>) -> Made {
    let l = Layer::new(spec, 3)?;
    spec.expect_floats([0, 1, 2, 3, 5])?;
    let [state, bias, states, gates] = l.sizes();
    l.expect(spec, [(3, bias), (5, state)], [(0, states), (1, state), (2, gates)])?;
    let (all, part, width) = (l.steps * l.step_gates(), l.step_hidden(), 3 * l.hidden);
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (x, w, r, b) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<f32>(2), io.get::<f32>(3));
        let h0 = io.get::<f32>(5);
        let [y, last, kept] = std::array::from_fn(|i| io.take::<f32>(i));
        let (gates, rest) = io.workspace::<f32>().split_at_mut(all);
        let (state, room) = rest.split_at_mut(2 * part);
        let (h, candidate) = state.split_at_mut(part);
        let split = 2 * l.hidden;
        for d in 0..l.directions {
            let w = &w[d * width * l.inputs..][..width * l.inputs];
            let r = &r[d * width * l.hidden..][..width * l.hidden];
            let b = if b.is_empty() { b } else { &b[d * 2 * width..][..2 * width] };
            inputs_to_gates(&l, x, w, b, !l.resets_behind, gates, room);
            let (r_gates, r_candidate) = r.split_at(split * l.hidden);
            let bias = if b.is_empty() { b } else { &b[width + split..] };
            start(h, h0, d * part);
            for t in l.order(d) {
                let gates = &mut gates[t * l.step_gates()..][..l.step_gates()];
                let z_and_r = Into { row: width, alpha: 1.0, add: true };
                let (left, right) = (
                    Matrix { data: h, lane: l.hidden, k: 1 },
                    Matrix { data: r_gates, lane: l.hidden, k: 1 },
                );
                gemm::parallel(l.times(l.batch, split, l.hidden), &left, &right, gates, z_and_r, room);
                gates.chunks_exact_mut(width).for_each(|gates| sigmoids(&mut gates[..split]));
                let x = l.times(l.batch, l.hidden, l.hidden);
                if l.resets_behind {
                    by_rows(x, h, r_candidate, candidate, false, room);
                    for (n, out) in candidate.chunks_exact_mut(l.hidden).enumerate() {
                        let reset = &gates[n * width + l.hidden..][..l.hidden];
                        for (i, out) in out.iter_mut().enumerate() {
                            *out = reset[i] * (*out + bias.get(i).copied().unwrap_or(0.0));
                        }
                    }
                } else {
                    // The product uses the reset state, r · h.
                    by_reset(&l, h, gates, r_candidate, candidate, room);
                }
                for (n, gates) in gates.chunks_exact_mut(width).enumerate() {
                    let state = n * l.hidden..(n + 1) * l.hidden;
                    gru_state(gates, &candidate[state.clone()], &mut h[state]);
                }
                put(y, l.at(t, d), h);
                put(kept, l.at(t, d), gates);
            }
            put(last, d, h);
        }
    });
    Ok(kernel.with_workspace::<f32>(all + 2 * part + part + l.products()))
}

/// `out` = (r · h) Rhᵀ, with the reset state at the beginning of the workspace.
fn by_reset(l: &Layer, h: &[f32], gates: &[f32], weights: &[f32], out: &mut [f32], room: &mut [f32]) {
    let (reset, room) = room.split_at_mut(l.step_hidden());
    reset_state(l, h, gates, reset);
    by_rows(l.times(l.batch, l.hidden, l.hidden), reset, weights, out, false, room);
}

/// r · h.
fn reset_state(l: &Layer, h: &[f32], gates: &[f32], out: &mut [f32]) {
    for n in 0..l.batch {
        for i in 0..l.hidden {
            out[n * l.hidden + i] = gates[n * 3 * l.hidden + l.hidden + i] * h[n * l.hidden + i];
        }
    }
}

/// `GRUGrad(X, W, R, B, lengths, h0, Y, gates, dY, dYh → dX, dW, dR, dB, dh0)`.
pub(crate) fn gru_grad(spec: &Spec<'_>) -> Made {
    let l = Layer::new(spec, 3)?;
    spec.expect_floats([0, 1, 2, 3, 5, 6, 7, 8, 9])?;
    if spec.has(4) {
        return refuse("operand 4, lengths of sequences, is not supported");
    }
    [6, 7].into_iter().try_for_each(|i| spec.need(i))?;
    let [state, bias, states, gates] = l.sizes();
    l.expect(spec, [(3, bias), (5, state), (6, states), (7, gates), (8, states), (9, state)], [])?;
    l.expect_gradients(spec)?;
    let (all, part, width) = (l.steps * l.step_gates(), l.step_hidden(), 3 * l.hidden);
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let [x, w, r, b, _, h0, y, gates, dy, dy_h] = std::array::from_fn(|i| match i {
            4 => &[][..],
            i => io.get::<f32>(i),
        });
        let [dx, dw, dr, db, dh0] = std::array::from_fn(|i| io.take::<f32>(i));
        let (dgates, rest) = io.workspace::<f32>().split_at_mut(all);
        let (recurrent, rest) = rest.split_at_mut(l.step_gates());
        let (state, room) = rest.split_at_mut(4 * part);
        let (dh, rest) = state.split_at_mut(part);
        let (before, rest) = rest.split_at_mut(part);
        let (product, next) = rest.split_at_mut(part);
        for out in [&mut *dw, &mut *dr, &mut *db] {
            out.fill(0.0);
        }
        for d in 0..l.directions {
            let w = &w[d * width * l.inputs..][..width * l.inputs];
            let weights = GruWeights::of(&l, d, r, b);
            start(dh, dy_h, d * part);
            let mut order = l.order(d).rev().peekable();
            while let Some(t) = order.next() {
                let here = l.at(t, d);
                if !dy.is_empty() {
                    dh.iter_mut().zip(&dy[here * part..][..part]).for_each(|(h, d)| *h += d);
                }
                match order.peek() {
                    Some(&previous) => before.copy_from_slice(&y[l.at(previous, d) * part..][..part]),
                    None => start(before, h0, d * part),
                }
                let gates = &gates[here * l.step_gates()..][..l.step_gates()];
                let out = &mut dgates[t * l.step_gates()..][..l.step_gates()];
                let mut step = GruStep { gates, before, dh, next, product, room };
                step.gate_gradients(&l, &weights, out);
                step.state_gradients(&l, &weights, out, recurrent);
                if !dr.is_empty() {
                    let dr = &mut dr[d * width * l.hidden..][..width * l.hidden];
                    step.add_weight_gradients(&l, recurrent, dr);
                }
                if !db.is_empty() {
                    let db = &mut db[d * 2 * width + width..][..width];
                    for row in recurrent.chunks_exact(width) {
                        db.iter_mut().zip(row).for_each(|(b, g)| *b += g);
                    }
                }
            }
            put(dh0, d, dh);
            input_gradients(&l, d, dgates, x, w, [&mut *dx, &mut *dw], room);
            if !db.is_empty() {
                sum_rows(dgates, &mut db[d * 2 * width..][..width]);
            }
        }
    });
    Ok(kernel.with_workspace::<f32>(all + l.step_gates() + 4 * part + l.products()))
}

/// The recurrent weights of one direction of a GRU, and the recurrent bias of its candidate, empty if there is none.
struct GruWeights<'a> {
    gates: &'a [f32],
    candidate: &'a [f32],
    bias: &'a [f32],
}

impl<'a> GruWeights<'a> {
    fn of(l: &Layer, d: usize, r: &'a [f32], b: &'a [f32]) -> GruWeights<'a> {
        let (width, split) = (3 * l.hidden, 2 * l.hidden);
        let r = &r[d * width * l.hidden..][..width * l.hidden];
        let (gates, candidate) = r.split_at(split * l.hidden);
        let bias = if b.is_empty() { b } else { &b[d * 2 * width + width + split..][..l.hidden] };
        GruWeights { gates, candidate, bias }
    }
}

/// One step of a GRU backwards.
struct GruStep<'a> {
    /// The gates z, r, h.
    gates: &'a [f32],
    /// The state before the step.
    before: &'a [f32],
    /// The gradient of the state after the step, and then of that before it.
    dh: &'a mut [f32],
    /// The part of the gradient of the state before the step that does not go through the recurrent products.
    next: &'a mut [f32],
    /// Room for the candidate's recurrent product or its gradient, or for the reset state.
    product: &'a mut [f32],
    room: &'a mut [f32],
}

impl GruStep<'_> {
    /// `out` = the gradients of the gates before their activations.
    fn gate_gradients(&mut self, l: &Layer, weights: &GruWeights<'_>, out: &mut [f32]) {
        let GruStep { gates, before, dh, next, product, room } = self;
        let (width, split) = (3 * l.hidden, 2 * l.hidden);
        let square = l.times(l.batch, l.hidden, l.hidden);
        if l.resets_behind {
            by_rows(square, before, weights.candidate, product, false, room);
        }
        for n in 0..l.batch {
            for i in 0..l.hidden {
                let (at, row) = (n * l.hidden + i, n * width + i);
                let [z, reset, candidate] = [0, 1, 2].map(|g| gates[row + g * l.hidden]);
                let d_candidate = dh[at] * (1.0 - z) * (1.0 - candidate * candidate);
                out[row] = dh[at] * (before[at] - candidate) * z * (1.0 - z);
                out[row + split] = d_candidate;
                next[at] = dh[at] * z;
                if l.resets_behind {
                    let inner = product[at] + weights.bias.get(i).copied().unwrap_or(0.0);
                    out[row + l.hidden] = d_candidate * inner * reset * (1.0 - reset);
                }
            }
        }
        if !l.resets_behind {
            by_columns(square, (&out[split..], width), weights.candidate, product, false, room);
            for n in 0..l.batch {
                for i in 0..l.hidden {
                    let (at, row) = (n * l.hidden + i, n * width + i);
                    let reset = gates[row + l.hidden];
                    out[row + l.hidden] = product[at] * before[at] * reset * (1.0 - reset);
                    next[at] += product[at] * reset;
                }
            }
        }
    }

    /// `dh` = the gradient of the state before the step; `recurrent` = the gradients of the recurrent products: those of the
    /// gates, except for the reset of the candidate.
    fn state_gradients(
        &mut self,
        l: &Layer,
        weights: &GruWeights<'_>,
        of_gates: &[f32],
        recurrent: &mut [f32],
    ) {
        let GruStep { gates, dh, next, room, .. } = self;
        let (width, split) = (3 * l.hidden, 2 * l.hidden);
        recurrent.copy_from_slice(of_gates);
        if l.resets_behind {
            for n in 0..l.batch {
                for i in 0..l.hidden {
                    recurrent[n * width + split + i] *= gates[n * width + l.hidden + i];
                }
            }
            let square = l.times(l.batch, l.hidden, l.hidden);
            by_columns(square, (&recurrent[split..], width), weights.candidate, dh, false, room);
            next.iter_mut().zip(&**dh).for_each(|(n, d)| *n += d);
        }
        let x = l.times(l.batch, l.hidden, split);
        by_columns(x, (&*recurrent, width), weights.gates, dh, false, room);
        dh.iter_mut().zip(&**next).for_each(|(d, n)| *d += n);
    }

    /// Adds the gradients of the recurrent weights to `dr`.
    fn add_weight_gradients(&mut self, l: &Layer, recurrent: &[f32], dr: &mut [f32]) {
        let (width, split) = (3 * l.hidden, 2 * l.hidden);
        let (dr_gates, dr_candidate) = dr.split_at_mut(split * l.hidden);
        let x = l.times(split, l.hidden, l.batch);
        transposed(x, (recurrent, width), self.before, dr_gates, self.room);
        if !l.resets_behind {
            reset_state(l, self.before, self.gates, self.product);
        }
        let state: &[f32] = if l.resets_behind { self.before } else { self.product };
        let x = l.times(l.hidden, l.hidden, l.batch);
        transposed(x, (&recurrent[split..], width), state, dr_candidate, self.room);
    }
}
