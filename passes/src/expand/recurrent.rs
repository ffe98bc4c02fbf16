//! Rules of recurrent layers, unrolled into steps, as ONNX has no operator that keeps the values that gradients
//! need.

use lmsc_ir::ValueId;

use super::builder::Builder;

/// Extents, and whether the only direction is the reverse one.
struct Layer {
    steps: u64,
    batch: u64,
    inputs: u64,
    hidden: u64,
    directions: u64,
    reverse: bool,
}

impl Layer {
    /// The layer of an LSTM, from X and R, its operands 0 and 2. `None` if the operand `lengths` is given.
    fn of(b: &Builder<'_>, lengths: usize) -> Option<Layer> {
        let (x, r) = (b.dims(b.floats(0)?), b.dims(b.floats(2)?));
        let (&[steps, batch, inputs], &[directions, width, hidden]) = (&x[..], &r[..]) else { return None };
        let usual: [&[u8]; 3] = [b"sigmoid", b"tanh", b"tanh"];
        let is_usual = match b.texts("activations") {
            None => !b.has("activations"),
            Some(names) => {
                names.iter().zip(usual.iter().cycle()).all(|(name, usual)| name.eq_ignore_ascii_case(usual))
            }
        };
        let changed = b.flag("input_forget")? || b.has("clip");
        let direction = b.text("direction")?;
        let fits = width == 4 * hidden
            && b.dims(b.floats(1)?) == [directions, width, inputs]
            && directions == if direction == b"bidirectional" { 2 } else { 1 }
            && [steps, batch, inputs, hidden].iter().all(|&extent| extent > 0);
        let reverse = direction == b"reverse";
        let layer = Layer { steps, batch, inputs, hidden, directions, reverse };
        (is_usual && !changed && fits && b.operand(lengths).is_none()).then_some(layer)
    }

    /// The order of the steps in a direction.
    fn order(&self, direction: u64) -> Vec<u64> {
        let mut steps: Vec<u64> = (0..self.steps).collect();
        if self.reverse || direction == 1 {
            steps.reverse();
        }
        steps
    }

    /// The initial state of a direction: a part of the operand, or zeros.
    fn state(&self, b: &mut Builder<'_>, index: usize, direction: u64) -> Option<ValueId> {
        match b.operand(index) {
            Some(states) => part(b, states, 0, direction),
            None => Some(b.zeros(&[self.batch, self.hidden])),
        }
    }

    /// The first `N` gates, each `hidden` columns.
    fn gates<const N: usize>(&self, b: &mut Builder<'_>, x: ValueId) -> Option<[ValueId; N]> {
        let gates = (0..N as u64).map(|gate| b.slice(x, 1, gate * self.hidden..(gate + 1) * self.hidden));
        gates.collect::<Option<Vec<_>>>()?.try_into().ok()
    }
}

/// The element of the axis at `index`, without that axis.
fn part(b: &mut Builder<'_>, x: ValueId, axis: usize, index: u64) -> Option<ValueId> {
    let mut dims = b.dims(x);
    let part = if dims.get(axis) == Some(&1) { x } else { b.slice(x, axis, index..index + 1)? };
    dims.remove(axis);
    b.reshape(part, &dims)
}

/// Tensors of the same extents, stacked along a new axis.
fn stack(b: &mut Builder<'_>, parts: &[ValueId], axis: usize) -> Option<ValueId> {
    let parts = parts.iter().map(|&part| {
        let mut dims = b.dims(part);
        dims.insert(axis, 1);
        b.reshape(part, &dims)
    });
    let parts = parts.collect::<Option<Vec<_>>>()?;
    b.concat(&parts, axis)
}

fn transposed(b: &mut Builder<'_>, matrix: ValueId) -> Option<ValueId> {
    b.transpose(matrix, &[1, 0])
}

/// `1 - x²`.
fn slope_of_tanh(b: &mut Builder<'_>, x: ValueId) -> Option<ValueId> {
    let one = b.scalar(1.0);
    let square = b.binary("Mul", x, x)?;
    b.binary("Sub", one, square)
}

