//! Kernels may rely on the contracts of operators: nodes whose operands are missing, too short or of another
//! type are refused, by shape rules as by kernels, or run. No file makes a kernel panic.
//!
//! `testdata/nodes.txt` has a valid node of every operator that has a kernel.

#![allow(clippy::print_stdout, reason = "counts are shown with --nocapture")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use lmsc_cuda::Precision;
use lmsc_cuda::engines::{Card, Engines};
use lmsc_ir::contract::Contract;
use lmsc_ir::{Bytes, Graph, NodeId, Op, Storages, Type, ValueId};
use lmsc_kernels::{Io, Kernel, Spec, StepContext};
use lmsc_onnx::proto::ModelProto;
use lmsc_onnx::{SwapForm, export};
use lmsc_plan::Target;
use lmsc_plan::cost::Costs;
use prost::Message;

use crate::support::Bench;

/// An operand: its type as the text form writes it, and its elements where it is a constant.
#[derive(Clone, Debug)]
struct Given {
    ty: String,
    elements: Option<String>,
}

/// A node, apart.
#[derive(Clone, Debug)]
struct Case {
    op: String,
    version: Option<String>,
    operands: Vec<Option<Given>>,
    results: Vec<String>,
}

impl Case {
    /// A graph of the node alone.
    fn text(&self) -> String {
        let given = || self.operands.iter().enumerate().filter_map(|(i, o)| Some((i, o.as_ref()?)));
        let inputs: Vec<String> =
            given().filter(|(_, o)| o.elements.is_none()).map(|(i, o)| format!("{} o{i}", o.ty)).collect();
        let constants: Vec<String> = given()
            .filter_map(|(i, o)| Some(format!("{} o{i} = {{{}}}", o.ty, o.elements.as_ref()?)))
            .collect();
        let results: Vec<String> =
            self.results.iter().enumerate().map(|(i, ty)| format!("{ty} r{i}")).collect();
        let read =
            |(i, o): (usize, &Option<Given>)| if o.is_some() { format!("o{i}") } else { "_".to_owned() };
        let operands: Vec<String> = self.operands.iter().enumerate().map(read).collect();
        let mut text = String::new();
        if let Some(version) = &self.version {
            writeln!(text, "<opset: \"\" = {version}>").unwrap();
        }
        write!(text, "g ({}) => ({})", inputs.join(", "), results.join(", ")).unwrap();
        if !constants.is_empty() {
            write!(text, " <{}>", constants.join(", ")).unwrap();
        }
        write!(text, " {{ [n] {} = {}({}) }}", results.join(", "), self.op, operands.join(", ")).unwrap();
        text
    }

    fn graph(&self) -> Graph {
        Graph::parse(&self.text()).unwrap_or_else(|e| panic!("{e} in {}", self.text()))
    }
}

/// The words of a line; a group in brackets is one.
fn words(line: &str) -> Vec<String> {
    let (mut depth, mut words) = (0i32, vec![String::new()]);
    for c in line.chars() {
        depth += i32::from("<({[".contains(c)) - i32::from(">)}]".contains(c));
        match c {
            ' ' if depth == 0 => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn cases() -> Vec<Case> {
    let mut cases = cases_of(include_str!("../testdata/nodes.txt"));
    let kept = lmsc_ir::contract::all().iter().filter(|contract| {
        contract.keeps_type()
            && contract.operands.len() == 1
            && lmsc_kernels::operators().any(|key| key == contract.key())
    });
    let ops = kept.map(|contract| Op::new(contract.domain, contract.name).to_string());
    let missing: Vec<String> =
        ops.filter(|op| cases.iter().all(|case| case.op.split('<').next() != Some(op))).collect();
    cases.extend(missing.into_iter().map(|op| Case {
        operands: vec![Some(Given { ty: "float[2,3]".to_owned(), elements: None })],
        results: vec!["float[2,3]".to_owned()],
        version: None,
        op,
    }));
    cases
}

fn cases_of(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let (left, right) = line.split_once("=>").unwrap();
        let mut left = words(left).into_iter();
        let head = left.next().unwrap();
        let (head, version) = match head.rsplit_once('@') {
            Some((head, version)) => (head.to_owned(), Some(version.to_owned())),
            None => (head, None),
        };
        let (names, attributes) = head.split_at(head.find('<').unwrap_or(head.len()));
        let operands: Vec<Option<Given>> = left
            .map(|word| {
                let (ty, elements) = match word.split_once('{') {
                    Some((ty, rest)) => (ty, Some(rest.trim_end_matches('}').to_owned())),
                    None => (&*word, None),
                };
                (word != "_").then(|| Given { ty: ty.replace(';', ", "), elements })
            })
            .collect();
        let results: Vec<String> = words(right).iter().map(|ty| ty.replace(';', ", ")).collect();
        cases.extend(names.split('|').map(|name| Case {
            op: format!("{name}{attributes}"),
            version: version.clone(),
            operands: operands.clone(),
            results: results.clone(),
        }));
    }
    cases
}

/// The node of the graph as kernels are made of it.
fn spec<'a>(graph: &'a Graph, storages: &Storages) -> Spec<'a> {
    let constant = |value: ValueId| {
        graph.initializers.iter().find(|i| i.value == value).and_then(|i| match &i.data {
            lmsc_ir::Data::Inline(bytes) => Some(&bytes[..]),
            _ => None,
        })
    };
    let id: NodeId = graph.order()[0];
    let mut spec = Spec::of(graph, storages, id, constant);
    // Views are to be computed here.
    spec.in_place.clear();
    spec
}

