//! The pass `fuse-attention`: attention in many forms is found, and the step computes the same values; so does a step of which
//! one operand or number was changed, fused or not. `LMSC_REPORT=1` prints the numbers.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use crate::chunk_loss::{files, run};
use crate::kernels::{load, read};
use crate::support::models::MODELS;
use lmsc_ir::rng::Source;
use lmsc_ir::{Def, Graph, NodeId, ValueId, verify};
use lmsc_passes::{PassCx, Pipeline};
use lmsc_testing::Rng;

fn report(line: &str) {
    if std::env::var_os("LMSC_REPORT").is_some() {
        _ = writeln!(std::io::stdout(), "{line}");
    }
}

/// The graph after the pass with the remarks, and whether it changed.
fn fused(graph: &Graph) -> (Graph, Vec<String>, bool) {
    let mut after = graph.clone();
    let ran = Pipeline::parse("fuse-attention")
        .unwrap()
        .run(&mut after, &PassCx::default())
        .unwrap_or_else(|e| panic!("{e}\n{}", graph.to_text()));
    let outcome = &ran[0].outcome;
    (after, outcome.remarks.clone(), outcome.changed)
}

/// The largest difference of two results, relative to their largest number or to 1: gradients of a softmax are differences, which may
/// be nothing but rounding.
fn largest(before: &[(String, Vec<f32>)], after: &[(String, Vec<f32>)]) -> (f32, String) {
    let each = before.iter().zip(after).map(|((name, a), (other, b))| {
        assert_eq!(name, other);
        let size = a.iter().fold(1.0f32, |most, x| most.max(x.abs()));
        let off = a
            .iter()
            .zip(b)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, |most: f32, x| if x.is_nan() { x } else { most.max(x) });
        (off / size, name.clone())
    });
    each.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}

/// The largest difference of two results, relative to their largest number, or to a thousandth of that of all results.
fn among(before: &[(String, Vec<f32>)], after: &[(String, Vec<f32>)]) -> (f32, String) {
    let most = |list: &[f32]| list.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let all = before.iter().map(|(_, list)| most(list)).fold(0.0, f32::max);
    let each = before.iter().zip(after).map(|((name, a), (_, b))| {
        let off = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        (off / most(a).max(all * 1e-3), name.clone())
    });
    each.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}

fn list(numbers: impl IntoIterator<Item = f32>) -> String {
    let all: Vec<String> = numbers.into_iter().map(|x| format!("{x:?}")).collect();
    all.join(", ")
}

/// Writes a step of one attention, in one of many forms.
struct Form<'r> {
    rng: &'r mut Rng,
    nodes: String,
    constants: Vec<String>,
    count: usize,
    batch: usize,
    heads: usize,
}

