//! Plans without each mechanism of the search, alone.

use std::fs;

use lmsc_plan::planners::ours::MECHANISMS;
use lmsc_plan::planners::{Granularity, Request, planner};
use lmsc_plan::problem::Problem;
use lmsc_plan::schedule::tuned::{without, worked};
use lmsc_testing::{Rng, random};

use crate::{Case, Effect, ROOT, budget, note, problem, worse};

/// Prints or writes the table: for each mechanism, how much worse the plans become without it, and the work that they take.
pub(crate) fn measure(writes: bool) {
    let cases: Vec<Case> = instances().into_iter().chain(held_out()).collect();
    let run = |case: &Case| {
        worked();
        ((case.run)(), worked())
    };
    let usual: Vec<(Option<u64>, u64)> = cases.iter().map(run).collect();
    for (case, (found, work)) in cases.iter().zip(&usual) {
        note(&format!("{}: {found:?}, {work} steps", case.name));
    }
    let mut rows = String::new();
    for mechanism in MECHANISMS {
        let effect = |(case, &(usual, work)): (&Case, &(Option<u64>, u64))| {
            let (found, less) = without(mechanism, || run(case));
            (worse(case, usual, found), less, work)
        };
        let effects: Vec<(f64, u64, u64)> = cases.iter().zip(&usual).map(effect).collect();
        let changed = effects.iter().filter(|effect| effect.0 != 0.0 || effect.1 != effect.2).count();
        let (at, _) =
            effects.iter().enumerate().max_by(|a, b| a.1.0.total_cmp(&b.1.0)).expect("there are cases");
        let worst = if effects[at].0 > 0.0 { &*cases[at].name } else { "" };
        let row = format!(
            "| {} | {} | {} | {changed} | {worst} |",
            mechanism.name,
            mechanism.summary,
            Effect::of(&effects).to_string().replace(", ", " | "),
        );
        note(&row);
        rows += &row;
        rows.push('\n');
    }
    let text = document(&cases, &rows);
    if writes {
        fs::write(format!("{ROOT}/docs/measurements/mechanisms.md"), text).expect("it can be written");
    } else {
        println!("{text}");
    }
}

fn document(cases: &[Case], rows: &str) -> String {
    let names: Vec<&str> = cases.iter().map(|case| &*case.name).collect();
    format!(
        "# Mechanisms of the search\n\n\
         The planners `auto` and `swap-only` are a search of several mechanisms. Each was switched off, alone. A plan without it is\n\
         valid, but may be longer. *+1.0 %* means that plans take one percent longer without the mechanism: on average over the\n\
         cases, and in the case that suffers most. *Work* is that of the search without it, in relation to the usual one: what was saved\n\
         is not spent elsewhere. *Cases* are those in which the plan or the work changed; the work of `auto` also changes a little by itself.\n\n\
         Work is counted as for the [tuning constants](constants.md). Searches are random walks: a change of a few tenths of a percent in a\n\
         single case is luck, in either direction. Random problems were not looked at while the mechanisms were made; a case is the sum over\n\
         several of the makespan in relation to the time of the operators.\n\n\
         A row shows what these cases exercise. Few have copies in that are slower than copies out, and none has the billions of\n\
         parameters for which choices of layers were made. So a row without an effect is a reason to try other cases, and no proof.\n\n\
         Mechanisms that earned nothing were deleted: single layers that change within patterns of layers, swap sets in reversed time, swap sets of\n\
         the largest tensor first, swap sets that take losing windows last, and a local search on the order of copies. No plan of the bench `ratios` is\n\
         worse without them.\n\n\
         Written by `cargo bench -p lmsc-plan --bench sensitivity --features sensitivity -- --mechanisms --write`.\n\n\
         Cases: {}.\n\n\
         | without | which | mean | worst | work | cases | worst case |\n|---|---|---:|---:|---:|---:|---|\n{rows}",
        names.join("; ")
    )
}

/// Plans of the shared instances, at shares of the way from the floor to the peak.
fn instances() -> Vec<Case> {
    let auto = [
        ("dag_gpt2s_b8_s1024", 25, Granularity::Ranges, 3),
        ("dag_unet_512_b8", 25, Granularity::Ranges, 3),
        ("dag_resnet50_224_b64", 10, Granularity::Ranges, 1),
        ("dag_vgg16_1000_b4", 10, Granularity::Whole, 10),
        ("a step of 12 layers with weights", 25, Granularity::Ranges, 1),
        ("a chain of 2,500 operators", 50, Granularity::Ranges, 1),
    ];
    let swap_only = [
        ("dag_unet_512_b8", 10, Granularity::Whole, 10),
        ("dag_unet_512_b8", 25, Granularity::Ranges, 10),
        ("a step of 12 layers with weights", 10, Granularity::Ranges, 3),
    ];
    let one = |recompute| {
        move |(name, share, granularity, effort): (&str, u64, Granularity, u32)| {
            let problem = problem(name);
            let budget = budget(&problem, share);
            let planner = planner(if recompute { "auto" } else { "swap-only" }).expect("it is registered");
            let whole = if granularity == Granularity::Whole { " with whole tensors" } else { "" };
            Case {
                name: format!("`{}`{whole} at {share} % of {name}, effort {effort}", planner.name),
                of: &[],
                run: Box::new(move || {
                    let request =
                        Request { granularity, recompute, effort, ..Request::new(&problem, budget) };
                    Some(planner.plan(&request).ok()?.schedule.makespan())
                }),
            }
        }
    };
    auto.into_iter().map(one(true)).chain(swap_only.into_iter().map(one(false))).collect()
}

/// Plans of random problems.
fn held_out() -> Vec<Case> {
    let one = |(name, planner_name, granularity): (&str, &'static str, Granularity)| {
        let problems: Vec<Problem> = (0..8)
            .map(|seed| random::problem(&mut Rng::new(0x5eed_0000 + seed), 60 + 20 * seed as usize))
            .collect();
        Case {
            name: format!("`{planner_name}` with {name} of 8 random problems, effort 1"),
            of: &[],
            run: Box::new(move || {
                let planner = planner(planner_name).expect("it is registered");
                let share = |problem: &Problem| {
                    let recompute = planner_name == "auto";
                    let request = Request {
                        granularity,
                        recompute,
                        effort: 1,
                        ..Request::new(problem, budget(problem, 25))
                    };
                    let makespan = planner.plan(&request).ok()?.schedule.makespan();
                    Some(
                        (u128::from(makespan) * 1_000_000 / u128::from(problem.compute_nanos().max(1)))
                            as u64,
                    )
                };
                problems.iter().map(share).sum()
            }),
        }
    };
    [
        ("ranges", "auto", Granularity::Ranges),
        ("whole tensors", "auto", Granularity::Whole),
        ("ranges", "swap-only", Granularity::Ranges),
    ]
    .map(one)
    .into()
}
