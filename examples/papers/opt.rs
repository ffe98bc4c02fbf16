//! OPT §6: how far planners are from the bound, over memory.

use crate::plot::{Curve, Plot};
use crate::table::{Table, mean, number};
use crate::work::{self, Scale, Way, each};
use crate::{Page, work::Found};
use lmsc_plan::bound;
use lmsc_plan::problem::Problem;

/// Where the budget lies between the least memory and the peak, in percent.
const MEMORY: &[u64] = &[0, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90];

const WAYS: &[Way] = &[
    Way::paper("greedy"),
    Way::paper("dynprog"),
    Way::paper("vdnn"),
    Way::paper("autoswap"),
    Way::paper("tflms-best"),
    Way::paper("window"),
    Way::paper("lru"),
    Way::OPTIMAL,
    Way::RANGES,
];

/// Chains: network, the batches at each image size.
const NETWORKS: &[&str] =
    &["resnet18", "resnet34", "resnet50", "resnet152", "densenet121", "densenet161", "densenet169"];
const SIZES: &[(u64, [u64; 2])] = &[(224, [32, 128]), (500, [8, 32]), (1000, [2, 8])];

/// Chains of few stages, for networks without an instance of every size.
const COARSE: &[&str] =
    &["resnet101_500_b8_k6", "resnet101_500_b8_k8", "inceptionv3_299_b32_k6", "inceptionv3_299_b32_k8"];

/// Real graphs, at 224.
const MODELS: &[&str] = &["resnet18", "resnet50", "densenet121"];

struct Network {
    /// The plots group cases by this key.
    family: String,
    name: String,
    problem: Problem,
    /// Whether it is a graph, where the planners that recompute are shown, too.
    real: bool,
}

struct Case {
    family: String,
    name: String,
    memory: u64,
    budget: u64,
    compute: u64,
    paper_bound: u64,
    bound: u64,
    found: Vec<Option<Found>>,
    real: bool,
}

pub(crate) fn run(scale: Scale) -> Page {
    let networks = networks(scale);
    let memory = scale.some(MEMORY, 3);
    let pairs: Vec<(usize, u64)> =
        (0..networks.len()).flat_map(|n| memory.iter().map(move |&m| (n, m))).collect();
    let cases = each(&pairs, |&(n, memory)| case(&networks[n], memory, scale));
    let families: Vec<String> = cases.iter().fold(Vec::new(), |mut all, case| {
        if !all.contains(&case.family) {
            all.push(case.family.clone());
        }
        all
    });
    let of_paper = |case: &Case, found: &Found| found.makespan as f64 / case.paper_bound as f64;
    let of_ours = |case: &Case, found: &Found| found.makespan as f64 / case.bound as f64;
    let chains = |case: &&Case| !case.real;
    let real = |case: &&Case| case.real;
    let tables = vec![
        by_memory(
            "Chains: makespan by the paper's bound (Proposition 3), mean",
            memory,
            &cases,
            chains,
            of_paper,
        ),
        by_memory("Chains: makespan by our bound, mean", memory, &cases, chains, of_ours),
        by_memory("Graphs: makespan by the paper's bound, mean", memory, &cases, real, of_paper),
        by_memory(
            "Graphs: makespan by our bound for plans that only swap, mean",
            memory,
            &cases,
            real,
            of_ours,
        ),
        claims(&cases),
    ];
    Page {
        name: "opt",
        title: "OPT §6: how far from the bound, over memory",
        about: "Budgets lie between the least memory that whole tensors need (0 %) and the peak (100 %). The link is half duplex, as \
                in the paper, 12.2 GB/s. The planners of papers order their copies as the papers say; `swap-only` and `auto` are \
                ours. `(n)` behind a mean: only so many cases had a plan. Chains are the instances of `testdata/instances` \
                (224, 500 and 1000 pixels, two batches each; ResNet-101 and Inception as coarse chains of six and eight stages), with a \
                synthetic profile; graphs are ResNet-18, ResNet-50 and \
                DenseNet-121 of `testdata/models` at 224 pixels, batches 32 and 128, by the cost model of `v100-pcie`, whose \
                budgets include parameters. `auto` and `memonger` compute again, which the paper's planners do not, so they \
                are below the bounds of those; they are asked on the graphs only.",
        tables,
        plots: families.iter().map(|family| plot(family, memory, &cases)).collect(),
        cases: csv(&cases),
    }
}

