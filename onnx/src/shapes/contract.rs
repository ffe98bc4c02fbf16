//! The check of a node against its operator's contract: the supported versions, and the number and kinds of operands, results and
//! attributes.

use lmsc_ir::contract::{ANY_VERSION, Attribute, Contract, Elements, KINDS, Parameter, Versions};
use lmsc_ir::words::count;
use lmsc_ir::{ElementType, Type};

use super::{Cx, Query, ShapeError, kind};

/// Refuses a node that violates the contract.
pub(super) fn check<'a>(contract: &Contract, query: &'a Query<'a>) -> Result<(), Breach> {
    let version = query.version;
    if version < contract.first {
        return Err(Breach {
            reason: format!(
                "the model imports version {version} of {}, and lmsc knows this operator from version {} on",
                spelled(query.op.domain()),
                contract.first
            ),
            help: CONVERT,
        });
    }
    attributes_of(contract, query)?;
    arity("operand", &contract.operands, query.operands.len(), version)?;
    arity("result", &contract.results, query.results.len(), version)?;
    let missing = |(index, parameter): (usize, &Parameter)| {
        let given = query.operands.get(index).is_some_and(Option::is_some);
        (parameter.needed && !given && parameter.versions.hold(version)).then_some((index, parameter.name))
    };
    // If an operand replaced an attribute, either is accepted in a graph that states no version.
    let instead = |name: &str| query.attributes.iter().any(|(given, _)| &**given == name);
    match contract.operands.iter().enumerate().find_map(missing) {
        Some((_, name)) if version == ANY_VERSION && instead(name) => {}
        Some((index, name)) => {
            return breach(format!("operand {index}, its `{name}`, is missing"), EXPORT);
        }
        None => {}
    }
    elements_of(contract, query)
}

fn attributes_of(contract: &Contract, query: &Query<'_>) -> Result<(), Breach> {
    for (name, attr) in query.attributes {
        if !contract.knows(name) {
            // In the first versions this attribute was a hint about memory, without other meaning.
            if &**name == "consumed_inputs" && query.op.domain().is_empty() && query.version < 6 {
                continue;
            }
            let mut known: Vec<String> =
                contract.attributes.iter().map(|a| format!("`{}`", a.name)).collect();
            known.dedup();
            let known = match &known[..] {
                [] => "it knows none".to_owned(),
                _ => format!("it knows {}", known.join(", ")),
            };
            let reason = format!("lmsc knows no attribute `{name}` of this operator; {known}");
            return breach(
                reason,
                "remove the attribute if it changes nothing; inspect looks at the model as it is",
            );
        }
        let Some(known) = contract.attribute(name, query.version) else {
            let versions = contract.versions_of(name);
            let reason = format!(
                "attribute `{name}` is known {versions}, and the model imports version {}",
                query.version
            );
            return breach(reason, "export the model again, or correct the version that it imports");
        };
        if !known.takes(attr) {
            let expected = KINDS.iter().find(|(short, _)| *short == known.kind).map_or("", |k| k.1);
            return breach(format!("attribute `{name}` is {}, not {expected}", kind(attr)), EXPORT);
        }
    }
    let left_out = |a: &&Attribute| {
        a.needed
            && a.versions.hold(query.version)
            && query.attributes.iter().all(|(name, _)| &**name != a.name)
    };
    // A graph that states no version may have an operand instead.
    match contract.attributes.iter().find(left_out) {
        Some(a) if query.version != ANY_VERSION || a.versions == Versions::ALL => {
            breach(format!("attribute `{}` is missing", a.name), EXPORT)
        }
        _ => Ok(()),
    }
}

fn elements_of<'a>(contract: &Contract, query: &'a Query<'a>) -> Result<(), Breach> {
    let cx = Cx { query };
    let parameter = |index: usize| contract.operands.get(index).or(contract.operands.last());
    let mut first: Vec<(&str, usize, ElementType)> = Vec::new();
    for (index, operand) in query.operands.iter().enumerate() {
        let (Some(operand), Some(parameter)) = (operand, parameter(index)) else { continue };
        if parameter.elements == Elements::Any {
            continue;
        }
        let Type::Tensor(ty) = operand.ty else {
            return breach(format!("{} is a sequence, not a tensor", cx.called(index)), EXPORT);
        };
        match &parameter.elements {
            Elements::Any => {}
            Elements::Of(list) if list.contains(&ty.element) => {}
            Elements::Of(list) => {
                let list: Vec<&str> = list.iter().map(|e| e.name()).collect();
                let reason = format!("the elements of {} are to be {}", cx.typed(index), list.join(" or "));
                return breach(reason, EXPORT);
            }
            Elements::As(letter) => match first.iter().find(|(l, ..)| l == letter) {
                None => first.push((letter, index, ty.element)),
                Some((_, _, element)) if *element == ty.element => {}
                Some(&(_, other, element)) => {
                    let (a, b) = (cx.called(other), cx.called(index));
                    let (x, y) = (element, ty.element);
                    return breach(
                        format!(
                            "{a} has elements of type {x}, but {b} has elements of type {y}; expected one type"
                        ),
                        EXPORT,
                    );
                }
            },
        }
    }
    Ok(())
}

/// Refuses too many operands or results, and those of other versions.
fn arity(what: &str, parameters: &[Parameter], found: usize, version: i64) -> Result<(), Breach> {
    let many = parameters.last().is_some_and(|p| p.many);
    if found > parameters.len() && !many {
        let names: Vec<String> = parameters.iter().map(|p| format!("`{}`", p.name)).collect();
        let most = match parameters.len() {
            0 => format!("the operator has no {what}s"),
            n => format!("the operator has at most {n}: {}", names.join(", ")),
        };
        return breach(format!("it has {}; {most}", count(found, what)), EXPORT);
    }
    match parameters.iter().take(found).enumerate().find(|(_, p)| !p.versions.hold(version)) {
        Some((index, p)) => {
            let reason = format!(
                "{what} {index}, its `{}`, is known {}, and the model imports version {version}",
                p.name, p.versions
            );
            breach(reason, "export the model again, or correct the version that it imports")
        }
        None => Ok(()),
    }
}

/// A violation of a contract, and the advice.
pub(super) struct Breach {
    reason: String,
    help: &'static str,
}

impl Breach {
    pub(super) fn at(self, query: &Query<'_>) -> ShapeError {
        let (node, op) = (query.node.into(), query.op.to_string().into());
        ShapeError::Contract { node, op, reason: self.reason.into(), help: self.help }
    }
}

const EXPORT: &str = "the graph is not valid: correct it, or export the model again";
pub(crate) const CONVERT: &str =
    "export the model for another version, or convert it with onnx.version_converter";

fn breach<T>(reason: String, help: &'static str) -> Result<T, Breach> {
    Err(Breach { reason, help })
}

/// The domain in messages.
pub(crate) fn spelled(domain: &str) -> &str {
    if domain.is_empty() { "ai.onnx" } else { domain }
}
