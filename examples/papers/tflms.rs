//! TFLMS Table 3 and Figures 6 to 9: the largest batch, and the effect of its parameters.

use lmsc_ir::{Bytes, Graph};
use lmsc_papers::tflms::{Params, Strategy};
use lmsc_passes::{MachineModel, PassCx, Pipeline, PlanRequest};
use lmsc_plan::cost::Cost;
use lmsc_plan::{Execution, Target};

use crate::Page;
use crate::plot::{Curve, Plot};
use crate::table::{Table, number};
use crate::work::{self, Scale, Way, each};

/// A model whose batch is scaled.
struct Model {
    name: &'static str,
    file: &'static str,
    /// How many of the graph's samples are one of the paper's.
    samples: u64,
}

const RESNET: Model = Model { name: "ResNet-50, 224²", file: "resnet50/training_model.onnx", samples: 1 };

/// 64 volumes of 32³ have as many voxels as one of 128³, in every layer.
const UNET: Model = Model { name: "3D U-Net, 128³", file: "unet3d/training_model.onnx", samples: 64 };

/// 216 volumes of 32³ have as many voxels as one of 192³.
const LARGE_UNET: Model = Model { name: "3D U-Net, 192³", file: "unet3d/training_model.onnx", samples: 216 };

impl Model {
    fn graph(&self, batch: u64, target: &Target) -> Graph {
        work::prepared(work::graph(self.file, &[("batch", batch * self.samples)]), target)
    }
}

/// A step with fixed parameters of TFLMS.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The memory that it needs in every timing, and its time by the edges of the rewritten graph.
    peak: u64,
    nanos: u64,
    tensors: usize,
    copies: usize,
}

fn step(graph: &Graph, target: &Target, params: Option<&Params>) -> Step {
    let mut graph = graph.clone();
    let budget = Some(target.device_bytes);
    let cx = PassCx {
        question: PlanRequest {
            budget,
            planner_options: params.map(Into::into).unwrap_or_default(),
            ..PlanRequest::default()
        },
        machine: MachineModel { target: Some(target.clone()), ..MachineModel::default() },
        ..PassCx::default()
    };
    let (mut tensors, mut copies) = (0, 0);
    if params.is_some() {
        let swap = Pipeline::parse_with("swap", &lmsc_papers::passes()).unwrap();
        let ran = swap.run(&mut graph, &cx).expect("fixed parameters are taken");
        let swaps = &ran[0].outcome.swaps;
        tensors = swaps.len();
        copies = tensors + swaps.iter().map(|swap| swap.swap_ins).sum::<usize>();
    }
    let costs = cx.costs(&graph);
    let cost = |node| Cost { nanos: costs.nanos(node), workspace: costs.workspace(node).0 };
    let execution = Execution::of(&graph, &target.link.for_planning(), cost);
    Step { peak: cx.memory(&graph).peak().0, nanos: execution.makespan, tensors, copies }
}

/// Whether TFLMS's planner finds parameters that hold the budget.
fn tuned(graph: &Graph, target: &Target) -> bool {
    let cx = PassCx {
        question: PlanRequest { budget: Some(target.device_bytes), ..PlanRequest::default() },
        machine: MachineModel { target: Some(target.clone()), ..MachineModel::default() },
        ..PassCx::default()
    };
    let swap = Pipeline::parse_with("swap", &lmsc_papers::passes()).unwrap();
    swap.run(&mut graph.clone(), &cx).is_ok()
}

fn planned(graph: &Graph, target: &Target) -> bool {
    let cx = PassCx {
        machine: MachineModel { target: Some(target.clone()), ..MachineModel::default() },
        ..PassCx::default()
    };
    let problem = lmsc_passes::bridge(graph, &cx).expect("the models have no swaps").problem;
    problem.floor().1 <= target.device_bytes.0
}

/// The largest batch for which it holds; memory grows with the batch.
fn largest(holds: impl Fn(u64) -> bool) -> u64 {
    let (mut yes, mut no) = (0, 1);
    while holds(no) {
        (yes, no) = (no, no * 2);
    }
    while no - yes > 1 {
        let middle = yes.midpoint(no);
        if holds(middle) { yes = middle } else { no = middle }
    }
    yes
}

/// Parameters, their label, and the share of all tensors that they swap, in percent.
struct Setting {
    name: &'static str,
    share: usize,
    params: fn() -> Params,
}

fn params(lb: u32) -> Params {
    Params { lb, ..Params::default() }
}

