//! DQN Figure 5: the cost of less memory.

use std::sync::Mutex;

use crate::Page;
use crate::networks::{Stochastic, stochastic_depth, vgg_13};
use crate::plot::{Curve, Plot};
use crate::table::{Table, mean, number, percent_above};
use crate::work::{self, Found, Scale, Way, each};
use lmsc_ir::program::GateEffect;
use lmsc_papers::dqn::{Learning, Weights};
use lmsc_papers::env::Env;
use lmsc_plan::planners::{Episode, Plan, Request};
use lmsc_plan::problem::Problem;
use lmsc_plan::schedule::{Noise, Replay, Room, check_however_long, edges};

/// By how much the memory is less than the step would take, in percent.
const LESS: &[u64] = &[10, 20, 30, 40, 50, 60];

/// The same where little of it can leave at all.
const LITTLE_LESS: &[u64] = &[2, 4, 6, 8, 10, 12];

const WAYS: &[Way] = &[
    Way::paper("memonger"),
    Way::paper("lru"),
    Way::paper("tflms-best"),
    Way::RANDOM,
    Way::DQN,
    Way::OPTIMAL,
    Way::AUTO,
];

/// How many episodes the learned planner plays for each budget.
const EPISODES: u32 = 24;

/// And how many where it begins with the weights that it has learned on a smaller network.
const EPISODES_TUNED: u32 = 12;

/// Numbers of episodes after which the table shows the best plan.
const AFTER: [u32; 3] = [1, EPISODES_TUNED, EPISODES];

/// The fine-tuned network, the network whose weights it begins with, and its memory limit in percent (§4.4.2:
/// "train a DQN on a small graph and fine-tune on a large one").
const TUNED: (&str, &str, u64) = ("resnet-50", "resnet-18", 40);

/// How many steps of a network of stochastic depth are run by each plan.
const STEPS: usize = 12;