impl Form<'_> {
    fn pick(&mut self, count: usize) -> usize {
        self.rng.below(count)
    }

    fn flip(&mut self) -> bool {
        self.rng.below(2) == 0
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("t{}", self.count)
    }

    /// The type of matrices `[rows, columns]` in four axes, or in three.
    fn ty(&self, [r, c]: [usize; 2], is_flat: bool) -> String {
        let (b, h) = (self.batch, self.heads);
        if is_flat { format!("float[{},{r},{c}]", b * h) } else { format!("float[{b},{h},{r},{c}]") }
    }

    fn node(&mut self, ty: &str, call: &str) -> String {
        let name = self.name();
        writeln!(self.nodes, "    [n_{name}] {ty} {name} = {call}").unwrap();
        name
    }

    fn scalar(&mut self, number: f32) -> String {
        let name = self.name();
        self.constants.push(format!("float[] {name} = {{{number:?}}}"));
        name
    }

    fn shape(&mut self, dims: &[usize]) -> String {
        let name = self.name();
        let all: Vec<String> = dims.iter().map(ToString::to_string).collect();
        self.constants.push(format!("int64[{}] {name} = {{{}}}", dims.len(), all.join(", ")));
        name
    }

    fn reshaped(&mut self, x: &str, size: [usize; 2], to_flat: bool) -> String {
        let (b, h) = (self.batch, self.heads);
        let dims = if to_flat { vec![b * h, size[0], size[1]] } else { vec![b, h, size[0], size[1]] };
        let (shape, ty) = (self.shape(&dims), self.ty(size, to_flat));
        self.node(&ty, &format!("Reshape({x}, {shape})"))
    }

    fn turned(&mut self, x: &str, [r, c]: [usize; 2], is_flat: bool) -> String {
        let perm = if is_flat { "[0, 2, 1]" } else { "[0, 1, 3, 2]" };
        let ty = self.ty([c, r], is_flat);
        self.node(&ty, &format!("Transpose<perm = {perm}>({x})"))
    }

    /// `a b`, where `a` is `[r, k]` and `b` is `[k, c]`; each may be given turned.
    fn product(&mut self, a: (&str, bool), b: (&str, bool), [r, k, c]: [usize; 3]) -> String {
        let is_flat = self.flip();
        let of = |(_, is_turned): (&str, bool), [r, c]: [usize; 2]| if is_turned { [c, r] } else { [r, c] };
        let (size_a, size_b) = (of(a, [r, k]), of(b, [k, c]));
        let (mut x, mut y) = (a.0.to_owned(), b.0.to_owned());
        if is_flat {
            (x, y) = (self.reshaped(&x, size_a, true), self.reshaped(&y, size_b, true));
        }
        let other_way = self.pick(4) == 0;
        let is_fused = self.flip();
        let ((x, turn_x, size_x), (y, turn_y, size_y)) = if other_way {
            ((y, !b.1, size_b), (x, !a.1, size_a))
        } else {
            ((x, a.1, size_a), (y, b.1, size_b))
        };
        let size = if other_way { [c, r] } else { [r, c] };
        let ty = self.ty(size, is_flat);
        let mut result = if is_fused {
            let flags = format!("transA = {}, transB = {}", u8::from(turn_x), u8::from(turn_y));
            self.node(&ty, &format!("com.microsoft.FusedMatMul<{flags}>({x}, {y})"))
        } else {
            let x = if turn_x { self.turned(&x, size_x, is_flat) } else { x };
            let y = if turn_y { self.turned(&y, size_y, is_flat) } else { y };
            self.node(&ty, &format!("MatMul({x}, {y})"))
        };
        if other_way {
            result = self.turned(&result, size, is_flat);
        }
        if is_flat { self.reshaped(&result, [r, c], false) } else { result }
    }

    fn scaled(&mut self, x: &str, ty: &str, by: f32) -> String {
        match self.pick(3) {
            0 => {
                let by = self.scalar(1.0 / by);
                self.node(ty, &format!("Div({x}, {by})"))
            }
            1 => {
                let by = self.scalar(by);
                self.node(ty, &format!("Mul({by}, {x})"))
            }
            _ => {
                let by = self.scalar(by);
                self.node(ty, &format!("Mul({x}, {by})"))
            }
        }
    }

    /// The scores with a mask of this kind: none, added, causal, or of truth values, which are the second result, with whether they keep scores and a zero.
    fn masked(
        &mut self,
        mut scores: String,
        mask_kind: usize,
        [rows, keys]: [usize; 2],
        ty: &str,
    ) -> (String, Option<(String, bool, String)>) {
        let seen = |i: usize, j: usize| j <= i;
        let hidden = format!("{:?}", if self.flip() { f32::MIN } else { -1e30 });
        let mut truth = None;
        match mask_kind {
            0 => {}
            1 => scores = self.node(ty, &format!("Add({scores}, padding)")),
            2 => {
                let all = (0..rows * keys).map(|at| if seen(at / keys, at % keys) { 0.0 } else { f32::MIN });
                let name = self.name();
                self.constants.push(format!("float[1,1,{rows},{keys}] {name} = {{{}}}", list(all)));
                scores = self.node(ty, &format!("Add({name}, {scores})"));
            }
            _ => {
                // Causal, of any keys of which one counts in each row, or all keys but one.
                let column = self.pick(keys);
                let counts = |at: usize| match mask_kind {
                    3 | 4 => seen(at / keys, at % keys),
                    5 => at % keys == column || (at * 7).is_multiple_of(3),
                    _ => at % keys != column,
                };
                let is_kept = self.flip();
                let all: Vec<&str> =
                    (0..rows * keys).map(|at| if counts(at) == is_kept { "1" } else { "0" }).collect();
                let name = self.name();
                self.constants.push(format!("bool[1,1,{rows},{keys}] {name} = {{{}}}", all.join(", ")));
                let fill = self.name();
                self.constants.push(format!("float[] {fill} = {{{hidden}}}"));
                let zero = self.scalar(0.0);
                let call = |x: &str, fill: &str| {
                    if is_kept {
                        format!("Where({name}, {x}, {fill})")
                    } else {
                        format!("Where({name}, {fill}, {x})")
                    }
                };
                scores = self.node(ty, &call(&scores, &fill));
                truth = Some((name.clone(), is_kept, zero));
                if mask_kind == 4 {
                    let all = (0..rows * keys)
                        .map(|at| if at % keys == 0 { 0.0 } else { at as f32 * 0.125 - 0.25 });
                    let name = self.name();
                    self.constants.push(format!("float[{rows},{keys}] {name} = {{{}}}", list(all)));
                    scores = self.node(ty, &format!("Add({scores}, {name})"));
                }
            }
        }
        (scores, truth)
    }
}