/// Runs the kernel on these numbers and returns the bytes of the results; on zeros where there are none.
fn run(spec: &Spec<'_>, kernel: &Kernel, numbers: &[&[f32]]) -> Vec<Vec<u8>> {
    let bytes = |ty: Option<&Type>| ty.map_or(0, |ty| ty.byte_size().unwrap().0 as usize);
    let room = |n: usize| vec![0u64; n.div_ceil(8) + 8];
    let operands: Vec<(Vec<u64>, usize)> = spec
        .operands
        .iter()
        .enumerate()
        .map(|(i, operand)| {
            let n = bytes(operand.map(|o| o.ty));
            let mut words = room(n);
            let given = numbers.get(i).map_or(&[][..], |list| bytemuck::cast_slice(list));
            let constant = operand.and_then(|o| o.constant).unwrap_or(given);
            bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..constant.len()].copy_from_slice(constant);
            (words, n)
        })
        .collect();
    let given: Vec<&[u8]> = operands.iter().map(|(w, n)| &bytemuck::cast_slice(w)[..*n]).collect();
    let mut results: Vec<(Vec<u64>, usize)> =
        spec.results.iter().map(|ty| (room(bytes(*ty)), bytes(*ty))).collect();
    let mut out: Vec<&mut [u8]> =
        results.iter_mut().map(|(w, n)| &mut bytemuck::cast_slice_mut(w)[..*n]).collect();
    let needed = kernel.workspace().0 as usize;
    let mut workspace = room(needed);
    let workspace = &mut bytemuck::cast_slice_mut(&mut workspace)[..needed];
    kernel.run(Io::new(&given, &mut out, workspace), StepContext::default());
    results.iter().map(|(words, n)| bytemuck::cast_slice::<u64, u8>(words)[..*n].to_vec()).collect()
}

/// The results of the line's node for these floats.
fn computed(line: &str, numbers: &[&[f32]]) -> Vec<Vec<f32>> {
    let case = cases_of(line).remove(0);
    let graph = case.graph();
    lmsc_onnx::shapes::check(&graph).unwrap_or_else(|e| panic!("{}", e[0]));
    let storages = Storages::of(&graph);
    let spec = spec(&graph, &storages);
    let kernel = lmsc_kernels::prepare(&spec).unwrap_or_else(|e| panic!("{e}"));
    let floats = |bytes: Vec<u8>| bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    run(&spec, &kernel, numbers).into_iter().map(floats).collect()
}

fn assert_close(found: &[f32], expected: &[f32]) {
    let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4);
    assert!(found.len() == expected.len() && close, "{found:?}, not {expected:?}");
}

