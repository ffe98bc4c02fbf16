//! Inputs whose defaults a caller may replace: random graphs of arithmetic on shapes compute the same bits for every feed after passes
//! and through text and MLIR, and no constant that a pass gets wrong passes the check.

#![allow(clippy::print_stdout, reason = "counts are shown with --nocapture")]

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::support::interpreter::Interpreter;
use lmsc_ir::{Graph, equiv};
use lmsc_kernels::StepContext;
use lmsc_passes::{PassCx, Pipeline};
use lmsc_testing::{Rng, Size, Source, cases, training_graph};

/// A list of integers, one line of a random graph.
struct List {
    name: String,
    length: usize,
    /// Whether it depends on the elements of an input. No pass may make a constant of it.
    is_open: bool,
}

/// A random graph of lists of integers, all of which are outputs.
struct Arithmetic {
    inputs: Vec<String>,
    constants: Vec<String>,
    /// The line of each list of `lists` that a node computes.
    lines: Vec<String>,
    lists: Vec<List>,
}

impl Arithmetic {
    fn new(u: &mut Rng) -> Arithmetic {
        let mut a =
            Arithmetic { inputs: Vec::new(), constants: Vec::new(), lines: Vec::new(), lists: Vec::new() };
        a.inputs.push("float[2,3,4] x".to_owned());
        for index in 0..1 + u.below(3) {
            let (length, elements) = elements(u);
            a.inputs.push(format!("int64[{length}] d{index} = {{{elements}}}"));
            a.lists.push(List { name: format!("d{index}"), length, is_open: true });
        }
        for index in 0..2 + u.below(3) {
            let (length, elements) = elements(u);
            a.constants.push(format!("int64[{length}] c{index} = {{{elements}}}"));
            a.lists.push(List { name: format!("c{index}"), length, is_open: false });
        }
        // Bounds and indices that fit every list.
        a.constants.push("int64[1] zero = {0}, int64[1] one = {1}, int64[2] ends = {0, -1}".to_owned());
        a.constants.push("int64[2] square = {-1, 1}, int64[1] flat = {-1}".to_owned());
        for _ in 0..4 + u.below(12) {
            a.line(u);
        }
        a
    }

    /// Adds a list that a random operator computes of one or two lists.
    fn line(&mut self, u: &mut Rng) {
        let name = format!("v{}", self.lines.len());
        let pick = |u: &mut Rng| &self.lists[u.below(self.lists.len())];
        let (one, other) = (pick(u), pick(u));
        let (a, b) = (&one.name, &other.name);
        let same = other.length == one.length || other.length == 1;
        let both = one.is_open || other.is_open;
        let (length, is_open, call) = match u.below(12) {
            0..3 if same => {
                let op = ["Add", "Sub", "Mul", "Div", "Min", "Max"][u.below(6)];
                (one.length, both, format!("{op}({a}, {b})"))
            }
            3 if one.length + other.length <= 32 => {
                (one.length + other.length, both, format!("Concat<axis = 0>({a}, {b})"))
            }
            4 => (2, one.is_open, format!("Gather({a}, ends)")),
            5 if one.length > 1 => (one.length - 1, one.is_open, format!("Slice({a}, one, far)")),
            6 => (3, false, "Shape(x)".to_owned()),
            7 => (1, false, format!("Shape({a})")),
            8 => {
                // The shape of something that is computed with elements that a caller replaces is known all the same.
                let (n, temporary) = (one.length, format!("{name}_f"));
                self.lines.push(format!("float[{n}] {temporary} = Cast<to = 1>({a})"));
                (1, false, format!("Shape({temporary})"))
            }
            9 => {
                let (n, temporary) = (one.length, format!("{name}_s"));
                self.lines.push(format!("int64[{n},1] {temporary} = Reshape({a}, square)"));
                (n, one.is_open, format!("Reshape({temporary}, flat)"))
            }
            10 => {
                let (n, temporary) = (one.length, format!("{name}_i"));
                self.lines.push(format!("int32[{n}] {temporary} = Cast<to = 6>({a})"));
                (n, one.is_open, format!("Cast<to = 7>({temporary})"))
            }
            _ => (one.length, one.is_open, format!("{}({a})", ["Neg", "Identity"][u.below(2)])),
        };
        self.lines.push(format!("int64[{length}] {name} = {call}"));
        self.lists.push(List { name, length, is_open });
    }

    /// The graph, with this line in place of the one that computes the list of that name.
    fn graph(&self, instead: Option<(&str, &str)>) -> Graph {
        let computed = self.lists.iter().filter(|list| list.name.starts_with('v'));
        let outputs: Vec<String> =
            computed.map(|list| format!("int64[{}] {}", list.length, list.name)).collect();
        let mut text =
            format!("<opset: \"\" = 17>\ng ({}) => ({})\n", self.inputs.join(", "), outputs.join(", "));
        writeln!(text, "< {}, int64[1] far = {{99}} >\n{{", self.constants.join(", ")).unwrap();
        for (index, line) in self.lines.iter().enumerate() {
            let line = match instead {
                Some((name, other)) if line.contains(&format!("] {name} = ")) => other,
                _ => line,
            };
            writeln!(text, "  [n{index}] {line}").unwrap();
        }
        text.push('}');
        Graph::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"))
    }
}

/// A random length and elements, some of them far from 0.
fn elements(u: &mut Rng) -> (usize, String) {
    let length = 1 + u.below(4);
    let edges = [-3, -2, -1, 0, 1, 2, 3, 5, 7, 1 << 31, -(1i64 << 33), i64::MAX];
    let list: Vec<String> = (0..length).map(|_| edges[u.below(edges.len())].to_string()).collect();
    (length, list.join(","))
}

