//! Recurrent layers, as loops over their steps: their text does not grow with the number of steps, and their results are one
//! buffer each.

use lmsc_ir::{Attr, TensorType};

use super::{Cx, Why};
use crate::stablehlo::writer::Val;

/// Extents, and the direction of the passes.
struct Layer {
    steps: u64,
    batch: u64,
    hidden: u64,
    directions: u64,
    reverse: bool,
}

impl Layer {
    /// The layer, from X and R, the operands 0 and 2, with four gates of an LSTM or three of a GRU.
    fn of(cx: &Cx<'_>, lengths: usize, gates: u64) -> Result<Layer, Why> {
        let (x, r) = (cx.operand(0)?, cx.operand(2)?);
        let (&[steps, batch, _], &[directions, _, hidden]) = (x.dims(), r.dims()) else {
            return Err("X or R has not three dimensions".into());
        };
        if cx.optional(lengths).is_some() {
            return Err("there is no rule for lengths of sequences".into());
        }
        let usual = match cx.node.attribute("activations") {
            None => true,
            Some(Attr::Strings(names)) => {
                let usual = [&b"sigmoid"[..], b"tanh", b"tanh"];
                let usual = &usual[..gates as usize - 1];
                names.iter().zip(usual.iter().cycle()).all(|(name, usual)| name.eq_ignore_ascii_case(usual))
            }
            Some(_) => false,
        };
        let is_set = |name| Ok::<bool, Why>(cx.knows(name) && cx.flag(name)?);
        let changed = is_set("layout")? || is_set("input_forget")?;
        if !usual || changed || cx.node.attribute("clip").is_some() {
            return Err("there is no rule for another layout, coupled gates, clipping or other activations than the usual ones".into());
        }
        let width = gates * hidden;
        if hidden == 0 || [cx.operand(1)?.dims(), r.dims()].iter().any(|dims| dims.get(1) != Some(&width)) {
            return Err(Why(format!("its weights are not those of {gates} gates")));
        }
        let direction = cx.text("direction").unwrap_or_default();
        if directions != if direction == b"bidirectional" { 2 } else { 1 } || steps == 0 {
            return Err(
                "its weights are for other directions than its attribute says, or it has no steps".into()
            );
        }
        Ok(Layer { steps, batch, hidden, directions, reverse: direction == b"reverse" })
    }

    /// Whether a direction takes the last step first.
    fn backward(&self, direction: u64) -> bool {
        self.reverse || direction == 1
    }
}

impl Cx<'_> {
    /// One element of the first dimension, without it.
    fn part(&mut self, x: &Val, index: u64) -> Val {
        let mut bounds: Vec<(u64, u64, u64)> = x.dims().iter().map(|&dim| (0, dim, 1)).collect();
        bounds[0] = (index, index + 1, 1);
        let part = self.w.slice(x, &bounds);
        self.w.reshape(&part, &x.dims()[1..])
    }

    /// A direction's part of a tensor `[steps, directions, …]`.
    fn of_direction(&mut self, x: &Val, direction: u64) -> Val {
        let mut bounds: Vec<(u64, u64, u64)> = x.dims().iter().map(|&dim| (0, dim, 1)).collect();
        bounds[1] = (direction, direction + 1, 1);
        let part = self.w.slice(x, &bounds);
        self.w.reshape(&part, &[&x.dims()[..1], &x.dims()[2..]].concat())
    }

    /// The directions' results, stacked along a new dimension.
    fn directions(&mut self, parts: &[Val], axis: usize) -> Val {
        let parts: Vec<Val> = parts
            .iter()
            .map(|part| {
                let mut dims = part.dims().to_vec();
                dims.insert(axis, 1);
                self.w.reshape(part, &dims)
            })
            .collect();
        match &parts[..] {
            [one] => one.clone(),
            parts => self.w.concatenate(&parts.iter().collect::<Vec<_>>(), axis),
        }
    }

    /// The initial state of a direction: the operand's, or zeros.
    fn state(&mut self, index: usize, direction: u64, ty: &TensorType) -> Val {
        match self.optional(index) {
            Some(states) => self.part(&states, direction),
            None => self.splat(0.0, ty),
        }
    }

    /// The gates in `[rows, gates · hidden]`, one tensor each.
    fn gates(&mut self, x: &Val, hidden: u64) -> Vec<Val> {
        let bounds = |gate: u64| [(0, x.dims()[0], 1), (gate * hidden, (gate + 1) * hidden, 1)];
        (0..x.dims()[1] / hidden).map(|gate| self.w.slice(x, &bounds(gate))).collect()
    }

    /// `x · (1 - x)`.
    fn slope(&mut self, x: &Val) -> Val {
        let one = self.splat(1.0, &x.ty);
        let rest = self.op("subtract", &one, x);
        self.op("multiply", x, &rest)
    }

    /// The step of a loop's iteration, counted backward if `backward` is set.
    fn step(&mut self, counter: &Val, steps: u64, backward: bool) -> Val {
        if !backward {
            return counter.clone();
        }
        let last = self.w.integers(&counter.ty, &[steps as i64 - 1]);
        self.w.elementwise("subtract", &[&last, counter])
    }
}

