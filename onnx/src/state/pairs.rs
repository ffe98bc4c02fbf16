//! Finds which output is the next value of which input.

use std::fmt;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::{Def, Graph, Phase, Phases, Storages, ValueId, words};

use super::{StateError, Stated, given};

/// Suffixes that mark an output as the next value of the input before them.
pub(crate) const STRONG: &[&str] = &["_new", ".new"];

/// Suffixes that other outputs also have. They make pairs only in a file without strong ones.
const WEAK: &[&str] = &["_next", "_updated", ".next", ".updated", "_out"];

/// A notice for the user about a pair that names suggest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A weak suffix was accepted.
    Taken {
        /// The input.
        input: String,
        /// The output.
        output: String,
    },
    /// Names suggest a pair, but it is rejected.
    Left {
        /// The input.
        input: String,
        /// The output.
        output: String,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Taken { input, output } => {
                write!(
                    f,
                    "by its name, output `{output}` is the next value of `{input}`; --no-state {input} says no"
                )
            }
            Notice::Left { input, output, why } => write!(
                f,
                "output `{output}` is named like the next value of `{input}`, and is not taken for it: {why}; \
                 --state {input}={output} says yes, --no-state {input} says no"
            ),
        }
    }
}

type Pairs = Vec<(ValueId, ValueId)>;

/// The pairs of an input and its next value, in order of the inputs, and notices about those that only names suggest.
pub(super) fn find(graph: &Graph, stated: &Stated) -> Result<(Pairs, Vec<Notice>), StateError> {
    refuse_unknown(graph, &stated.not)?;
    let not: HashSet<&str> = stated.not.iter().map(String::as_str).collect();
    let mut found = by_statement(graph, stated, &not)?;
    let mut notices = Vec::new();
    if stated.by_name {
        by_name(graph, &mut found, &not, &mut notices);
    }
    found.sort_unstable();
    Ok((found, notices))
}

