//! Lowered programs are safe in any timing, and the check notices every kind of damage to that.

use lmsc_ir::program::{
    Action, Memory, PlacedTensor, Program, Residency, Stream, Transfer, Until, check, peak_in_order,
    residencies,
};
use lmsc_ir::{Bytes, Graph};
use lmsc_passes::{Lowering, PassCx, PassError, PlanRequest, lower};
use lmsc_plan::service::Space;
use lmsc_testing::{Rng, Size, Source, training_graph};

/// Decisions for a random graph.
fn context(seed: u64, rng: &mut Rng, graph: &Graph) -> (PassCx, &'static str) {
    let name = ["lru", "swap-only", "window", "tflms", "auto"][(seed % 5) as usize];
    let cx = PassCx {
        question: PlanRequest {
            planner: lmsc_papers::ALL.named(name),
            ranges: name == "swap-only" && rng.chance(50),
            effort: Some(1),
            space: if rng.chance(70) { Space::Arena } else { Space::Counted },
            ..PlanRequest::default()
        },
        ..PassCx::default()
    };
    let peak = cx.memory(graph).peak().0;
    (
        PassCx {
            question: PlanRequest {
                budget: Some(Bytes(peak * (55 + rng.below(50) as u64) / 100)),
                ..cx.question
            },
            ..cx
        },
        name,
    )
}

/// A random graph and its rewritten form within a budget, both lowered; none where it does not fit.
fn programs(seed: u64) -> Option<(Program, Program, Bytes)> {
    let mut rng = Rng::new(seed);
    let size = Size { nodes: 10 + rng.below(70), tensor_bytes: 1 << 16 };
    let graph = training_graph(&mut rng, size);
    let (cx, planner) = context(seed, &mut rng, &graph);
    let mut rewritten = graph.clone();
    let passes = lmsc_papers::pipeline(planner);
    match passes.run(&mut rewritten, &cx) {
        Ok(_) => {}
        Err(PassError::Refused(_)) => return None,
        Err(error) => panic!("seed {seed}: {error}"),
    }
    let lowered = |graph: &Graph| {
        let workspace = cx.workspace(graph);
        let arena = cx.question.budget.filter(|_| graph.has_addresses());
        lower(graph, &Lowering { arena, workspace: &workspace })
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", graph.to_text()))
    };
    Some((lowered(&graph), lowered(&rewritten), cx.memory(&rewritten).peak()))
}

#[test]
fn every_lowered_program_is_accepted() {
    let mut copies = 0;
    for seed in 0..400 {
        let Some((original, rewritten, peak)) = programs(seed) else { continue };
        for program in [&original, &rewritten] {
            check(program).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{program}"));
        }
        assert!(original.stream(Stream::Out).is_empty() && original.slab == Bytes::ZERO);
        let most = peak_in_order(&rewritten);
        assert!(most <= peak.0, "seed {seed}: {most} of {}\n{rewritten}", peak.0);
        copies += rewritten.stream(Stream::Out).len();
    }
    assert!(copies > 400, "{copies} copies");
}

/// A program that is wrong in one place, if there is such a place.
fn made_wrong(way: usize, program: &Program, residencies: &[Residency], rng: &mut Rng) -> Option<Program> {
    let mut wrong = program.clone();
    match way {
        0 => {
            let mut waits: Vec<_> = wrong.streams.iter_mut().flatten().collect();
            waits.retain(|command| !command.waits.is_empty());
            let count = waits.len();
            let of = &mut waits.get_mut(rng.below(count))?.waits;
            let index = rng.below(of.len());
            of.remove(index);
        }
        1 => {
            let (reader, launch) = pick(rng, program.launches().collect())?;
            let operands: Vec<_> = launch.operands.iter().flatten().filter(|t| t.span().is_some()).collect();
            let operand = pick(rng, operands)?;
            let defines = |t: &Option<PlacedTensor>| t.as_ref().is_some_and(|t| t.content == operand.content);
            let (writer, _) = program.launches().find(|(_, launch)| launch.results.iter().any(defines))?;
            wrong.streams[Stream::Compute as usize].swap(writer as usize, reader as usize);
        }
        2 => overlap(&mut wrong, residencies, rng)?,
        _ => {
            let stream = if rng.chance(50) { Stream::Out } else { Stream::In };
            // A swap-in to an unchanged address is redundant if nothing overwrote it, and a copy may serve only
            // shape queries.
            let matters = |(index, copy): &(u32, &mut Transfer)| {
                let same = |other: &Transfer| {
                    other.content == copy.content && other.device + copy.begin == copy.device + other.begin
                };
                let own = residencies.iter().find(|r| r.from == Some((stream, *index))).unwrap();
                let used = own.last.iter().flatten().count() > 1 || own.until != Until::Used;
                // The source may be its original place, or the place of an earlier swap-in.
                let places = copies(program, Stream::Out).chain(copies(program, Stream::In));
                used && !(stream == Stream::In && places.filter(|c| c.node != copy.node).any(same))
            };
            let commands = (0..).zip(&mut wrong.streams[stream as usize]);
            let all = commands.filter_map(|(index, command)| match &mut command.action {
                Action::Copy(copy) => Some((index, copy)),
                _ => None,
            });
            let (_, copy) = pick(rng, all.filter(matters).collect())?;
            let less = 1 + rng.word() % copy.bytes;
            copy.bytes -= less;
            if rng.chance(50) {
                (copy.begin, copy.device, copy.host) =
                    (copy.begin + less, copy.device + less, copy.host + less);
            }
        }
    }
    Some(wrong)
}

