//! Recurrent layers: the matrix products of each step, and a kernel between them.

use lmsc_kernels::gemm::Extents;
use lmsc_kernels::host::rnn::Layer;
use lmsc_kernels::spec::{Spec, SpecError, refuse};

use super::Made;
use super::product::{self, Matrix, products};
use crate::recipe::{Address, NOWHERE, Recipe, lanes_across, operand, result};

/// The most steps of a layer: each has about ten commands in the recipe.
const MOST_STEPS: usize = 1 << 14;

/// A layer and its recipe so far.
struct Net {
    l: Layer,
    recipe: Recipe,
}

impl Net {
    fn new(spec: &Spec<'_>, gates: usize) -> Result<Net, SpecError> {
        let l = Layer::new(spec, gates)?;
        if l.steps > MOST_STEPS {
            return refuse(format!(
                "{} steps; a CUDA device takes at most {MOST_STEPS} in one layer",
                l.steps
            ));
        }
        Ok(Net { l, recipe: Recipe::default() })
    }

    /// Number of columns of all gates of a sample.
    fn width(&self) -> usize {
        self.l.gates * self.l.hidden
    }

    fn product(
        &mut self,
        [m, n, k]: [usize; 3],
        left: (Address, usize, usize),
        right: (Address, usize, usize),
        into: (Address, usize),
        add: bool,
    ) -> Result<(), SpecError> {
        let [left, right] = [left, right].map(|(at, row, column)| Matrix { at, row, column });
        let into = product::Into { at: into.0, row: into.1, size: 0, alpha: 1.0, add };
        products(&mut self.recipe, Extents { m, n, k }, [left, right], &[(0, 0)], into)
    }

    /// `out` = `a` · `bᵀ`, or that added to `out`, where both have dense rows.
    fn by_rows(
        &mut self,
        x: [usize; 3],
        a: Address,
        b: Address,
        into: (Address, usize),
        add: bool,
    ) -> Result<(), SpecError> {
        self.product(x, (a, x[2], 1), (b, 1, x[2]), into, add)
    }

    /// `out` = `a` · `b`, or that added to `out`; rows of `a` are some elements apart.
    fn by_columns(
        &mut self,
        x: [usize; 3],
        a: (Address, usize),
        b: Address,
        out: Address,
        add: bool,
    ) -> Result<(), SpecError> {
        self.product(x, (a.0, a.1, 1), (b, x[1], 1), (out, x[1]), add)
    }

    /// `out` += `aᵀ` · `b`, where rows of `a` are some elements apart.
    fn transposed(
        &mut self,
        x: [usize; 3],
        a: (Address, usize),
        b: Address,
        out: Address,
    ) -> Result<(), SpecError> {
        self.product(x, (a.0, 1, a.1), (b, x[1], 1), (out, x[1]), true)
    }

    fn copy(&mut self, floats: usize, from: Address, to: Address) {
        self.recipe.copy(floats * size_of::<f32>(), from, to);
    }

    /// Sets the first state: the operand's, or zeros.
    fn start(&mut self, spec: &Spec<'_>, state: Address, given: usize, direction: usize) {
        let part = self.l.step_hidden();
        if spec.has(given) {
            self.copy(part, operand(given).plus::<f32>(direction * part), state)
        } else {
            self.recipe.zeros(part, state)
        }
    }

    /// Writes a part of a result, if it is used.
    fn put(&mut self, spec: &Spec<'_>, index: usize, at: usize, floats: usize, from: Address) {
        if spec.wants(index) {
            self.copy(floats, from, result(index).plus::<f32>(at * floats));
        }
    }

    fn pairs(&mut self, kernel: &str, args: Vec<crate::Arg>) {
        let n = self.l.step_hidden();
        let all = [self.l.batch.into(), self.l.hidden.into()].into_iter().chain(args).collect();
        self.recipe.each(kernel, n, all);
    }

