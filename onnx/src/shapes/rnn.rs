//! Recurrent layers.

use lmsc_ir::TensorType;

use super::{Answer, Cx, Fact, Refusal, result_extent, wrong};

/// The extents of a recurrent layer.
struct Layer<'a> {
    x: &'a TensorType,
    steps: u64,
    batch: u64,
    directions: u64,
    hidden: u64,
    batch_first: bool,
}

impl<'a> Layer<'a> {
    fn new(cx: &Cx<'a>, gates: u64) -> Result<Layer<'a>, Refusal> {
        let (x, w, r) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
        let batch_first = cx.knows("layout") && cx.flag("layout")?;
        let (&[a, b, inputs], &[directions, rows, columns], &[_, _, hidden]) = (&*x.dims, &*w.dims, &*r.dims)
        else {
            return no_layer(cx, "each of rank 3");
        };
        let named = cx.int_if_any("hidden_size")?;
        let wide = i128::from(hidden) * i128::from(gates);
        let fits = columns == inputs
            && i128::from(rows) == wide
            && r.dims[..2] == w.dims[..2]
            && named.is_none_or(|n| i128::from(n) == i128::from(hidden));
        if !fits {
            if let Some(named) = named.filter(|&n| i128::from(n) != i128::from(hidden)) {
                return wrong(format!("attribute `hidden_size` is {named}, but R is {}", cx.typed(2)));
            }
            let expected =
                format!("W [directions, {gates} * hidden, inputs], R [directions, {gates} * hidden, hidden]");
            return no_layer(cx, &expected);
        }
        let (steps, batch) = if batch_first { (b, a) } else { (a, b) };
        Ok(Layer { x, steps, batch, directions, hidden, batch_first })
    }

    /// Every step's state, or gates.
    fn every_step(&self, width: u64) -> Result<Option<Fact>, Refusal> {
        let Layer { steps: t, batch: b, directions: d, .. } = *self;
        let width = result_extent(3, i128::from(self.hidden) * i128::from(width))?;
        let dims = if self.batch_first { [b, t, d, width] } else { [t, d, b, width] };
        Ok(Some(TensorType::new(self.x.element, dims).into()))
    }

    /// Values that operators of onnxruntime keep for the backward pass: never batch first.
    fn kept(&self, width: u64) -> Result<Option<Fact>, Refusal> {
        let width = result_extent(3, i128::from(self.hidden) * i128::from(width))?;
        let dims = [self.steps, self.directions, self.batch, width];
        Ok(Some(TensorType::new(self.x.element, dims).into()))
    }

    /// The last step's state.
    fn last_step(&self) -> Option<Fact> {
        let Layer { batch: b, directions: d, hidden: h, .. } = *self;
        let dims = if self.batch_first { [b, d, h] } else { [d, b, h] };
        Some(TensorType::new(self.x.element, dims).into())
    }

    /// The extents of the states of one step, of the values kept for the backward pass, `width` wide, and of the biases.
    fn extents(&self, gates: u64, width: u64) -> Result<[Vec<u64>; 3], Refusal> {
        let tensor = |fact: Option<Fact>| {
            fact.and_then(|f| f.ty.as_tensor().map(|ty| ty.dims.clone())).unwrap_or_default()
        };
        Ok([tensor(self.last_step()), tensor(self.kept(width)?), tensor(self.bias(gates)?)])
    }

    /// Refuses operands of the forward pass behind X, W and R that do not match them.
    fn expect(&self, cx: &Cx<'_>, gates: u64) -> Result<(), Refusal> {
        let [state, _, bias] = self.extents(gates, 1)?;
        cx.expect(3, &bias)?;
        cx.expect(4, &[self.batch])?;
        [5, 6].into_iter().try_for_each(|i| cx.expect(i, &state))?;
        cx.expect(7, &[self.directions, result_extent(1, 3 * i128::from(self.hidden))?])
    }

    fn bias(&self, gates: u64) -> Result<Option<Fact>, Refusal> {
        let width = result_extent(1, i128::from(self.hidden) * i128::from(2 * gates))?;
        Ok(Some(TensorType::new(self.x.element, [self.directions, width]).into()))
    }
}

fn no_layer<T>(cx: &Cx<'_>, expected: &str) -> Result<T, Refusal> {
    let (x, w, r) = (cx.typed(0), cx.typed(1), cx.typed(2));
    wrong(format!("X {x}, W {w} and R {r} do not fit one another; expected {expected}"))
}

/// `RNN`, `GRU`, `LSTM`: every state, and the last.
pub(super) fn recurrent(cx: &Cx<'_>, gates: u64) -> Answer {
    let layer = Layer::new(cx, gates)?;
    layer.expect(cx, gates)?;
    Ok(vec![layer.every_step(1)?, layer.last_step(), layer.last_step()])
}

/// `LSTMTraining`: also every cell state, and the gates.
pub(super) fn lstm_training(cx: &Cx<'_>) -> Answer {
    let layer = Layer::new(cx, 4)?;
    layer.expect(cx, 4)?;
    let states = [layer.every_step(1)?, layer.last_step(), layer.last_step()];
    Ok(states.into_iter().chain([layer.kept(1)?, layer.kept(4)?]).collect())
}

/// `GRUTraining`: also the gates.
pub(super) fn gru_training(cx: &Cx<'_>) -> Answer {
    let layer = Layer::new(cx, 3)?;
    layer.expect(cx, 3)?;
    Ok(vec![layer.every_step(1)?, layer.last_step(), layer.kept(3)?])
}

/// `LSTMGrad(X, W, R, …)` and `GRUGrad`: gradients of X, W, R, the bias and the first states.
pub(super) fn gradient(cx: &Cx<'_>, gates: u64) -> Answer {
    let layer = Layer::new(cx, gates)?;
    let [state, all_gates, bias] = layer.extents(gates, gates)?;
    let [_, states, _] = layer.extents(gates, 1)?;
    let (batch, lstm) = ([layer.batch], gates == 4);
    let (of_states, of_all, kept, at_lengths): (&[usize], &[usize], usize, usize) =
        if lstm { (&[4, 5, 10, 11], &[6, 7, 9], 8, 3) } else { (&[5, 9], &[6, 8], 7, 4) };
    if !lstm {
        cx.expect(3, &bias)?;
    }
    cx.expect(at_lengths, &batch)?;
    cx.expect(kept, &all_gates)?;
    of_states.iter().try_for_each(|&i| cx.expect(i, &state))?;
    of_all.iter().try_for_each(|&i| cx.expect(i, &states))?;
    let mut facts = cx.like(&[0, 1, 2])?;
    facts.extend([layer.bias(gates)?, layer.last_step(), layer.last_step()]);
    Ok(facts)
}