fn copies(program: &Program, stream: Stream) -> impl Iterator<Item = &Transfer> {
    program.stream(stream).iter().filter_map(|command| match &command.action {
        Action::Copy(copy) => Some(copy),
        _ => None,
    })
}

fn pick<T>(rng: &mut Rng, mut list: Vec<T>) -> Option<T> {
    (!list.is_empty()).then(|| list.swap_remove(rng.below(list.len())))
}

/// The ranges of the arena that a command reads, and those that it writes.
fn touched(program: &Program, stream: Stream, index: u32) -> [Vec<std::ops::Range<u64>>; 2] {
    match &program.stream(stream)[index as usize].action {
        Action::Turn => [Vec::new(), Vec::new()],
        Action::Launch(launch) => {
            let spans = |list: &[Option<PlacedTensor>]| {
                list.iter().flatten().filter_map(PlacedTensor::span).collect()
            };
            [spans(&launch.operands), spans(&launch.results)]
        }
        Action::Copy(copy) if stream == Stream::Out => [vec![copy.span(Memory::Arena)], Vec::new()],
        Action::Copy(copy) => [Vec::new(), vec![copy.span(Memory::Arena)]],
    }
}

/// Moves something to where something else is that is read later.
fn overlap(program: &mut Program, residencies: &[Residency], rng: &mut Rng) -> Option<()> {
    let order: Vec<(Stream, u32)> = program.in_order().into_iter().map(|(s, i, _)| (s, i)).collect();
    let reader = rng.below(order.len());
    let [reads, _] = touched(program, order[reader].0, order[reader].1);
    let read = pick(rng, reads)?;
    let overlaps = |span: &std::ops::Range<u64>| span.start < read.end && read.start < span.end;
    let writes = |at: &usize| touched(program, order[*at].0, order[*at].1)[1].iter().any(&overlaps);
    let writer = (0..reader).rev().find(writes).unwrap_or(0);
    let position = |at: (Stream, u32)| order.iter().position(|&other| other == at).unwrap();
    let between = residencies.iter().filter(|r| {
        let comes = r.from.map(position).is_some_and(|at| writer < at && at < reader);
        comes && r.memory == Memory::Arena && !overlaps(&r.span)
    });
    let moved = pick(rng, between.collect())?;
    let bytes = moved.span.end - moved.span.start;
    let lowest = (read.start + 1).saturating_sub(bytes);
    let to = lowest + rng.word() % (read.end - lowest);
    let shift = |at: &mut u64| *at = *at - moved.span.start + to;
    let inside = |span: &std::ops::Range<u64>| moved.span.start <= span.start && span.end <= moved.span.end;
    let uses = Stream::ALL.into_iter().filter_map(|s| Some(position((s, moved.last[s as usize]?))));
    let last = if moved.until != Until::Used { order.len() - 1 } else { uses.max()? };
    for &(stream, index) in &order[position(moved.from?)..=last] {
        match &mut program.streams[stream as usize][index as usize].action {
            Action::Turn => {}
            Action::Launch(launch) => {
                for tensor in launch.operands.iter_mut().chain(&mut launch.results).flatten() {
                    if tensor.span().is_some_and(|span| inside(&span)) {
                        tensor.at.as_mut().into_iter().for_each(shift);
                    }
                }
                if !launch.workspace.is_empty() && inside(&launch.workspace) {
                    shift(&mut launch.workspace.start);
                    shift(&mut launch.workspace.end);
                }
            }
            Action::Copy(copy) if inside(&copy.span(Memory::Arena)) => shift(&mut copy.device),
            Action::Copy(Transfer { .. }) => {}
        }
    }
    Some(())
}

#[test]
fn every_wrong_program_is_refused() {
    let mut refused = [0; 4];
    for seed in 0.. {
        if refused.iter().sum::<i32>() >= 10_000 {
            break;
        }
        let Some((_, program, _)) = programs(seed) else { continue };
        if program.stream(Stream::In).is_empty() {
            continue;
        }
        let residencies = residencies(&program);
        let mut rng = Rng::new(seed);
        for round in 0..200 {
            let way = round % 4;
            let Some(wrong) = made_wrong(way, &program, &residencies, &mut rng) else { continue };
            assert!(check(&wrong).is_err(), "seed {seed}, round {round}:\n{program}\nand wrong:\n{wrong}");
            refused[way] += 1;
        }
    }
    assert!(refused.iter().all(|&count| count > 1000), "{refused:?}");
}

