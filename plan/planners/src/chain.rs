//! Chains of stages, the model of OPT §3.1, as instance files have them.

use lmsc_ir::Phase;
use lmsc_schedule::problem::{COMPUTE, Duplex, Link, Operator, Problem, Tensor, TensorId};

/// A network of consecutive stages: `F_0 … F_{n-1}`, then `B_{n-1} … B_0`.
///
/// `F_i` reads `x_i` and produces `x_{i+1}`, which represents everything that `F_i` keeps for the backward pass. `B_i` reads
/// `x_i`, `x_{i+1}` and `y_{i+1}` and produces `y_i`. Only the `x_i` may be swapped.
///
/// # Source
/// OPT §3.1. The paper counts stages both from 0 and from 1; here they count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Nanoseconds of `F_i`.
    pub forward_nanos: Vec<u64>,
    /// Nanoseconds of `B_i`.
    pub backward_nanos: Vec<u64>,
    /// Bytes of `x_i`: one more than there are stages.
    pub activation_bytes: Vec<u64>,
    /// Bytes of the gradient `y_i`: one more than there are stages.
    pub gradient_bytes: Vec<u64>,
    /// Workspace bytes of `F_i`.
    pub forward_workspace: Vec<u64>,
    /// Workspace bytes of `B_i`.
    pub backward_workspace: Vec<u64>,
    /// Bytes per second of the link, in each direction.
    pub bytes_per_second: u64,
}

impl Chain {
    /// The number of stages.
    pub fn stages(&self) -> usize {
        self.forward_nanos.len()
    }

    /// The bytes that `F_i` needs besides `x_0 … x_{i+1}`: its workspace and, in the last stage, `y_n`.
    pub fn forward_extra(&self, i: usize) -> u64 {
        let loss = if i + 1 == self.stages() { self.gradient_bytes[i + 1] } else { 0 };
        self.forward_workspace[i] + loss
    }

    /// The bytes that `B_i` needs besides `x_0 … x_{i+1}`: its workspace, `y_i` and `y_{i+1}`.
    pub fn backward_extra(&self, i: usize) -> u64 {
        self.backward_workspace[i] + self.gradient_bytes[i] + self.gradient_bytes[i + 1]
    }

    /// The most bytes that an operator needs if nothing is swapped out.
    ///
    /// # Source
    /// `M_peak` of OPT §3.2, which leaves out that `F_{n-1}` also produces `y_n`.
    pub fn peak(&self) -> u64 {
        let mut kept = self.activation_bytes[0];
        let stages = (0..self.stages()).map(|i| {
            kept += self.activation_bytes[i + 1];
            kept + self.forward_extra(i).max(self.backward_extra(i))
        });
        stages.max().unwrap_or(0)
    }

    /// The same chain as operators and tensors, over a half-duplex link as in the paper.
    ///
    /// Tick `i` is `F_i`, tick `2n-1-i` is `B_i`. Tensors without bytes are omitted.
    pub fn problem(&self) -> Problem {
        let n = self.stages();
        let mut problem = Problem {
            kinds: ["F", "B"].map(str::to_owned).to_vec(),
            link: Link {
                out_bytes_per_second: self.bytes_per_second,
                in_bytes_per_second: self.bytes_per_second,
                latency_nanos: 0,
                duplex: Duplex::Half,
            },
            ..Problem::default()
        };
        let mut add = |bytes: u64, swappable: bool, given: bool| -> Option<TensorId> {
            let tensor = Tensor { bytes, swappable, given, kept: false };
            (bytes > 0).then(|| problem.tensors.push(tensor))
        };
        let x: Vec<_> = (0..=n).map(|i| add(self.activation_bytes[i], true, i == 0)).collect();
        let y: Vec<_> = (0..=n).map(|i| add(self.gradient_bytes[i], false, false)).collect();
        for i in 0..n {
            let loss = (i + 1 == n).then_some(y[n]).flatten();
            problem.ops.push(Operator {
                kind: 0,
                phase: Phase::Forward,
                nanos: self.forward_nanos[i],
                workspace: self.forward_workspace[i],
                reads: x[i].into_iter().collect(),
                produces: x[i + 1].into_iter().chain(loss).collect(),
                changes: Vec::new(),
                recomputable: true,
                lane: COMPUTE,
            });
        }
        for i in (0..n).rev() {
            problem.ops.push(Operator {
                kind: 1,
                phase: Phase::Backward,
                nanos: self.backward_nanos[i],
                workspace: self.backward_workspace[i],
                reads: [x[i], x[i + 1], y[i + 1]].into_iter().flatten().collect(),
                produces: y[i].into_iter().collect(),
                changes: Vec::new(),
                recomputable: false,
                lane: COMPUTE,
            });
        }
        problem
    }
}