#[test]
fn older_versions_mean_what_they_meant() {
    // Results behind the first make it train: two channels, whose means are 4 and 7, their variances 29/3.
    let x: Vec<f32> = (0..12u8).map(f32::from).collect();
    let line = "BatchNormalization<momentum = 0.5, epsilon = 0.0>@7 float[2,2,3] float[2] float[2] float[2] float[2] \
                => float[2,2,3] float[2] float[2] float[2] float[2]";
    let found = computed(line, &[&x, &[1.0, 1.0], &[0.0, 0.0], &[0.0, 0.0], &[1.0, 1.0]]);
    let (mean, variance) = ([4.0, 7.0], 29.0f32 / 3.0);
    let normal: Vec<f32> = (0..12).map(|i| (x[i] - mean[i / 3 % 2]) / variance.sqrt()).collect();
    assert_close(&found[0], &normal);
    assert_close(&found[1], &[2.0, 3.5]);
    assert_close(&found[2], &[0.5 + variance / 2.0; 2]);
    assert_close(&found[3], &mean);
    assert_close(&found[4], &[variance; 2]);
    // One result does not.
    let line = "BatchNormalization<epsilon = 0.0>@7 float[2,2,3] float[2] float[2] float[2] float[2] => float[2,2,3]";
    let found = computed(line, &[&x, &[1.0, 1.0], &[0.0, 0.0], &[0.0, 0.0], &[1.0, 1.0]]);
    assert_close(&found[0], &x);
    // A slope was one for each channel.
    let below: Vec<f32> = x.iter().map(|x| -x).collect();
    let found = computed("PRelu@6 float[2,2,3] float[2] => float[2,2,3]", &[&below, &[2.0, 3.0]]);
    let slopes: Vec<f32> = (0..12).map(|i| below[i] * [2.0, 3.0][i / 3 % 2]).collect();
    assert_close(&found[0], &slopes);
}

#[test]
fn blocks_go_before_or_behind_channels() {
    let x: Vec<f32> = (0..8u8).map(f32::from).collect();
    let of = |mode: &str| {
        let line = format!("SpaceToDepth<blocksize = 2{mode}>@28 float[1,2,2,2] => float[1,8,1,1]");
        computed(&line, &[&x]).remove(0)
    };
    assert_close(&of(""), &[0.0, 4.0, 1.0, 5.0, 2.0, 6.0, 3.0, 7.0]);
    assert_close(&of(", mode = \"CRD\""), &x);
}

/// The outcome for a node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// The shape rules refuse it, and so does every command.
    Refused,
    /// No kernel takes it.
    NoKernel,
    Ran,
}

/// Tries the node by the rules, and by the kernels as if there were no rules.
fn fate(case: &Case) -> Result<Fate, String> {
    let graph = case.graph();
    let rules = |graph: &Graph| lmsc_ir::verify(graph).is_ok() && lmsc_onnx::shapes::check(graph).is_ok();
    let whole = || {
        let refused = !rules(&graph);
        let storages = Storages::of(&graph);
        let spec = spec(&graph, &storages);
        _ = lmsc_cuda::prepare(&spec);
        let fate = match lmsc_kernels::prepare(&spec) {
            Ok(kernel) => {
                run(&spec, &kernel, &[]);
                Fate::Ran
            }
            Err(_) => Fate::NoKernel,
        };
        if refused { Fate::Refused } else { fate }
    };
    catch_unwind(AssertUnwindSafe(whole)).map_err(|_| case.text())
}

#[test]
fn every_operator_with_a_kernel_has_a_node_that_runs() {
    let mut seen = BTreeSet::new();
    for case in cases() {
        let graph = case.graph();
        lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("{}: {e}", case.text()));
        lmsc_onnx::shapes::check(&graph).unwrap_or_else(|e| panic!("{}: {}", case.text(), e[0]));
        let (domain, name) = graph.node(graph.order()[0]).op.key();
        seen.insert((domain.to_owned(), name.to_owned()));
        assert_eq!(fate(&case), Ok(Fate::Ran), "{}", case.text());
    }
    let without: Vec<_> = lmsc_kernels::operators()
        .filter(|&(domain, name)| !seen.contains(&(domain.to_owned(), name.to_owned())))
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

