//! Comparison with the results that MAGIS and MONeT publish: the same networks, the same shares of memory.

use crate::Page;
use crate::table::{Table, percent_above};
use crate::work::{self, Found, Scale, Way, each};
use lmsc_ir::Graph;
use lmsc_plan::problem::Problem;

const WAYS: &[Way] = &[Way::paper("memonger"), Way::OPTIMAL, Way::AUTO, Way::AUTO_RANGES];

/// Who publishes it, the network, the file, its sizes, and the target that we plan for.
struct Published {
    by: &'static str,
    network: &'static str,
    file: &'static str,
    dims: &'static [(&'static str, u64)],
    target: &'static str,
    /// Memory in percent of the framework's, and the result published for it.
    points: &'static [(f64, &'static str)],
}

/// MONeT (2021), its table of results: memory of PyTorch and of MONeT in GB, and the overhead; MAGIS (ASPLOS 2024): that
/// its figures stay below these overheads on seven networks.
const PUBLISHED: &[Published] = &[
    Published {
        by: "MONeT",
        network: "ResNet-50, batch 184",
        file: "resnet50/training_model.onnx",
        dims: &[("batch", 184)],
        target: "v100-pcie",
        points: &[
            (100.0 * 10.01 / 15.06, "+3.22 % (10.01 GB)"),
            (100.0 * 8.01 / 15.06, "+5.56 % (8.01 GB)"),
            (100.0 * 6.00 / 15.06, "+9.31 % (6.00 GB)"),
            (100.0 * 4.99 / 15.06, "+11.95 % (4.99 GB)"),
        ],
    },
    Published {
        by: "MONeT",
        network: "VGG-16, batch 176",
        file: "vgg16/training_model.onnx",
        dims: &[("batch", 176)],
        target: "v100-pcie",
        points: &[
            (100.0 * 9.71 / 14.12, "−5.30 % (9.71 GB)"),
            (100.0 * 7.88 / 14.12, "−2.18 % (7.88 GB)"),
            (100.0 * 5.90 / 14.12, "+5.44 % (5.90 GB)"),
            (100.0 * 5.51 / 14.12, "+9.11 % (5.51 GB)"),
        ],
    },
    Published {
        by: "MAGIS",
        network: "ResNet-50, batch 64",
        file: "resnet50/training_model.onnx",
        dims: &[("batch", 64)],
        target: "a100-pcie4",
        points: &[(80.0, "≤ 5 %"), (40.0, "≤ 15 %")],
    },
    Published {
        by: "MAGIS",
        network: "BERT-base, batch 32",
        file: "bert_base/training_model.onnx",
        dims: &[("batch", 32)],
        target: "a100-pcie4",
        points: &[(80.0, "≤ 5 %"), (40.0, "≤ 15 %")],
    },
];

struct Case {
    published: usize,
    share: f64,
    figure: &'static str,
    budget: u64,
    compute: u64,
    bound: Option<u64>,
    found: Vec<Option<Found>>,
}

pub(crate) fn run(scale: Scale) -> Page {
    let published = scale.some(PUBLISHED, 1);
    let graphs: Vec<Graph> = published.iter().map(|p| work::graph(p.file, p.dims)).collect();
    let pairs: Vec<(usize, f64, &'static str)> = published
        .iter()
        .enumerate()
        .flat_map(|(index, p)| {
            scale.some(p.points, 2).iter().map(move |&(share, figure)| (index, share, figure))
        })
        .collect();
    let cases = each(&pairs, |&(index, share, figure)| {
        let (graph, target) = (&graphs[index], work::target(published[index].target));
        let first = work::of_graph(graph.clone(), &target);
        let budget = (work::peak(&first) as f64 * share / 100.0) as u64;
        let problems: Vec<Problem> = WAYS.iter().map(|way| way.problem(graph, &target, budget)).collect();
        let bound = |problem: &Problem| work::bound(problem, budget, true);
        Case {
            published: index,
            share,
            figure,
            budget,
            compute: first.compute_nanos(),
            bound: (first.floor().1 <= budget).then(|| problems.iter().map(bound).min()).flatten(),
            found: WAYS
                .iter()
                .zip(&problems)
                .map(|(way, problem)| way.find(problem, budget, scale))
                .collect(),
        }
    });
    let labels = WAYS.iter().map(|way| way.label);
    let columns: Vec<&str> = ["network", "published by", "memory", "ours, GiB", "published"]
        .into_iter()
        .chain(labels)
        .chain(["no plan beats"])
        .collect();
    let mut table = Table::new("Overhead at the same share of the step's memory", &columns);
    let mut csv = Table::new(
        "cases",
        &[&["published_by", "network", "memory_percent", "budget_bytes"][..], &work::FOUND].concat(),
    );
    for case in &cases {
        let p = &published[case.published];
        let ratio = |nanos: u64| nanos as f64 / case.compute as f64;
        let mut row = vec![
            p.network.to_owned(),
            p.by.to_owned(),
            format!("{:.0} %", case.share),
            work::gib(case.budget),
            case.figure.to_owned(),
        ];
        row.extend(case.found.iter().map(|found| percent_above(found.map(|f| ratio(f.makespan)))));
        row.push(percent_above(case.bound.map(ratio)));
        table.push(row);
        for (way, found) in WAYS.iter().zip(&case.found) {
            let own = [
                p.by.to_owned(),
                p.file.replace("/training_model.onnx", ""),
                format!("{:.2}", case.share),
                case.budget.to_string(),
            ];
            csv.push(own.into_iter().chain(work::cells(case.compute, case.bound, way, *found)).collect());
        }
    }
    Page {
        name: "others",
        title: "Beside what MONeT and MAGIS publish",
        about: "Each planner is asked in the order of operators that it takes at the budget; no plan in one of these orders beats the \
                last column. Budgets are the published shares of the memory that the step takes without a limit: the framework's there, our \
                graph's peak here. MONeT computes again and chooses kernels, on a GPU with 16 GB; we plan for `v100-pcie`, and \
                choose no kernels. MAGIS swaps, computes again and splits operators, on an RTX 3090, and its figures are read as \
                what they stay below; we plan for `a100-pcie4`, whose link is as fast. Profiles differ, so this says whether \
                the overheads are of one size, not who is better by a percent.",
        tables: vec![table],
        plots: Vec::new(),
        cases: csv,
    }
}