    /// The products of all inputs with W, and the biases of W; the biases of R are added in the first `both` columns only.
    fn inputs(
        &mut self,
        spec: &Spec<'_>,
        direction: usize,
        both: usize,
        gates: Address,
    ) -> Result<(), SpecError> {
        let (width, rows) = (self.width(), self.l.steps * self.l.batch);
        let w = operand(1).plus::<f32>(direction * width * self.l.inputs);
        self.by_rows([rows, width, self.l.inputs], operand(0), w, (gates, width), false)?;
        if spec.has(3) {
            let of_w = operand(3).plus::<f32>(direction * 2 * width);
            let args = vec![
                rows.into(),
                width.into(),
                both.into(),
                of_w.into(),
                of_w.plus::<f32>(width).into(),
                gates.into(),
            ];
            self.recipe.each("gate_bias", rows * width, args);
        }
        Ok(())
    }

    /// dX and dW of a direction, from the gradients of its gates.
    fn input_gradients(&mut self, spec: &Spec<'_>, d: usize, dgates: Address) -> Result<(), SpecError> {
        let (width, rows, inputs) = (self.width(), self.l.steps * self.l.batch, self.l.inputs);
        let part = d * width * inputs;
        if spec.wants(0) {
            let w = operand(1).plus::<f32>(part);
            self.by_columns([rows, inputs, width], (dgates, width), w, result(0), d > 0)?;
        }
        if spec.wants(1) {
            let out = result(1).plus::<f32>(part);
            self.transposed([width, inputs, rows], (dgates, width), operand(0), out)?;
        }
        Ok(())
    }

    /// Sums the rows of gates.
    fn row_sums(&mut self, from: Address, to: Address) {
        let (width, rows) = (self.width(), self.l.steps * self.l.batch);
        let lanes = lanes_across(rows);
        let args = vec![lanes.into(), rows.into(), width.into(), from.into(), to.into()];
        self.recipe.teams("row_sums", width, lanes, args);
    }

    /// Zeros the gradients of weights, to which the steps add.
    fn clear(&mut self, spec: &Spec<'_>) {
        let (d, width) = (self.l.directions, self.width());
        for (index, floats) in [(1, width * self.l.inputs), (2, width * self.l.hidden), (3, 2 * width)] {
            if spec.wants(index) {
                self.recipe.zeros(d * floats, result(index));
            }
        }
    }

    /// The recurrent weights of a direction.
    fn recurrent(&self, d: usize) -> Address {
        operand(2).plus::<f32>(d * self.width() * self.l.hidden)
    }

    /// Adds the gradient of a step's result to the gradient of the state.
    fn receive(&mut self, spec: &Spec<'_>, index: usize, at: usize, dh: Address) {
        if spec.has(index) {
            let part = self.l.step_hidden();
            let from = operand(index).plus::<f32>(at * part);
            let args = vec![part.into(), dh.into(), from.into(), NOWHERE.into(), dh.into()];
            self.recipe.each("accumulate", part, args);
        }
    }

    /// The state before a step of a direction: that of the previous step in `index`, or the first state, if there is any.
    fn before(
        &self,
        spec: &Spec<'_>,
        index: usize,
        first: usize,
        previous: Option<usize>,
        d: usize,
    ) -> Address {
        let part = self.l.step_hidden();
        match previous {
            Some(t) => operand(index).plus::<f32>(self.l.at(t, d) * part),
            None if spec.has(first) => operand(first).plus::<f32>(d * part),
            None => NOWHERE,
        }
    }
}

/// `LSTM(X, W, R, B, lengths, h0, c0 → Y, Yh, Yc, cells, gates)`.
pub(crate) fn lstm(spec: &Spec<'_>) -> Made {
    let mut net = Net::new(spec, 4)?;
    let (part, step, width) = (net.l.step_hidden(), net.l.step_gates(), net.width());
    let gates = net.recipe.room::<f32>(net.l.steps * step);
    let [h, c] = [(); 2].map(|()| net.recipe.room::<f32>(part));
    for d in 0..net.l.directions {
        net.inputs(spec, d, width, gates)?;
        net.start(spec, h, 5, d);
        net.start(spec, c, 6, d);
        for t in net.l.order(d) {
            let gates = gates.plus::<f32>(t * step);
            let (l, r) = (net.l, net.recurrent(d));
            net.by_rows([l.batch, width, l.hidden], h, r, (gates, width), true)?;
            net.pairs("lstm_step", vec![gates.into(), h.into(), c.into()]);
            net.put(spec, 0, l.at(t, d), part, h);
            net.put(spec, 3, l.at(t, d), part, c);
            net.put(spec, 4, l.at(t, d), step, gates);
        }
        net.put(spec, 1, d, part, h);
        net.put(spec, 2, d, part, c);
    }
    Ok(net.recipe)
}

