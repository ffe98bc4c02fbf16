//! DQN Figure 5: what less memory costs.

use crate::Page;
use crate::plot::{Curve, Plot};
use crate::table::{Table, percent_above};
use crate::work::{self, Found, Scale, Way, each};
use lmsc_plan::problem::Problem;

/// By how much the memory is less than the step would take, in percent.
const LESS: &[u64] = &[5, 10, 20, 30, 40, 50, 60, 70];

const WAYS: &[Way] = &[
    Way::paper("memonger"),
    Way::paper("lru"),
    Way::paper("tflms-best"),
    Way::OPTIMAL,
    Way::AUTO,
    Way::AUTO_RANGES,
];

/// What the tables call it, the file, and its sizes.
type Model = (&'static str, &'static str, &'static [(&'static str, u64)]);

const MODELS: &[Model] = &[
    (
        "LSTM, 2 layers, 64 steps, batch 512",
        "charlstm/training_model.onnx",
        &[("batch", 512), ("batch_seq", 32768)],
    ),
    ("ResNet-18, batch 64", "resnet18/training_model.onnx", &[("batch", 64)]),
    ("ResNet-50, batch 64", "resnet50/training_model.onnx", &[("batch", 64)]),
    ("VGG-16, batch 64", "vgg16/training_model.onnx", &[("batch", 64)]),
    ("3D U-Net, 32 voxels wide, batch 64", "unet3d/training_model.onnx", &[("batch", 64)]),
];

struct Case {
    model: usize,
    less: u64,
    budget: u64,
    compute: u64,
    bound: Option<u64>,
    found: Vec<Option<Found>>,
}

pub(crate) fn run(scale: Scale) -> Page {
    let target = work::target("gtx1080ti");
    let models = scale.some(MODELS, 1);
    let less = scale.some(LESS, 3);
    let problems: Vec<Problem> =
        models.iter().map(|(_, file, dims)| work::model(file, dims, &target)).collect();
    let pairs: Vec<(usize, u64)> =
        (0..models.len()).flat_map(|m| less.iter().map(move |&less| (m, less))).collect();
    let cases = each(&pairs, |&(model, less)| {
        let problem = &problems[model];
        let budget = work::peak(problem) * (100 - less) / 100;
        Case {
            model,
            less,
            budget,
            compute: problem.compute_nanos(),
            bound: (problem.floor().1 <= budget).then(|| work::bound(problem, budget, true)),
            found: WAYS.iter().map(|way| way.find(problem, budget, scale)).collect(),
        }
    });
    let labels: Vec<&str> = WAYS.iter().map(|way| way.label).collect();
    let ratio = |case: &Case, nanos: u64| nanos as f64 / case.compute as f64;
    let mut tables = Vec::new();
    let mut plots = Vec::new();
    for (index, (name, ..)) in models.iter().enumerate() {
        let columns: Vec<&str> =
            ["memory", "GiB"].into_iter().chain(labels.iter().copied()).chain(["no plan beats"]).collect();
        let least = work::gib(problems[index].floor().1);
        let mut table = Table::new(format!("{name}; the least memory is {least} GiB"), &columns);
        let here: Vec<&Case> =
            cases.iter().filter(|case| case.model == index && case.bound.is_some()).collect();
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
        let short = name.split([',', ' ']).next().unwrap_or_default().to_lowercase();
        plots.push(Plot {
            name: if short == "3d" { "unet".to_owned() } else { short },
            title: format!("{name}: what less memory costs"),
            x: "memory less than the step would take, %",
            y: "overhead, %",
            top: Some(150.0),
            curves,
        });
    }
    let mut csv =
        Table::new("cases", &[&["model", "memory_less_percent", "budget_bytes"][..], &work::FOUND].concat());
    for case in &cases {
        for (way, found) in WAYS.iter().zip(&case.found) {
            let own = [
                models[case.model].1.replace("/training_model.onnx", ""),
                case.less.to_string(),
                case.budget.to_string(),
            ];
            csv.push(own.into_iter().chain(work::cells(case.compute, case.bound, way, *found)).collect());
        }
    }
    Page {
        name: "dqn",
        title: "DQN Figure 5: overhead against memory",
        about: "How much longer a step takes than without a limit, by the cost model of `gtx1080ti`, where the memory is so much \
                less than the step would take. `memonger` only computes again; `lru` evicts as SuperNeurons does; `tflms-best` \
                is TFLMS with the number of tensors and the time of the swap-ins that are best within the budget; `optimal` \
                only swaps; `auto` swaps and computes again. A dash: the planner has no plan. The last column is certified for \
                swapping and computing again.",
        tables,
        plots,
        cases: csv,
    }
}