fn networks(scale: Scale) -> Vec<Network> {
    let mut networks = Vec::new();
    for network in scale.some(NETWORKS, 1) {
        for (image, batches) in scale.some(SIZES, 1) {
            for batch in scale.some(batches, 1) {
                let name = format!("{network}_{image}_b{batch}");
                let family = network.trim_end_matches(|c: char| c.is_ascii_digit());
                let problem = work::instance(&format!("chain_{name}"));
                networks.push(Network { family: format!("{family}-{image}"), name, problem, real: false });
            }
        }
    }
    for name in scale.some(COARSE, 0) {
        let problem = work::instance(&format!("tiny_chain_{name}"));
        networks.push(Network {
            family: "coarse".to_owned(),
            name: (*name).to_owned(),
            problem,
            real: false,
        });
    }
    let target = work::target("v100-pcie");
    for model in scale.some(MODELS, 1) {
        for batch in scale.some(&[32, 128], 1) {
            let problem = work::model(&format!("{model}/training_model.onnx"), &[("batch", *batch)], &target);
            let problem = work::half_duplex(problem);
            let name = format!("{model}_224_b{batch}");
            networks.push(Network { family: "graphs".to_owned(), name, problem, real: true });
        }
    }
    networks
}

fn ways(real: bool) -> Vec<Way> {
    let more = [Way::paper("memonger"), Way::AUTO];
    WAYS.iter().copied().chain(more.into_iter().filter(|_| real)).collect()
}

fn case(network: &Network, memory: u64, scale: Scale) -> Case {
    let problem = &network.problem;
    let (floor, peak) = (problem.floor().1, work::peak(problem));
    let budget = floor + (peak - floor) * memory / 100;
    Case {
        family: network.family.clone(),
        name: network.name.clone(),
        memory,
        budget,
        compute: problem.compute_nanos(),
        paper_bound: bound::paper(problem, budget).nanos,
        bound: work::bound(problem, budget, false),
        found: ways(network.real).iter().map(|way| way.find(problem, budget, scale)).collect(),
        real: network.real,
    }
}

/// A row for each place of the budget, a column for each planner.
fn by_memory(
    title: &str,
    memory: &[u64],
    cases: &[Case],
    of: impl Fn(&&Case) -> bool,
    ratio: impl Fn(&Case, &Found) -> f64,
) -> Table {
    let cases: Vec<&Case> = cases.iter().filter(of).collect();
    let ways = ways(cases.iter().any(|case| case.real));
    let columns: Vec<&str> = ["memory"].into_iter().chain(ways.iter().map(|way| way.label)).collect();
    let mut table = Table::new(title, &columns);
    for &memory in memory {
        let here: Vec<&&Case> = cases.iter().filter(|case| case.memory == memory).collect();
        let cell = |index: usize| {
            let ratios: Vec<f64> =
                here.iter().filter_map(|case| Some(ratio(case, case.found[index].as_ref()?))).collect();
            let text = number(mean(&ratios), 3);
            if ratios.len() == here.len() || ratios.is_empty() {
                text
            } else {
                format!("{text} ({})", ratios.len())
            }
        };
        table.push([format!("{memory} %")].into_iter().chain((0..ways.len()).map(cell)).collect());
    }
    table
}