/// `LSTMGrad(X, W, R, lengths, h0, c0, Y, cells, gates, dY, dYh, dYc → dX, dW, dR, dB, dh0, dc0)`.
pub(crate) fn lstm_grad(spec: &Spec<'_>) -> Made {
    let mut net = Net::new(spec, 4)?;
    let (part, step, width) = (net.l.step_hidden(), net.l.step_gates(), net.width());
    let dgates = net.recipe.room::<f32>(net.l.steps * step);
    let [dh, dc] = [(); 2].map(|()| net.recipe.room::<f32>(part));
    net.clear(spec);
    for d in 0..net.l.directions {
        net.start(spec, dh, 10, d);
        net.start(spec, dc, 11, d);
        let mut order = net.l.order(d).rev().peekable();
        while let Some(t) = order.next() {
            let (l, here, r) = (net.l, net.l.at(t, d), net.recurrent(d));
            net.receive(spec, 9, here, dh);
            let cell = net.before(spec, 7, 5, order.peek().copied(), d);
            let gates = operand(8).plus::<f32>(here * step);
            let out = dgates.plus::<f32>(t * step);
            let cells = operand(7).plus::<f32>(here * part);
            let args = [gates, cells, cell, dh, dc, out].map(Into::into).to_vec();
            net.pairs("lstm_step_grad", args);
            let hidden = net.before(spec, 6, 4, order.peek().copied(), d);
            if spec.wants(2) && hidden != NOWHERE {
                let dr = result(2).plus::<f32>(d * width * l.hidden);
                net.transposed([width, l.hidden, l.batch], (out, width), hidden, dr)?;
            }
            net.by_columns([l.batch, l.hidden, width], (out, width), r, dh, false)?;
        }
        net.put(spec, 4, d, part, dh);
        net.put(spec, 5, d, part, dc);
        net.input_gradients(spec, d, dgates)?;
        if spec.wants(3) {
            let db = result(3).plus::<f32>(d * 2 * width);
            net.row_sums(dgates, db);
            net.copy(width, db, db.plus::<f32>(width));
        }
    }
    Ok(net.recipe)
}

/// `GRU(X, W, R, B, lengths, h0 → Y, Yh, gates)`.
pub(crate) fn gru(spec: &Spec<'_>) -> Made {
    let mut net = Net::new(spec, 3)?;
    let (part, step, width) = (net.l.step_hidden(), net.l.step_gates(), net.width());
    let split = 2 * net.l.hidden;
    let gates = net.recipe.room::<f32>(net.l.steps * step);
    let [h, candidate, reset] = [(); 3].map(|()| net.recipe.room::<f32>(part));
    let behind = net.l.resets_behind;
    for d in 0..net.l.directions {
        net.inputs(spec, d, if behind { split } else { width }, gates)?;
        net.start(spec, h, 5, d);
        let bias = if spec.has(3) { operand(3).plus::<f32>(d * 2 * width + width + split) } else { NOWHERE };
        for t in net.l.order(d) {
            let gates = gates.plus::<f32>(t * step);
            let (l, r) = (net.l, net.recurrent(d));
            net.by_rows([l.batch, split, l.hidden], h, r, (gates, width), true)?;
            let reset_to = if behind { NOWHERE } else { reset };
            net.pairs("gru_gates", vec![gates.into(), h.into(), reset_to.into()]);
            let state = if behind { h } else { reset };
            let r_candidate = r.plus::<f32>(split * l.hidden);
            net.by_rows([l.batch, l.hidden, l.hidden], state, r_candidate, (candidate, l.hidden), false)?;
            let args = vec![behind.into(), bias.into(), gates.into(), candidate.into(), h.into()];
            net.pairs("gru_step", args);
            net.put(spec, 0, l.at(t, d), part, h);
            net.put(spec, 2, l.at(t, d), step, gates);
        }
        net.put(spec, 1, d, part, h);
    }
    Ok(net.recipe)
}