/// `LSTM(X, W, R, B, lengths, h0, c0, P → Y, Yh, Yc)`, and `LSTMTraining`, which also keeps each cell and the gates i, o, f, c.
pub(super) fn lstm(cx: &mut Cx<'_>) -> Result<(), Why> {
    let layer = Layer::of(cx, 4, 4)?;
    if cx.optional(7).is_some() {
        return Err("there is no rule for peepholes".into());
    }
    let (x, w, r) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let &Layer { steps, batch, hidden, directions, .. } = &layer;
    let state = TensorType::new(x.element(), [batch, hidden]);
    let mut found: [Vec<Val>; 5] = Default::default();
    for d in 0..directions {
        let (w, r) = (cx.part(&w, d), cx.part(&r, d));
        let mut gates = cx.w.dot(&x, &w, [&[], &[]], [&[2], &[1]]);
        if let Some(bias) = cx.optional(3) {
            let bias = cx.part(&bias, d);
            let bias = [0, 4 * hidden].map(|at| cx.w.slice(&bias, &[(at, at + 4 * hidden, 1)]));
            let bias = cx.op("add", &bias[0], &bias[1]);
            gates = cx.op("add", &gates, &bias);
        }
        let (h, c) = (cx.state(5, d, &state), cx.state(6, d, &state));
        // The values of each step that are used. The gates overwrite the values that they are computed from. The initial contents
        // of the other buffers do not matter, but IREE merges buffers with equal initial contents.
        let asked = [0, 3].map(|index| cx.wanted(index).is_some());
        let beginning = |at: u64| [(0, steps, 1), (0, batch, 1), (at * hidden, (at + 1) * hidden, 1)];
        let filled: Vec<Val> = (0..2)
            .filter(|&value| asked[value as usize])
            .map(|value| cx.w.slice(&gates, &beginning(value)))
            .collect();
        let carried = [&[h, c, gates][..], &filled].concat();
        let (loops, counter, carried) = cx.w.begin_loop(steps, &carried);
        let at = cx.step(&counter, steps, layer.backward(d));
        let [h, c, gates, filled @ ..] = &carried[..] else {
            unreachable!("a loop carries what it was given")
        };
        let inputs = cx.w.element(gates, &at);
        let product = cx.w.dot(h, &r, [&[], &[]], [&[1], &[1]]);
        let sum = cx.op("add", &inputs, &product);
        let parts = cx.gates(&sum, hidden);
        let parts: Vec<Val> = parts
            .iter()
            .enumerate()
            .map(|(gate, part)| cx.w.elementwise(if gate < 3 { "logistic" } else { "tanh" }, &[part]))
            .collect();
        let [input, output, forget, candidate] = &parts[..] else {
            return Err("it has not four gates".into());
        };
        let kept = cx.op("multiply", forget, c);
        let new = cx.op("multiply", input, candidate);
        let c = cx.op("add", &kept, &new);
        let tanh = cx.w.elementwise("tanh", &[&c]);
        let h = cx.op("multiply", output, &tanh);
        let all = cx.w.concatenate(&parts.iter().collect::<Vec<_>>(), 1);
        let gates = cx.w.with_element(gates, &all, &at);
        let values = [&h, &c].into_iter().zip(asked).filter(|(_, asked)| *asked).map(|(value, _)| value);
        let filled: Vec<Val> =
            values.zip(filled).map(|(value, filled)| cx.w.with_element(filled, value, &at)).collect();
        let results = cx.w.end_loop(loops, &counter, &[&[h, c, gates][..], &filled].concat());
        let [h, c, gates, filled @ ..] = &results[..] else { unreachable!("a loop gives what it carries") };
        let mut filled = filled.iter().cloned();
        for (index, asked) in [0, 3].into_iter().zip(asked) {
            found[index].extend(if asked { filled.next() } else { None });
        }
        found[1].push(h.clone());
        found[2].push(c.clone());
        found[4].push(gates.clone());
    }
    for (index, parts) in found.iter().enumerate() {
        if cx.wanted(index).is_some() {
            let all = cx.directions(parts, if index == 1 || index == 2 { 0 } else { 1 });
            cx.give(index, all)?;
        }
    }
    Ok(())
}

