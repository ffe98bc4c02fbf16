//! State from any operator: any value of a random training graph as the next value of any input of its type.
//! Steps that keep it give the bits of steps whose caller feeds each output back.

use std::collections::BTreeSet;

use lmsc_ir::rng::{Rng, Source};
use lmsc_ir::{Bytes, Def, Graph, Storages, Type, ValueId};
use lmsc_onnx::{Stated, carried, settle};
use lmsc_passes::{Lowering, PassCx, PlanRequest, lower};
use lmsc_runtime::Rehearsal;
use lmsc_testing::{Size, training_graph};

const STEPS: u64 = 3;

/// Pairs of an input and a value of its type, which become outputs of the graph.
fn choose_pairs(graph: &mut Graph, rng: &mut Rng) -> Vec<(ValueId, ValueId)> {
    // Include in-place operands: the written value may not be the variable's next value.
    let (mut inputs, storages) = (graph.inputs.clone(), Storages::of(graph));
    let mut taken = BTreeSet::new();
    let mut pairs = Vec::new();
    while !inputs.is_empty() && pairs.len() < 4 {
        let input = inputs.swap_remove(rng.word() as usize % inputs.len());
        let fits = |&value: &ValueId| {
            let there = matches!(graph.def(value), Def::Result(..)) && !graph.value(value).place.is_host();
            let other = storages.storage(value) != storages.storage(input);
            there && other && graph.value(value).ty == graph.value(input).ty
        };
        let values: Vec<ValueId> = graph.values().map(|(id, _)| id).filter(fits).collect();
        if values.is_empty() {
            continue;
        }
        let value = values[rng.word() as usize % values.len()];
        if !taken.insert(value) {
            continue;
        }
        let mut with = graph.clone();
        if !with.outputs.contains(&value) {
            with.outputs.push(value);
        }
        // An old version of a variable cannot be an output.
        if lmsc_ir::verify(&with).is_ok() {
            *graph = with;
            pairs.push((input, value));
        }
    }
    pairs
}

/// The outputs of these names after some steps; `feed` pairs outputs with the inputs that get their values.
fn after_steps(graph: &Graph, outputs: &[String], feed: &[(String, String)]) -> Option<Vec<Vec<u8>>> {
    let needed = lmsc_runtime::workspaces(graph);
    let workspace = |node| needed.get(&node).copied().unwrap_or_default();
    let program = lower(graph, &Lowering { arena: None, workspace: &workspace }).ok()?;
    lmsc_ir::program::check(&program).unwrap_or_else(|e| panic!("{e}\n{}", graph.to_text()));
    let given: Vec<(String, Type)> =
        program.given.iter().map(|g| (g.tensor.name.to_string(), g.tensor.ty.clone())).collect();
    let mut rehearsal = Rehearsal::new(program, 1).ok()?;
    for (name, ty) in &given {
        rehearsal.set(name, &lmsc::run::synthetic(name, ty, 3));
    }
    rehearsal.run(STEPS, 1, |rehearsal, step| {
        if step > 0 {
            let values: Vec<Vec<u8>> =
                feed.iter().map(|(output, _)| rehearsal.get(output).unwrap().to_vec()).collect();
            for ((_, input), bytes) in feed.iter().zip(values) {
                assert!(rehearsal.set(input, &bytes));
            }
        }
    });
    Some(outputs.iter().map(|name| rehearsal.get(name).unwrap().to_vec()).collect())
}

#[test]
fn any_value_is_the_next_one_of_any_input() {
    let (mut compared, mut copied, mut planned) = (0usize, 0usize, 0usize);
    let seeds = lmsc_testing::cases(40, 80, 250);
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let size = Size::nodes(20 + rng.word() as usize % 40);
        let mut plain = training_graph(&mut rng, size);
        let pairs = choose_pairs(&mut plain, &mut rng);
        if pairs.is_empty() {
            continue;
        }
        let name = |value: ValueId| plain.value(value).name.to_string();
        let named: Vec<(String, String)> = pairs.iter().map(|&(i, o)| (name(i), name(o))).collect();
        let outputs: Vec<String> = plain.outputs.iter().map(|&v| name(v)).collect();
        let feed: Vec<(String, String)> = named.iter().map(|(i, o)| (o.clone(), i.clone())).collect();
        let Some(expected) = after_steps(&plain, &outputs, &feed) else { continue };

        let mut kept = plain.clone();
        let stated = Stated { pairs: named.clone(), by_name: false, ..Stated::default() };
        settle(&mut kept, &stated).unwrap_or_else(|e| panic!("{seed}: {e}\n{}", plain.to_text()));
        let what = || format!("{seed}: {named:?}\n{}", kept.to_text());
        lmsc_ir::verify(&kept).unwrap_or_else(|e| panic!("{e}, in {}", what()));
        let (state, storages) = (carried(&kept), Storages::of(&kept));
        for (input, output) in &named {
            let is = |c: &&lmsc_onnx::Carried| *kept.value(c.input).name == **input;
            let output_of = state.iter().find(is).and_then(|c| c.output);
            let stated = kept.value_named(output).unwrap();
            // A view of the input itself is no other value.
            let holds = output_of.or(kept.value_named(input)).unwrap();
            let same = storages.storage(holds) == storages.storage(stated);
            assert!(same, "`{input}` has another output: {}", what());
        }
        copied += state.iter().filter(|c| matches!(c.how, lmsc_onnx::How::Copied(_))).count();
        assert!(after_steps(&kept, &outputs, &[]).as_ref() == Some(&expected), "other bits: {}", what());
        compared += 1;

        let peak = PassCx::default().memory(&kept).peak();
        for planner in ["auto", "memonger"] {
            let cx = PassCx {
                question: PlanRequest {
                    budget: Some(Bytes(peak.0 / 4 * 3)),
                    planner: lmsc_papers::ALL.named(planner),
                    ..PlanRequest::default()
                },
                ..PassCx::default()
            };
            let passes = lmsc_papers::pipeline(planner);
            let mut rewritten = kept.clone();
            if passes.run(&mut rewritten, &cx).is_err() {
                continue;
            }
            lmsc_ir::equiv::check(&kept, &rewritten).unwrap_or_else(|e| panic!("{e}, in {}", what()));
            if let Some(found) = after_steps(&rewritten, &outputs, &[]) {
                assert!(found == expected, "other bits with {planner}: {}", what());
                planned += 1;
            }
        }
    }
    println!("{compared} graphs compared, {copied} variables copied, {planned} plans");
    let least = seeds as usize / 4;
    assert!(compared > least && copied > least && planned > least, "{compared}, {copied}, {planned}");
}
