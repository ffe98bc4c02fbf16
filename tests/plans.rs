//! Plans on real graphs: planners count the bytes that the graph needs, and the rewritten graph carries out the plan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::support::models::{import, models, open};
use crate::support::one_in;
use lmsc_ir::{Bytes, Graph, NodeId, Phases, equiv};
use lmsc_onnx::file::encode_to;
use lmsc_onnx::{Model, SwapForm};
use lmsc_passes::{MachineModel, PassCx, PassError, Pipeline, PlanRequest, apply, bridge, observe, question};
use lmsc_plan::bridge::{Bridge, Terms};
use lmsc_plan::cost::Cost;
use lmsc_plan::planners::ours::swap_only;
use lmsc_plan::planners::{self, Granularity, Plan, Request};
use lmsc_plan::problem::Link;
use lmsc_plan::schedule::{self, Room};
use lmsc_plan::service::Space;
use lmsc_plan::{Execution, Floors, MemoryTimeline, service};

/// A time for every node: one nanosecond a byte that it touches.
fn cost(graph: &Graph, node: NodeId) -> Cost {
    let node = graph.node(node);
    let bytes = |value| graph.value(value).ty.byte_size().unwrap().0;
    Cost { nanos: node.reads().chain(node.defines()).map(bytes).sum(), workspace: 0 }
}

#[test]
fn every_model_runs_as_planned() {
    let (mut copies, mut joins) = (0, 0);
    for path in models().into_iter().step_by(one_in()) {
        let (model, dims) = open(&path);
        let mut graph = import(&model, &dims);
        let hoist = Pipeline::parse("hoist-shapes").unwrap();
        hoist.run(&mut graph, &PassCx::default()).unwrap();
        let memory = MemoryTimeline::of(&graph);
        // Graphs of these sizes are small: tensors from the size of a page on may be swapped.
        let terms = Terms { smallest: Bytes(4096), ..Terms::new(Link::default(), Bytes::ZERO) };
        let phases = Phases::of(&graph, |_| None);
        let bridge = Bridge::of(&graph, &phases, &terms, |node| cost(&graph, node)).unwrap();
        let live = bridge.problem.live_bytes();
        let counted: Vec<u64> = memory.transient.iter().map(|&b| (memory.resident + b).0).collect();
        assert_eq!(live, counted, "{}", path.display());

        let floor = bridge.problem.needed_bytes().into_iter().max().unwrap();
        let half = floor.midpoint(memory.peak().0);
        let in_pieces = |budget| {
            let piece = (memory.peak().0 / 200).max(1 << 12);
            let schedule = swap_only::swaps(&bridge.problem, budget, piece).unwrap();
            Plan::without_recomputation(&bridge.problem, schedule)
        };
        let mut plans = vec![(floor, in_pieces(floor)), (half, in_pieces(half))];
        for (planner, budget) in [
            ("swap-only", floor),
            ("swap-only", half),
            ("window", floor),
            ("lru", half),
            ("tflms-best", half),
        ] {
            let effort = if planner == "swap-only" { 1 } else { 100 };
            let request =
                Request { granularity: Granularity::Whole, effort, ..Request::new(&bridge.problem, budget) };
            match lmsc_papers::planner(planner).unwrap().plan(&request) {
                Ok(plan) => plans.push((budget, plan)),
                // TFLMS swaps only results of the forward phase, which is not always enough.
                Err(_) if planner == "tflms-best" => {}
                Err(refusal) => panic!("{}, {planner}: {refusal}", path.display()),
            }
        }
        for (budget, plan) in plans {
            let edges = schedule::edges(&plan.problem, &plan.schedule, Room::Counted(budget)).unwrap();
            let mut rewritten = graph.clone();
            let nodes = apply(&mut rewritten, &bridge, &plan, &edges, &[]).unwrap();
            lmsc_ir::verify(&rewritten).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            equiv::check(&graph, &rewritten).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert!(MemoryTimeline::of(&rewritten).peak().0 <= budget, "{}", path.display());
            let origin = |node| rewritten.node(node).recomputes.unwrap_or(node);
            let execution = Execution::of(&rewritten, &terms.link, |node| cost(&graph, origin(node)));
            for (node, step) in nodes.iter().zip(&plan.schedule.steps) {
                let index = node.as_u32() as usize;
                let times = (execution.start[index], execution.end[index]);
                assert_eq!(times, (step.start, step.end), "{}: {step:?}", path.display());
            }
            let peak = schedule::check(&plan.problem, &plan.schedule, budget).unwrap();
            assert_eq!(execution.peak, peak, "{}", path.display());
            for form in [SwapForm::Function, SwapForm::Ort] {
                let proto =
                    lmsc_onnx::export(Some(model.clone()), &rewritten, form, &BTreeMap::new()).unwrap();
                let mut bytes = Vec::new();
                encode_to(&proto, &mut bytes).unwrap();
                let mut read = Model::from_bytes(bytes.into(), "what was written").unwrap();
                lmsc_onnx::gather(&mut read);
                let read = import(&read, &dims);
                equiv::check(&graph, &read).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                assert!(
                    MemoryTimeline::of(&read).peak().0 <= budget,
                    "{}, written as {form:?}",
                    path.display()
                );
            }
            joins += rewritten.order().iter().filter(|&&n| rewritten.node(n).op.is_join()).count();
            copies += plan.schedule.steps.len() - plan.problem.ops.len();
        }
    }
    assert!(copies > 1000 / one_in() && joins > 100 / one_in(), "only {copies} copies and {joins} joins");
}