/// The states before each step, from the states after each step and the first state.
fn before(cx: &mut Cx<'_>, first: &Val, states: &Val, backward: bool) -> Val {
    let steps = states.dims()[0];
    let first = cx.w.reshape(first, &[&[1], first.dims()].concat());
    if steps == 1 {
        return first;
    }
    let mut bounds: Vec<(u64, u64, u64)> = states.dims().iter().map(|&dim| (0, dim, 1)).collect();
    bounds[0] = if backward { (1, steps, 1) } else { (0, steps - 1, 1) };
    let rest = cx.w.slice(states, &bounds);
    cx.w.concatenate(&if backward { [&rest, &first] } else { [&first, &rest] }, 0)
}

/// Adds a direction's gradients of X, W, R and the bias, the first of `found`, from those of the gates' products with X and with the
/// states before each step.
fn weight_gradients(
    cx: &mut Cx<'_>,
    found: &mut [Vec<Val>],
    [of_inputs, of_states]: [&Val; 2],
    [x, w]: [&Val; 2],
    states: impl FnOnce(&mut Cx<'_>) -> Val,
) {
    if cx.wanted(0).is_some() {
        let dx = cx.w.dot(of_inputs, w, [&[], &[]], [&[2], &[0]]);
        let sum = match found[0].pop() {
            Some(other) => cx.op("add", &other, &dx),
            None => dx,
        };
        found[0].push(sum);
    }
    let over_steps: [&[usize]; 2] = [&[0, 1], &[0, 1]];
    if cx.wanted(1).is_some() {
        found[1].push(cx.w.dot(of_inputs, x, [&[], &[]], over_steps));
    }
    if cx.wanted(2).is_some() {
        let states = states(cx);
        found[2].push(cx.w.dot(of_states, &states, [&[], &[]], over_steps));
    }
    if cx.wanted(3).is_some() {
        let sums = [of_inputs, of_states].map(|gates| cx.w.sum(gates, &[0, 1]));
        found[3].push(cx.w.concatenate(&sums.each_ref(), 0));
    }
}

/// Gives the gradients that are used: the first is the sum over the directions, the others have one part for each.
fn give_gradients(cx: &mut Cx<'_>, found: &[Vec<Val>]) -> Result<(), Why> {
    for (index, parts) in found.iter().enumerate() {
        if cx.wanted(index).is_some() {
            let all = if index == 0 { parts[0].clone() } else { cx.directions(parts, 0) };
            cx.give(index, all)?;
        }
    }
    Ok(())
}

/// `LSTMGrad(X, W, R, lengths, h0, c0, Y, cells, gates, dY, dYh, dYc → dX, dW, dR, dB, dh0, dc0)`.
pub(super) fn lstm_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let layer = Layer::of(cx, 3, 4)?;
    let (x, w, r) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let (y, cells, gates) = (cx.operand(6)?, cx.operand(7)?, cx.operand(8)?);
    let &Layer { steps, batch, hidden, directions, .. } = &layer;
    let state = TensorType::new(x.element(), [batch, hidden]);
    let mut found: [Vec<Val>; 6] = Default::default();
    for d in 0..directions {
        let (w, r) = (cx.part(&w, d), cx.part(&r, d));
        let [y, cells, gates] = [&y, &cells, &gates].map(|kept| cx.of_direction(kept, d));
        let dy = cx.optional(9).map(|dy| cx.of_direction(&dy, d));
        let (h0, c0) = (cx.state(4, d, &state), cx.state(5, d, &state));
        let cells_before = before(cx, &c0, &cells, layer.backward(d));
        let (dh, dc) = (cx.state(10, d, &state), cx.state(11, d, &state));
        // The gradients of the gates overwrite the gates.
        let (loops, counter, carried) = cx.w.begin_loop(steps, &[dh, dc, gates]);
        // In the reverse direction.
        let at = cx.step(&counter, steps, !layer.backward(d));
        let [dh, dc, dgates] = &carried[..] else { unreachable!("a loop carries what it was given") };
        let mut dh = dh.clone();
        if let Some(dy) = dy {
            let here = cx.w.element(&dy, &at);
            dh = cx.op("add", &dh, &here);
        }
        let here = cx.w.element(dgates, &at);
        let parts = cx.gates(&here, hidden);
        let [input, output, forget, candidate] = &parts[..] else {
            return Err("it has not four gates".into());
        };
        let [cell, cell_before] = [&cells, &cells_before].map(|kept| cx.w.element(kept, &at));
        let tanh = cx.w.elementwise("tanh", &[&cell]);
        let one = cx.splat(1.0, &state);
        let mut product = |factors: &[&Val]| {
            let first = factors[0].clone();
            factors[1..].iter().fold(first, |product, factor| cx.op("multiply", &product, factor))
        };
        let squares = [product(&[&tanh, &tanh]), product(&[candidate, candidate])];
        let through = product(&[&dh, output]);
        let [tanh_slope, candidate_slope] = squares.map(|square| cx.op("subtract", &one, &square));
        let through = cx.op("multiply", &through, &tanh_slope);
        let d_cell = cx.op("add", dc, &through);
        let slopes = [input, output, forget].map(|gate| cx.slope(gate));
        let mut product = |factors: [&Val; 3]| {
            let first = cx.op("multiply", factors[0], factors[1]);
            cx.op("multiply", &first, factors[2])
        };
        let new = [
            product([&d_cell, candidate, &slopes[0]]),
            product([&dh, &tanh, &slopes[1]]),
            product([&d_cell, &cell_before, &slopes[2]]),
            product([&d_cell, input, &candidate_slope]),
        ];
        let new = cx.w.concatenate(&new.each_ref(), 1);
        let dgates = cx.w.with_element(dgates, &new, &at);
        let dc = cx.op("multiply", &d_cell, forget);
        let dh = cx.w.dot(&new, &r, [&[], &[]], [&[1], &[0]]);
        let results = cx.w.end_loop(loops, &counter, &[dh, dc, dgates]);
        let [dh, dc, dgates] = &results[..] else { unreachable!("a loop gives what it carries") };

        let states = |cx: &mut Cx<'_>| before(cx, &h0, &y, layer.backward(d));
        weight_gradients(cx, &mut found, [dgates, dgates], [&x, &w], states);
        found[4].push(dh.clone());
        found[5].push(dc.clone());
    }
    give_gradients(cx, &found)
}

