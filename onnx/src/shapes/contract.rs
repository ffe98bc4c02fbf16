//! An operator's contract for its nodes: the supported versions, and the number and kinds of operands, results and attributes.
//!
//! A contract is written as one line, `7 X:T W:T B?:T axes?:int64@13.. -> Y mask? | axis:int mode!:string@11..`:
//!
//! - the first version of the domain whose meaning is implemented;
//! - operands: `?` if one may be left out, `*` for any number at the end, `+` for at least one. Behind the colon is
//!   the element type: one type for all operands with the same capital letter, or the listed types, `index` being
//!   `int32|int64`;
//! - results, all of which may be left out;
//! - attributes with their kinds; `!` if one may not be left out.
//!
//! `@11..`, `@..10` and `@9..10` are the versions that have this operand, result or attribute.

use lmsc_ir::words::count;
use lmsc_ir::{Attr, ElementType, Type};

use super::{Cx, Query, ShapeError, kind};

/// The newest versions that are implemented, by domain. Operators of other domains have no rows.
pub const NEWEST: &[(&str, i64)] =
    &[("", 28), ("ai.lmsc", 1), ("ai.onnx.preview.training", 1), ("com.microsoft", 1)];

/// The version of a graph that states none: it is read in every form that ever existed.
pub(crate) const ANY_VERSION: i64 = i64::MAX;

/// The parsed line of a row.
#[derive(Debug, PartialEq)]
pub(super) struct Contract {
    pub(super) first: i64,
    pub(super) operands: Vec<Parameter>,
    pub(super) results: Vec<Parameter>,
    pub(super) attributes: Vec<Attribute>,
}

/// An operand or a result.
#[derive(Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    needed: bool,
    many: bool,
    elements: Elements,
    versions: Versions,
}

/// The element type of an operand.
#[derive(Debug, PartialEq)]
enum Elements {
    Any,
    /// The type of all operands with the same letter.
    As(&'static str),
    Of(Vec<ElementType>),
}

/// An attribute.
#[derive(Debug, PartialEq)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    kind: &'static str,
    needed: bool,
    versions: Versions,
}

/// A range of versions.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Versions(i64, i64);

impl Versions {
    fn hold(self, version: i64) -> bool {
        version == ANY_VERSION || (self.0..=self.1).contains(&version)
    }

    /// `11..`, `..10`, `9..10`.
    fn parse(text: &str) -> Option<Versions> {
        let (first, last) = text.split_once("..")?;
        let bound = |text: &str, open: i64| if text.is_empty() { Some(open) } else { text.parse().ok() };
        Some(Versions(bound(first, 1)?, bound(last, i64::MAX)?))
    }
}

/// `from version 11 on`, `up to version 10`.
impl std::fmt::Display for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Versions(first, i64::MAX) => write!(f, "from version {first} on"),
            Versions(1, last) => write!(f, "up to version {last}"),
            Versions(first, last) => write!(f, "in versions {first} to {last}"),
        }
    }
}

/// The kinds of attributes, in contracts and in messages.
const KINDS: &[(&str, &str)] = &[
    ("float", "a float"),
    ("floats", "a list of floats"),
    ("graph", "a graph"),
    ("int", "an integer"),
    ("ints", "a list of integers"),
    ("sparse", "a sparse tensor"),
    ("string", "a string"),
    ("strings", "a list of strings"),
    ("tensor", "a tensor"),
];

impl Contract {
    /// Parses a row's line; `None` if it does not have the documented form.
    pub(super) fn parse(line: &'static str) -> Option<Contract> {
        let (left, attributes) = line.split_once(" | ").unwrap_or((line, ""));
        let (left, results) = left.split_once("->")?;
        let mut words = left.split_whitespace();
        let first = words.next()?.parse().ok()?;
        let contract = Contract {
            first,
            operands: words.map(Parameter::parse).collect::<Option<_>>()?,
            results: results.split_whitespace().map(Parameter::parse).collect::<Option<_>>()?,
            attributes: attributes.split_whitespace().map(Attribute::parse).collect::<Option<_>>()?,
        };
        let all = contract.operands.iter().chain(&contract.results);
        let only_last = |list: &[Parameter]| list.iter().rev().skip(1).all(|p| !p.many);
        (all.count() > 0 && only_last(&contract.operands) && only_last(&contract.results)).then_some(contract)
    }

