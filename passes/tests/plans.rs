//! A plan that is applied to its graph: the edges give the same times and the same peak, and in any timing at
//! most the budget.

use cranelift_entity::{PrimaryMap, SecondaryMap};
use lmsc_ir::{Bytes, Graph, NodeId, Phases, Place, Storage, Storages, equiv};
use lmsc_passes::apply;
use lmsc_plan::address::{Arena, check, place};
use lmsc_plan::bridge::{Bridge, Terms};
use lmsc_plan::cost::Cost;
use lmsc_plan::placing::covers;
use lmsc_plan::planners::ours::swap_only;
use lmsc_plan::planners::{Granularity, Plan, Request};
use lmsc_plan::problem::{Duplex, Link, Problem, TensorId};
use lmsc_plan::schedule::{self, Piece, Room};
use lmsc_plan::{Execution, MemoryTimeline};
use lmsc_testing::{Rng, Size, Source, training_graph};

/// A random graph, with the times and workspaces of its nodes.
struct Case {
    graph: Graph,
    terms: Terms,
    costs: Vec<Cost>,
}

impl Case {
    fn new(seed: u64) -> (Case, Rng) {
        let mut rng = Rng::new(seed);
        let nodes = 5 + rng.below(if seed.is_multiple_of(10) { 300 } else { 80 });
        let graph = training_graph(&mut rng, Size::nodes(nodes));
        let mut speed = || 1 << (20 + rng.below(16));
        let link = Link {
            out_bytes_per_second: speed(),
            in_bytes_per_second: speed(),
            latency_nanos: [0, 0, 1, 20_000][rng.below(4)],
            duplex: if rng.chance(50) { Duplex::Half } else { Duplex::Full },
        };
        let terms = Terms { link, smallest: Bytes(1 << rng.below(12)), weights_stay: false };
        let works = rng.chance(50);
        let cost = |_| Cost {
            nanos: [0, 1, rng.word() % 1000, rng.word() % 1_000_000][rng.below(4)],
            workspace: if works && rng.chance(20) { rng.word() % 100_000 } else { 0 },
        };
        let costs = (0..graph.node_capacity()).map(cost).collect();
        (Case { graph, terms, costs }, rng)
    }

    /// Time and workspace of a node of the graph, or of a node made from it.
    fn cost(&self, graph: &Graph, node: NodeId) -> Cost {
        let origin = std::iter::successors(Some(node), |&n| graph.node(n).recomputes).last();
        self.costs[origin.unwrap().as_u32() as usize]
    }

    fn bridge(&self) -> Bridge {
        let phases = Phases::of(&self.graph, |_| None);
        Bridge::of(&self.graph, &phases, &self.terms, |n| self.cost(&self.graph, n)).unwrap()
    }

    /// The problem with recomputed operators but without a schedule yet, and a budget between its floor and a
    /// little more than its peak.
    fn with_repetitions(&self, rng: &mut Rng) -> (Bridge, Plan, u64) {
        let bridge = self.bridge();
        let plan = with_repetitions(&bridge.problem, rng);
        let (floor, peak) = (most(plan.problem.needed_bytes()), most(plan.problem.live_bytes()));
        let budget = floor + (peak - floor) * rng.below(110) as u64 / 100;
        (bridge, plan, budget)
    }

    /// How many variables the plan has on the host between steps, how many of these it overwrites, and how many leave
    /// and return.
    fn moved_variables(&self, bridge: &Bridge, plan: &Plan) -> [usize; 3] {
        let mut graph = self.graph.clone();
        apply(&mut graph, bridge, plan, &[], &[]).unwrap();
        let storages = Storages::of(&graph);
        let variables = graph.variables();
        let count = |fits: &dyn Fn(&Storage) -> bool| {
            storages.iter().filter(|(_, storage)| storage.is_given(&graph) && fits(storage)).count()
        };
        [
            count(&|storage| storage.on_host),
            count(&|storage| storage.on_host && variables.contains(&storage.root)),
            count(&|storage| storage.moves.is_some()),
        ]
    }