/// The claims of §6.2 of the paper, counted.
fn claims(cases: &[Case]) -> Table {
    let index = |label: &str| ways(true).iter().position(|way| way.label == label).expect("it is shown");
    let [greedy, dynprog, vdnn, autoswap, tflms] =
        ["greedy", "dynprog", "vdnn", "autoswap", "tflms-best"].map(index);
    let time = |case: &Case, of: usize| case.found[of].map(|found| found.makespan);
    let mut table = Table::new("What §6.2 says, counted", &["claim", "chains", "graphs"]);
    let mut claim = |text: &str, holds: &dyn Fn(&Case) -> Option<bool>| {
        let count = |real: bool| {
            let held: Vec<bool> = cases.iter().filter(|case| case.real == real).filter_map(holds).collect();
            format!("{} of {}", held.iter().filter(|&&held| held).count(), held.len())
        };
        table.push(vec![text.to_owned(), count(false), count(true)]);
    };
    let below = |case: &Case, of: usize| Some(time(case, of)? as f64 <= 1.2 * case.paper_bound as f64);
    claim("DynProg has a plan", &|case| Some(time(case, dynprog).is_some()));
    claim("DynProg within 1.2 of the bound", &|case| below(case, dynprog));
    claim("Greedy within 1.2 of the bound", &|case| below(case, greedy));
    claim("VDNN has a plan", &|case| Some(time(case, vdnn).is_some()));
    claim("DynProg not worse than VDNN", &|case| Some(time(case, dynprog)? <= time(case, vdnn)?));
    claim("Greedy not worse than VDNN", &|case| Some(time(case, greedy)? <= time(case, vdnn)?));
    claim("AutoSwap as Greedy", &|case| Some(time(case, autoswap)? == time(case, greedy)?));
    claim("TFLMS has a plan", &|case| Some(time(case, tflms).is_some()));
    claim("TFLMS optimal where it has one", &|case| Some(time(case, tflms)? == case.paper_bound));
    claim("TFLMS has a plan at 90 %", &|case| (case.memory == 90).then(|| time(case, tflms).is_some()));
    table
}

fn plot(family: &str, memory: &[u64], cases: &[Case]) -> Plot {
    let cases: Vec<&Case> = cases.iter().filter(|case| case.family == family).collect();
    let real = cases.iter().any(|case| case.real);
    let curve = |(index, way): (usize, &Way)| {
        let at = |&memory: &u64| {
            let here = cases.iter().filter(|case| case.memory == memory);
            let ratios: Option<Vec<f64>> =
                here.map(|case| Some(case.found[index]?.makespan as f64 / case.paper_bound as f64)).collect();
            (memory as f64, ratios.and_then(|ratios| mean(&ratios)))
        };
        Curve { name: way.label.to_owned(), points: memory.iter().map(at).collect() }
    };
    Plot {
        name: family.to_owned(),
        title: format!("{family}: makespan by the bound of the paper, mean"),
        x: "memory between least and peak, %",
        y: "ratio",
        top: Some(2.0),
        curves: ways(real).iter().enumerate().map(curve).collect(),
    }
}

fn csv(cases: &[Case]) -> Table {
    let columns = [
        "network",
        "memory_percent",
        "budget_bytes",
        "compute_ms",
        "paper_bound_ms",
        "bound_ms",
        "planner",
        "makespan_ms",
        "recomputed_ms",
        "out_bytes",
    ];
    let mut table = Table::new("cases", &columns);
    for case in cases {
        for (way, found) in ways(case.real).iter().zip(&case.found) {
            let [time, again] = [found.map(|f| f.makespan), found.map(|f| f.recomputed)]
                .map(|nanos| nanos.map(|nanos| format!("{:.3}", work::ms(nanos))).unwrap_or_default());
            table.push(vec![
                case.name.clone(),
                case.memory.to_string(),
                case.budget.to_string(),
                format!("{:.3}", work::ms(case.compute)),
                format!("{:.3}", work::ms(case.paper_bound)),
                format!("{:.3}", work::ms(case.bound)),
                way.label.replace(", ", "-"),
                time,
                again,
                found.map(|f| f.out.to_string()).unwrap_or_default(),
            ]);
        }
    }
    table
}