#[test]
fn without_copies_the_peak_is_what_was_planned() {
    let mut exact = 0;
    for seed in 0..200 {
        let graph = training_graph(&mut Rng::new(seed), Size::nodes(60));
        let cx = PassCx::default();
        let workspace = cx.workspace(&graph);
        let program = lower(&graph, &Lowering { arena: None, workspace: &workspace }).unwrap();
        let planned = lmsc_plan::MemoryTimeline::with_workspace(&graph, &workspace).peak();
        let peak = peak_in_order(&program);
        // A view is no command; where one comes after all other uses, planning counts its operand until then.
        assert!(peak <= planned.0, "seed {seed}\n{}", graph.to_text());
        exact += usize::from(peak == planned.0);
    }
    assert!(exact > 120, "{exact} of 200");
}

fn lowered(text: &str) -> Program {
    let graph = Graph::parse(text).unwrap();
    lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("{e}"));
    let program = lower(&graph, &Lowering { arena: None, workspace: &|_| Bytes(100) }).unwrap();
    check(&program).unwrap_or_else(|e| panic!("{e}\n{program}"));
    program
}

/// A parameter that is on the host between steps, and whose new value the step leaves there.
const PARAMETER_ON_THE_HOST: &str = "g (float[16] x, float[16]@host w, float[] lr) => (float[16] y) {
    [in_w] float[16] w_in = ai.lmsc.SwapIn(w)
    [mul] float[16] y = Mul(x, w_in)
    [sgd] float[16] w_new = ai.lmsc.SGDOptimizer(lr, w_in, y) updates (w_in as w_new)
    [out_w] float[16]@host w_host = ai.lmsc.SwapOut(w_new) updates (w as w_host)
}";

#[test]
fn a_variable_on_the_host_waits_for_the_step_before() {
    let program = lowered(PARAMETER_ON_THE_HOST);
    let text = program.to_string();
    assert_eq!(
        text.lines().filter(|line| !line.starts_with("given") || line.contains("host")).collect::<Vec<_>>(),
        [
            "g: arena 356, slab 64",
            "given float[16] w@0 on the host, then w_new",
            "compute 0: turn",
            "compute 1: [mul] float[16] y@192 = Mul(float[16] x@0, float[16] w_in@128) workspace 256..356 after in 0",
            "compute 2: [sgd] float[16] w_new@128 = ai.lmsc.SGDOptimizer(float[] lr@64, float[16] w_in@128, float[16] \
             y@192) workspace 256..356",
            "out 0: out_w copies w_new[0..64] from 128 to host:0 after compute 2",
            // By then the old content has been copied out, and the earlier compute commands have ended.
            "in 0: in_w copies w[0..64] from host:0 to 128 after out 0 of the step before",
            "output float[16] y@192",
        ]
    );
}

#[test]
fn results_stay_in_use_until_the_caller_reads_them() {
    let program =
        lowered(&PARAMETER_ON_THE_HOST.replace("(float[16] y)", "(float[16] y, float[16]@host w_host)"));
    let slot =
        residencies(&program).into_iter().find(|r| r.memory == Memory::Slab && r.from.is_none()).unwrap();
    // By itself, `in 0` may read the slot for the last time before the caller has looked at it.
    assert_eq!(slot.last, [Some(0), None, Some(0)], "{program}");
}

#[test]
fn slots_are_shared_where_waits_allow_it() {
    let text = |wait: &str| {
        lowered(&format!(
            "g (float[16] x) => (float[16] f) {{
                [a] float[16] a = Relu(x)
                [out_a] float[16]@host a_host = ai.lmsc.SwapOut(a)
                [b] float[16] b = Relu(x)
                [in_a] float[16] a_in = ai.lmsc.SwapIn(a_host) after [b]
                [c] float[16] c = Add(b, {wait})
                [out_c] float[16]@host c_host = ai.lmsc.SwapOut(c)
                [d] float[16] d = Add(a_in, x)
                [in_c] float[16] c_in = ai.lmsc.SwapIn(c_host) after [d]
                [e] float[16] f = Add(c_in, d)
            }}"
        ))
    };
    assert_eq!(text("a_in").slab, Bytes(64));
    assert_eq!(text("b").slab, Bytes(128), "nothing says that `a` is back before `c` leaves");
}

#[test]
fn a_variable_leaves_and_returns_to_its_place() {
    let program = lowered(
        "g (float[16]@device:192 x, float[16]@device:0 v, float[]@device:256 lr) => (float[16]@device:128 y) {
            [first] float[16]@device:64 h = Mul(x, v)
            [out_v] float[16]@host v_host = ai.lmsc.SwapOut(v)
            [add] float[16]@device:0 d = Add(h, h) after [out_v]
            [neg] float[16]@device:128 y = Neg(d)
            [in_v] float[16]@device:0 v_in = ai.lmsc.SwapIn(v_host) updates (v as v_in) after [neg]
            [sgd] float[16] v_new = ai.lmsc.SGDOptimizer(lr, v_in, y) updates (v_in as v_new)
        }",
    );
    assert!(program.to_string().contains("given float[16] v@0, then v_new"), "{program}");
    assert_eq!(peak_in_order(&program), 196, "`x`, `lr` and two of the others at each time");
}
