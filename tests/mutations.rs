//! The equivalence check on real graphs: the rewritten model passes, and every kind of damage to it is noticed.
//! Random steps in chunks that addresses keep from step to step: they are safe, and unsafe without any of their
//! waits.

use std::collections::BTreeSet;

use crate::support::models::{load, models};
use lmsc_ir::equiv::{Difference, Equivalence};
use lmsc_ir::program::{Checked, ProgramFlaw, Stream, Wait};
use lmsc_ir::{Bytes, Graph, equiv};
use lmsc_papers::tflms::Params;
use lmsc_passes::{Lowering, PassCx, Pipeline, PlanRequest, lower};
use lmsc_runtime::Settled;
use lmsc_testing::{Damage, Rng, Size, Source, damage, training_graph};

/// The kinds of damage that are noticed, each tried some times: one that leaves the meaning, such as exchanging operands that are
/// equal, is no damage.
fn noticed(rewritten: &Graph, check: impl Fn(&Graph) -> Result<Equivalence, Difference>) -> Vec<Damage> {
    let mut rng = Rng::new(11);
    let mut noticed = Vec::new();
    for &kind in Damage::ALL {
        let damaged = (0..4).filter_map(|_| damage(rewritten, kind, &mut rng));
        if let Some(difference) = damaged.map(|graph| check(&graph)).find_map(Result::err) {
            assert!(!difference.to_string().is_empty());
            noticed.push(kind);
        }
    }
    noticed
}

#[test]
fn every_kind_of_damage_to_every_model_is_noticed() {
    for path in models() {
        let original = load(&path);
        let mut rewritten = original.clone();
        let passes = lmsc_papers::pipeline("tflms");
        let cx = PassCx {
            question: PlanRequest { planner_options: (&Params::default()).into(), ..PlanRequest::default() },
            ..PassCx::default()
        };
        passes.run(&mut rewritten, &cx).unwrap();
        let proof = equiv::check(&original, &rewritten).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(proof.swaps > 0, "{}: nothing was swapped", path.display());

        let noticed = noticed(&rewritten, |graph| equiv::check(&original, graph));
        assert!(noticed.len() >= 15, "{}: only {noticed:?} were noticed", path.display());
    }
}

#[test]
fn every_kind_of_damage_to_every_model_that_was_cleaned_up_is_noticed() {
    let clean_up =
        Pipeline::parse("fold-constants,merge-common-subexpressions{across-phases=true},remove-dead-nodes")
            .unwrap();
    let (mut changed, mut all) = (0, BTreeSet::new());
    for path in models() {
        let original = load(&path);
        let mut cleaned = original.clone();
        let ran = clean_up.run(&mut cleaned, &PassCx::default()).unwrap();
        changed += usize::from(ran.iter().any(|ran| ran.outcome.changed));
        equiv::check_cleaned(&original, &cleaned).unwrap_or_else(|e| panic!("{}: {e}", path.display()));

        let noticed = noticed(&cleaned, |graph| equiv::check_cleaned(&original, graph));
        assert!(noticed.len() >= 10, "{}: only {noticed:?} were noticed", path.display());
        all.extend(noticed);
    }
    assert!(changed > 20, "{changed} models were changed");
    // Kinds of damage that need a swap or a recomputed node.
    let cannot = [Damage::RewireSwapIn, Damage::ForgetOrigin, Damage::DropDeadNode];
    let missed: Vec<_> =
        Damage::ALL.iter().filter(|kind| !all.contains(kind) && !cannot.contains(kind)).collect();
    assert!(missed.is_empty(), "{missed:?} were never noticed");
}

/// A random step in a budget that makes it swap, lowered; none where it does not fit.
fn swapped(seed: u64) -> Option<Checked> {
    let mut rng = Rng::new(seed);
    let size = Size { nodes: 10 + rng.below(70), tensor_bytes: 1 << 16 };
    let graph = training_graph(&mut rng, size);
    let name = ["lru", "swap-only", "window"][(seed % 3) as usize];
    let cx = PassCx {
        question: PlanRequest {
            planner: lmsc_papers::ALL.named(name),
            ranges: name == "swap-only" && rng.chance(50),
            effort: Some(1),
            ..PlanRequest::default()
        },
        ..PassCx::default()
    };
    let peak = cx.memory(&graph).peak().0;
    let cx = PassCx {
        question: PlanRequest {
            budget: Some(Bytes(peak * (55 + rng.below(40) as u64) / 100)),
            ..cx.question
        },
        ..cx
    };
    let passes = lmsc_papers::pipeline(name);
    let mut rewritten = graph;
    passes.run(&mut rewritten, &cx).ok()?;
    let workspace = cx.workspace(&rewritten);
    let arena = cx.question.budget.filter(|_| rewritten.has_addresses());
    let program = lower(&rewritten, &Lowering { arena, workspace: &workspace }).unwrap();
    Some(Checked::new(program).unwrap())
}

#[test]
fn who_takes_over_a_chunk_waits_for_who_had_it() {
    let (mut used, mut mapped, mut more) = (0, 0, 0);
    let (mut waits, mut refused, mut exchanged, mut found) = (0, 0, 0, 0);
    for seed in 0..150 {
        let Some(program) = swapped(seed) else { continue };
        if program.stream(Stream::In).is_empty() {
            continue;
        }
        let chunk = 64 << (seed % 9);
        // That it is safe is checked within.
        let settled = Settled::new(&program, chunk, None).unwrap();
        let it = settled.fragmentation;
        assert!(it.mapped >= it.chunks && it.lost < it.bound(), "{it:?}");
        assert!(Settled::new(&program, chunk, Some(it.mapped * chunk)).is_ok());
        assert!(Settled::new(&program, chunk, Some(it.mapped * chunk - 1)).is_err());
        (used, mapped, more) =
            (used + it.chunks, mapped + it.mapped, more + u64::from(it.mapped > it.chunks));

        let has =
            |stream: Stream, index: usize, wait: &Wait| program.stream(stream)[index].waits.contains(wait);
        let settled_program = &settled.program;
        for stream in Stream::ALL {
            for (index, command) in settled_program.stream(stream).iter().enumerate() {
                for (at, wait) in command.waits.iter().enumerate() {
                    if has(stream, index, wait) {
                        continue;
                    }
                    let mut wrong = lmsc_ir::program::Program::clone(settled_program);
                    wrong.streams[stream as usize][index].waits.remove(at);
                    waits += 1;
                    match Checked::mapped(wrong, &settled.mapping) {
                        Ok(_) => {}
                        Err(ProgramFlaw::Race { .. } | ProgramFlaw::Stale { .. }) => refused += 1,
                        Err(flaw) => panic!("seed {seed}: {flaw}"),
                    }
                }
            }
        }
        let mut rng = Rng::new(seed);
        for _ in 0..20 {
            let mut mapping = settled.mapping.clone();
            let spots = mapping.chunks.len();
            let (to, from) = (rng.below(spots), rng.below(spots));
            if mapping.chunks[to] != mapping.chunks[from] {
                mapping.chunks[to] = mapping.chunks[from];
                exchanged += 1;
                let wrong = lmsc_ir::program::Program::clone(settled_program);
                found += u32::from(Checked::mapped(wrong, &mapping).is_err());
            }
        }
    }
    assert!(100 * mapped < 103 * used, "{used} used, {mapped} mapped, {more} need more");
    assert!(10 * refused > 9 * waits && waits > 100, "{refused} of {waits}");
    assert!(2 * found > exchanged && exchanged > 1000, "{found} of {exchanged}");
}