/// The layer of a GRU that resets the state after its product with the recurrent weights, as PyTorch's does.
fn resets_behind(cx: &Cx<'_>) -> Result<Layer, Why> {
    if !cx.flag("linear_before_reset")? {
        return Err("there is no rule for a GRU that resets the state before its product".into());
    }
    Layer::of(cx, 4, 3)
}

/// The columns of the gates z and r, and those of the candidate.
fn split(cx: &mut Cx<'_>, x: &Val, hidden: u64) -> [Val; 2] {
    let mut bounds: Vec<(u64, u64, u64)> = x.dims().iter().map(|&dim| (0, dim, 1)).collect();
    let last = bounds.len() - 1;
    [(0, 2 * hidden, 1), (2 * hidden, 3 * hidden, 1)].map(|columns| {
        bounds[last] = columns;
        cx.w.slice(x, &bounds)
    })
}

/// The recurrent bias of the candidate in a direction, if there is a bias.
fn inner_bias(cx: &mut Cx<'_>, direction: u64, hidden: u64) -> Option<Val> {
    let bias = cx.optional(3)?;
    let bias = cx.part(&bias, direction);
    Some(cx.w.slice(&bias, &[(5 * hidden, 6 * hidden, 1)]))
}

/// `GRU(X, W, R, B, lengths, h0 → Y, Yh)`, and `GRUTraining`, which also keeps the gates z, r, h.
pub(super) fn gru(cx: &mut Cx<'_>) -> Result<(), Why> {
    let layer = resets_behind(cx)?;
    let (x, w, r) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let &Layer { steps, batch, hidden, directions, .. } = &layer;
    let state = TensorType::new(x.element(), [batch, hidden]);
    let mut found: [Vec<Val>; 3] = Default::default();
    for d in 0..directions {
        let (w, r) = (cx.part(&w, d), cx.part(&r, d));
        let mut gates = cx.w.dot(&x, &w, [&[], &[]], [&[2], &[1]]);
        if let Some(bias) = cx.optional(3) {
            let bias = cx.part(&bias, d);
            let of_inputs = cx.w.slice(&bias, &[(0, 3 * hidden, 1)]);
            // The recurrent bias of the candidate is reset with its product.
            let of_states = cx.w.slice(&bias, &[(3 * hidden, 5 * hidden, 1)]);
            let zeros = cx.splat(0.0, &TensorType::new(x.element(), [hidden]));
            let of_states = cx.w.concatenate(&[&of_states, &zeros], 0);
            let bias = cx.op("add", &of_inputs, &of_states);
            gates = cx.op("add", &gates, &bias);
        }
        let inner_bias = inner_bias(cx, d, hidden);
        let h = cx.state(5, d, &state);
        let asked = cx.wanted(0).is_some();
        let beginning = [(0, steps, 1), (0, batch, 1), (0, hidden, 1)];
        let filled = asked.then(|| cx.w.slice(&gates, &beginning));
        let carried: Vec<Val> = [h, gates].into_iter().chain(filled).collect();
        let (loops, counter, carried) = cx.w.begin_loop(steps, &carried);
        let at = cx.step(&counter, steps, layer.backward(d));
        let [h, gates, filled @ ..] = &carried[..] else { unreachable!("a loop carries what it was given") };
        let inputs = cx.w.element(gates, &at);
        let product = cx.w.dot(h, &r, [&[], &[]], [&[1], &[1]]);
        let [[inputs, candidate], [product, mut inner]] = [&inputs, &product].map(|x| split(cx, x, hidden));
        let sum = cx.op("add", &inputs, &product);
        let activated = cx.w.elementwise("logistic", &[&sum]);
        let [z, reset] = &cx.gates(&activated, hidden)[..] else { return Err("it has not two gates".into()) };
        if let Some(bias) = &inner_bias {
            inner = cx.op("add", &inner, bias);
        }
        let kept = cx.op("multiply", reset, &inner);
        let sum = cx.op("add", &candidate, &kept);
        let new = cx.w.elementwise("tanh", &[&sum]);
        let one = cx.splat(1.0, &state);
        let rest = cx.op("subtract", &one, z);
        let (new_part, old_part) = (cx.op("multiply", &rest, &new), cx.op("multiply", z, h));
        let h = cx.op("add", &new_part, &old_part);
        let all = cx.w.concatenate(&[&activated, &new], 1);
        let gates = cx.w.with_element(gates, &all, &at);
        let filled: Vec<Val> = filled.iter().map(|filled| cx.w.with_element(filled, &h, &at)).collect();
        let results = cx.w.end_loop(loops, &counter, &[&[h, gates][..], &filled].concat());
        let [h, gates, filled @ ..] = &results[..] else { unreachable!("a loop gives what it carries") };
        found[0].extend(filled.iter().cloned());
        found[1].push(h.clone());
        found[2].push(gates.clone());
    }
    for (index, parts) in found.iter().enumerate() {
        if cx.wanted(index).is_some() {
            let all = cx.directions(parts, usize::from(index != 1));
            cx.give(index, all)?;
        }
    }
    Ok(())
}