/// Where a network comes from.
#[derive(Clone, Copy)]
enum From {
    /// A model and its sizes.
    Model(&'static str, &'static [(&'static str, u64)]),
    /// VGG-16 without some layers, and its batch.
    Vgg13(u64),
    /// A residual network whose layers are there with some probability.
    StochasticDepth(&'static str, u64),
    /// A recorded iteration.
    Trace(&'static str),
}

/// Name in the tables, end of the plot's name, and origin.
type Network = (&'static str, &'static str, From);

const NETWORKS: &[Network] = &[
    ("K-means, as recorded", "k-means", From::Trace("kmeans")),
    ("ResNet-18, batch 64", "resnet-18", From::Model("resnet18", &[("batch", 64)])),
    ("ResNet-50, batch 64", "resnet-50", From::Model("resnet50", &[("batch", 64)])),
    ("VGG-13, batch 64", "vgg-13", From::Vgg13(64)),
    ("VGG-16, batch 64", "vgg-16", From::Model("vgg16", &[("batch", 64)])),
    ("3D U-Net, 32 voxels wide, batch 64", "unet", From::Model("unet3d", &[("batch", 64)])),
    (
        "LSTM, 2 layers, 64 steps, batch 512",
        "lstm",
        From::Model("charlstm", &[("batch", 512), ("batch_seq", 32768)]),
    ),
    ("ResNet-18 of stochastic depth, batch 64", "stochastic-depth", From::StochasticDepth("resnet18", 64)),
];

/// A network's step, and the effect of the gates on its operators in several steps; empty if every step is the same.
fn network(from: From) -> Stochastic {
    let target = work::target("gtx1080ti");
    let graph =
        |model: &str, dims: &[(&str, u64)]| work::graph(&format!("{model}/training_model.onnx"), dims);
    let problem = match from {
        From::Model(model, dims) => work::of_graph(graph(model, dims), &target),
        From::Vgg13(batch) => work::of_graph(vgg_13(graph("vgg16", &[("batch", batch)])), &target),
        From::StochasticDepth(model, batch) => {
            return stochastic_depth(&graph(model, &[("batch", batch)]), &target, STEPS);
        }
        From::Trace(name) => work::trace(name),
    };
    Stochastic { problem, steps: Vec::new() }
}

struct Case {
    network: usize,
    less: u64,
    budget: u64,
    compute: u64,
    bound: Option<u64>,
    found: Vec<Option<Found>>,
    learned: Option<Learned>,
}

/// Result of the training.
struct Learned {
    /// Nodes of the graph, and windows for which a tensor may leave or be removed.
    nodes: usize,
    actions: usize,
    /// The share of the step by which the best plan after each of [`AFTER`] takes longer.
    best: Vec<f64>,
    weights: Weights,
}

/// The planner's plan within the budget; and the result of its training, if it learns.
fn plan(
    problem: &Problem,
    way: &Way,
    budget: u64,
    scale: Scale,
    begin: Option<&Weights>,
) -> Option<(Plan, Option<Learned>)> {
    let seen: Mutex<(Vec<u64>, Option<Weights>)> = Mutex::default();
    let watch = |episode: &Episode| {
        let mut seen = seen.lock().expect("nobody panics with it");
        seen.0.push(episode.best_nanos);
        seen.1 = Weights::new(episode.weights.to_vec());
    };
    let episodes = if begin.is_some() { EPISODES_TUNED } else { EPISODES };
    // The effort scales the episodes, too.
    let episodes = (episodes * 100).div_ceil(scale.effort());
    let learning = Learning { episodes, weights: begin, watch: Some(&watch), ..Learning::default() };
    let plan = way.plan(problem, budget, scale, learning)?;
    let (seen, weights) = seen.into_inner().expect("nobody panics with it");
    let learned = seen.last().zip(weights).map(|(&last, weights)| {
        let env = Env::new(&Request { recompute: true, ..Request::new(problem, budget) });
        let env = env.expect("there is a plan");
        let best = AFTER.map(|after| seen.get(after as usize - 1).copied().unwrap_or(last));
        let best = best.map(|nanos| nanos as f64 / problem.compute_nanos() as f64);
        let actions = env.nodes().iter().filter(|node| node.action.is_some()).count();
        Learned { nodes: env.nodes().len(), actions, best: best.to_vec(), weights }
    });
    Some((plan, learned))
}

/// Average cost of the plan over steps that leave layers out, each step checked.
fn over_steps(plan: &Plan, budget: u64, steps: &[Vec<GateEffect>]) -> Found {
    let room = edges(&plan.problem, &plan.schedule, Room::Counted(budget)).expect("the plan is valid");
    let replay = Replay::new(&plan.problem, &plan.schedule, &room);
    let mut sum = Found { makespan: 0, recomputed: 0, out: 0 };
    for parts in steps {
        let parts: Vec<GateEffect> = plan.op_origin.iter().map(|&tick| parts[tick as usize]).collect();
        let (problem, schedule) = replay.without(&parts, Noise::default(), 0);
        check_however_long(&problem, &schedule, budget).unwrap_or_else(|flaw| panic!("a step: {flaw}"));
        let left = Found::of(&Plan { problem, schedule, ..plan.clone() });
        sum.makespan += left.makespan;
        sum.recomputed += left.recomputed;
        sum.out += left.out;
    }
    let steps = steps.len() as u64;
    Found { makespan: sum.makespan / steps, recomputed: sum.recomputed / steps, out: sum.out / steps }
}

/// So many percent less than the step would take.
fn budget(problem: &Problem, less: u64) -> u64 {
    work::peak(problem) * (100 - less) / 100
}

fn case(index: usize, network: &Stochastic, less: u64, scale: Scale, begin: Option<&Weights>) -> Case {
    let Stochastic { problem, steps } = network;
    let budget = budget(problem, less);
    let mut case = Case {
        network: index,
        less,
        budget,
        compute: problem.compute_nanos(),
        bound: None,
        found: vec![None; WAYS.len()],
        learned: None,
    };
    if problem.floor().1 > budget {
        return case;
    }
    for (found, way) in case.found.iter_mut().zip(WAYS) {
        let Some((plan, learned)) = plan(problem, way, budget, scale, begin) else { continue };
        case.learned = learned.or(case.learned.take());
        *found = Some(if steps.is_empty() { Found::of(&plan) } else { over_steps(&plan, budget, steps) });
    }
    let lefts: Vec<Problem> = steps.iter().map(|parts| problem.without(parts)).collect();
    case.bound = Some(match lefts.len() as u64 {
        0 => work::bound(problem, budget, true),
        count => {
            case.compute = lefts.iter().map(Problem::compute_nanos).sum::<u64>() / count;
            lefts.iter().map(|left| work::bound(left, budget, true)).sum::<u64>() / count
        }
    });
    case
}

pub(crate) fn run(scale: Scale) -> Page {
    let names = scale.some(NETWORKS, 1);
    let less = |index: usize| {
        let little = matches!(names[index], (_, _, From::Trace(_)));
        scale.some(if little { LITTLE_LESS } else { LESS }, 3)
    };
    let networks: Vec<Stochastic> = each(names, |&(.., from)| network(from));
    let at = |name: &str| names.iter().position(|(_, short, _)| *short == name);
    let small = at(TUNED.1).zip(at(TUNED.0)).and_then(|(small, _)| {
        let problem = &networks[small].problem;
        plan(problem, &Way::DQN, budget(problem, TUNED.2), scale, None)?.1
    });
    let begin = |index: usize| Some(&small.as_ref().filter(|_| names[index].1 == TUNED.0)?.weights);
    // The fastest cases last.
    let pairs: Vec<(usize, u64)> =
        (0..names.len()).rev().flat_map(|n| less(n).iter().map(move |&less| (n, less))).collect();
    let mut cases = each(&pairs, |&(index, less)| case(index, &networks[index], less, scale, begin(index)));
    cases.sort_by_key(|case| (case.network, case.less));
    let labels: Vec<&str> = WAYS.iter().map(|way| way.label).collect();
    let ratio = |case: &Case, nanos: u64| nanos as f64 / case.compute as f64;
    let mut tables = Vec::new();
    let mut plots = Vec::new();
    for (index, (name, short, from)) in names.iter().enumerate() {
        let columns: Vec<&str> =
            ["memory", "GiB"].into_iter().chain(labels.iter().copied()).chain(["no plan beats"]).collect();
        let least = work::gib(networks[index].problem.floor().1);
        let mut table = Table::new(format!("{name}; the least memory is {least} GiB"), &columns);
        let here: Vec<&Case> =
            cases.iter().filter(|case| case.network == index && case.bound.is_some()).collect();
        for case in &here {
            let mut row = vec![format!("−{} %", case.less), work::gib(case.budget)];
            row.extend(case.found.iter().map(|found| percent_above(found.map(|f| ratio(case, f.makespan)))));
            row.push(percent_above(case.bound.map(|nanos| ratio(case, nanos))));
            table.push(row);
        }
        tables.push(table);
        let overhead = |case: &Case, nanos: Option<u64>| nanos.map(|n| 100.0 * (ratio(case, n) - 1.0));
        let mut curves: Vec<Curve> = WAYS
            .iter()
            .enumerate()
            .map(|(way, facts)| Curve {
                name: facts.label.to_owned(),
                points: here
                    .iter()
                    .map(|case| (case.less as f64, overhead(case, case.found[way].map(|f| f.makespan))))
                    .collect(),
            })
            .collect();
        curves.push(Curve {
            name: "no plan beats".to_owned(),
            points: here.iter().map(|case| (case.less as f64, overhead(case, case.bound))).collect(),
        });
        plots.push(Plot {
            name: (*short).to_owned(),
            title: format!("{name}: what less memory costs"),
            x: "memory less than the step would take, %",
            y: "overhead, %",
            top: if matches!(from, From::Trace(_)) { None } else { Some(150.0) },
            curves,
        });
    }
    tables.push(learning(names, &cases));
    let mut csv = Table::new(
        "cases",
        &[&["network", "memory_less_percent", "budget_bytes"][..], &work::FOUND].concat(),
    );
    for case in &cases {
        for (way, found) in WAYS.iter().zip(&case.found) {
            let own = [names[case.network].1.to_owned(), case.less.to_string(), case.budget.to_string()];
            csv.push(own.into_iter().chain(work::cells(case.compute, case.bound, way, *found)).collect());
        }
    }
    Page {
        name: "dqn",
        title: "DQN Figure 5: overhead against memory",
        about: "How much longer a step takes than without a limit, by the cost model of `gtx1080ti`, where the memory is so much \
                less than the step would take. `memonger` only computes again; `lru` evicts as SuperNeurons does; `tflms-best` \
                is TFLMS with the number of tensors and the time of the swap-ins that are best within the budget; `dqn` learns, \
                for each budget from random weights, in 24 episodes; on ResNet-50 in twelve, from the weights that it learned on \
                ResNet-18; `random` is the best of as many episodes of the same game in which every choice is random; `swap-only` only swaps; `auto` swaps and computes again. A dash: the planner has no plan. The last column is certified for swapping and computing again. K-means is \
                the recorded iteration of `testdata/traces`, by its own times and link. Of stochastic depth, the plan is that \
                of the whole network; the overhead is the mean one of twelve steps in which layers are left out, over the mean time of \
                these without a limit, and the last column what no plans of their own could beat.",
        tables,
        plots,
        cases: csv,
    }
}

/// Costs and gains of learning.
fn learning(names: &[Network], cases: &[Case]) -> Table {
    let after = AFTER.map(|after| format!("after {after}"));
    let columns: Vec<String> =
        ["network", "nodes", "actions"].map(str::to_owned).into_iter().chain(after).collect();
    let title =
        "What `dqn` learns: the mean overhead of the best plan after so many episodes, of all budgets";
    let mut table = Table::new(title, &columns);
    for (index, (name, ..)) in names.iter().enumerate() {
        let of = |case: &&Case| case.network == index;
        let learned: Vec<&Learned> =
            cases.iter().filter(of).filter_map(|case| case.learned.as_ref()).collect();
        let Some(one) = learned.first() else { continue };
        let mut row = vec![(*name).to_owned(), one.nodes.to_string(), one.actions.to_string()];
        row.extend((0..AFTER.len()).map(|at| {
            let all: Vec<f64> = learned.iter().map(|learned| 100.0 * learned.best[at]).collect();
            format!("{} %", number(mean(&all), 1))
        }));
        table.push(row);
    }
    table
}