/// Refuses names that are declared as no state and are not inputs or outputs, or that an operator writes anyway.
fn refuse_unknown(graph: &Graph, not: &[String]) -> Result<(), StateError> {
    let written: HashSet<ValueId> = graph.variables().into_iter().collect();
    for name in not {
        let refuse = |problem: String| Err(StateError::NotState { name: name.clone(), problem });
        let value = graph.value_named(name).filter(|v| is_given(graph, *v) || graph.outputs.contains(v));
        match value {
            None => {
                let all = graph.inputs.iter().chain(&graph.outputs).map(|&v| &*graph.value(v).name);
                let instead = words::instead(name, all, "inputs and outputs");
                return refuse(format!("there is no such input or output; {instead}"));
            }
            Some(value) if written.contains(&value) => {
                return refuse("an operator of the step writes it in place".to_owned());
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn is_given(graph: &Graph, value: ValueId) -> bool {
    matches!(graph.def(value), Def::Input | Def::Initializer(_))
}

fn by_statement(graph: &Graph, stated: &Stated, not: &HashSet<&str>) -> Result<Pairs, StateError> {
    let outputs: HashSet<ValueId> = graph.outputs.iter().copied().collect();
    let mut found = Pairs::new();
    let mut next: HashMap<ValueId, &str> = HashMap::new();
    for (input, output) in &stated.pairs {
        if not.contains(&**input) || not.contains(&**output) {
            continue;
        }
        let refuse = |problem: String| StateError::NoSuchPair {
            input: input.clone(),
            output: output.clone(),
            problem,
        };
        let a = graph.value_named(input).filter(|&v| is_given(graph, v));
        let b = graph.value_named(output).filter(|v| outputs.contains(v));
        let instead = |name: &str, there_are: &[ValueId], many: &str| {
            words::instead(name, there_are.iter().map(|&v| &*graph.value(v).name), many)
        };
        let a = a.ok_or_else(|| {
            refuse(format!("there is no input `{input}`; {}", instead(input, &graph.inputs, "inputs")))
        })?;
        let b = b.ok_or_else(|| {
            refuse(format!("there is no output `{output}`; {}", instead(output, &graph.outputs, "outputs")))
        })?;
        let (from, to) = (&graph.value(a).ty, &graph.value(b).ty);
        if from != to {
            return Err(refuse(format!("the input is {from}, but the output {to}; expected one type")));
        }
        match next.insert(a, output) {
            Some(other) if other == output => continue,
            Some(other) => {
                return Err(refuse(format!(
                    "the input's next value is said to be `{other}`, too; say it once"
                )));
            }
            None => found.push((a, b)),
        }
    }
    Ok(found)
}

/// Adds the pairs that names indicate.
///
/// An output with a strong ending is the next value of its input even if an operator writes that input in place: the step may
/// compute the next value from the operator's result, as where running statistics are corrected. Weak endings do not pair with
/// such inputs.
fn by_name(graph: &Graph, found: &mut Pairs, not: &HashSet<&str>, notices: &mut Vec<Notice>) {
    let mut taken: HashSet<ValueId> = found.iter().flat_map(|&(input, output)| [input, output]).collect();
    let strong = candidates(graph, STRONG, &taken, not);
    let is_strong = !strong.is_empty();
    let names = |input: ValueId, output: ValueId| {
        (graph.value(input).name.to_string(), graph.value(output).name.to_string())
    };
    let differs = |input: ValueId, output: ValueId| {
        let (from, to) = (&graph.value(input).ty, &graph.value(output).ty);
        (from != to).then(|| format!("it is {to}, and the input {from}"))
    };
    let leave = |notices: &mut Vec<Notice>, input, output, why| {
        let (input, output) = names(input, output);
        notices.push(Notice::Left { input, output, why });
    };
    for (input, output) in strong {
        match differs(input, output) {
            Some(why) => leave(notices, input, output, why),
            None => {
                taken.extend([input, output]);
                found.push((input, output));
            }
        }
    }
    taken.extend(graph.variables());
    let weak = candidates(graph, WEAK, &taken, not);
    let weak: Pairs = weak.into_iter().filter(|&(i, o)| differs(i, o).is_none()).collect();
    if weak.is_empty() {
        return;
    }
    let forward = Forward::of(graph);
    for (input, output) in weak {
        let why = if is_strong {
            Some(format!("next values are named with `{}` in this model", STRONG[0]))
        } else if forward.contains(graph, output) {
            Some("the forward pass computes it, so the input may be data".to_owned())
        } else {
            None
        };
        match why {
            Some(why) => leave(notices, input, output, why),
            None => {
                found.push((input, output));
                let (input, output) = names(input, output);
                notices.push(Notice::Taken { input, output });
            }
        }
    }
}

/// Outputs that are named after an input with one of the suffixes, and these inputs; one output for each input.
fn candidates(graph: &Graph, suffixes: &[&str], taken: &HashSet<ValueId>, not: &HashSet<&str>) -> Pairs {
    let mut inputs = HashSet::new();
    let pair = |&output: &ValueId| {
        let name = &graph.value(output).name;
        let input = suffixes.iter().find_map(|suffix| graph.value_named(name.strip_suffix(suffix)?))?;
        let said = not.contains(&**name) || not.contains(&*graph.value(input).name);
        let free = !taken.contains(&input) && !taken.contains(&output) && !said;
        (free && is_given(graph, input) && inputs.insert(input)).then_some((input, output))
    };
    graph.outputs.iter().filter_map(pair).collect()
}

/// The forward pass of a graph without update edges.
struct Forward {
    phases: Phases,
    storages: Storages,
}

impl Forward {
    fn of(graph: &Graph) -> Forward {
        Forward { phases: Phases::of(graph, |_| None), storages: Storages::of(graph) }
    }

    /// Whether the forward pass computes the value, or the forward pass cannot be distinguished from the backward pass.
    fn contains(&self, graph: &Graph, value: ValueId) -> bool {
        let root = self.storages.get(self.storages.storage(value)).root;
        let producer = graph.producer(root);
        self.phases.loss.is_none()
            || given(graph, value).is_some()
            || producer.is_none_or(|node| self.phases.phase(node) == Phase::Forward)
    }
}