#[test]
fn a_graph_that_tflms_rewrote_carries_out_a_valid_plan() {
    let mut copies = 0;
    for path in models().into_iter().step_by(one_in()) {
        let (model, dims) = open(&path);
        let mut graph = import(&model, &dims);
        let before = Pipeline::parse("hoist-shapes,reorder").unwrap();
        let peak = MemoryTimeline::of(&graph).peak().0;
        for share in [95, 80, 65] {
            let cx = PassCx {
                question: PlanRequest { budget: Some(Bytes(peak * share / 100)), ..PlanRequest::default() },
                ..PassCx::default()
            };
            before.run(&mut graph, &cx).unwrap();
            let bridge = bridge(&graph, &cx).unwrap();
            let mut rewritten = graph.clone();
            let swap = Pipeline::parse_with("swap", &lmsc_papers::passes()).unwrap();
            if swap.run(&mut rewritten, &cx).is_err() {
                continue;
            }
            let planned = observe(&graph, &rewritten, &bridge, &cx).unwrap();
            let lmsc_plan::planners::Plan { problem, schedule, .. } = &planned.plan;
            let held = schedule::check(problem, schedule, cx.question.budget.unwrap().0);
            let held = held.unwrap_or_else(|flaw| panic!("{}, {share} %: {flaw}", path.display()));
            assert_eq!(held, planned.peak, "{}, {share} %", path.display());
            copies += schedule.steps.len() - problem.ops.len();
        }
    }
    assert!(copies > 500 / one_in(), "only {copies} copies");
}

/// The order of operators depends on the planner; the promised floors must hold in it.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn every_budget_from_the_floor_on_has_a_plan() {
    let (mut told_by, mut lower) = (BTreeMap::new(), 0);
    let is_tiny = |path: &PathBuf| path.display().to_string().contains("/tiny_");
    for path in models().into_iter().filter(is_tiny).step_by(one_in()) {
        let (model, dims) = open(&path);
        let graph = import(&model, &dims);
        let name = path.display();
        let run = |planner: &str, ranges: bool, budget: u64| {
            let (budget, effort) = (Some(Bytes(budget)), Some(0));
            let cx = PassCx {
                question: PlanRequest {
                    planner: lmsc_papers::ALL.named(planner),
                    ranges,
                    budget,
                    effort,
                    ..PlanRequest::default()
                },
                ..PassCx::default()
            };
            // Without `place`.
            let passes = lmsc_papers::pipeline(planner).first(3);
            passes.run(&mut graph.clone(), &cx).map(drop)
        };
        let before = Pipeline::parse("hoist-shapes,reorder").unwrap();
        let nothing = PassCx {
            question: PlanRequest { budget: Some(Bytes::ZERO), ..PlanRequest::default() },
            ..PassCx::default()
        };
        let seen_by = |planner| {
            let (cx, mut graph) = (
                PassCx { question: PlanRequest { planner, ..nothing.question.clone() }, ..nothing.clone() },
                graph.clone(),
            );
            before.run(&mut graph, &cx).unwrap();
            // Without a budget small tensors stay.
            let coarse = bridge(
                &graph,
                &PassCx { question: PlanRequest { budget: None, ..cx.question.clone() }, ..cx.clone() },
            )
            .unwrap();
            [bridge(&graph, &cx).unwrap().problem, coarse.problem]
        };
        let (first, asked) = (seen_by(None), seen_by(lmsc_papers::ALL.named("auto")));
        assert!(asked[0].floor().1 <= first[0].floor().1, "{name}");
        lower += usize::from(asked[1].floor().1 < first[1].floor().1);
        let floors = Floors::of(&asked[0]);
        let peak = nothing.memory(&graph).peak().0;
        for (planner, ranges, floor) in [
            ("swap-only", false, floors.whole_tensors),
            ("swap-only", true, floors.whole_tensors),
            ("auto", false, floors.recomputation),
            ("auto", true, floors.ranges),
        ] {
            for budget in [floor, floor + (peak - floor) / 10, floor.midpoint(peak)] {
                let done = run(planner, ranges, budget);
                done.unwrap_or_else(|why| panic!("{name}, {planner}, {budget}: {why}"));
            }
        }
        for (planner, ranges, floor) in
            [("swap-only", false, floors.whole_tensors), ("auto", true, floors.ranges)]
        {
            assert!(floor == peak || run(planner, ranges, floor - 1).is_err(), "{name}, {planner}");
        }
        // A refusal names the smallest budget of the planner that was asked.
        for planner in ["tflms", "lru", "auto", "swap-only"] {
            let Err(PassError::Refused(refusal)) = run(planner, false, 1) else { continue };
            let Some(smallest) = refusal.smallest_budget() else { continue };
            let bytes = smallest.bytes.0;
            run(planner, false, bytes).unwrap_or_else(|why| panic!("{name}, {planner}, {bytes}: {why}"));
            *told_by.entry(planner).or_insert(0) += 1;
        }
    }
    assert_eq!(told_by.len(), 4, "{told_by:?}");
    // Who is asked is not bound to the first order, nor to its floor.
    assert!(lower > 5 || one_in() > 1, "{lower} models");
}