/// `GRUGrad(X, W, R, B, lengths, h0, Y, gates, dY, dYh → dX, dW, dR, dB, dh0)`.
pub(crate) fn gru_grad(spec: &Spec<'_>) -> Made {
    let mut net = Net::new(spec, 3)?;
    let (part, step, width) = (net.l.step_hidden(), net.l.step_gates(), net.width());
    let split = 2 * net.l.hidden;
    // The gradients of the gates, and those of their recurrent products.
    let [dgates, recurrent] = [(); 2].map(|()| net.recipe.room::<f32>(net.l.steps * step));
    let [dh, product, next] = [(); 3].map(|()| net.recipe.room::<f32>(part));
    let behind = net.l.resets_behind;
    net.clear(spec);
    for d in 0..net.l.directions {
        net.start(spec, dh, 9, d);
        let bias = if spec.has(3) { operand(3).plus::<f32>(d * 2 * width + width + split) } else { NOWHERE };
        let mut order = net.l.order(d).rev().peekable();
        while let Some(t) = order.next() {
            let (l, here, r) = (net.l, net.l.at(t, d), net.recurrent(d));
            let r_candidate = r.plus::<f32>(split * l.hidden);
            let square = [l.batch, l.hidden, l.hidden];
            net.receive(spec, 8, here, dh);
            let before = net.before(spec, 6, 5, order.peek().copied(), d);
            let gates = operand(7).plus::<f32>(here * step);
            let (out, rec) = (dgates.plus::<f32>(t * step), recurrent.plus::<f32>(t * step));
            if behind {
                if before == NOWHERE {
                    net.recipe.zeros(part, product)
                } else {
                    net.by_rows(square, before, r_candidate, (product, l.hidden), false)?
                }
            }
            let addresses = [bias, gates, before, product, dh, out, rec, next];
            let args = std::iter::once(behind.into()).chain(addresses.map(Into::into)).collect();
            net.pairs("gru_step_grad", args);
            let (out_c, rec_c) = (out.plus::<f32>(split), rec.plus::<f32>(split));
            if behind {
                net.by_columns(square, (rec_c, width), r_candidate, dh, false)?;
                let args = vec![part.into(), next.into(), dh.into(), NOWHERE.into(), next.into()];
                net.recipe.each("accumulate", part, args);
            } else {
                net.by_columns(square, (out_c, width), r_candidate, product, false)?;
                let args = [gates, before, product, out, rec, next].map(Into::into).to_vec();
                net.pairs("gru_reset_grad", args);
            }
            net.by_columns([l.batch, l.hidden, split], (rec, width), r, dh, false)?;
            let args = vec![part.into(), dh.into(), next.into(), NOWHERE.into(), dh.into()];
            net.recipe.each("accumulate", part, args);
            if spec.wants(2) && before != NOWHERE {
                let dr = result(2).plus::<f32>(d * width * l.hidden);
                net.transposed([split, l.hidden, l.batch], (rec, width), before, dr)?;
                let state = if behind { before } else { product };
                if !behind {
                    let args = [gates, before, product].map(Into::into).to_vec();
                    net.pairs("gru_reset", args);
                }
                let dr = dr.plus::<f32>(split * l.hidden);
                net.transposed([l.hidden, l.hidden, l.batch], (rec_c, width), state, dr)?;
            }
        }
        net.put(spec, 4, d, part, dh);
        net.input_gradients(spec, d, dgates)?;
        if spec.wants(3) {
            let db = result(3).plus::<f32>(d * 2 * width);
            net.row_sums(dgates, db);
            net.row_sums(recurrent, db.plus::<f32>(width));
        }
    }
    Ok(net.recipe)
}