    /// How many joins the plan makes.
    fn joins(&self, bridge: &Bridge, plan: &Plan) -> usize {
        let mut graph = self.graph.clone();
        apply(&mut graph, bridge, plan, &[], &[]).unwrap();
        graph.order().iter().filter(|&&n| graph.node(n).op.is_join()).count()
    }

    /// Applies the plan and checks all that must hold; whether the plan's times are those of the edges.
    fn check(&self, seed: u64, bridge: &Bridge, plan: &Plan, budget: u64) -> bool {
        let peak = schedule::check(&plan.problem, &plan.schedule, budget)
            .unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
        let edges = schedule::edges(&plan.problem, &plan.schedule, Room::Counted(budget))
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let given = schedule::edges(&plan.problem, &plan.schedule, Room::Given(&edges));
        assert_eq!(
            given,
            Ok(edges.clone()),
            "seed {seed}: what is given is there, with what goes without saying"
        );
        let mut graph = self.graph.clone();
        let nodes =
            apply(&mut graph, bridge, plan, &edges, &[]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let explain = || format!("seed {seed}, budget {budget}\n{}", graph.to_text());
        lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("{e}\n{}", explain()));
        equiv::check(&self.graph, &graph).unwrap_or_else(|e| panic!("{e}\n{}", explain()));
        let workspace = |n| Bytes(self.cost(&graph, n).workspace);
        let guaranteed = MemoryTimeline::with_workspace(&graph, workspace).peak();
        assert!(guaranteed.0 <= budget, "{guaranteed} of {}\n{}", Bytes(budget), explain());

        let execution = Execution::of(&graph, &self.terms.link, |n| self.cost(&graph, n));
        assert!(execution.makespan <= plan.schedule.makespan(), "{}", explain());
        assert!(execution.peak <= guaranteed.0, "{}", explain());
        let same = nodes.iter().zip(&plan.schedule.steps).all(|(node, step)| {
            let index = node.as_u32() as usize;
            (execution.start[index], execution.end[index]) == (step.start, step.end)
        });
        if same {
            assert_eq!(execution.makespan, plan.schedule.makespan(), "{}", explain());
            assert_eq!(execution.peak, peak, "{}", explain());
        }
        same
    }
}

fn most(bytes: Vec<u64>) -> u64 {
    bytes.into_iter().max().unwrap()
}

/// The problem with operators that are recomputed right before a random use of their results.
fn with_repetitions(problem: &Problem, rng: &mut Rng) -> Plan {
    let mut plan = Plan::without_recomputation(problem, Default::default());
    let mut producer: SecondaryMap<TensorId, Option<u32>> = SecondaryMap::new();
    let mut changed: SecondaryMap<TensorId, u32> = SecondaryMap::new();
    let mut now: PrimaryMap<TensorId, TensorId> = problem.tensors.keys().collect();
    plan.problem.ops.clear();
    plan.op_origin.clear();
    for (tick, op) in (0..).zip(&problem.ops) {
        for &tensor in &op.reads {
            let Some(origin) = producer[tensor].filter(|&p| p + 1 < tick && rng.chance(20)) else { continue };
            let mut again = problem.ops[origin as usize].clone();
            // The repetition does without its side effects.
            let aside = std::mem::take(&mut again.changes);
            again.reads.retain(|tensor| !aside.contains(tensor));
            if !again.recomputable || again.reads.iter().any(|&t| changed[t] > origin) {
                continue;
            }
            again.reads.iter_mut().for_each(|t| *t = now[*t]);
            for tensor in &mut again.produces {
                let new = plan.problem.tensors.push(problem.tensors[*tensor]);
                plan.tensor_origin.push(*tensor);
                now[std::mem::replace(tensor, new)] = new;
            }
            plan.problem.ops.push(again);
            plan.op_origin.push(origin);
        }
        let mut op = op.clone();
        op.produces.iter().for_each(|&t| producer[t] = Some(tick));
        op.changes.iter().for_each(|&t| changed[t] = tick);
        op.reads.iter_mut().chain(&mut op.changes).for_each(|t| *t = now[*t]);
        plan.problem.ops.push(op);
        plan.op_origin.push(tick);
    }
    plan.problem.check().unwrap();
    plan
}

