//! `ai.lmsc.Attention` and `ai.lmsc.AttentionGrad` against their definition in double precision, with scores as a whole.

mod support;

use support::{Tensor, float, numbers, run, truth};

/// Extents and attributes of a case.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    heads: usize,
    groups: usize,
    rows: usize,
    keys: usize,
    width: usize,
    value_width: usize,
    causal: bool,
    mask: Mask,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mask {
    Nothing,
    /// Truth values `[rows, keys]`, of which the second row is false.
    Truth,
    /// Numbers `[batch, 1, rows, keys]`, one of which is -∞.
    Added,
    /// Numbers `[heads, 1, keys]`.
    ByHead,
    /// A number so low that nothing is left of the scores beside it, for all keys of the first row.
    Lowest,
}

/// The term that a mask adds to the score of a sample, head, row and key.
type Added = Box<dyn Fn([usize; 4]) -> f64>;

const PLAIN: Case = Case {
    batch: 1,
    heads: 1,
    groups: 1,
    rows: 3,
    keys: 5,
    width: 4,
    value_width: 2,
    causal: false,
    mask: Mask::Nothing,
};

impl Case {
    fn tensor(&self, dims: [usize; 4], seed: u32) -> Tensor {
        float(&dims.map(|n| n as u64), numbers(dims.iter().product(), seed))
    }

    /// Queries, keys, values, and the gradient of the result.
    fn operands(&self, seed: u32) -> [Tensor; 4] {
        let Case { batch, heads, groups, rows, keys, width, value_width, .. } = *self;
        [
            self.tensor([batch, heads, rows, width], seed),
            self.tensor([batch, groups, keys, width], seed + 1),
            self.tensor([batch, groups, keys, value_width], seed + 2),
            self.tensor([batch, heads, rows, value_width], seed + 3),
        ]
    }

    /// The mask as an operand, and the number that it adds to a score.
    fn mask(&self) -> (Option<Tensor>, Added) {
        let Case { batch, heads, rows, keys, .. } = *self;
        let index = |n: usize, seed: u32| numbers(n, seed);
        match self.mask {
            Mask::Nothing => (None, Box::new(|_| 0.0)),
            Mask::Truth => {
                let counts: Vec<bool> = index(rows * keys, 9)
                    .iter()
                    .enumerate()
                    .map(|(i, x)| i / keys != 1 && *x < 0.4)
                    .collect();
                let tensor = truth(&[rows as u64, keys as u64], &counts);
                (
                    Some(tensor),
                    Box::new(move |[_, _, r, k]| if counts[r * keys + k] { 0.0 } else { f64::NEG_INFINITY }),
                )
            }
            Mask::Added => {
                let mut added = index(batch * rows * keys, 9);
                added[rows * keys - 1] = f32::NEG_INFINITY;
                let tensor = float(&[batch as u64, 1, rows as u64, keys as u64], added.clone());
                (Some(tensor), Box::new(move |[b, _, r, k]| f64::from(added[(b * rows + r) * keys + k])))
            }
            Mask::ByHead => {
                let added = index(heads * keys, 9);
                let tensor = float(&[heads as u64, 1, keys as u64], added.clone());
                (Some(tensor), Box::new(move |[_, h, _, k]| f64::from(added[h * keys + k])))
            }
            Mask::Lowest => {
                let added: Vec<f32> =
                    (0..rows * keys).map(|i| if i < keys { f32::MIN } else { 0.0 }).collect();
                let tensor = float(&[rows as u64, keys as u64], added.clone());
                (Some(tensor), Box::new(move |[_, _, r, k]| f64::from(added[r * keys + k])))
            }
        }
    }

    fn attributes(&self, scale: f32) -> String {
        format!("<is_causal = {}, scale = {scale:?}>", i32::from(self.causal))
    }

    fn ty(dims: &[usize]) -> String {
        format!("float{dims:?}").replace(' ', "")
    }