/// `x · (1 - x)`.
fn slope_of_sigmoid(b: &mut Builder<'_>, x: ValueId) -> Option<ValueId> {
    let one = b.scalar(1.0);
    let rest = b.binary("Sub", one, x)?;
    b.binary("Mul", x, rest)
}

fn product(b: &mut Builder<'_>, factors: &[ValueId]) -> Option<ValueId> {
    let (&first, rest) = factors.split_first()?;
    rest.iter().try_fold(first, |product, &factor| b.binary("Mul", product, factor))
}

/// `LSTMTraining(X, W, R, B, lengths, h0, c0, P → Y, Yh, Yc, cells, gates)`: with gates i, o, f, c of `X · Wᵀ + h · Rᵀ + B`,
/// the cell is `f · cell + i · c`, and `h = o · tanh(cell)`.
pub(super) fn lstm(b: &mut Builder<'_>) -> Option<()> {
    let layer = Layer::of(b, 4)?;
    b.operand(7).is_none().then_some(())?;
    let (x, w, r) = (b.floats(0)?, b.floats(1)?, b.floats(2)?);
    let mut found: [Vec<ValueId>; 5] = Default::default();
    for direction in 0..layer.directions {
        let (w, r) = (part(b, w, 0, direction)?, part(b, r, 0, direction)?);
        let (w, r) = (transposed(b, w)?, transposed(b, r)?);
        let mut all = b.matmul(x, w)?;
        if b.operand(3).is_some() {
            let bias = b.floats(3)?;
            let bias = part(b, bias, 0, direction)?;
            let [one, other] = [0, 4 * layer.hidden].map(|at| b.slice(bias, 0, at..at + 4 * layer.hidden));
            let bias = b.binary("Add", one?, other?)?;
            all = b.binary("Add", all, bias)?;
        }
        let (mut h, mut cell) = (layer.state(b, 5, direction)?, layer.state(b, 6, direction)?);
        let mut kept = vec![None; layer.steps as usize];
        for step in layer.order(direction) {
            let inputs = part(b, all, 0, step)?;
            let state = b.matmul(h, r)?;
            let sum = b.binary("Add", inputs, state)?;
            let [i, o, f, c] = layer.gates(b, sum)?;
            let [i, o, f] = [i, o, f].map(|gate| b.unary("Sigmoid", gate));
            let (i, o, f, c) = (i?, o?, f?, b.unary("Tanh", c)?);
            let (stays, new) = (b.binary("Mul", f, cell)?, b.binary("Mul", i, c)?);
            cell = b.binary("Add", stays, new)?;
            let cell_tanh = b.unary("Tanh", cell)?;
            h = b.binary("Mul", o, cell_tanh)?;
            kept[step as usize] = Some([h, cell, b.concat(&[i, o, f, c], 1)?]);
        }
        let kept: Vec<[ValueId; 3]> = kept.into_iter().collect::<Option<_>>()?;
        for (value, result) in [0, 3, 4].into_iter().enumerate() {
            if b.wants(result) {
                let steps: Vec<ValueId> = kept.iter().map(|kept| kept[value]).collect();
                found[result].push(stack(b, &steps, 0)?);
            }
        }
        found[1].push(h);
        found[2].push(cell);
    }
    for (index, parts) in found.iter().enumerate() {
        if b.wants(index) {
            let all = stack(b, parts, if index == 1 || index == 2 { 0 } else { 1 })?;
            b.give(index, all)?;
        }
    }
    Some(())
}