#[test]
fn live_bytes_are_the_same_for_planners_and_graph() {
    for seed in 0..500 {
        let (case, _) = Case::new(seed);
        let bridge = case.bridge();
        let memory =
            MemoryTimeline::with_workspace(&case.graph, |n| Bytes(case.cost(&case.graph, n).workspace));
        let live: Vec<u64> = memory.transient.iter().map(|&bytes| (memory.resident + bytes).0).collect();
        assert_eq!(bridge.problem.live_bytes(), live, "seed {seed}\n{}", case.graph.to_text());
    }
}

#[test]
fn the_edges_of_a_rewritten_graph_allow_what_was_planned() {
    let (mut swaps, mut plans, mut variables) = (0, 0, [0; 3]);
    for seed in 0..400 {
        let (case, mut rng) = Case::new(seed);
        let bridge = case.bridge();
        let (floor, peak) = (most(bridge.problem.needed_bytes()), most(bridge.problem.live_bytes()));
        for share in [0, rng.below(30), rng.below(101), 100] {
            let budget = floor + (peak - floor) * share as u64 / 100;
            let request = Request {
                granularity: Granularity::Whole,
                effort: 1,
                ..Request::new(&bridge.problem, budget)
            };
            let plan = swap_only::plan(&request).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert!(case.check(seed, &bridge, &plan, budget), "seed {seed}: other times");
            let moved = case.moved_variables(&bridge, &plan);
            variables.iter_mut().zip(moved).for_each(|(sum, moved)| *sum += moved);
            swaps += plan.schedule.steps.len() - plan.problem.ops.len();
            plans += 1;
        }
    }
    assert!(swaps > 5000, "only {swaps} copies in {plans} plans");
    assert!(
        variables.iter().zip([1000, 150, 500]).all(|(&sum, least)| sum > least),
        "only {variables:?} variables"
    );
}

/// The plan of `swap-only` with pieces of at most this size in bytes.
fn in_pieces(problem: &Problem, budget: u64, bytes: u64) -> Plan {
    Plan::without_recomputation(problem, swap_only::swaps(problem, budget, bytes).unwrap())
}

#[test]
fn ranges_of_tensors_leave_and_are_joined() {
    let (mut joins, mut ranges, mut of_variables) = (0, 0, 0);
    for seed in 0..500 {
        let (case, mut rng) = Case::new(seed);
        let (bridge, plan, budget) = case.with_repetitions(&mut rng);
        let peak = most(plan.problem.live_bytes());
        let pieces = in_pieces(&plan.problem, budget, (peak / 100).max(1 << (8 + rng.below(6))));
        let plan = Plan { schedule: pieces.schedule, ..plan };
        assert!(case.check(seed, &bridge, &plan, budget), "seed {seed}: other times");
        let whole = |piece: &Piece| piece.len() == plan.problem.tensors[piece.tensor].bytes;
        let pieces = || plan.schedule.pieces.values().filter(|piece| !whole(piece));
        ranges += pieces().count();
        of_variables += pieces().filter(|piece| plan.problem.tensors[piece.tensor].is_variable()).count();
        joins += case.joins(&bridge, &plan);
    }
    assert!(joins > 500 && ranges > 2500, "only {joins} joins of {ranges} ranges");
    assert!(of_variables > 300, "only {of_variables} ranges of variables");
}

/// A Join in a line of a text.
struct Join<'a> {
    /// The text before its operator, between its list of begins and its operands, and after the operands.
    around: [&'a str; 3],
    begins: Vec<u64>,
    operands: Vec<&'a str>,
}