    /// Results of the operators: result, maxima, sums, and the gradients of queries, keys and values.
    fn found(&self, operands: &[Tensor; 4], scale: f32) -> [Vec<f32>; 6] {
        let Case { batch, heads, groups, rows, keys, width, value_width, .. } = *self;
        let ([q, k, v, dy], (mask, _)) = (operands.clone(), self.mask());
        let (result, row) = ([batch, heads, rows, value_width], [batch, heads, rows]);
        let types = format!("{} y, {} m, {} s", Case::ty(&result), Case::ty(&row), Case::ty(&row));
        let given: Vec<Tensor> = [q.clone(), k.clone(), v.clone()].into_iter().chain(mask.clone()).collect();
        let forward = format!("ai.lmsc.Attention{}", self.attributes(scale));
        let [y, m, s] = run(&types, &forward, &given).try_into().unwrap();
        let kept = [(&result[..], &y), (&row, &m), (&row, &s)]
            .map(|(dims, values)| float(&dims.iter().map(|&n| n as u64).collect::<Vec<_>>(), values.clone()));
        let given: Vec<Tensor> = [dy, q, k, v].into_iter().chain(kept).chain(mask).collect();
        let types = [
            Case::ty(&[batch, heads, rows, width]),
            Case::ty(&[batch, groups, keys, width]),
            Case::ty(&[batch, groups, keys, value_width]),
        ];
        let types = format!("{} dq, {} dk, {} dv", types[0], types[1], types[2]);
        let backward = format!("ai.lmsc.AttentionGrad{}", self.attributes(scale));
        let [dq, dk, dv] = run(&types, &backward, &given).try_into().unwrap();
        [y, m, s, dq, dk, dv]
    }