/// A type with another number of elements, or of other elements.
fn misfits(given: &Given) -> Vec<Given> {
    let mut misfits = Vec::new();
    let as_host = if given.ty.ends_with("@host") { "@host" } else { "" };
    let Some((element, dims)) =
        given.ty.trim_end_matches("@host").split_once('[').filter(|_| !given.ty.contains('('))
    else {
        return vec![
            Given { ty: "seq(float[1])".to_owned(), elements: None },
            Given { ty: "float[1]".to_owned(), elements: None },
        ];
    };
    let dims = dims.trim_end_matches(']');
    let first = given.elements.as_ref().and_then(|e| e.split(',').next().map(str::to_owned));
    for short in ["1", "", "0", "1,1", "2"] {
        if short == dims || (short.is_empty() || short == "2") && first.is_some() {
            continue;
        }
        let elements = given.elements.as_ref().map(|_| match short {
            "0" => String::new(),
            _ => first.clone().unwrap_or_default(),
        });
        misfits.push(Given { ty: format!("{element}[{short}]{as_host}"), elements });
    }
    // The constant becomes data.
    misfits.extend(given.elements.as_ref().map(|_| Given { elements: None, ..given.clone() }));
    for other in ["float", "int64", "int32", "bool", "uint8", "float16", "double"] {
        if other != element {
            misfits.push(Given { ty: format!("{other}[{dims}]{as_host}"), elements: None });
        }
    }
    misfits.push(Given { ty: format!("seq({element}[{dims}])"), elements: None });
    misfits
}

#[test]
fn operands_that_do_not_fit_are_refused_or_run() {
    let mut panics = Vec::new();
    let mut count = [0; 3];
    let mut keep = |case: Case| match fate(&case) {
        Ok(fate) => count[fate as usize] += 1,
        Err(text) => panics.push(text),
    };
    for case in cases() {
        for index in 0..case.operands.len() {
            let mut without = case.clone();
            without.operands[index] = None;
            keep(without.clone());
            without.operands.remove(index);
            keep(without);
            without = case.clone();
            without.operands.truncate(index);
            keep(without);
            for misfit in case.operands[index].iter().flat_map(misfits) {
                let mut other = case.clone();
                other.operands[index] = Some(misfit);
                keep(other);
            }
        }
        let mut more = case.clone();
        more.operands.push(Some(Given { ty: "float[2,3]".to_owned(), elements: None }));
        keep(more);
    }
    let [refused, without, ran] = count;
    println!("{refused} refused, {without} without a kernel, {ran} ran, {} panicked", panics.len());
    assert!(panics.is_empty(), "{} panics:\n{}", panics.len(), panics.join("\n"));
}

/// Text before the tables of `docs/operators.md`.
const HEAD: &str = "\
# Operators

Made from the tables of contracts (`ir/src/contract/table.rs`) and of kernels (`runtime/kernels/src/table.rs`, `runtime/cuda/src/table.rs`)
by `INSTA_UPDATE=always cargo test --test all contracts::`. A test fails where this page is of before.

Every operator here is imported, and the types of its results are inferred, in these versions of its domain. A node with another
attribute, with an attribute of another kind, with more or fewer operands, or of another version is refused. `?` stands behind
an operand or a result that may be left out, `*` behind any number, `+` behind at least one; `!` behind an attribute that may not
be left out. `Y=X` is a result of the type of operand `X`. Operands with the same capital have elements of one type; `index` is `int32` or `int64`. Behind `=` is the value of an
attribute that is left out; without it, the value follows from the operands, or there is none. `@13..` are the versions
in which there is such an operand or attribute.

\"host\" and \"CUDA\" tell where `lmsc run` has a kernel, \"StableHLO\" which operators are written to it; forms that a kernel or a
rule does not take are refused before the first step. \"gradient\" is the operator that computes the gradient, where there is one;
that of others is written with several operators. Lists at the end have the operators that lack a column. Graphs with
operators that are not in these tables are planned and written where their results have declared types, and not run. So are
`If`, `Loop` and `Scan`; the types of a branch are inferred from its nodes.
";