impl<'a> Join<'a> {
    fn of(line: &'a str) -> Option<Join<'a>> {
        let (before, rest) = line.split_once("ai.lmsc.Join<begins = [")?;
        let (begins, rest) = rest.split_once(']')?;
        let (between, rest) = rest.split_once(">(")?;
        let (operands, after) = rest.split_once(')')?;
        let begins = begins.split(", ").map(|begin| begin.parse().unwrap()).collect();
        Some(Join { around: [before, between, after], begins, operands: operands.split(", ").collect() })
    }

    fn line(&self) -> String {
        let [before, between, after] = self.around;
        let (begins, operands) = (&self.begins, self.operands.join(", "));
        format!("{before}ai.lmsc.Join<begins = {begins:?}{between}>({operands}){after}")
    }
}

/// The line with its copy being of other elements.
fn other_elements(line: &str, other: impl Fn(u64, u64) -> (u64, u64)) -> Option<String> {
    let (head, rest) = line.split_once("<begin = ")?;
    let (begin, rest) = rest.split_once(", end = ")?;
    let (end, rest) = rest.split_once('>')?;
    let (begin, end) = other(begin.parse().unwrap(), end.parse().unwrap());
    Some(format!("{head}<begin = {begin}, end = {end}>{rest}"))
}

/// The line of a text with ranges made wrong in one way; `another` is another line of it.
fn made_wrong(way: usize, line: &str, another: &str) -> Option<String> {
    match way {
        0 => return other_elements(line, |begin, end| (begin + 1, end + 1)),
        1 => return other_elements(line, |begin, end| (begin, end - 1)),
        _ => {}
    }
    let mut join = Join::of(line)?;
    match way {
        2 => *join.begins.last_mut()? += 1,
        3 if join.begins.len() > 1 => join.operands.swap(1, 2),
        // If a part stayed resident, the last one may stay, too.
        4 if join.begins.len() > 1 && join.operands[0] == "_" => {
            join.begins.pop();
            join.operands.pop();
        }
        5 => {
            let other = Join::of(another)?.operands[1];
            let of = |piece: &str| piece.split("_in").next().unwrap().to_owned();
            let last = join.operands.last_mut().filter(|last| of(last) != of(other))?;
            *last = other;
        }
        _ => return None,
    }
    Some(join.line())
}

#[test]
fn ranges_that_are_wrong_are_refused() {
    let mut refused = [0; 6];
    for seed in 0..150 {
        let (case, mut rng) = Case::new(seed);
        let bridge = case.bridge();
        let (floor, peak) = (most(bridge.problem.needed_bytes()), most(bridge.problem.live_bytes()));
        let plan = in_pieces(&bridge.problem, floor, (peak / 100).max(1 << 8));
        let mut graph = case.graph.clone();
        apply(&mut graph, &bridge, &plan, &[], &[]).unwrap();
        let text = graph.to_text();
        equiv::check(&case.graph, &Graph::parse(&text).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let joins: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].contains("ai.lmsc.Join<")).collect();
        let outs: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].contains("SwapOut<begin")).collect();
        let ins: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].contains("SwapIn<begin")).collect();
        for (way, refused) in refused.iter_mut().enumerate() {
            let places = match way {
                0 | 1 if seed % 2 == 0 => &outs,
                0 | 1 => &ins,
                _ => &joins,
            };
            if places.is_empty() {
                continue;
            }
            let place = places[rng.below(places.len())];
            let Some(wrong) = made_wrong(way, lines[place], lines[places[0]]) else { continue };
            let mut lines = lines.clone();
            lines[place] = &wrong;
            let wrong = Graph::parse(&lines.join("\n")).unwrap_or_else(|e| panic!("seed {seed}, {way}: {e}"));
            let noticed = lmsc_ir::verify(&wrong).is_err() || equiv::check(&case.graph, &wrong).is_err();
            assert!(noticed, "seed {seed}, {way}: {}\n{text}", lines[place]);
            *refused += 1;
        }
    }
    assert!(refused.iter().all(|&times| times >= 20), "{refused:?} times");
}