    /// The same by definition.
    fn expected(&self, operands: &[Tensor; 4], scale: f32) -> [Vec<f64>; 6] {
        let Case { batch, heads, groups, rows, keys, width, value_width, causal, .. } = *self;
        let [q, k, v, dy] = operands.each_ref().map(Tensor::floats);
        let added = self.mask().1;
        let mut all =
            [vec![0.0; dy.len()], vec![], vec![], vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
        let dot = |a: &[f32], b: &[f32]| support::dot(a, b);
        for (b, h, r) in (0..batch * heads * rows).map(|i| (i / rows / heads, i / rows % heads, i % rows)) {
            let (row, group) = ((b * heads + h) * rows + r, b * groups + h / (heads / groups));
            let query = &q[row * width..][..width];
            let key = |j: usize| &k[(group * keys + j) * width..][..width];
            let value = |j: usize| &v[(group * keys + j) * value_width..][..value_width];
            let slope = &dy[row * value_width..][..value_width];
            let score = |j: usize| {
                if causal && j > r {
                    return f64::NEG_INFINITY;
                }
                // A score is rounded where the mask is added.
                let product = (f64::from(scale) * dot(query, key(j))) as f32;
                f64::from(product + added([b, h, r, j]) as f32)
            };
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let most = scores.iter().fold(f64::NEG_INFINITY, |m, &s| m.max(s));
            let raised = |s: f64| if s == f64::NEG_INFINITY { 0.0 } else { (s - most).exp() };
            let sum: f64 = scores.iter().map(|&s| raised(s)).sum();
            let weights: Vec<f64> =
                scores.iter().map(|&s| if sum == 0.0 { 0.0 } else { raised(s) / sum }).collect();
            all[1].push(most);
            all[2].push(sum);
            let mean: f64 = weights.iter().enumerate().map(|(j, w)| w * dot(slope, value(j))).sum();
            for (j, weight) in weights.iter().enumerate() {
                let change = f64::from(scale) * weight * (dot(slope, value(j)) - mean);
                for c in 0..value_width {
                    all[0][row * value_width + c] += weight * f64::from(value(j)[c]);
                    all[5][(group * keys + j) * value_width + c] += weight * f64::from(slope[c]);
                }
                for c in 0..width {
                    all[3][row * width + c] += change * f64::from(key(j)[c]);
                    all[4][(group * keys + j) * width + c] += change * f64::from(query[c]);
                }
            }
        }
        all
    }

    fn check(&self, seed: u32, scale: f32) {
        let operands = self.operands(seed);
        let (found, expected) = (self.found(&operands, scale), self.expected(&operands, scale));
        for (name, (found, expected)) in
            ["y", "maxima", "sums", "dq", "dk", "dv"].iter().zip(found.iter().zip(&expected))
        {
            let largest = expected.iter().filter(|x| x.is_finite()).fold(1e-30, |m: f64, x| m.max(x.abs()));
            for (i, (&a, &b)) in found.iter().zip(expected).enumerate() {
                let same = f64::from(a) == b || (f64::from(a) - b).abs() <= 1e-5 * largest;
                assert!(same, "{self:?}: {name}: element {i} of {} is {a}, not {b}", expected.len());
            }
            assert_eq!(found.len(), expected.len(), "{self:?}: {name}");
        }
    }
}

#[test]
fn attention_and_its_gradient_are_their_definition() {
    for mask in [Mask::Nothing, Mask::Truth, Mask::Added, Mask::ByHead, Mask::Lowest] {
        for causal in [false, true] {
            let small = Case { causal, mask, ..PLAIN };
            small.check(1, 0.5);
            Case { batch: 2, heads: 4, groups: 2, ..small }.check(2, 1.0);
            Case { heads: 3, rows: 7, keys: 4, ..small }.check(3, -2.0);
            Case { heads: 2, rows: 33, keys: 40, width: 35, value_width: 33, ..small }.check(4, 0.2);
        }
    }
}

/// More tiles than one along each axis, with one pass over each group and with two.
#[test]
fn tiles_add_up() {
    for causal in [false, true] {
        let plain = Case { rows: 150, keys: 270, width: 5, value_width: 3, causal, ..PLAIN };
        plain.check(5, 0.7);
        Case { heads: 2, rows: 270, keys: 150, mask: Mask::Truth, ..plain }.check(6, 1.3);
        Case { batch: 4, heads: 8, groups: 4, rows: 70, mask: Mask::ByHead, ..plain }.check(7, 0.3);
    }
}

#[test]
fn one_pass_over_a_group_has_the_bits_of_two() {
    let one = Case { rows: 150, keys: 600, width: 8, value_width: 8, causal: true, ..PLAIN };
    let operands = one.operands(8);
    let many = Case { batch: 16, ..one };
    let repeated = operands.each_ref().map(|tensor| {
        let values = tensor.floats();
        let rows = if values.len() == 150 * 8 { 150 } else { 600 };
        float(&[16, 1, rows, 8], values.repeat(16))
    });
    for (one, many) in one.found(&operands, 0.5).iter().zip(&many.found(&repeated, 0.5)) {
        assert!(many.chunks(one.len()).all(|many| many == one));
    }
}

#[test]
fn tensors_without_elements_are_attended_to() {
    for [batch, heads, rows, keys, width, value_width] in [
        [0, 2, 3, 5, 4, 2],
        [2, 0, 3, 5, 4, 2],
        [1, 2, 0, 5, 4, 2],
        [1, 2, 3, 0, 4, 2],
        [1, 2, 3, 5, 0, 2],
        [1, 2, 3, 5, 4, 0],
    ] {
        let case = Case { batch, heads, groups: heads, rows, keys, width, value_width, ..PLAIN };
        if heads > 0 {
            case.check(9, 0.5);
        } else {
            assert!(case.found(&case.operands(9), 0.5).iter().all(Vec::is_empty));
        }
    }
}

/// A planner may run the operator again for one of its results.
#[test]
fn results_may_be_unused() {
    let case = Case { heads: 2, rows: 40, ..PLAIN };
    let operands = case.operands(10);
    let all = case.found(&operands, 0.5);
    let [q, k, v, dy] = operands;
    let forward = "ai.lmsc.Attention<is_causal = 0, scale = 0.5>";
    let given = [q.clone(), k.clone(), v.clone()];
    assert_eq!(run("float[1,2,40,2] y", forward, &given)[0], all[0]);
    let [y, m, s] = [0, 1, 2].map(|i| all[i].clone());
    let kept = [float(&[1, 2, 40, 2], y), float(&[1, 2, 40], m), float(&[1, 2, 40], s)];
    let given: Vec<Tensor> = [dy, q, k, v].into_iter().chain(kept).collect();
    let backward = "ai.lmsc.AttentionGrad<is_causal = 0, scale = 0.5>";
    assert_eq!(run("float[1,2,40,4] dq", backward, &given)[0], all[3]);
}