/// The reported smallest budgets and peak suffice exactly, with an address for everything.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn floors_and_peaks_hold_with_addresses() {
    let is_tiny = |path: &PathBuf| path.display().to_string().contains("/tiny_");
    let host = lmsc_plan::Target::built_in("host").unwrap();
    let before = Pipeline::parse("hoist-shapes,reorder").unwrap();
    let (one_in, mut held) = (lmsc_testing::cases(16, 16, 1), 0);
    for path in models().into_iter().filter(is_tiny).step_by(one_in) {
        let (model, dims) = open(&path);
        let (graph, name) = (import(&model, &dims), path.display());
        let asked = |planner: &str, ranges: bool, budget: Option<u64>| PassCx {
            question: PlanRequest {
                planner: lmsc_papers::ALL.named(planner),
                ranges,
                budget: budget.map(Bytes),
                effort: Some(1),
                space: Space::Arena,
                ..PlanRequest::default()
            },
            machine: MachineModel { target: Some(host.clone()), ..MachineModel::default() },
            ..PassCx::default()
        };
        let problem = |cx: &PassCx| {
            let mut graph = graph.clone();
            before.run(&mut graph, cx).unwrap();
            bridge(&graph, cx).unwrap().problem
        };
        // With that much room the order stays as it is.
        let (nothing, all) = (asked("auto", false, Some(0)), asked("auto", false, Some(1 << 60)));
        let auto = planners::planner("auto").unwrap();
        let (least, whole) = (problem(&nothing), problem(&all));
        let floors = service::floors(&question(&least, auto, Bytes::ZERO, &nothing));
        let peak = service::peak(&question(&whole, auto, Bytes::ZERO, &all));
        let run = |planner: &str, ranges: bool, budget: u64| {
            let cx = asked(planner, ranges, Some(budget));
            let passes = lmsc_papers::pipeline(planner);
            let ran = passes.run(&mut graph.clone(), &cx);
            ran.unwrap_or_else(|why| panic!("{name}, {planner}, {budget}: {why}"))
        };
        for (planner, ranges, floor) in [
            ("swap-only", false, floors.whole_tensors),
            ("auto", false, floors.recomputation),
            ("auto", true, floors.ranges),
        ] {
            assert!(floor <= peak, "{name}: {floor} {peak}");
            run(planner, ranges, floor);
            run(planner, ranges, floor + floor / 100);
        }
        for budget in [peak, peak + peak / 50] {
            let ran = run("auto", false, budget);
            let remarks: Vec<_> = ran.iter().flat_map(|ran| &ran.outcome.remarks).collect();
            assert!(
                ran.iter().all(|ran| ran.outcome.swaps.is_empty()),
                "{name}, {budget}, peak {peak}: {remarks:?}"
            );
        }
        held += 1;
    }
    assert!(held > 20 / one_in, "{held} models");
}
