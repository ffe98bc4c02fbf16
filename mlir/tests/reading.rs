//! Texts that are read back: random graphs, other spellings of the same, and wrong texts.

use crate::clock::processor_time;
use lmsc_ir::{Graph, ParseError, verify};
use lmsc_mlir::{parse, print};
use lmsc_testing::{Rng, Size, Source, training_graph};

const EVERYTHING: &str = include_str!("../../testdata/mlir/everything-has-its-place.lms");
const SWAPPED: &str = include_str!("../../testdata/mlir/a-tensor-leaves-and-returns.lms");

fn printed(text: &str) -> String {
    print(&Graph::parse(text).unwrap()).unwrap()
}

#[test]
fn random_graphs_are_read_back() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let nodes = 5 + (rng.word() % 120) as usize;
        let graph = training_graph(&mut rng, Size::nodes(nodes));
        let text = print(&graph).unwrap();
        assert_eq!(parse(&text).unwrap().to_text(), graph.to_text(), "seed {seed}");
    }
}

#[test]
fn layout_and_numbers_of_values_do_not_matter() {
    for source in [EVERYTHING, SWAPPED] {
        let text = printed(source);
        let expected = parse(&text).unwrap().to_text();
        let spread = text.replace(" : ", "\n  :\t").replace(", ", " , // a comment\n").replace("} {", "}{");
        assert_eq!(parse(&spread).unwrap().to_text(), expected);
        let renamed = text.replace('%', "%v.-$");
        assert_eq!(parse(&renamed).unwrap().to_text(), expected);
    }
}

#[test]
fn other_spellings_of_mlir_opt_are_read() {
    let text = printed(EVERYTHING);
    let other = [
        (
            "dense<[[1.0, -0.5], [1.0e-5, 0x7F800000]]>",
            "dense<[[1.000000e+00, -5.000000e-01], [9.99999974E-6, 0x7F800000]]>",
        ),
        ("dense<0.1>", "dense<1.000000e-01>"),
        ("alpha = 1.0 : f32", "alpha = 1.000000e+00 : f32"),
        ("dense<[[1], [2]]>", "dense<\"0x01000000000000000200000000000000\">"),
        ("return %9#0", "func.return %9#0"),
        ("lms.attributes = [\"pads\"", "lms.attributes = [ \"pads\""),
    ];
    let mut changed = text.clone();
    for (ours, theirs) in other {
        assert!(changed.contains(ours), "{ours}");
        changed = changed.replace(ours, theirs);
    }
    assert_eq!(parse(&changed).unwrap().to_text(), parse(&text).unwrap().to_text());
    let splat = text.replace("dense<[1.0, 2.0, 3.0]>", "dense<2.0>");
    assert!(parse(&splat).unwrap().to_text().contains("{2.0, 2.0, 2.0}"));
}

#[test]
fn a_wait_may_stand_on_any_operand() {
    let text = printed(SWAPPED);
    let moved = text.replace("\"onnx.Mul\"(%5, %6#0)", "\"onnx.Mul\"(%5, %w)").replace(
        "    %7 = \"onnx.Mul\"",
        "    %w = \"lms.wait\"(%6#0, %1#1) : (tensor<64x256xf32>, !lms.token) -> tensor<64x256xf32>\n    %7 = \"onnx.Mul\"",
    );
    assert_ne!(moved, text);
    let graph = parse(&moved).unwrap();
    assert!(graph.to_text().contains("y = Mul(a3, a1_in) after [out_a1]"), "{}", graph.to_text());
}

/// The error of the case with the first `from` replaced, without its place.
fn message(from: &str, to: &str) -> String {
    let text = printed(SWAPPED);
    assert!(text.contains(from), "{from} in {text}");
    let ParseError { message, .. } = parse(&text.replacen(from, to, 1)).unwrap_err();
    message
}