#[test]
fn addresses_of_a_plan_stand_in_the_graph() {
    let (mut plans, mut spots, mut needed) = (0, 0, 0);
    for seed in 0..200 {
        let (case, mut rng) = Case::new(seed);
        let (bridge, mut plan, budget) = case.with_repetitions(&mut rng);
        let granularity = if rng.chance(50) { Granularity::Whole } else { Granularity::Ranges };
        plan.schedule =
            swap_only::plan(&Request { granularity, effort: 1, ..Request::new(&plan.problem, budget) })
                .unwrap()
                .schedule;
        let arena = Arena { bytes: budget, alignment: 1 << rng.below(7) };
        let Some(placed) = place(arena, 1, covers(plan.clone(), granularity)) else { continue };
        check(&placed, arena).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let mut graph = case.graph.clone();
        apply(&mut graph, &bridge, &placed.plan, &placed.edges, &placed.spots)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let explain = || format!("seed {seed}, budget {budget}\n{}", graph.to_text());
        lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("{e}\n{}", explain()));
        equiv::check(&case.graph, &graph).unwrap_or_else(|e| panic!("{e}\n{}", explain()));
        let again = Graph::parse(&graph.to_text()).unwrap();
        assert_eq!(again.to_text(), graph.to_text());
        for (_, storage) in Storages::of(&graph).iter() {
            let has = matches!(graph.value(storage.root).place, Place::DeviceAt(_) | Place::Host);
            assert!(has || storage.bytes == Bytes::ZERO, "{}", explain());
        }
        let execution = Execution::of(&graph, &case.terms.link, |n| case.cost(&graph, n));
        assert_eq!(execution.makespan, placed.plan.schedule.makespan(), "{}", explain());
        let workspace = |n| Bytes(case.cost(&graph, n).workspace);
        let guaranteed = MemoryTimeline::with_workspace(&graph, workspace).peak();
        assert!(execution.peak <= guaranteed.0 && guaranteed.0 <= budget, "{}", explain());
        plans += 1;
        spots += placed.spots.len();
        for _ in 0..12.min(placed.edges.len()) {
            let mut less = placed.clone();
            less.edges.remove(rng.below(placed.edges.len()));
            if check(&less, arena).is_err() {
                let mut graph = case.graph.clone();
                apply(&mut graph, &bridge, &less.plan, &less.edges, &less.spots).unwrap();
                let violations = lmsc_ir::verify(&graph).expect_err("an edge is missing").to_string();
                assert!(violations.contains("I7"), "{violations}");
                needed += 1;
            }
        }
    }
    assert!(plans > 150 && spots > 10_000 && needed > 50, "{plans} plans, {spots} spots, {needed} edges");
}

#[test]
fn without_its_edges_a_plan_guarantees_nothing() {
    let mut broken = 0;
    for seed in 0..200 {
        let (case, _) = Case::new(seed);
        let bridge = case.bridge();
        let budget = bridge.problem.needed_bytes().into_iter().max().unwrap();
        let request =
            Request { granularity: Granularity::Whole, effort: 1, ..Request::new(&bridge.problem, budget) };
        let plan = swap_only::plan(&request).unwrap();
        let mut graph = case.graph.clone();
        apply(&mut graph, &bridge, &plan, &[], &[]).unwrap();
        let workspace = |n| Bytes(case.cost(&graph, n).workspace);
        broken += usize::from(MemoryTimeline::with_workspace(&graph, workspace).peak().0 > budget);
    }
    assert!(broken > 100, "only {broken} plans need their edges");
}

#[test]
fn operators_that_run_again_are_clones() {
    let (mut twins, mut swaps) = (0, 0);
    for seed in 0..400 {
        let (case, mut rng) = Case::new(seed);
        let (bridge, mut plan, budget) = case.with_repetitions(&mut rng);
        let request =
            Request { granularity: Granularity::Whole, effort: 1, ..Request::new(&plan.problem, budget) };
        plan.schedule = swap_only::plan(&request).unwrap().schedule;
        assert!(case.check(seed, &bridge, &plan, budget), "seed {seed}: other times");
        twins += plan.problem.ops.len() - bridge.problem.ops.len();
        swaps += plan.schedule.steps.len() - plan.problem.ops.len();
    }
    assert!(twins > 2000 && swaps > 2000, "only {twins} twins and {swaps} copies");
}