/// A step of one attention with its gradients.
fn step(rng: &mut Rng) -> Graph {
    let (batch, heads) = (1 + rng.below(2), 1 + rng.below(3));
    let mut f = Form { rng, nodes: String::new(), constants: Vec::new(), count: 0, batch, heads };
    let (rows, width, value_width) = (2 + f.pick(5), 1 + f.pick(5), 1 + f.pick(5));
    let mask_kind = f.pick(7);
    let keys = if (2..=4).contains(&mask_kind) { rows } else { 2 + f.pick(5) };
    let is_turned = f.flip();
    let key_size = if is_turned { [width, keys] } else { [keys, width] };
    let inputs = format!(
        "{} q, {} k, {} v, {} dy, float[{batch},1,1,{keys}] padding",
        f.ty([rows, width], false),
        f.ty(key_size, false),
        f.ty([keys, value_width], false),
        f.ty([rows, value_width], false)
    );
    let ty = f.ty([rows, keys], false);
    let scale = [0.5, 2.0, 1.0][f.pick(3)];
    let place = f.pick(3);
    // Scaled queries and keys have gradients of their own.
    let (mut q, mut k) = ("q".to_owned(), "k".to_owned());
    if place == 1 {
        let ty = f.ty([rows, width], false);
        q = f.scaled(&q, &ty, scale);
    }
    if place == 2 {
        let ty = f.ty(key_size, false);
        k = f.scaled(&k, &ty, scale);
    }
    let mut scores = f.product((&q, false), (&k, !is_turned), [rows, width, keys]);
    if place == 0 {
        scores = f.scaled(&scores, &ty, scale);
    }
    let (scores, truth) = f.masked(scores, mask_kind, [rows, keys], &ty);
    let weights = f.node(&ty, &format!("Softmax<axis = -1>({scores})"));
    let y = f.product((&weights, false), ("v", false), [rows, keys, value_width]);
    let mut outputs = vec![format!("{} {y}", f.ty([rows, value_width], false))];
    let wants: Vec<bool> = (0..3).map(|_| f.pick(4) > 0).collect();
    if wants[2] {
        let dv = f.product((&weights, true), ("dy", false), [keys, rows, value_width]);
        outputs.push(format!("{} {dv}", f.ty([keys, value_width], false)));
    }
    if wants[0] || wants[1] {
        let slope = f.product(("dy", false), ("v", true), [rows, value_width, keys]);
        let mut slope = if f.flip() {
            f.node(&ty, &format!("com.microsoft.SoftmaxGrad_13<axis = -1>({slope}, {weights})"))
        } else {
            let axes = f.shape(&[3]);
            let each = f.node(&ty, &format!("Mul({slope}, {weights})"));
            let of_sum = f.ty([rows, 1], false);
            let sum = f.node(&of_sum, &format!("ReduceSum<keepdims = 1>({each}, {axes})"));
            let mean = f.node(&ty, &format!("Mul({weights}, {sum})"));
            f.node(&ty, &format!("Sub({each}, {mean})"))
        };
        if let Some((name, is_kept, zero)) = truth {
            let call = if is_kept {
                format!("({name}, {slope}, {zero})")
            } else {
                format!("({name}, {zero}, {slope})")
            };
            slope = f.node(&ty, &format!("Where{call}"));
        }
        if place == 0 {
            slope = f.scaled(&slope, &ty, scale);
        }
        if wants[0] {
            let dq = f.product((&slope, false), (&k, is_turned), [rows, keys, width]);
            outputs.push(format!("{} {dq}", f.ty([rows, width], false)));
        }
        if wants[1] {
            let dk = f.product((&slope, true), (&q, false), [keys, rows, width]);
            outputs.push(format!("{} {dk}", f.ty([keys, width], false)));
        }
    }
    let constants =
        if f.constants.is_empty() { String::new() } else { format!("< {} >", f.constants.join(", ")) };
    let text = format!(
        "<opset: \"\" = 17, \"com.microsoft\" = 1>\nattention ({inputs}) => ({})\n{constants}\n{{\n{}}}",
        outputs.join(", "),
        f.nodes
    );
    Graph::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn cases() -> u64 {
    lmsc_testing::cases(300, 1000, 5000)
}

#[test]
fn attention_in_many_forms_is_found_and_computes_the_same() {
    let mut most = (0.0, String::new());
    for seed in 0..cases() {
        let graph = step(&mut Rng::new(seed));
        let (after, remarks, changed) = fused(&graph);
        assert!(changed, "seed {seed}: {remarks:?}\n{}", graph.to_text());
        let error = largest(&run(&graph, 2), &run(&after, 2));
        assert!(error.0 < 1e-5, "seed {seed}: {error:?}\n{}\n{}", graph.to_text(), after.to_text());
        let scores = after.order().iter().filter(|&&id| after.node(id).op.name().contains("Softmax")).count();
        assert_eq!(scores, 0, "seed {seed}: {}", after.to_text());
        if error.0 > most.0 {
            most = (error.0, format!("seed {seed}, {}", error.1));
        }
    }
    report(&format!("{} forms, off by at most {:.1e}: {}", cases(), most.0, most.1));
}

/// The graph with one operand replaced by another value of its type, or one number of a constant by another.
fn mutated(graph: &Graph, rng: &mut Rng) -> Option<Graph> {
    let mut graph = graph.clone();
    let ticks = graph.ticks();
    let at = rng.below(graph.order().len());
    let id = graph.order()[at];
    let index = rng.below(graph.node(id).operands.len().max(1));
    let old = graph.node(id).operands.get(index).copied().flatten()?;
    let is_before = |value: ValueId| match graph.def(value) {
        Def::Result(node, _) => (ticks[node.as_u32() as usize] as usize) < at,
        _ => true,
    };
    let others: Vec<ValueId> = graph
        .values()
        .filter(|&(value, it)| value != old && it.ty == graph.value(old).ty && is_before(value))
        .map(|(value, _)| value)
        .collect();
    let new = *others.get(rng.below(others.len().max(1)))?;
    // A number that hides keys is as large as 3.4e38. Anywhere else, it would multiply the rounding error of a difference.
    let is_where = |id: NodeId| graph.node(id).op.name() == "Where";
    let hides = |&id: &NodeId| is_where(id) && graph.node(id).operands[1..].contains(&Some(new));
    let is_scalar = graph.value(new).ty.as_tensor().is_some_and(|ty| ty.dims.is_empty());
    if is_scalar && !is_where(id) && graph.order().iter().any(hides) {
        return None;
    }
    graph.set_operand(id, index, new);
    verify(&graph).is_ok().then_some(graph)
}

#[test]
fn a_changed_step_computes_the_same_fused_or_not() {
    let (mut tried, mut still) = (0, 0);
    for seed in 0..cases() * 4 {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let Some(graph) = mutated(&step(&mut rng), &mut rng) else { continue };
        tried += 1;
        let (after, remarks, changed) = fused(&graph);
        if !changed {
            continue;
        }
        still += 1;
        let (before, after_values) = (run(&graph, 2), run(&after, 2));
        if before.iter().any(|(_, list)| list.iter().any(|x| !x.is_finite() || x.abs() > 1e6)) {
            continue;
        }
        let error = largest(&before, &after_values);
        assert!(
            error.0 < 1e-5,
            "seed {seed}: {error:?} {remarks:?}\n{}\n{}",
            graph.to_text(),
            after.to_text()
        );
    }
    report(&format!("{tried} changed steps, {still} of them still attention"));
    assert!(tried > 200 && still < tried, "{tried} {still}");
}

#[test]
fn models_compute_the_same() {
    let mut count = 0;
    for (path, recorded) in files() {
        let recording = read(&recorded.with_extension("recorded.safetensors"));
        let name = path.strip_prefix(MODELS).unwrap_or(Path::new("")).display().to_string();
        let graph = load(&path, &recording, None);
        if graph.opsets.get("").copied().unwrap_or_default() < 13 {
            continue;
        }
        let (after, remarks, changed) = fused(&graph);
        if !remarks.is_empty() {
            report(&format!("{name}: {}", remarks.join("; ")));
        }
        if !changed {
            continue;
        }
        count += 1;
        let error = among(&run(&graph, 2), &run(&after, 2));
        report(&format!("{name}: off by at most {:.1e} ({})", error.0, error.1));
        // Adam divides small gradients by their own size.
        let allowed = if name.contains("adam") { 1e-3 } else { 1e-4 };
        assert!(error.0 < allowed, "{name}: {error:?}");
    }
    assert!(count > 0, "no model has attention");
}
