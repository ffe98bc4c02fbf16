//! `lmsc verify`: whether a file computes the same as another one, within the memory that it states.

use std::path::Path;

use lmsc_ir::equiv::{self, Equivalence};
use lmsc_ir::{Attr, Bytes, Data, Graph, NodeId};
use lmsc_onnx::key;
use serde::Serialize;

use super::survival;
use crate::cli::args::VerifyArgs;
use crate::job::Binding;
use crate::load::{self, Loaded};
use crate::proof::{Bound, align_weights, metadata};
use crate::report::ProofFacts;
use crate::{Code, Error, Warning};

/// Whether two models compute the same, with the compared facts or the first difference, and whether the second one
/// keeps its stated memory bound; with `--survives`, the swaps that are left.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) with the first difference, or with the lost memory bound.
pub fn verify(args: &VerifyArgs) -> Result<String, Error> {
    if args.survives {
        return survival::survival(&args.original, &args.rewritten, args.json);
    }
    let binding = args.binding.binding();
    let original = load::load(&args.original, &binding)?;
    let mut rewritten = load::load(&args.rewritten, &of_written(&args.rewritten, &binding))?;
    for (loaded, path) in [(&original, &args.original), (&rewritten, &args.rewritten)] {
        if let Some(name) = unproven(&loaded.graph) {
            let message = format!(
                "`{name}` has a digest of an earlier version of lmsc, which does not prove its bytes"
            );
            return Err(Error::in_file(Code::Malformed, path, message)
                .with_help("write the text again from the model: lmsc opt MODEL -o FILE"));
        }
    }
    let folder = |loaded: &Loaded| loaded.model.as_ref().and_then(|model| model.folder.clone());
    let (from, to) = (folder(&original), folder(&rewritten));
    align_weights(&original.graph, from.as_deref(), &mut rewritten.graph, to.as_deref());
    let other = match (&original.model, &rewritten.model) {
        (Some(a), Some(b)) => lmsc_onnx::other_function(&a.proto, &b.proto),
        _ => None,
    };
    let proof = match other {
        Some(function) => Err(format!("the models' functions `{function}` are not the same")),
        None => {
            let check = if args.cleaned { equiv::check_cleaned } else { equiv::check };
            check(&original.graph, &rewritten.graph).map_err(|d| d.to_string())
        }
    };
    match proof {
        Ok(proof) => {
            let guarantee = match guarantee(&original, &rewritten) {
                Guarantee::None if rewritten.model.is_some() && proof.swaps > 0 => Guarantee::Unstated,
                guarantee => guarantee,
            };
            verdict(args, &proof, &guarantee, &[original.warnings, rewritten.warnings].concat())
        }
        Err(difference) => {
            let error = Error::new(Code::Different, format!("different: {difference}"));
            let answer = Verdict { difference: Some(difference.to_string()), ..Verdict::default() };
            Err(if args.json { error.with_answer(answer.to_json()) } else { error })
        }
    }
}

/// The name of an initializer, or of a node with an attribute, of which the text has a digest that proves nothing.
fn unproven(graph: &Graph) -> Option<&str> {
    let is_old = |data: &Data| matches!(data, Data::Digest { digest, .. } if !digest.is_proof());
    let of_node = |&&id: &&NodeId| {
        graph.node(id).attributes.iter().any(|(_, attribute)| match attribute {
            Attr::Tensor(_, data) | Attr::Opaque(data) => is_old(data),
            _ => false,
        })
    };
    let initializer = graph.initializers.iter().find(|initializer| is_old(&initializer.data));
    let node = || graph.order().iter().find(of_node);
    match initializer {
        Some(initializer) => Some(&graph.value(initializer.value).name),
        None => node().map(|&id| &*graph.node(id).name),
    }
}

/// The options for reading a rewritten file: it contains its optimizer and, as text, its sizes and its state.
fn of_written(path: &Path, binding: &Binding) -> Binding {
    if load::is_text(path) { Binding::default() } else { binding.without_optimizer() }
}

/// The answer as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Verdict {
    /// Version of this format.
    format: u32,
    equal: bool,
    /// The first difference, if the models are not equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
    /// The numbers of the check, if they are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<ProofFacts>,
    /// The bound of memory that the file states, if a plan was made; `null` if neither file states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Option<MemoryBound>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
}

/// Whether the file's bound of memory holds.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MemoryBound {
    holds: bool,
    /// The most device bytes in any timing, if it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak: Option<u64>,
    /// The reason, if it does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl Default for Verdict {
    fn default() -> Verdict {
        Verdict { format: 1, equal: false, difference: None, proof: None, memory: None, warnings: Vec::new() }
    }
}

impl Verdict {
    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a verdict is JSON")
    }
}

/// The message for models that compute the same.
fn verdict(
    args: &VerifyArgs,
    proof: &Equivalence,
    guarantee: &Guarantee,
    warnings: &[Warning],
) -> Result<String, Error> {
    let facts = ProofFacts::from(proof);
    if args.json {
        let memory = match guarantee {
            Guarantee::None => None,
            Guarantee::Unstated => Some(None),
            Guarantee::Holds(peak) => Some(Some(MemoryBound { holds: true, peak: Some(peak.0), why: None })),
            Guarantee::Lost(why) => {
                Some(Some(MemoryBound { holds: false, peak: None, why: Some(why.clone()) }))
            }
        };
        let (proof, warnings) = (Some(facts.clone()), warnings.to_vec());
        let answer = Verdict { equal: true, proof, memory, warnings, ..Verdict::default() }.to_json();
        return match guarantee {
            Guarantee::Lost(why) => Err(lost(&facts.to_text(), why).with_answer(answer)),
            _ => Ok(answer + "\n"),
        };
    }
    let equal = facts.to_text();
    match guarantee {
        Guarantee::None => Ok(equal + "\n"),
        Guarantee::Unstated => Ok(format!("{equal}\nmemory: no bound is stated\n")),
        Guarantee::Holds(peak) => Ok(format!("{equal}\nmemory: at most {peak} in any timing, as stated\n")),
        Guarantee::Lost(why) => Err(lost(&equal, why)),
    }
}

/// The error for a file that does not keep its memory bound.
fn lost(equal: &str, why: &str) -> Error {
    Error::new(Code::Lost, format!("{equal}\nmemory: {why}"))
        .with_help("take the file as lmsc wrote it, or plan the original again")
}

/// The state of the memory bound that a file states.
enum Guarantee {
    /// Nothing was planned.
    None,
    /// Neither file states a bound.
    Unstated,
    /// The step needs at most this many bytes, in any timing that the edges of the file allow.
    Holds(Bytes),
    /// Another program changed the file, and the bound does not hold any more.
    Lost(String),
}

fn guarantee(original: &Loaded, rewritten: &Loaded) -> Guarantee {
    let states = |key: &str| rewritten.model.as_ref().is_some_and(|model| metadata(model, key).is_some());
    // Another program may have dropped all metadata; then the original's metadata tell the lost bound.
    let Some(bound) = Bound::of(rewritten).or_else(|| Bound::of(original)) else { return Guarantee::None };
    match bound.lost(&rewritten.graph) {
        Some(why) => Guarantee::Lost(why),
        None if states(key::ADDRESSES) && !rewritten.graph.has_addresses() => Guarantee::Lost(
            "the addresses do not hold: they are not of the file's values and nodes".to_owned(),
        ),
        None => Guarantee::Holds(bound.peak(&rewritten.graph).peak()),
    }
}