    /// Refuses a node that violates the contract.
    pub(super) fn check<'a>(&self, query: &'a Query<'a>) -> Result<(), Breach> {
        let version = query.version;
        if version < self.first {
            return Err(Breach {
                reason: format!(
                    "the model imports version {version} of {}, and lmsc knows this operator from version {} on",
                    spelled(query.op.domain()),
                    self.first
                ),
                help: CONVERT,
            });
        }
        self.attributes_of(query)?;
        arity("operand", &self.operands, query.operands.len(), version)?;
        arity("result", &self.results, query.results.len(), version)?;
        let missing = |(index, parameter): (usize, &Parameter)| {
            let given = query.operands.get(index).is_some_and(Option::is_some);
            (parameter.needed && !given && parameter.versions.hold(version))
                .then_some((index, parameter.name))
        };
        // If an operand replaced an attribute, either is accepted in a graph that states no version.
        let instead = |name: &str| query.attributes.iter().any(|(given, _)| &**given == name);
        match self.operands.iter().enumerate().find_map(missing) {
            Some((_, name)) if version == ANY_VERSION && instead(name) => {}
            Some((index, name)) => {
                return breach(format!("operand {index}, its `{name}`, is missing"), EXPORT);
            }
            None => {}
        }
        self.elements_of(query)
    }

    fn attributes_of(&self, query: &Query<'_>) -> Result<(), Breach> {
        for (name, attr) in query.attributes {
            let Some(known) = self.attributes.iter().find(|a| a.name == &**name) else {
                // In the first versions this attribute was a hint about memory, without other meaning.
                if &**name == "consumed_inputs" && query.op.domain().is_empty() && query.version < 6 {
                    continue;
                }
                let known: Vec<String> = self.attributes.iter().map(|a| format!("`{}`", a.name)).collect();
                let known = match &known[..] {
                    [] => "it knows none".to_owned(),
                    _ => format!("it knows {}", known.join(", ")),
                };
                let reason = format!("lmsc knows no attribute `{name}` of this operator; {known}");
                return breach(
                    reason,
                    "remove the attribute if it changes nothing; inspect looks at the model as it is",
                );
            };
            if !known.versions.hold(query.version) {
                let reason = format!(
                    "attribute `{name}` is known {}, and the model imports version {}",
                    known.versions, query.version
                );
                return breach(reason, "export the model again, or correct the version that it imports");
            }
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
        match self.attributes.iter().find(left_out) {
            Some(a) if query.version != ANY_VERSION || a.versions == Versions(1, i64::MAX) => {
                breach(format!("attribute `{}` is missing", a.name), EXPORT)
            }
            _ => Ok(()),
        }
    }

    fn elements_of<'a>(&self, query: &'a Query<'a>) -> Result<(), Breach> {
        let cx = Cx { query };
        let parameter = |index: usize| self.operands.get(index).or(self.operands.last());
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
                    let reason =
                        format!("the elements of {} are to be {}", cx.typed(index), list.join(" or "));
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

impl Parameter {
    fn parse(word: &'static str) -> Option<Parameter> {
        let (word, versions) = versioned(word)?;
        let (name, elements) = match word.split_once(':') {
            None => (word, Elements::Any),
            Some((name, letter)) if letter.starts_with(|c: char| c.is_ascii_uppercase()) => {
                (name, Elements::As(letter))
            }
            Some((name, "index")) => (name, Elements::Of(vec![ElementType::Int32, ElementType::Int64])),
            Some((name, list)) => {
                (name, Elements::Of(list.split('|').map(|e| e.parse().ok()).collect::<Option<_>>()?))
            }
        };
        let bare = name.trim_end_matches(['?', '*', '+']);
        let mark = &name[bare.len()..];
        let (needed, many) = match mark {
            "" => (true, false),
            "?" => (false, false),
            "*" => (false, true),
            "+" => (true, true),
            _ => return None,
        };
        Some(Parameter { name: bare, needed, many, elements, versions })
    }
}

impl Attribute {
    fn parse(word: &'static str) -> Option<Attribute> {
        let (word, versions) = versioned(word)?;
        let (name, kind) = word.split_once(':')?;
        let bare = name.trim_end_matches('!');
        KINDS.iter().any(|(known, _)| *known == kind).then_some(Attribute {
            name: bare,
            kind,
            needed: bare.len() < name.len(),
            versions,
        })
    }

    fn takes(&self, attr: &Attr) -> bool {
        match attr {
            Attr::Int(_) => self.kind == "int",
            Attr::Float(_) => self.kind == "float",
            Attr::String(_) => self.kind == "string",
            Attr::Strings(_) => self.kind == "strings",
            Attr::Tensor(..) => self.kind == "tensor",
            Attr::Opaque(_) => ["graph", "sparse"].contains(&self.kind),
            // An empty list has no elements that determine its kind.
            Attr::Floats(list) if list.is_empty() => self.kind.ends_with('s'),
            Attr::Ints(list) if list.is_empty() => self.kind.ends_with('s'),
            Attr::Floats(_) => self.kind == "floats",
            Attr::Ints(_) => self.kind == "ints",
        }
    }
}

fn versioned(word: &'static str) -> Option<(&'static str, Versions)> {
    match word.split_once('@') {
        None => Some((word, Versions(1, i64::MAX))),
        Some((word, versions)) => Some((word, Versions::parse(versions)?)),
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