#[test]
fn errors_say_what_is_wrong() {
    let cases = [
        ("(%2, %1#1)", "(%2, %1#2)", "`%1` stands for 2 results"),
        ("(%2, %1#1)", "(%2, %1)", "`%1` stands for 2 results; say which: `%1#0`"),
        ("(%2, %1#1)", "(%2, %9)", "`%9` is not defined before this"),
        ("%2 = ", "%0 = ", "`%0` is defined twice"),
        ("onnx.name = \"x\"", "onnx.nome = \"x\"", "there is no attribute `onnx.nome` here"),
        ("lms.version = 1", "lms.version = 2", "version 2 of the form; lmsc reads 1"),
        ("tensor<64x256xf32>", "tensor<64x?xf32>", "an extent that is not known; lmsc works on sizes"),
        ("tensor<64x256xf32>", "tensor<64x256xf33>", "`f33` is no element type of ONNX"),
        ("tensor<64x256xf32>", "tensor<64x256 f32>", "expected `x` after an extent"),
        ("onnx_node_name = \"n1\"", "axis = 1 : si64", "`onnx.Relu` has no `onnx_node_name`"),
        ("lms.results = [\"a1\"]", "lms.results = []", "`lms.results` names 0 of 1 results"),
        ("\"onnx.Relu\"", "\"tosa.relu\"", "`tosa.relu` is no operation of ONNX or of the dialect `lms`"),
        (
            "%4 = \"lms.wait\"(%2, %1#1)",
            "%4 = \"lms.wait\"(%1#1, %2)",
            "`%1#1` is of type !lms.token, not the one stated",
        ),
        (
            "\"lms.trigger\"(%2)",
            "\"lms.trigger\"(%arg0)",
            "nothing computes the operand of `lms.trigger`: it is there from the start",
        ),
        ("return %7", "return %4", "`%4` is no value that can be an output"),
        (
            "{onnx.name = \"y\"}",
            "{onnx.name = \"z\"}",
            "the output is `z` in the signature, but `y` is returned",
        ),
        (
            "{onnx.name = \"w\"}",
            "{lms.variable, onnx.name = \"w\"}",
            "`w` is marked as a variable, but no operation has it in `lms.updates`",
        ),
        (
            "{onnx.name = \"y\"}",
            "{lms.new_value_of = [\"w\"], onnx.name = \"y\"}",
            "`y` is said to be the new value of `w`, which no operation says",
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(message(from, to), expected, "{from} -> {to}");
    }
    let deep = printed(SWAPPED).replacen("onnx.name = \"x\"", &format!("a = {}", "[".repeat(100_000)), 1);
    assert_eq!(parse(&deep).unwrap_err().message, "attributes are nested too deep");
    let error = parse("module {\n  func.func @f() {\n    return %0\n").unwrap_err();
    assert_eq!(error.to_string(), "3:12: `%0` is not defined before this");
}

#[test]
fn a_node_that_mlir_cannot_express_is_named() {
    let refused = |line: &str| {
        print(&Graph::parse(&format!("g (float[2] x) => () {{ {line} }}")).unwrap()).unwrap_err().to_string()
    };
    assert_eq!(
        refused("[n] float[2] y = F<onnx_node_name = 1>(x)"),
        "`n` (F): the attribute `onnx_node_name` cannot be written in MLIR: the form uses this name itself"
    );
    assert_eq!(
        refused("[n] float[2] y = F<\"\" = 1>(x)"),
        "`n` (F): the attribute `` cannot be written in MLIR: it has no name"
    );
    assert_eq!(
        refused("[n] float[2] y = F<a = 1, a = 2>(x)"),
        "`n` (F): the attribute `a` cannot be written in MLIR: the node has two of this name"
    );
    assert_eq!(
        refused("[n] float[0,18446744073709551615] y = F(x)"),
        "`n` (F): float[0,18446744073709551615] has the extent 18446744073709551615; MLIR's end at 2^63 - 1"
    );
    assert_eq!(
        refused("[n] float[2] y = F(x) after [m] [m] float[2] z = F(x)"),
        "`n` (F) needs `m` (F), which comes later or not at all; MLIR takes what comes before"
    );
    assert_eq!(
        refused("[n] float[2] y = ai.lmsc.SwapIn(x, x)"),
        "`n` (ai.lmsc.SwapIn) is a copy with other than one operand and one result"
    );
}

/// Words and characters that damage is made of.
const WORDS: &[&str] = &[
    "%0",
    "%1#1",
    "#",
    "%",
    "\"lms.wait\"",
    "\"lms.trigger\"",
    "\"onnx.Custom\"",
    "!lms.token",
    "!lms.host<",
    "none",
    "tensor<",
    "tuple<>",
    "dense<",
    "dense<[[1]]>",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    "->",
    ":",
    "=",
    ",",
    "-",
    "0x",
    "0x7FC00000",
    "1.",
    "1.0e",
    "-1 : i64",
    "99999999999999999999999999999999999999999999",
    "\"",
    "\\",
    "\"\\FF\"",
    "é",
    "\u{0}",
    "\n",
    "//",
    "unit",
    "true",
    "array<f32>",
    "lms.captures = 9 : i64",
    "module",
    "return",
    "@",
    "1 : ui64",
];

fn damage(text: &str, rng: &mut Rng) -> String {
    let mut below = |n: usize| (rng.word() % n as u64) as usize;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=below(3) {
        let (a, b) = (below(lines.len()), below(lines.len()));
        match below(7) {
            0 if lines.len() > 1 => _ = lines.remove(a),
            1 => lines.swap(a, b),
            2 => lines.insert(a, lines[b].clone()),
            3 => {
                let at = (0..=below(lines[a].len() + 1)).rev().find(|&at| lines[a].is_char_boundary(at));
                lines[a].truncate(at.unwrap_or(0));
            }
            kind => {
                let separators = |c: char| " (),<>[]{}=:#x".contains(c);
                let mut words: Vec<&str> = lines[a].split_inclusive(separators).collect();
                let others: Vec<&str> = lines[b].split_inclusive(separators).collect();
                let new = match kind {
                    4 if !others.is_empty() => others[below(others.len())],
                    _ => WORDS[below(WORDS.len())],
                };
                let at = below(words.len() + 1);
                match below(3) {
                    0 => words.insert(at, new),
                    1 if at < words.len() => words[at] = new,
                    _ if at < words.len() => _ = words.remove(at),
                    _ => words.push(new),
                }
                lines[a] = words.concat();
            }
        }
    }
    lines.join("\n")
}

#[test]
fn damaged_texts_are_refused_or_read_as_what_they_say() {
    let mut rng = Rng::new(1807);
    let mut texts = vec![printed(EVERYTHING), printed(SWAPPED)];
    texts.extend((0..4).map(|_| print(&training_graph(&mut rng, Size::nodes(12))).unwrap()));
    let (mut read, mut valid) = (0, 0);
    for _ in 0..20_000 {
        let text = damage(&texts[(rng.word() % texts.len() as u64) as usize], &mut rng);
        let Ok(graph) = parse(&text) else { continue };
        read += 1;
        _ = lmsc_mlir::looks_like(&text);
        if verify(&graph).is_ok() {
            valid += 1;
            let again = print(&graph).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(parse(&again).unwrap().to_text(), graph.to_text(), "{text}");
        }
    }
    assert!(read > 500 && valid > 100, "{read} were read, {valid} are valid");
}

#[test]
fn a_hundred_thousand_nodes_take_linear_time() {
    let mut text = String::from("g (float[64] v0) => (float[64] v100000)\n{\n");
    for i in 0..100_000 {
        let after = if i % 10 == 9 { format!(" after [n{}]", i - 5) } else { String::new() };
        text += &format!("   [n{i}] float[64] v{} = LeakyRelu<alpha = 0.1>(v{i}){after}\n", i + 1);
    }
    text += "}\n";
    let graph = Graph::parse(&text).unwrap();
    let started = processor_time();
    let printed = print(&graph).unwrap();
    let read = parse(&printed).unwrap();
    let took = processor_time() - started;
    assert_eq!(read.to_text(), graph.to_text());
    // A small part of a second where the compiler optimizes: benches/scale.rs.
    assert!(took.as_secs() < 30, "printing and reading take {took:?}");
}