/// `docs/operators.md`, from the tables.
fn documented() -> String {
    let host: BTreeSet<_> = lmsc_kernels::operators().collect();
    let cuda: BTreeSet<_> = lmsc_cuda::operators().collect();
    let stablehlo: BTreeSet<_> = lmsc_mlir::operators().collect();
    let mut text = HEAD.to_owned();
    let code = |text: &str| match text.trim() {
        "" => String::new(),
        text => format!("`{}`", text.replace('|', "\\|")),
    };
    let mut last = None;
    for contract in lmsc_ir::contract::all() {
        let (domain, name, first) = (contract.domain, contract.name, contract.first);
        if last.replace(domain) != Some(domain) {
            let title = if domain.is_empty() { "ONNX" } else { domain };
            write!(text, "\n## {title}\n\n").unwrap();
            text += "| operator | versions | operands and results | attributes | host | CUDA | StableHLO | gradient |\n|---|---|---|---|---|---|---|---|\n";
        }
        let newest = lmsc_ir::contract::NEWEST.iter().find(|(d, _)| *d == domain).unwrap().1;
        let versions = if first == newest { first.to_string() } else { format!("{first}–{newest}") };
        let has = |set: &BTreeSet<(&str, &str)>| if set.contains(&contract.key()) { "yes" } else { "" };
        let (values, attributes) = (code(contract.values), code(contract.options));
        writeln!(
            text,
            "| `{name}` | {versions} | {values} | {attributes} | {} | {} | {} | {} |",
            has(&host),
            has(&cuda),
            has(&stablehlo),
            code(&gradient_of(name).unwrap_or_default())
        )
        .unwrap();
    }
    text + &lacks(&host, &cuda, &stablehlo)
}

/// The operator of the gradient.
fn gradient_of(name: &str) -> Option<String> {
    let endings = ["Grad", "Grad_13", "Grad_dX"];
    let all = lmsc_ir::contract::all().iter();
    let mut found =
        all.filter(|other| other.name.strip_prefix(name).is_some_and(|ending| endings.contains(&ending)));
    found.next_back().map(|contract| contract.name.to_owned())
}

/// The operators that have no kernel, and those of which only some columns are filled.
fn lacks(
    host: &BTreeSet<(&str, &str)>,
    cuda: &BTreeSet<(&str, &str)>,
    stablehlo: &BTreeSet<(&str, &str)>,
) -> String {
    let all: BTreeSet<_> = lmsc_ir::contract::all().iter().map(Contract::key).collect();
    let mut text = "\n## Operators that lack something\n".to_owned();
    let lists: [(&str, Vec<_>); 3] = [
        ("Without a kernel", all.difference(host).collect()),
        ("With a kernel of the host, and none of CUDA", host.difference(cuda).collect()),
        ("With a kernel of the host, and not written to StableHLO", host.difference(stablehlo).collect()),
    ];
    for (title, list) in lists {
        let named = list.iter().map(|(domain, name)| format!("`{}`", Op::new(domain, name)));
        write!(text, "\n{title} ({}):\n", list.len()).unwrap();
        named.for_each(|name| writeln!(text, "{name}").unwrap());
    }
    text
}

/// `INSTA_UPDATE=always cargo test --test all contracts::` writes it anew.
#[test]
fn the_documented_operators_are_those_of_the_tables() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operators.md");
    let text = documented();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "docs/operators.md is of before; INSTA_UPDATE=always writes it anew");
}

/// The case with other extents, where it has this one: in types, and in the constants that are extents.
fn with_extent(case: &Case, extent: &str, other: &str) -> Case {
    let list = |text: &str| -> String {
        let words = text.split(',').map(|word| if word.trim() == extent { other } else { word });
        words.collect::<Vec<_>>().join(",")
    };
    let ty = |ty: &str| match (ty.split_once('['), ty.rsplit_once(']')) {
        (Some((element, _)), Some((inside, rest))) if !ty.contains('(') => {
            format!("{element}[{}]{rest}", list(&inside[element.len() + 1..]))
        }
        _ => ty.to_owned(),
    };
    let given = |given: &Given| match &given.elements {
        Some(elements) => Given { ty: given.ty.clone(), elements: Some(list(elements)) },
        None => Given { ty: ty(&given.ty), elements: None },
    };
    Case {
        operands: case.operands.iter().map(|operand| operand.as_ref().map(given)).collect(),
        results: case.results.iter().map(|result| ty(result)).collect(),
        ..case.clone()
    }
}