const FIGURE_6: &[Setting] = &[
    Setting { name: "all, lb 1", share: 100, params: || params(1) },
    Setting { name: "all, lb 3", share: 100, params: || params(3) },
    Setting { name: "all, lb 5", share: 100, params: || params(5) },
    Setting { name: "63 %, lb 1", share: 63, params: || params(1) },
    Setting { name: "63 %, lb 5", share: 63, params: || params(5) },
    Setting { name: "32 %, lb 1", share: 32, params: || params(1) },
    Setting { name: "32 %, lb 5", share: 32, params: || params(5) },
];

const FIGURE_7: &[Setting] = &[
    Setting { name: "all, lb 1, chain-rule", share: 100, params: || params(1) },
    Setting {
        name: "all, lb 1, direct-order",
        share: 100,
        params: || Params { ctrld_strategy: Strategy::DirectOrder, ..params(1) },
    },
    Setting { name: "all, lb 5, chain-rule", share: 100, params: || params(5) },
    Setting {
        name: "all, lb 5, direct-order",
        share: 100,
        params: || Params { ctrld_strategy: Strategy::DirectOrder, ..params(5) },
    },
];

const FIGURE_8: &[Setting] = &[
    Setting { name: "all, lb 1", share: 100, params: || params(1) },
    Setting {
        name: "all, lb 1, fused within 5",
        share: 100,
        params: || Params { fuse_swapins: 5, ..params(1) },
    },
    Setting {
        name: "all, lb 1, fused within 20",
        share: 100,
        params: || Params { fuse_swapins: 20, ..params(1) },
    },
];

const FIGURE_9: &[Setting] = &[
    Setting { name: "all, lb 1", share: 100, params: || params(1) },
    Setting { name: "all, lb 5", share: 100, params: || params(5) },
    Setting { name: "42 %, lb 1", share: 42, params: || params(1) },
    Setting {
        name: "all, lb 1, branches from 20",
        share: 100,
        params: || Params { swap_branches: true, branch_threshold: 20, ..params(1) },
    },
    Setting {
        name: "all, lb 1, branches from 5",
        share: 100,
        params: || Params { swap_branches: true, branch_threshold: 5, ..params(1) },
    },
];

pub(crate) fn run(scale: Scale) -> Page {
    let target = work::target("p100-nvlink");
    let mut csv = Table::new(
        "cases",
        &["figure", "model", "setting", "batch", "tensors", "copies", "peak_bytes", "makespan_ms", "fits"],
    );
    let mut tables = vec![table_3(scale, &target)];
    let mut plots = Vec::new();
    let resnet: &[u64] = &[128, 176, 256, 384, 512, 640, 768, 832];
    let unet: &[u64] = &[1, 2, 3, 4];
    let figures: &[(&str, &Model, &[Setting], &[u64])] = &[
        ("Figure 6: n_tensors and lb", &RESNET, FIGURE_6, resnet),
        ("Figure 7: strategies", &RESNET, FIGURE_7, resnet),
        ("Figure 8: fused swap-ins", &RESNET, FIGURE_8, resnet),
        ("Figure 9: n_tensors, lb and branches", &UNET, FIGURE_9, unet),
    ];
    for (index, (title, model, settings, batches)) in scale.some(figures, 1).iter().enumerate() {
        let settings = scale.some(settings, 2);
        let batches = scale.some(batches, 2);
        let name = format!("figure-{}", index + 6);
        let (table, plot) = figure((title, &name), model, settings, batches, (&target, scale), &mut csv);
        tables.push(table);
        plots.push(plot);
    }
    Page {
        name: "tflms",
        title: "TFLMS Table 3 and Figures 6 to 9",
        about: "ResNet-50 and the 3D U-Net of `testdata/models` with SGD, by the cost model of `p100-nvlink`, within its 16 GiB, \
                parameters, gradients and workspace included. The U-Net's file has volumes of 32³ with any batch; 64 of these have \
                as many voxels as one of 128³ in every layer, so a batch of 64 stands for one volume, and one of 216 for a volume of 192³. Parameters are taken as \
                they are (`n-tensors`, `lb`, …); a step fits if it needs no more than the budget in any timing of the \
                copies. Speeds are those of the rewritten graph by its edges alone. Levels of a graph of 700 nodes stand where \
                the paper counts those of a TensorFlow graph, so settings with one name are not the same swaps.",
        tables,
        plots,
        cases: csv,
    }
}