/// `LSTMGrad(X, W, R, lengths, h0, c0, Y, cells, gates, dY, dYh, dYc → dX, dW, dR, dB, dh0, dc0)`: the steps in
/// reverse order, then products over all steps.
pub(super) fn lstm_grad(b: &mut Builder<'_>) -> Option<()> {
    let layer = Layer::of(b, 3)?;
    let (x, w, r) = (b.floats(0)?, b.floats(1)?, b.floats(2)?);
    let (y, cells, gates) = (b.floats(6)?, b.floats(7)?, b.floats(8)?);
    let rows = layer.steps * layer.batch;
    let x = b.reshape(x, &[rows, layer.inputs])?;
    let mut found: [Vec<ValueId>; 6] = Default::default();
    for direction in 0..layer.directions {
        let (w, r) = (part(b, w, 0, direction)?, part(b, r, 0, direction)?);
        let [y, cells, gates] = [y, cells, gates].map(|kept| part(b, kept, 1, direction));
        let (y, cells, gates) = (y?, cells?, gates?);
        let dy = match b.operand(9) {
            Some(dy) => Some(part(b, dy, 1, direction)?),
            None => None,
        };
        let (h0, c0) = (layer.state(b, 4, direction)?, layer.state(b, 5, direction)?);
        let (mut dh, mut dc) = (layer.state(b, 10, direction)?, layer.state(b, 11, direction)?);
        let order = layer.order(direction);
        // For each step, the gradient of the sums before the gates' activations, and the state before the step.
        let mut kept = vec![None; layer.steps as usize];
        for (place, &step) in order.iter().enumerate().rev() {
            let before = place.checked_sub(1).map(|place| order[place]);
            let [h_before, cell_before] = [(y, h0), (cells, c0)].map(|(all, first)| match before {
                Some(before) => part(b, all, 0, before),
                None => Some(first),
            });
            if let Some(dy) = dy {
                let here = part(b, dy, 0, step)?;
                dh = b.binary("Add", dh, here)?;
            }
            let (here, cell) = (part(b, gates, 0, step)?, part(b, cells, 0, step)?);
            let [i, o, f, c] = layer.gates(b, here)?;
            let cell_tanh = b.unary("Tanh", cell)?;
            let slope = slope_of_tanh(b, cell_tanh)?;
            let through = product(b, &[dh, o, slope])?;
            let d_cell = b.binary("Add", dc, through)?;
            let slopes = [i, o, f].map(|gate| slope_of_sigmoid(b, gate));
            let new = [
                product(b, &[d_cell, c, slopes[0]?])?,
                product(b, &[dh, cell_tanh, slopes[1]?])?,
                product(b, &[d_cell, cell_before?, slopes[2]?])?,
                {
                    let slope = slope_of_tanh(b, c)?;
                    product(b, &[d_cell, i, slope])?
                },
            ];
            let sums = b.concat(&new, 1)?;
            dc = b.binary("Mul", d_cell, f)?;
            dh = b.matmul(sums, r)?;
            kept[step as usize] = Some([sums, h_before?]);
        }
        let kept: Vec<[ValueId; 2]> = kept.into_iter().collect::<Option<_>>()?;
        let [sums, states] = [0, 1].map(|i| kept.iter().map(|kept| kept[i]).collect::<Vec<_>>());
        let sums = b.concat(&sums, 0)?;
        if b.wants(0) {
            let dx = b.matmul(sums, w)?;
            let sum = match found[0].pop() {
                Some(other) => b.binary("Add", other, dx)?,
                None => dx,
            };
            found[0].push(sum);
        }
        if b.wants(1) || b.wants(2) {
            let columns = transposed(b, sums)?;
            let states = b.concat(&states, 0)?;
            found[1].push(b.matmul(columns, x)?);
            found[2].push(b.matmul(columns, states)?);
        }
        if b.wants(3) {
            let sum = b.sum(sums, &[0], false)?;
            found[3].push(b.concat(&[sum, sum], 0)?);
        }
        found[4].push(dh);
        found[5].push(dc);
    }
    for (index, parts) in found.iter().enumerate() {
        if b.wants(index) {
            let all = match index {
                0 => b.reshape(parts[0], &[layer.steps, layer.batch, layer.inputs])?,
                _ => stack(b, parts, 0)?,
            };
            b.give(index, all)?;
        }
    }
    Some(())
}