/// The most bytes that the process has had in memory.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Whether this process has the test of this name alone; otherwise the test has passed in another one, since the memory of the
/// tests beside it would count.
fn is_alone(test: &str) -> bool {
    const ALONE: &str = "LMSC_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("contracts::{test}");
    let outcome = command.args(["--exact", &name, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&outcome.stdout) + String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// Everything that is asked about a graph before it runs.
fn look(graph: &Graph) {
    _ = lmsc_ir::verify(graph).is_ok() && lmsc_onnx::shapes::check(graph).is_ok();
    for target in ["host", "v100-pcie"] {
        let costs = Costs::of(graph, Target::built_in(target).unwrap(), None);
        _ = (costs.total_nanos(), costs.coverage());
    }
    let engines = Engines::recorded(Card::named("h100").cloned(), Precision::Tf32);
    _ = (lmsc_runtime::workspaces(graph), engines.workspaces(graph));
    _ = (engines.least_workspaces(graph), lmsc_cuda::constants(graph));
}

/// The case with other extents in place of each, of each two, and of each number of a constant or an attribute.
fn with_other_extents(case: &Case, others: &[&str]) -> Vec<Case> {
    let types = case.operands.iter().flatten().map(|given| &given.ty).chain(&case.results);
    let dims = types.filter_map(|ty| Some(ty.split_once('[')?.1.rsplit_once(']')?.0));
    let extents: BTreeSet<String> =
        dims.flat_map(|dims| dims.split(',').map(|extent| extent.trim().to_owned())).collect();
    let mut cases = Vec::new();
    for one in others {
        for (index, extent) in extents.iter().enumerate() {
            let changed = with_extent(case, extent, one);
            for (second, other) in extents.iter().skip(index + 1).zip(others.iter().cycle()) {
                cases.push(with_extent(&changed, second, one));
                cases.push(with_extent(&changed, second, other));
            }
            cases.push(changed);
        }
        let numbers = case.op.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at);
        let is_whole = |at: &usize| {
            let digit = |at: usize| {
                case.op.as_bytes().get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'.')
            };
            !digit(at - 1) && !digit(at + 1)
        };
        for at in numbers.filter(is_whole).collect::<Vec<_>>() {
            let op = format!("{}{one}{}", &case.op[..at], &case.op[at + 1..]);
            cases.push(Case { op, ..case.clone() });
        }
    }
    cases
}

#[test]
#[cfg(target_os = "linux")]
fn looking_at_huge_extents_takes_neither_memory_nor_time() {
    const HUGE: [&str; 3] = ["0", "4294967296", "1099511627776"];
    if !is_alone("looking_at_huge_extents_takes_neither_memory_nor_time") {
        return;
    }
    let (mut looked, mut faults, before) = (0, Vec::new(), most_resident());
    for case in cases().iter().flat_map(|case| with_other_extents(case, &HUGE)) {
        let text = case.text();
        // Elements that are written out may be no integers, or too many.
        let Ok(graph) = Graph::parse(&text) else { continue };
        let resident = most_resident();
        // Other processes may delay a look, but not each of three.
        let took = (0..3).find_map(|again| {
            let began = std::time::Instant::now();
            if catch_unwind(AssertUnwindSafe(|| look(&graph))).is_err() {
                faults.push(format!("panics: {text}"));
            }
            let took = began.elapsed();
            (again == 2 || took.as_secs_f64() < 1.0).then_some(took)
        });
        let (took, more) = (took.unwrap_or_default(), most_resident().saturating_sub(resident));
        if took.as_secs_f64() > 1.0 || more > 50 << 20 {
            faults.push(format!("{took:?}, {}: {text}", Bytes(more)));
        }
        looked += 1;
    }
    let more = most_resident().saturating_sub(before);
    println!("{looked} nodes, {} faults, {} more", faults.len(), Bytes(more));
    assert!(faults.is_empty() && more < 200 << 20 && looked > 1000, "{}", faults.join("\n"));
}

