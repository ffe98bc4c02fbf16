//! The driver of `lmsc`: reads a model, runs the passes, proves the result, writes it. No algorithm lives here.

pub mod cli;
mod emit;
mod error;
mod inspect;
mod load;
mod report;
mod survival;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lmsc_ir::equiv::Equivalence;
use lmsc_ir::{Bytes, Graph, Phases};
use lmsc_passes::{DEFAULT_PIPELINE, Pass, PassCx, REGISTRY, Ran, pass_named, run_pipeline};
use lmsc_plan::Memory;

use cli::{CompileArgs, LookArgs, OptArgs, VerifyArgs};
use emit::Emitted;
pub use emit::write_atomically;
pub use error::Error;
pub use inspect::inspect;
pub use load::{Loaded, check, load};
pub use report::Report;
use report::{GraphFacts, KeptFacts, MemoryFacts, PassFacts, ProofFacts, SwappedFacts};

/// What a compilation tells, and what it worked on: to give that memory back takes a while, for which a process that
/// ends need not wait.
pub struct Compiled {
    /// What there is to tell.
    pub report: Report,
    _graphs: [Graph; 2],
    _emitted: Option<Emitted>,
}

/// Compiles a model: the main job. Prints the model if it goes to standard output, and nothing else.
///
/// # Errors
/// [`Error::No`] where the budget cannot be met; the other families as they say.
pub fn compile(args: &CompileArgs, out: &mut dyn Write) -> Result<Compiled, Error> {
    if args.plan.budget.is_none() && !args.plan.has_fixed_parameters() {
        return Err(Error::Input(
            "how much device memory is there? Give --budget, for example --budget 16GiB; or parameters of TFLMS, \
             for example --n-tensors 100 (see --help)"
                .to_owned(),
        ));
    }
    let stage = Stage::new();
    stage.show("reading");
    let path = args.input.path();
    let Loaded { mut graph, model, edited } = load(path, &args.input.binding)?;
    let original = graph.clone();

    stage.show("planning");
    let cx = args.plan.pass_cx();
    let passes = passes(DEFAULT_PIPELINE, args.look.pass_limit)?;
    let ((came, before), ran) =
        side_by_side(|| facts(&original, &cx), || run(&mut graph, &passes, &cx, &args.look));
    let ran = ran?;

    stage.show("proving");
    // What is to be written is made ready meanwhile, and not written before the proof is there.
    let (proof, (after, emitted)) = side_by_side(
        || lmsc_ir::equiv::check(&original, &graph),
        || {
            let after = Memory::of(&graph);
            let changed = edited || ran.iter().any(|r| r.outcome.changed);
            let emit = |output| Emitted::new(args, model, &graph, changed, after.peak(), output);
            let emitted = args.output.as_deref().map(emit);
            (MemoryFacts::of(&graph, &after), emitted)
        },
    );
    let proof =
        proof.map_err(|difference| Error::Ours(format!("the rewritten graph differs: {difference}")))?;
    check_budget(&cx, Bytes(after.peak))?;
    let emitted = emitted.transpose()?;
    if let (Some(output), Some(emitted)) = (&args.output, &emitted) {
        stage.show("writing");
        emitted.write(output, out)?;
    }
    stage.done();
    let report = report(path.display().to_string(), came, before, after, &cx, ran, &proof);
    if let Some(file) = &args.report {
        let json = serde_json::to_string_pretty(&report).expect("a report is JSON") + "\n";
        write_atomically(file, |w| w.write_all(json.as_bytes()))?;
    }
    Ok(Compiled { report, _graphs: [original, graph], _emitted: emitted })
}

/// Both answers; the first is found by a thread of its own.
fn side_by_side<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let a = scope.spawn(a);
        let b = b();
        (a.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), b)
    })
}

/// Runs passes on a graph and returns its text.
///
/// # Errors
/// As [`compile`].
pub fn opt(args: &OptArgs) -> Result<String, Error> {
    let mut loaded = load(args.input.path(), &args.input.binding)?;
    let passes = passes(&args.passes, args.look.pass_limit)?;
    run(&mut loaded.graph, &passes, &args.plan.pass_cx(), &args.look)?;
    Ok(loaded.graph.to_text())
}

/// Whether two models compute the same, with what was compared or the first difference; or, with `--survives`,
/// which swaps are left.
///
/// # Errors
/// [`Error::No`] with the first difference.
pub fn verify(args: &VerifyArgs) -> Result<String, Error> {
    if args.survives {
        return survival::survival(&args.original, &args.rewritten, args.json);
    }
    let original = load(&args.original, &args.binding)?;
    let binding = cli::BindingArgs { optimizer: None, ..args.binding.clone() };
    let rewritten = load(&args.rewritten, &binding)?;
    match lmsc_ir::equiv::check(&original.graph, &rewritten.graph) {
        Ok(proof) => {
            let facts = ProofFacts::from(&proof);
            Ok(match args.json {
                true => serde_json::json!({ "equal": true, "proof": facts }).to_string() + "\n",
                false => format!(
                    "equal: {} nodes correspond, {} swaps erased, {} twins merged\n",
                    facts.nodes, facts.swaps, facts.twins
                ),
            })
        }
        Err(difference) if args.json => Err(Error::NoAsJson(
            serde_json::json!({ "equal": false, "difference": difference.to_string() }).to_string(),
        )),
        Err(difference) => Err(Error::No(format!("different: {difference}"))),
    }
}