/// `GRUGrad(X, W, R, B, lengths, h0, Y, gates, dY, dYh → dX, dW, dR, dB, dh0)`.
pub(super) fn gru_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let layer = resets_behind(cx)?;
    let (x, w, r) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let (y, gates) = (cx.operand(6)?, cx.operand(7)?);
    let &Layer { steps, batch, hidden, directions, .. } = &layer;
    let state = TensorType::new(x.element(), [batch, hidden]);
    let mut found: [Vec<Val>; 5] = Default::default();
    for d in 0..directions {
        let (w, r) = (cx.part(&w, d), cx.part(&r, d));
        let [y, gates] = [&y, &gates].map(|kept| cx.of_direction(kept, d));
        let dy = cx.optional(8).map(|dy| cx.of_direction(&dy, d));
        let h0 = cx.state(5, d, &state);
        let states = before(cx, &h0, &y, layer.backward(d));
        let of_candidate = cx.w.slice(&r, &[(2 * hidden, 3 * hidden, 1), (0, hidden, 1)]);
        let mut inner = cx.w.dot(&states, &of_candidate, [&[], &[]], [&[2], &[1]]);
        if let Some(bias) = inner_bias(cx, d, hidden) {
            inner = cx.op("add", &inner, &bias);
        }
        let dh = cx.state(9, d, &state);
        // The gradients of the gates overwrite the gates.
        let (loops, counter, carried) = cx.w.begin_loop(steps, &[dh, gates.clone()]);
        // In the reverse direction.
        let at = cx.step(&counter, steps, !layer.backward(d));
        let [dh, dgates] = &carried[..] else { unreachable!("a loop carries what it was given") };
        let mut dh = dh.clone();
        if let Some(dy) = dy {
            let here = cx.w.element(&dy, &at);
            dh = cx.op("add", &dh, &here);
        }
        let here = cx.w.element(dgates, &at);
        let [z, reset, candidate] = &cx.gates(&here, hidden)[..] else {
            return Err("it has not three gates".into());
        };
        let [state_before, inner] = [&states, &inner].map(|kept| cx.w.element(kept, &at));
        let one = cx.splat(1.0, &state);
        let [z_slope, reset_slope] = [z, reset].map(|gate| cx.slope(gate));
        let square = cx.op("multiply", candidate, candidate);
        let candidate_slope = cx.op("subtract", &one, &square);
        let rest = cx.op("subtract", &one, z);
        let difference = cx.op("subtract", &state_before, candidate);
        let mut product = |factors: [&Val; 3]| {
            let first = cx.op("multiply", factors[0], factors[1]);
            cx.op("multiply", &first, factors[2])
        };
        let d_candidate = product([&dh, &rest, &candidate_slope]);
        let d_z = product([&dh, &difference, &z_slope]);
        let d_reset = product([&d_candidate, &inner, &reset_slope]);
        let d_inner = cx.op("multiply", &d_candidate, reset);
        let new = cx.w.concatenate(&[&d_z, &d_reset, &d_candidate], 1);
        let recurrent = cx.w.concatenate(&[&d_z, &d_reset, &d_inner], 1);
        let dgates = cx.w.with_element(dgates, &new, &at);
        let kept = cx.op("multiply", &dh, z);
        let through = cx.w.dot(&recurrent, &r, [&[], &[]], [&[1], &[0]]);
        let dh = cx.op("add", &kept, &through);
        let results = cx.w.end_loop(loops, &counter, &[dh, dgates]);
        let [dh, dgates] = &results[..] else { unreachable!("a loop gives what it carries") };

        let [d_activated, d_candidate] = split(cx, dgates, hidden);
        let of_reset = [(0, steps, 1), (0, batch, 1), (hidden, 2 * hidden, 1)];
        let reset = cx.w.slice(&gates, &of_reset);
        let d_inner = cx.op("multiply", &d_candidate, &reset);
        let recurrent = cx.w.concatenate(&[&d_activated, &d_inner], 2);
        weight_gradients(cx, &mut found, [dgates, &recurrent], [&x, &w], |_| states);
        found[4].push(dh.clone());
    }
    give_gradients(cx, &found)
}