#[test]
#[cfg(target_os = "linux")]
fn folding_a_chain_of_large_constants_takes_little_memory() {
    if !is_alone("folding_a_chain_of_large_constants_takes_little_memory") {
        return;
    }
    // Of 64 KiB each.
    let first = vec!["7"; 16384].join(", ");
    let mut text = format!(
        "<opset: \"\" = 17>\nchain (float[1] x) => (int32[16384] v1999)\n<int32[16384] c = {{{first}}}, int32[1] one = {{1}}>\n{{\n"
    );
    let mut before = "c".to_owned();
    for at in 0..2000 {
        writeln!(text, "   [n{at}] int32[16384] v{at} = Add({before}, one)").unwrap();
        before = format!("v{at}");
    }
    let original = Graph::parse(&(text + "}\n")).unwrap();
    let passes = lmsc_passes::Pipeline::parse("fold-constants").unwrap();
    let mut graph = original.clone();
    passes.run(&mut graph, &lmsc_passes::PassCx::default()).unwrap();
    passes.prove(&original, &graph).unwrap();
    _ = lmsc_onnx::shapes::check(&graph).is_ok();
    let most = most_resident();
    assert!(most < 200 << 20, "{}", Bytes(most));
}

/// Models of the node, of which nothing says the shapes of results: each has one extent of an input replaced, alone and together with
/// all that are equal to it.
fn with_odd_extents(case: &Case) -> Vec<ModelProto> {
    let graph = case.graph();
    let Ok(mut model) = export(None, &graph, SwapForm::default(), &BTreeMap::new()) else {
        return Vec::new();
    };
    let body = model.graph.as_mut().unwrap();
    body.value_info.clear();
    for output in &mut body.output {
        let tensor = output.r#type.as_mut().and_then(|it| it.tensor_type.as_mut()).unwrap();
        tensor.shape = None;
    }
    let extents = |model: &ModelProto, input: usize| -> Vec<i64> {
        let info = &model.graph.as_ref().unwrap().input[input];
        let tensor = info.r#type.as_ref().and_then(|it| it.tensor_type.as_ref()).unwrap();
        tensor.shape.iter().flat_map(|shape| &shape.dim).map(|dim| dim.dim_value.unwrap()).collect()
    };
    let set = |model: &mut ModelProto, input: usize, axis: usize, extent: i64| {
        let info = &mut model.graph.as_mut().unwrap().input[input];
        let tensor = info.r#type.as_mut().and_then(|it| it.tensor_type.as_mut()).unwrap();
        tensor.shape.as_mut().unwrap().dim[axis].dim_value = Some(extent);
    };
    let all: Vec<(usize, usize, i64)> = (0..model.graph.as_ref().unwrap().input.len())
        .flat_map(|input| {
            extents(&model, input).into_iter().enumerate().map(move |(axis, e)| (input, axis, e))
        })
        .collect();
    let mut models = Vec::new();
    for &(input, axis, old) in &all {
        for extent in [0, 1 << 32, 1 << 40] {
            let mut alone = model.clone();
            set(&mut alone, input, axis, extent);
            let mut together = model.clone();
            let equal = all.iter().filter(|&&(.., other)| other == old);
            equal.for_each(|&(input, axis, _)| set(&mut together, input, axis, extent));
            models.extend(if together == alone { vec![alone] } else { vec![alone, together] });
        }
    }
    models
}

#[test]
fn extents_beyond_all_take_neither_memory_nor_time() {
    let bench = Bench::new();
    let one_in = lmsc_testing::cases(60, 20, 1);
    let (mut models, mut tried, mut wrong) = (0, 0, Vec::new());
    for case in cases() {
        for model in with_odd_extents(&case) {
            models += 1;
            if models % one_in != 0 {
                continue;
            }
            tried += 1;
            let path = bench.write(&format!("{tried}.onnx"), model.encode_to_vec());
            let outcome = bench.run_frugal(&format!("inspect @/{tried}.onnx"));
            if ![0, 1, 2].contains(&outcome.code) {
                let inputs = &model.graph.as_ref().unwrap().input;
                let dims = inputs.iter().map(|info| {
                    let tensor = info.r#type.as_ref().and_then(|it| it.tensor_type.as_ref());
                    let shape = tensor.and_then(|it| it.shape.as_ref());
                    shape.map(|shape| shape.dim.iter().map(|dim| dim.dim_value.unwrap()).collect::<Vec<_>>())
                });
                wrong.push(format!("{} {:?}: {outcome:?}", case.text(), dims.collect::<Vec<_>>()));
            }
            std::fs::remove_file(path).unwrap();
        }
    }
    println!("{tried} of {models} nodes with extents of 0, 2^32 and 2^40");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 0);
}