fn table_3(scale: Scale, target: &Target) -> Table {
    let columns = [
        "model",
        "paper: without",
        "paper: with",
        "without",
        "TFLMS, all",
        "TFLMS, tuned",
        "swap-only",
        "tuned / without",
    ];
    let mut table = Table::new("Table 3: largest batch", &columns);
    let rows: &[(&Model, &str, &str)] =
        &[(&RESNET, "176", "832"), (&UNET, "2", "4"), (&LARGE_UNET, "none", "1")];
    let holds = |model: &Model, target: &Target, which: usize, batch: u64| {
        let graph = model.graph(batch, target);
        match which {
            0 => step(&graph, target, None).peak <= target.device_bytes.0,
            1 => step(&graph, target, Some(&params(1))).peak <= target.device_bytes.0,
            2 => tuned(&graph, target),
            _ => planned(&graph, target),
        }
    };
    let mut target = target.clone();
    if scale == Scale::Smoke {
        target.device_bytes = Bytes(512 << 20);
    }
    for (model, without, with) in scale.some(rows, 1) {
        let found = each(&[0, 1, 2, 3], |&which| largest(|batch| holds(model, &target, which, batch)));
        let ratio = (found[0] > 0).then(|| found[2] as f64 / found[0] as f64);
        let mut row = vec![model.name.to_owned(), (*without).to_owned(), (*with).to_owned()];
        row.extend(found.iter().map(u64::to_string));
        row.push(number(ratio, 1));
        table.push(row);
    }
    table
}

/// A table of speeds, a setting a column; a dash where the step does not fit. With ours and the bound beside.
fn figure(
    (title, name): (&str, &str),
    model: &Model,
    settings: &[Setting],
    batches: &[u64],
    (target, scale): (&Target, Scale),
    csv: &mut Table,
) -> (Table, Plot) {
    let found = each(batches, |&batch| {
        let graph = model.graph(batch, target);
        let budget = target.device_bytes.0;
        let all = step(&graph, target, Some(&Params::default())).tensors;
        let one = |setting: &Setting| {
            let n_tensors = (setting.share < 100).then_some(all * setting.share / 100);
            step(&graph, target, Some(&Params { n_tensors, ..(setting.params)() }))
        };
        let cx = PassCx {
            machine: MachineModel { target: Some(target.clone()), ..MachineModel::default() },
            ..PassCx::default()
        };
        let problem = lmsc_passes::bridge(&graph, &cx).expect("the models have no swaps").problem;
        let ours = [Way::OPTIMAL, Way::AUTO].map(|way| way.find(&problem, budget, scale));
        let fits = problem.floor().1 <= budget;
        let bound = fits.then(|| work::bound(&problem, budget, true));
        (step(&graph, target, None), settings.iter().map(one).collect::<Vec<Step>>(), ours, bound)
    });
    let fitting = |step: &Step| (step.peak <= target.device_bytes.0).then_some(step.nanos);
    let speed = |batch: u64, nanos: Option<u64>| nanos.map(|nanos| batch as f64 * 1e9 / nanos as f64);
    let names: Vec<&str> = settings.iter().map(|setting| setting.name).collect();
    let columns: Vec<&str> = ["batch", "without"]
        .into_iter()
        .chain(names.iter().copied())
        .chain(["swap-only", "auto", "no plan beats"])
        .collect();
    let mut table = Table::new(format!("{title}, {}: samples a second", model.name), &columns);
    let mut curves: Vec<Curve> =
        columns[1..].iter().map(|name| Curve { name: (*name).to_owned(), points: Vec::new() }).collect();
    for (&batch, (without, steps, ours, bound)) in batches.iter().zip(&found) {
        let mut speeds = vec![speed(batch, fitting(without))];
        speeds.extend(steps.iter().map(|step| speed(batch, fitting(step))));
        speeds.extend(ours.iter().map(|found| speed(batch, found.map(|found| found.makespan))));
        speeds.push(speed(batch, *bound));
        let digits = if model.samples > 1 { 3 } else { 1 };
        let row = [batch.to_string()].into_iter();
        table.push(row.chain(speeds.iter().map(|&speed| number(speed, digits))).collect());
        curves.iter_mut().zip(speeds).for_each(|(curve, speed)| curve.points.push((batch as f64, speed)));
        for (setting, step) in names.iter().zip(steps) {
            csv.push(vec![
                name.to_owned(),
                model.file.replace("/training_model.onnx", ""),
                setting.replace(", ", "-"),
                batch.to_string(),
                step.tensors.to_string(),
                step.copies.to_string(),
                step.peak.to_string(),
                format!("{:.3}", work::ms(step.nanos)),
                fitting(step).is_some().to_string(),
            ]);
        }
    }
    let plot = Plot {
        name: name.to_owned(),
        title: format!("{title}, {}", model.name),
        x: "batch",
        y: "samples a second",
        top: None,
        curves,
    };
    (table, plot)
}
