//! Contracts of operators: versions, operands, results, and attributes with their defaults, one row of `contract/table.rs` each.
//!
//! The readers of a node take a default from here: [`Graph::attribute`](crate::Graph::attribute) and [`Op::attribute`] return the
//! value of an attribute where it is given, or else its default.
//!
//! A contract is written as one line, `7 X:T W:T B?:T axes?:int64@13.. -> Y mask? | axis:int=-1 mode!:string@11..`:
//!
//! - the first version of the domain whose meaning is implemented;
//! - operands: `?` if one may be left out, `*` for any number at the end, `+` for at least one. Behind the colon is
//!   the element type: one type for all operands with the same capital letter, or the listed types, `index` being
//!   `int32|int64`;
//! - results, all of which may be left out; `Y=X` has the type of operand X, the first;
//! - attributes with their kinds; `!` if one may not be left out; behind `=` the default, the elements of a list with commas. One that
//!   may be left out and has no default has another meaning then, or a value that depends on the operands.
//!
//! `@11..`, `@..10` and `@9..10` are the versions that have this operand, result or attribute. An attribute whose default changed
//! is written once for each default.

mod table;

use std::sync::LazyLock;

use crate::ops::Effects;
use crate::{Attr, ElementType, Float, Name, Op, domains};

/// The newest versions that are implemented, by domain. Operators of other domains have no contracts.
pub const NEWEST: &[(&str, i64)] =
    &[(domains::ONNX, 28), (domains::LMSC, 1), (domains::PREVIEW, 1), (domains::MS, 1)];

/// The version of a graph that states none: it is read in every form that ever existed.
pub const ANY_VERSION: i64 = i64::MAX;

/// An operator's row of the table.
#[derive(Debug, PartialEq)]
pub struct Contract {
    /// Domain.
    pub domain: &'static str,
    /// Name within the domain.
    pub name: &'static str,
    /// The first version whose meaning is implemented.
    pub first: i64,
    /// Operands by position; the last may stand for any number.
    pub operands: Vec<Parameter>,
    /// Results by position; the last may stand for any number.
    pub results: Vec<Parameter>,
    /// Attributes by name, older forms of one before newer ones.
    pub attributes: Vec<Attribute>,
    /// Operands and results as the table writes them.
    pub values: &'static str,
    /// Attributes as the table writes them.
    pub options: &'static str,
    pub(crate) effects: Effects,
}

/// An operand or a result.
#[derive(Debug, PartialEq)]
pub struct Parameter {
    /// Its name, for messages.
    pub name: &'static str,
    /// Whether it may not be left out.
    pub needed: bool,
    /// Whether it stands for any number at the end.
    pub many: bool,
    /// Its element type.
    pub elements: Elements,
    /// The operand whose type a result has.
    pub like: Option<&'static str>,
    /// The versions that have it.
    pub versions: Versions,
}

/// The element type of an operand.
#[derive(Debug, PartialEq)]
pub enum Elements {
    /// Any type.
    Any,
    /// The type of all operands with the same letter.
    As(&'static str),
    /// One of these types.
    Of(Vec<ElementType>),
}

/// An attribute of an operator.
#[derive(Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// A word of [`KINDS`].
    pub kind: &'static str,
    /// Whether it may not be left out.
    pub needed: bool,
    /// Its value where it is left out.
    pub default: Option<Attr>,
    /// The versions that have it in this form.
    pub versions: Versions,
}

/// A range of versions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Versions(i64, i64);

impl Versions {
    /// All versions.
    pub const ALL: Versions = Versions(1, i64::MAX);