/// The table of passes, with their place in the default pipeline.
pub fn list_passes() -> String {
    let place = |name: &str| DEFAULT_PIPELINE.iter().position(|p| *p == name);
    let line = |pass: &&dyn Pass| {
        let place = place(pass.name()).map_or("   ".to_owned(), |i| format!("{}. ", i + 1));
        format!("{place}{:<14} {}\n", pass.name(), pass.summary())
    };
    REGISTRY.iter().map(line).collect()
}

/// The passes of these names, the first `limit` of them.
fn passes(names: &[impl AsRef<str>], limit: Option<usize>) -> Result<Vec<&'static dyn Pass>, Error> {
    let find = |name: &_| {
        let name = AsRef::as_ref(name);
        pass_named(name).ok_or_else(|| {
            let known: Vec<&str> = REGISTRY.iter().map(|p| p.name()).collect();
            Error::Input(format!("there is no pass `{name}`; there are {}", known.join(", ")))
        })
    };
    names.iter().take(limit.unwrap_or(usize::MAX)).map(find).collect()
}

/// Runs the passes, printing the graph to standard error where asked for.
fn run(
    graph: &mut Graph,
    passes: &[&'static dyn Pass],
    cx: &PassCx,
    look: &LookArgs,
) -> Result<Vec<Ran>, Error> {
    for name in &look.print_after {
        self::passes(std::slice::from_ref(name), None)?;
    }
    let mut observer = |number: usize, pass: &dyn Pass, graph: &Graph| {
        if look.print_after_all || look.print_after.iter().any(|n| n == pass.name()) {
            let text = format!("// after {number}. {}\n{}", pass.name(), graph.to_text());
            // A closed standard error is nothing to die of.
            _ = std::io::stderr().lock().write_all(text.as_bytes());
        }
    };
    Ok(run_pipeline(graph, passes, cx, &mut observer)?)
}

/// Refuses a peak above the budget.
fn check_budget(cx: &PassCx, peak: Bytes) -> Result<(), Error> {
    let Some(budget) = cx.budget.filter(|&budget| peak > budget) else { return Ok(()) };
    // Only explicit parameters can lead here: a plan found for a budget holds it.
    let message = format!("the peak is {peak} with these parameters, above the budget of {budget}");
    Err(if cx.tflms_fixed || cx.swap_limit.is_some() { Error::No(message) } else { Error::Ours(message) })
}

/// What there is to tell about the graph as it came.
fn facts(original: &Graph, cx: &PassCx) -> (GraphFacts, MemoryFacts) {
    let scope = |node: &lmsc_ir::Node| {
        let named = cx.tflms.optimizer_scopes.iter().any(|s| s.contains(&node.name));
        named.then_some(lmsc_ir::Phase::Backward)
    };
    let memory = Memory::of(original);
    (GraphFacts::of(original, &Phases::of(original, scope), &memory), MemoryFacts::of(original, &memory))
}

/// Collects what there is to tell.
fn report(
    model: String,
    graph: GraphFacts,
    before: MemoryFacts,
    after: MemoryFacts,
    cx: &PassCx,
    ran: Vec<Ran>,
    proof: &Equivalence,
) -> Report {
    let swaps = || ran.iter().flat_map(|r| &r.outcome.swaps);
    Report {
        format: 1,
        model,
        graph,
        budget: cx.budget.map(|b| b.0),
        before,
        after,
        bytes_out: swaps().map(|s| s.bytes_out()).sum::<Bytes>().0,
        bytes_in: swaps().map(|s| s.bytes_in()).sum::<Bytes>().0,
        swapped: swaps().map(SwappedFacts::from).collect(),
        passes: ran.iter().map(PassFacts::from).collect(),
        kept: ran.into_iter().flat_map(|r| r.outcome.kept).map(KeptFacts::from).collect(),
        proof: ProofFacts::from(proof),
    }
}

/// What is being done, shown on a terminal when it takes long.
struct Stage(Option<ProgressBar>);

impl Stage {
    fn new() -> Stage {
        if !std::io::stderr().is_terminal() {
            return Stage(None);
        }
        let bar = ProgressBar::new_spinner();
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("the template is right"),
        );
        bar.enable_steady_tick(Duration::from_millis(200));
        Stage(Some(bar))
    }

    fn show(&self, what: &'static str) {
        if let Some(bar) = &self.0 {
            bar.set_message(what);
        }
    }

    fn done(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}
