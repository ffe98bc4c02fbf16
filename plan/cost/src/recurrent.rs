//! Recurrent layers: one product over all steps for the part that does not depend on the state, then a chain of steps.

use super::kernel::Kernel;
use super::product::plain;
use super::rules::{Cost, Cx};
use super::stream::FUNCTION;

/// The extents of a layer `(X: [T, N, I], W: [D, G·H, I], R: [D, G·H, H], …)`.
struct Layer {
    steps: u64,
    batch: u64,
    inputs: u64,
    directions: u64,
    /// The gates of all hidden elements together: G·H.
    wide: u64,
    hidden: u64,
    /// Bytes of an element.
    width: u64,
}

impl Layer {
    fn new(cx: &Cx<'_>) -> Option<Layer> {
        let (x, r) = (cx.tensor(0)?, cx.tensor(2)?);
        let (&[a, b, inputs], &[directions, wide, hidden]) = (&*x.dims, &*r.dims) else { return None };
        let (steps, batch) = if cx.is_set("layout") { (b, a) } else { (a, b) };
        let width = x.element.bits().div_ceil(8);
        Some(Layer { steps, batch, inputs, directions, wide, hidden, width })
    }

    /// Elements of all rows of the input: T·N.
    fn rows(&self) -> u64 {
        self.steps.saturating_mul(self.batch)
    }

    /// A kernel for each step in each direction.
    fn each_step(&self, kernel: Kernel) -> Kernel {
        Kernel { times: self.steps.saturating_mul(self.directions), ..kernel }
    }

    /// The gates of one step: they, the previous state and the next state are read or written.
    fn gates(&self) -> Kernel {
        let elements = self.batch.saturating_mul(self.wide.saturating_add(self.hidden.saturating_mul(3)));
        let flops = self.batch.saturating_mul(self.wide).saturating_mul(FUNCTION);
        self.each_step(Kernel::stream(flops, elements.saturating_mul(self.width)))
    }
}

/// `LSTM`, `GRU`, `RNN` and their training forms.
pub(super) fn forward(cx: &Cx<'_>) -> Option<Cost> {
    let layer = Layer::new(cx)?;
    let Layer { batch, inputs, directions, wide, hidden, width, .. } = layer;
    let input = plain(directions, layer.rows(), wide, inputs, width);
    let state = layer.each_step(plain(1, batch, wide, hidden, width));
    Some(vec![input, state, layer.gates()].into())
}

/// `LSTMGrad(X, W, R, …)`, `GRUGrad`: the chain of steps backward, then dX, dW and dR over all steps at once.
pub(super) fn gradient(cx: &Cx<'_>) -> Option<Cost> {
    let layer = Layer::new(cx)?;
    let Layer { batch, inputs, directions, wide, hidden, width, .. } = layer;
    let state = layer.each_step(plain(1, batch, hidden, wide, width));
    let dx = plain(directions, layer.rows(), inputs, wide, width);
    let dw = plain(directions, wide, inputs, layer.rows(), width);
    let dr = plain(directions, wide, hidden, layer.rows(), width);
    Some(vec![layer.gates(), state, dx, dw, dr].into())
}