    /// Whether the version is one of them; [`ANY_VERSION`] always is.
    pub fn hold(self, version: i64) -> bool {
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
pub const KINDS: &[(&str, &str)] = &[
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

/// The domain, the name, the effects and the line of an operator.
type Row = (&'static str, &'static str, Effects, &'static str);

impl Contract {
    /// Parses a row; `None` if its line does not have the documented form.
    fn parse(&(domain, name, effects, line): &Row) -> Option<Contract> {
        let (left, options) = line.split_once(" | ").unwrap_or((line, ""));
        let (first, values) = left.split_once(' ')?;
        let (operands, results) = values.split_once("->")?;
        let contract = Contract {
            domain,
            name,
            first: first.parse().ok()?,
            operands: operands.split_whitespace().map(Parameter::parse).collect::<Option<_>>()?,
            results: results.split_whitespace().map(Parameter::parse).collect::<Option<_>>()?,
            attributes: options.split_whitespace().map(Attribute::parse).collect::<Option<_>>()?,
            values,
            options,
            effects,
        };
        let all = contract.operands.iter().chain(&contract.results);
        let only_last = |list: &[Parameter]| list.iter().rev().skip(1).all(|p| !p.many);
        let is_operand = |name| contract.operands.first().is_some_and(|operand| operand.name == name);
        let refers = contract.operands.iter().all(|p| p.like.is_none())
            && contract.results.iter().all(|p| p.like.is_none_or(is_operand));
        (all.count() > 0 && refers && only_last(&contract.operands) && only_last(&contract.results))
            .then_some(contract)
    }

    /// The domain and the name.
    pub fn key(&self) -> (&'static str, &'static str) {
        (self.domain, self.name)
    }

    /// The attribute in the form of this version; of [`ANY_VERSION`], in the newest form.
    pub fn attribute(&self, name: &str, version: i64) -> Option<&Attribute> {
        self.attributes.iter().rev().find(|a| a.name == name && a.versions.hold(version))
    }

    /// Whether the only result has the type of operand 0, for all types of the other operands.
    pub fn keeps_type(&self) -> bool {
        matches!(&self.results[..], [result] if result.like.is_some())
    }

    /// Whether any version has an attribute of this name.
    pub fn knows(&self, name: &str) -> bool {
        self.attributes.iter().any(|a| a.name == name)
    }

    /// The versions that have an attribute of this name in any form.
    pub fn versions_of(&self, name: &str) -> Versions {
        let mut forms = self.attributes.iter().filter(|a| a.name == name).map(|a| a.versions);
        let first = forms.next().unwrap_or(Versions::ALL);
        Versions(first.0, forms.next_back().unwrap_or(first).1)
    }

    /// The attribute's default in this version; of [`ANY_VERSION`], the newest that there is. A version without the attribute has the
    /// meaning of the first default: that of an attribute which comes later, or came to an end.
    fn default_of(&self, name: &str, version: i64) -> Option<&Attr> {
        let forms = || self.attributes.iter().filter(|a| a.name == name);
        let mut holding = forms().rev().filter(|a| a.versions.hold(version)).peekable();
        match holding.peek() {
            Some(_) => holding.find_map(|a| a.default.as_ref()),
            None => forms().find_map(|a| a.default.as_ref()),
        }
    }
}

impl Parameter {
    fn parse(word: &'static str) -> Option<Parameter> {
        let (word, versions) = versioned(word)?;
        let (word, like) = word.split_once('=').map_or((word, None), |(word, operand)| (word, Some(operand)));
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
        let (needed, many) = match &name[bare.len()..] {
            "" => (true, false),
            "?" => (false, false),
            "*" => (false, true),
            "+" => (true, true),
            _ => return None,
        };
        Some(Parameter { name: bare, needed, many, elements, like, versions })
    }
}

impl Attribute {
    fn parse(word: &'static str) -> Option<Attribute> {
        let (word, versions) = versioned(word)?;
        let (name, kind) = word.split_once(':')?;
        let (kind, default) = match kind.split_once('=') {
            None => (kind, None),
            Some((kind, text)) => (kind, Some(value(kind, text)?)),
        };
        let bare = name.trim_end_matches('!');
        let needed = bare.len() < name.len();
        let is_sound = KINDS.iter().any(|(known, _)| *known == kind) && !(needed && default.is_some());
        is_sound.then_some(Attribute { name: bare, kind, needed, default, versions })
    }

    /// Whether the value is of the attribute's kind.
    pub fn takes(&self, attr: &Attr) -> bool {
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

/// A default of this kind.
fn value(kind: &str, text: &'static str) -> Option<Attr> {
    let string = |text: &'static str| bytes::Bytes::from_static(text.as_bytes());
    Some(match kind {
        "int" => Attr::Int(text.parse().ok()?),
        "float" => Attr::Float(Float(text.parse().ok()?)),
        "string" => Attr::String(string(text)),
        "ints" => Attr::Ints(text.split(',').map(|i| i.parse().ok()).collect::<Option<_>>()?),
        "strings" => Attr::Strings(text.split(',').map(string).collect()),
        _ => return None,
    })
}

fn versioned(word: &'static str) -> Option<(&'static str, Versions)> {
    match word.split_once('@') {
        None => Some((word, Versions::ALL)),
        Some((word, versions)) => Some((word, Versions::parse(versions)?)),
    }
}

/// Sorted by domain and name.
static CONTRACTS: LazyLock<Vec<Contract>> = LazyLock::new(|| {
    let parse = |row| Contract::parse(row).expect("a test reads every contract");
    let mut contracts: Vec<_> = table::ROWS.iter().map(parse).collect();
    contracts.sort_unstable_by_key(Contract::key);
    contracts
});

/// Every contract, sorted by domain and name.
pub fn all() -> &'static [Contract] {
    &CONTRACTS
}

/// The contract of the operator of this domain and name, if there is one.
pub(crate) fn of(domain: &str, name: &str) -> Option<&'static Contract> {
    let place = all().binary_search_by(|contract| contract.key().cmp(&(domain, name)));
    Some(&all()[place.ok()?])
}

impl Op {
    /// The value of an attribute: the given one, or else its default in this version of the domain; `None` if it has none.
    ///
    /// # Panics
    /// In debug builds, if the operator's contract does not know the attribute.
    pub fn attribute<'a>(&self, version: i64, given: &'a [(Name, Attr)], name: &str) -> Option<&'a Attr> {
        let contract = self.contract();
        debug_assert!(
            contract.is_none_or(|contract| contract.knows(name)),
            "the contract of {self} has no attribute `{name}`; ask `knows` where several operators share a reader"
        );
        let own = given.iter().find(|(n, _)| &**n == name).map(|(_, attr)| attr);
        own.or_else(|| contract?.default_of(name, version))
    }
}

#[cfg(test)]
mod tests;