/// The outputs of a step in which each input with a default has random elements of this seed, or its default.
fn run(graph: &Graph, feed: Option<u64>) -> Vec<Vec<u8>> {
    let mut interpreter =
        Interpreter::new(graph.clone()).unwrap_or_else(|e| panic!("{e} in {}", graph.to_text()));
    let fed: BTreeSet<_> = graph.defaults().collect();
    let mut u = Rng::new(feed.unwrap_or_default());
    for value in fed.into_iter().filter(|_| feed.is_some()) {
        let bytes = interpreter.value_mut(value);
        let words = bytes.as_chunks_mut::<8>().0;
        words.iter_mut().for_each(|word| *word = (u.below(2000) as i64 - 1000).to_le_bytes());
    }
    interpreter.run(StepContext::default(), |_, _| {});
    graph.outputs.iter().map(|&output| interpreter.value(output).to_vec()).collect()
}

#[test]
fn replaced_defaults_give_the_same_results_after_passes_and_through_text_and_mlir() {
    let clean_up = "fold-constants,merge-common-subexpressions{across-phases=true},remove-dead-nodes";
    let clean_up = Pipeline::parse(clean_up).unwrap();
    let (graphs, mut folded, mut open) = (cases(100, 2000, 2000), 0, 0);
    for seed in 0..graphs {
        let arithmetic = Arithmetic::new(&mut Rng::new(seed));
        let original = arithmetic.graph(None);
        lmsc_ir::verify(&original).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        lmsc_onnx::shapes::check(&original).unwrap_or_else(|e| panic!("seed {seed}: {}", e[0]));
        let mut cleaned = original.clone();
        clean_up.run(&mut cleaned, &PassCx::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        equiv::check_cleaned(&original, &cleaned).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for list in &arithmetic.lists {
            let producer = cleaned.value_named(&list.name).and_then(|value| cleaned.producer(value));
            let is_constant = producer.is_some_and(|id| cleaned.node(id).op.name() == "Constant");
            assert!(!(list.is_open && is_constant), "seed {seed}: {} is folded", list.name);
            (folded, open) = (folded + usize::from(is_constant), open + usize::from(list.is_open));
        }
        let text = Graph::parse(&cleaned.to_text()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let mlir = lmsc_mlir::print(&original).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let mlir = lmsc_mlir::parse(&mlir).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for feed in [None, Some(2 * seed), Some(2 * seed + 1)] {
            let expected = run(&original, feed);
            for (graph, kind) in [(&cleaned, "cleaned"), (&text, "text"), (&mlir, "MLIR")] {
                assert_eq!(run(graph, feed), expected, "seed {seed}, {kind}:\n{}", original.to_text());
            }
        }
    }
    println!(
        "{graphs} graphs with three feeds each, {folded} lists folded, {open} lists open to feeds: none is wrong"
    );
    assert!(folded as u64 > graphs && open as u64 > graphs, "{folded} folded, {open} open");
}

#[test]
fn a_wrong_fold_is_found() {
    let (wanted, mut planted, mut right, mut seed) = (cases(100, 1000, 1000), 0, 0, 0);
    while planted < wanted {
        seed += 1;
        let u = &mut Rng::new(seed);
        let arithmetic = Arithmetic::new(u);
        let original = arithmetic.graph(None);
        let outputs = run(&original, None);
        let computed = arithmetic.lists.iter().filter(|list| list.name.starts_with('v'));
        for (list, bytes) in computed.zip(outputs) {
            let values = || bytes.as_chunks().0.iter().map(|&word| i64::from_le_bytes(word));
            let check = |values: Vec<i64>| {
                let line =
                    format!("int64[{}] {} = Constant<value_ints = {values:?}>()", list.length, list.name);
                equiv::check_cleaned(&original, &arithmetic.graph(Some((&list.name, &line))))
            };
            // The value by the defaults, if a caller can change it; otherwise another value.
            let mut wrong: Vec<i64> = values().collect();
            if !list.is_open {
                right += u64::from(check(wrong.clone()).is_ok());
                let at = u.below(wrong.len());
                wrong[at] = wrong[at].wrapping_add([1, -1, 1 << 32, i64::MIN][u.below(4)]);
            }
            planted += 1;
            assert!(
                check(wrong.clone()).is_err(),
                "seed {seed}: {} as {wrong:?} in\n{}",
                list.name,
                original.to_text()
            );
        }
    }
    println!("{planted} wrong folds planted, all found; {right} right ones accepted");
    assert!(right > wanted / 4, "{right}");
}

#[test]
fn random_steps_come_back_from_text_and_mlir() {
    let steps = cases(60, 633, 633);
    let mut refused = 0;
    for seed in 0..steps {
        let size = Size { nodes: 5 + (seed % 120) as usize, tensor_bytes: 1 << 12 };
        let graph = training_graph(&mut Rng::new(seed), size);
        let text = Graph::parse(&graph.to_text()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(equiv::check(&graph, &text).map(|_| ()), Ok(()), "seed {seed}");
        assert_eq!(text.to_text(), graph.to_text(), "seed {seed}");
        match lmsc_mlir::print(&graph) {
            Ok(mlir) => {
                let again = lmsc_mlir::parse(&mlir).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                assert_eq!(equiv::check(&graph, &again).map(|_| ()), Ok(()), "seed {seed}");
                assert_eq!(again.to_text(), graph.to_text(), "seed {seed}");
            }
            Err(why) => {
                assert!(!why.to_string().is_empty());
                refused += 1;
            }
        }
    }
    println!("{steps} steps come back from text, {} from MLIR, which refuses {refused}", steps - refused);
    assert!(refused * 10 < steps, "{refused} refused");
}
