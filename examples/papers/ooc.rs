//! OOC Table 1: ResNet-50 on a V100 with NVLink 2, by batch.

use crate::Page;
use crate::plot::{Curve, Plot};
use crate::table::{Table, number};
use crate::work::{self, Found, Scale, Way, each};

/// Batches, and the images a second of the paper's rows: in core on P100 and the LMS of Le et al. there; in core on V100,
/// the schedule, and the schedule with virtual addressing there.
const TABLE: &[(u64, [Option<u64>; 5])] = &[
    (64, [Some(235), Some(235), Some(336), Some(320), Some(304)]),
    (128, [Some(255), Some(255), Some(492), Some(439), Some(389)]),
    (190, [Some(258), Some(241), Some(581), Some(533), Some(415)]),
    (256, [None, Some(236), None, Some(559), Some(424)]),
    (512, [None, Some(209), None, Some(457), Some(446)]),
    (928, [None, Some(137), None, Some(400), Some(409)]),
    (1120, [None, None, None, None, Some(398)]),
    (1248, [None, None, None, None, Some(347)]),
    (1440, [None, None, None, None, Some(321)]),
    (1600, [None; 5]),
    (1650, [None; 5]),
    (1700, [None; 5]),
];

const WAYS: &[Way] = &[
    Way::paper("tflms-best"),
    Way::paper("window"),
    Way::justified("window, our order", "window"),
    Way::OPTIMAL,
    Way::AUTO,
];

struct Case {
    batch: u64,
    paper: [Option<u64>; 5],
    peak: u64,
    fits: bool,
    compute: u64,
    bound: u64,
    found: Vec<Option<Found>>,
}

impl Case {
    /// Images a second, in a step of that many nanoseconds.
    fn speed(&self, nanos: u64) -> f64 {
        self.batch as f64 * 1e9 / nanos as f64
    }

    /// Images a second of our way of that index.
    fn ours(&self, index: usize) -> Option<f64> {
        self.found[index].map(|found| self.speed(found.makespan))
    }

    /// Images a second of the paper's way of that index.
    fn theirs(&self, index: usize) -> Option<f64> {
        self.paper[index].map(|speed| speed as f64)
    }

    /// The time that no plan beats, if there is one.
    fn known_bound(&self) -> Option<u64> {
        (self.bound < u64::MAX).then_some(self.bound)
    }
}

pub(crate) fn run(scale: Scale) -> Page {
    let cases = cases(scale);
    Page {
        name: "ooc",
        title: "OOC Table 1: ResNet-50 within 16 GiB, by batch",
        about: "ResNet-50 of `testdata/models` (224 pixels, single precision, SGD) by the cost model of `v100-nvlink2`; the budget is \
                the device's 16 GiB, parameters, gradients and workspace included. `window` is the paper's planner with the \
                best of several windows; `window, our order` swaps the same and orders the copies as `swap-only` does; `auto` \
                computes again, too.",
        tables: tables(&cases),
        plots: vec![Plot {
            name: "speed".to_owned(),
            title: "ResNet-50 within 16 GiB: images a second".to_owned(),
            x: "batch",
            y: "images a second",
            top: None,
            curves: curves(&cases),
        }],
        cases: table_of_cases(&cases),
    }
}

/// The step of each batch, planned in each way.
fn cases(scale: Scale) -> Vec<Case> {
    let target = work::target("v100-nvlink2");
    let budget = target.device_bytes.0;
    each(scale.some(TABLE, 2), |&(batch, paper)| {
        // The smallest batches fit; this part of the experiment shows swapping.
        let problem = work::model("resnet50/training_model.onnx", &[("batch", batch)], &target);
        let peak = work::peak(&problem);
        let budget = if scale == Scale::Smoke { peak * 3 / 4 } else { budget };
        Case {
            batch,
            paper,
            peak,
            fits: peak <= budget,
            compute: problem.compute_nanos(),
            bound: if problem.floor().1 <= budget { work::bound(&problem, budget, true) } else { u64::MAX },
            found: WAYS.iter().map(|way| way.find(&problem, budget, scale)).collect(),
        }
    })
}

/// Speeds of the paper, ours, and ours as shares of the speed without a limit of memory.
fn tables(cases: &[Case]) -> Vec<Table> {
    let labels = WAYS.iter().map(|way| way.label);
    let columns: Vec<&str> =
        ["batch", "peak, GiB", "in core"].into_iter().chain(labels).chain(["no plan beats"]).collect();
    let mut ours = Table::new("Images a second, ours", &columns);
    let mut shares = Table::new(
        "Share of the speed without a limit of memory, in percent (the paper's: of its in-core speed at batch 190)",
        &[
            "batch",
            "paper: LMS on P100",
            "paper: schedule",
            "paper: schedule + VA",
            "tflms-best",
            "window",
            "window, our order",
            "swap-only",
            "auto",
        ],
    );
    let mut paper = Table::new(
        "Images a second, the paper's Table 1",
        &[
            "batch",
            "P100 in core",
            "P100 LMS (Le et al. 2019)",
            "V100 in core",
            "V100 schedule",
            "V100 schedule + VA",
        ],
    );
    for case in cases {
        let share = |value: Option<f64>, whole: f64| number(value.map(|value| 100.0 * value / whole), 1);
        let limit = case.speed(case.compute);
        let mut row =
            vec![case.batch.to_string(), work::gib(case.peak), number(case.fits.then_some(limit), 0)];
        row.extend((0..WAYS.len()).map(|index| number(case.ours(index), 0)));
        row.push(number(case.known_bound().map(|bound| case.speed(bound)), 0));
        ours.push(row);
        let mut row = vec![
            case.batch.to_string(),
            share(case.theirs(1), 258.0),
            share(case.theirs(3), 581.0),
            share(case.theirs(4), 581.0),
        ];
        row.extend((0..WAYS.len()).map(|index| share(case.ours(index), limit)));
        shares.push(row);
        if case.paper.iter().any(Option::is_some) {
            let row = [case.batch.to_string()].into_iter();
            paper.push(row.chain((0..5).map(|index| number(case.theirs(index), 0))).collect());
        }
    }
    vec![paper, ours, shares]
}

/// Every step in every way.
fn table_of_cases(cases: &[Case]) -> Table {
    let mut csv = Table::new("cases", &[&["batch", "peak_bytes"][..], &work::FOUND].concat());
    for case in cases {
        for (way, found) in WAYS.iter().zip(&case.found) {
            let own = [case.batch.to_string(), case.peak.to_string()];
            csv.push(
                own.into_iter().chain(work::cells(case.compute, case.known_bound(), way, *found)).collect(),
            );
        }
    }
    csv
}

/// Speeds by batch.
fn curves(cases: &[Case]) -> Vec<Curve> {
    let curve = |name: &str, of: &dyn Fn(&Case) -> Option<f64>| Curve {
        name: name.to_owned(),
        points: cases.iter().map(|case| (case.batch as f64, of(case))).collect(),
    };
    let mut curves: Vec<Curve> =
        WAYS.iter().enumerate().map(|(index, way)| curve(way.label, &|case| case.ours(index))).collect();
    curves.push(curve("no plan beats", &|case| case.known_bound().map(|bound| case.speed(bound))));
    for (index, name) in [(1, "paper: LMS"), (3, "paper: schedule"), (4, "paper: + VA")] {
        curves.push(curve(name, &|case| case.theirs(index)));
    }
    curves
}
