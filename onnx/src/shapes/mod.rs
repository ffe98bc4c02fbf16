//! Types of every result of a node, by our own rules, with the values of the small integer tensors that shapes are computed from.
//!
//! A rule is a function of a `Cx`; `table.rs` has one row per operator. Rules are total: for every file, a rule returns an
//! answer, or that it does not know (`Refusal::Unknown`; then the file's `value_info` decides), or a contradiction
//! (`Refusal::Wrong`). No rule's time or memory depends on an extent.

mod constant;
mod contract;
mod conv;
mod elementwise;
mod graph;
mod loss;
mod movement;
mod nhwc;
mod normalization;
mod product;
mod quantize;
mod random;
mod reduce;
mod rnn;
mod say;
mod sequence;
mod shape;
mod table;
mod training;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use lmsc_ir::words::count;
use lmsc_ir::{Attr, ElementType, Name, Op, TensorType, Type};

pub use constant::Const;
pub(crate) use contract::{CONVERT, spelled};
pub(crate) use graph::{Constants, operands, producer};
pub use graph::{check, constants, deciding};
pub(crate) use lmsc_ir::contract::ANY_VERSION;
use say::{axis, axis_mask, extent, extents, kind, result_extent, show};

/// The known facts about a value: its type, and its elements if they are few and constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fact {
    /// Element type and extents.
    pub(crate) ty: Type,
    /// The elements.
    pub(crate) value: Option<Const>,
}

impl From<TensorType> for Fact {
    fn from(ty: TensorType) -> Fact {
        Fact { ty: ty.into(), value: None }
    }
}

impl From<Type> for Fact {
    fn from(ty: Type) -> Fact {
        Fact { ty, value: None }
    }
}

/// A file's declaration of a value's type, as far as it is in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Declared {
    /// The element type.
    pub(crate) element: Option<ElementType>,
    /// The extents, if their number is known; `None` for an unknown one.
    pub(crate) dims: Option<Vec<Option<u64>>>,
}

impl Declared {
    /// The declaration of a complete type.
    fn of(ty: &TensorType) -> Declared {
        Declared { element: Some(ty.element), dims: Some(ty.dims.iter().map(|&d| Some(d)).collect()) }
    }

    /// The type, if nothing is missing.
    pub(crate) fn complete(&self) -> Option<TensorType> {
        let dims = self.dims.as_ref()?.iter().copied().collect::<Option<Vec<u64>>>()?;
        Some(TensorType::new(self.element?, dims))
    }

    /// Whether a value of type `ty` matches the declaration.
    pub(crate) fn agrees(&self, ty: &Type) -> bool {
        let Type::Tensor(ty) = ty else { return self.element.is_none() && self.dims.is_none() };
        let extents = self.dims.as_ref().is_none_or(|dims| {
            dims.len() == ty.dims.len() && dims.iter().zip(&ty.dims).all(|(d, t)| d.is_none_or(|d| d == *t))
        });
        extents && self.element.is_none_or(|e| e == ty.element)
    }

    /// Whether it is complete and differs from `ty` only in extents of 1.
    fn agrees_but_for_ones(&self, ty: &Type) -> bool {
        let without = |dims: &[u64]| -> Vec<u64> { dims.iter().copied().filter(|&d| d != 1).collect() };
        match (self.complete(), ty) {
            (Some(a), Type::Tensor(b)) => a.element == b.element && without(&a.dims) == without(&b.dims),
            _ => false,
        }
    }
}

/// `float[?,64]`.
impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.element.map_or("?", ElementType::name))?;
        let Some(dims) = &self.dims else { return Ok(()) };
        f.write_str("[")?;
        for (i, dim) in dims.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { "," })?;
            match dim {
                Some(dim) => write!(f, "{dim}")?,
                None => f.write_str("?")?,
            }
        }
        f.write_str("]")
    }
}

/// One operand of a [`Query`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand<'a> {
    /// The value's name, for messages.
    pub(crate) name: &'a str,
    /// Its type.
    pub(crate) ty: &'a Type,
    /// Its elements, if they are constant.
    pub(crate) value: Option<&'a Const>,
}

/// A result that a [`Query`] needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The value's name, for messages.
    pub(crate) name: &'a str,
    /// The file's declaration, if any.
    pub(crate) declared: Option<&'a Declared>,
}

/// The node that computes an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Producer<'a> {
    /// Its operator.
    pub(crate) op: &'a Op,
    /// The index of its result that is the operand.
    pub(crate) result: usize,
    /// The type of its own operand 0.
    pub(crate) operand: Option<&'a Type>,
}

/// A node whose result types are to be inferred.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    /// The node's name, for messages.
    pub(crate) node: &'a str,
    /// The operator.
    pub(crate) op: &'a Op,
    /// The version of the operator's domain.
    pub(crate) version: i64,
    /// Operands by position; `None` if one is left out.
    pub(crate) operands: &'a [Option<Operand<'a>>],
    /// The node's attributes.
    pub(crate) attributes: &'a [(Name, Attr)],
    /// Results by position; `None` if one is left out.
    pub(crate) results: &'a [Option<Wanted<'a>>],
    /// The producer of the operand at a position, with copies skipped.
    pub(crate) producer: &'a dyn Fn(usize) -> Option<Producer<'a>>,
}

/// Why the type of a result is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The node is not valid.
    #[error("node `{node}` ({op}): {reason}")]
    Invalid {
        /// The node.
        node: Box<str>,
        /// Its operator.
        op: Box<str>,
        /// The contradiction.
        reason: Box<str>,
    },
    /// The node violates its operator's contract.
    #[error("node `{node}` ({op}): {reason}")]
    Contract {
        /// The node.
        node: Box<str>,
        /// Its operator.
        op: Box<str>,
        /// The violation.
        reason: Box<str>,
        /// The advice.
        help: &'static str,
    },
    /// Neither a rule nor the file determines the type of the result.
    #[error(
        "node `{node}` ({op}): the type of result {index} `{result}` is not known: {reason}{}",
        alike(*more)
    )]
    Unknown {
        /// The node.
        node: Box<str>,
        /// Its operator.
        op: Box<str>,
        /// The result's position.
        index: usize,
        /// The result's name.
        result: Box<str>,
        /// Why no rule applies.
        reason: Box<str>,
        /// Number of further nodes of the operator with the same error.
        more: usize,
    },
    /// The result is larger than the memory of any machine.
    #[error("node `{node}` ({op}): result {index} `{result}` would be {ty}, which {why}")]
    TooLarge {
        /// The node.
        node: Box<str>,
        /// Its operator.
        op: Box<str>,
        /// The result's position.
        index: usize,
        /// The result's name.
        result: Box<str>,
        /// Its type.
        ty: Box<str>,
        /// The limit that is exceeded.
        why: &'static str,
    },
}

fn alike(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" (and so of {} of this operator)", count(more, "more node")),
    }
}

/// Why a rule has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The rule does not know; `value_info` may.
    Unknown(Cow<'static, str>),
    /// The node is not valid.
    Wrong(Cow<'static, str>),
}

fn wrong<T>(reason: impl Into<Cow<'static, str>>) -> Result<T, Refusal> {
    Err(Refusal::Wrong(reason.into()))
}

fn unknown<T>(reason: impl Into<Cow<'static, str>>) -> Result<T, Refusal> {
    Err(Refusal::Unknown(reason.into()))
}

/// A rule's fact about each result; fewer entries, or `None`, if it does not know.
type Answer = Result<Vec<Option<Fact>>, Refusal>;

/// Computes the results' types from the operands.
type Rule = fn(&Cx<'_>) -> Answer;

/// Every operator that has a rule, as (domain, name), sorted.
pub fn operators() -> Vec<(&'static str, &'static str)> {
    lmsc_ir::contract::all().iter().map(lmsc_ir::contract::Contract::key).collect()
}

/// Whether ONNX's own operator of this name has a rule.
pub(crate) fn is_known(name: &str) -> bool {
    table::rule(&Op::new("", name)).is_some()
}

/// Refuses a node that violates its operator's contract: an unknown attribute or one of another kind, too few or too many
/// operands, elements of another type, a version older than implemented. Operators without a rule have no contract.
///
/// # Errors
/// [`ShapeError::Contract`].
pub(crate) fn adheres<'a>(query: &'a Query<'a>) -> Result<(), ShapeError> {
    match query.op.contract() {
        Some(contract) => contract::check(contract, query).map_err(|breach| breach.at(query)),
        None => Ok(()),
    }
}

/// The facts about every result of the node: an entry for every result that is needed, `None` for the others.
///
/// # Errors
/// [`ShapeError`] if the node is not valid, or has a result whose type neither a rule nor the declaration determines. A
/// declaration that contradicts a rule is ignored.
pub(crate) fn infer<'a>(query: &'a Query<'a>) -> Result<Vec<Option<Fact>>, ShapeError> {
    match table::rule(query.op).map(|rule| rule(&Cx { query })) {
        Some(Ok(facts)) => settle(query, facts, "the operator's rule does not cover it"),
        Some(Err(Refusal::Unknown(reason))) => settle(query, Vec::new(), &reason),
        Some(Err(Refusal::Wrong(reason))) => Err(invalid(query, reason)),
        None => settle(query, Vec::new(), "lmsc has no shape rule for this operator"),
    }
}

/// The error of a node that is not valid.
pub(crate) fn invalid(query: &Query<'_>, reason: Cow<'static, str>) -> ShapeError {
    let (node, op) = (query.node.into(), query.op.to_string().into());
    ShapeError::Invalid { node, op, reason: reason.into_owned().into() }
}

/// `facts` for exactly the needed results, completed by the file's declarations; `reason` says why facts are missing.
pub(crate) fn settle(
    query: &Query<'_>,
    mut facts: Vec<Option<Fact>>,
    reason: &str,
) -> Result<Vec<Option<Fact>>, ShapeError> {
    facts.resize(query.results.len(), None);
    for (index, (fact, wanted)) in facts.iter_mut().zip(query.results).enumerate() {
        let Some(wanted) = wanted else {
            *fact = None;
            continue;
        };
        let at = || (query.node.into(), query.op.to_string().into(), wanted.name.into());
        if fact.is_none() {
            *fact = wanted.declared.and_then(Declared::complete).map(Fact::from);
        }
        let Some(known) = fact else {
            let (node, op, result) = at();
            return Err(ShapeError::Unknown { node, op, index, result, reason: reason.into(), more: 0 });
        };
        if let Some(why) = impossible(&known.ty) {
            let (node, op, result) = at();
            return Err(ShapeError::TooLarge {
                node,
                op,
                index,
                result,
                ty: known.ty.to_string().into(),
                why,
            });
        }
        let count = known.ty.as_tensor().and_then(TensorType::element_count);
        if known.value.as_ref().is_some_and(|v| Some(v.len() as u64) != count) {
            known.value = None;
        }
    }
    Ok(facts)
}

/// Maximum number of axes, more than any framework supports; it bounds the size of a type.
const MOST_AXES: usize = 64;

/// Why no value can have this type, if so. An extent must also fit the 64 signed bits of `Shape`, even if another extent is zero.
pub(crate) fn impossible(ty: &Type) -> Option<&'static str> {
    let dims = ty.as_tensor().map_or(&[][..], |t| &t.dims);
    if dims.len() > MOST_AXES {
        Some("has more than 64 axes")
    } else if dims.iter().any(|&d| d > i64::MAX as u64) {
        Some("has an extent of 2^63 or more")
    } else {
        ty.byte_size().is_none().then_some("has 2^60 bytes or more")
    }
}

/// A rule's view of its node.
#[derive(Clone, Copy)]
pub(crate) struct Cx<'a> {
    query: &'a Query<'a>,
}

impl<'a> Cx<'a> {
    /// The operand, unless it is left out.
    fn operand(&self, index: usize) -> Option<Operand<'a>> {
        self.query.operands.get(index).copied().flatten()
    }

    /// The number of operand positions.
    fn operand_count(&self) -> usize {
        self.query.operands.len()
    }

    /// The number of result positions.
    fn result_count(&self) -> usize {
        self.query.results.len()
    }

    fn version(&self) -> i64 {
        self.query.version
    }

    /// The operand's tensor type, if it is given and a tensor.
    fn maybe(&self, index: usize) -> Option<&'a TensorType> {
        self.operand(index)?.ty.as_tensor()
    }

    /// The operand's tensor type.
    fn tensor(&self, index: usize) -> Result<&'a TensorType, Refusal> {
        match self.operand(index) {
            Some(operand) => match operand.ty {
                Type::Tensor(tensor) => Ok(tensor),
                Type::Sequence(_) => wrong(format!("{} is a sequence, not a tensor", self.called(index))),
            },
            None => wrong(format!("operand {index} is missing")),
        }
    }

    /// The operand's extents.
    fn dims(&self, index: usize) -> Result<&'a [u64], Refusal> {
        Ok(&self.tensor(index)?.dims)
    }

    /// The elements of the operand, if it is constant.
    fn value(&self, index: usize) -> Option<&'a Const> {
        self.operand(index)?.value
    }

    /// The operand's integers; `None` if the operand is left out.
    fn ints(&self, index: usize) -> Result<Option<&'a [i64]>, Refusal> {
        let Some(operand) = self.operand(index) else { return Ok(None) };
        match operand.value.map(Const::as_ints) {
            Some(Some(ints)) => Ok(Some(ints)),
            Some(None) => wrong(format!("{} holds floats, not integers", self.called(index))),
            // An operand without elements is known, wherever it comes from.
            None if operand
                .ty
                .as_tensor()
                .is_some_and(|ty| ty.dims.contains(&0) && !ty.element.is_float()) =>
            {
                Ok(Some(&[]))
            }
            None => {
                let operand = self.called(index);
                unknown(format!("it follows from the elements of {operand}, which are no constants"))
            }
        }
    }

    /// The operand's integers, which are required.
    fn need_ints(&self, index: usize) -> Result<&'a [i64], Refusal> {
        self.ints(index)?.map_or_else(|| wrong(format!("operand {index} is missing")), Ok)
    }

    /// The operand's only integer; `None` if the operand is left out.
    fn maybe_scalar(&self, index: usize) -> Result<Option<i64>, Refusal> {
        match self.ints(index)? {
            None => Ok(None),
            Some(&[one]) => Ok(Some(one)),
            Some(many) => {
                wrong(format!("{} has {}, not one", self.called(index), count(many.len(), "element")))
            }
        }
    }

    /// The operand's only integer.
    fn scalar(&self, index: usize) -> Result<i64, Refusal> {
        self.maybe_scalar(index)?.map_or_else(|| wrong(format!("operand {index} is missing")), Ok)
    }

    /// The given attribute, or else the default of the operator's contract.
    fn attribute(&self, name: &str) -> Option<&'a Attr> {
        self.query.op.attribute(self.query.version, self.query.attributes, name)
    }

    /// Whether the attribute is given.
    fn says(&self, name: &str) -> bool {
        self.query.attributes.iter().any(|(given, _)| &**given == name)
    }

    /// Whether the operator has an attribute of this name: a rule that several operators share may only read those that it has.
    fn knows(&self, name: &str) -> bool {
        self.query.op.contract().is_some_and(|contract| contract.knows(name))
    }

    /// The integer attribute, or its default; `None` if it has none.
    fn int_if_any(&self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Int(i)) => Ok(Some(*i)),
            Some(other) => wrong(format!("attribute `{name}` is {}, not an integer", kind(other))),
        }
    }

    /// The integer attribute, or its default.
    fn int(&self, name: &str) -> Result<i64, Refusal> {
        self.int_if_any(name)?.map_or_else(|| wrong(format!("attribute `{name}` is missing")), Ok)
    }

    /// Whether the integer attribute, or its default, is not zero.
    fn flag(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self.int(name)? != 0)
    }

    /// The attribute of integers, or its default; `None` if it has none.
    fn int_list(&self, name: &str) -> Result<Option<&'a [i64]>, Refusal> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Ints(ints)) => Ok(Some(ints)),
            // An empty list has no elements that determine its kind.
            Some(Attr::Floats(none)) if none.is_empty() => Ok(Some(&[])),
            Some(other) => wrong(format!("attribute `{name}` is {}, not a list of integers", kind(other))),
        }
    }

    /// The string attribute, or its default.
    fn string(&self, name: &str) -> Result<&'a str, Refusal> {
        match self.attribute(name) {
            None => wrong(format!("attribute `{name}` is missing")),
            Some(Attr::String(s)) => match std::str::from_utf8(s) {
                Ok(s) => Ok(s),
                Err(_) => wrong(format!("attribute `{name}` is not UTF-8 text")),
            },
            Some(other) => wrong(format!("attribute `{name}` is {}, not a string", kind(other))),
        }
    }

    /// The element type that the attribute, or its default, names by ONNX's number; `None` if it has no default.
    fn element(&self, name: &str) -> Result<Option<ElementType>, Refusal> {
        match self.int_if_any(name)? {
            None => Ok(None),
            Some(code) => match element_type(code) {
                Some(element) => Ok(Some(element)),
                None => {
                    wrong(format!("attribute `{name}` is {code}, which is no element type; {ELEMENT_TYPES}"))
                }
            },
        }
    }

    /// The same of an attribute that has a default or is required.
    fn need_element(&self, name: &str) -> Result<ElementType, Refusal> {
        self.element(name)?.map_or_else(|| wrong(format!("attribute `{name}` is missing")), Ok)
    }

    /// The integers of the attribute, or else of the operand; `None` if both are left out. Operators whose attribute became an
    /// operand are read in both forms, for every version.
    fn int_list_or_ints(&self, name: &str, index: usize) -> Result<Option<&'a [i64]>, Refusal> {
        let listed = if self.knows(name) { self.int_list(name)? } else { None };
        match listed {
            Some(ints) => Ok(Some(ints)),
            None => self.ints(index),
        }
    }

    /// The extents of these operands broadcast with one another; `dims` are theirs.
    fn broadcast(&self, operands: &[usize], dims: &[&[u64]]) -> Result<Vec<u64>, Refusal> {
        broadcast_or(dims, |i, from_last| {
            let extent = |i: usize| dims[i].len().checked_sub(from_last).map_or(1, |at| dims[i][at]);
            let other = (0..i).find(|&other| ![1, extent(i)].contains(&extent(other))).unwrap_or(0);
            format!(
                "{} and {} do not broadcast: axis -{from_last} is {} and {}",
                self.typed(operands[other]),
                self.typed(operands[i]),
                extent(other),
                extent(i)
            )
        })
    }

    /// The file's declaration of the result.
    fn declared(&self, index: usize) -> Option<&'a Declared> {
        self.query.results.get(index).copied().flatten()?.declared
    }

    /// The node that computes the operand, with copies skipped.
    fn producer(&self, index: usize) -> Option<Producer<'a>> {
        (self.query.producer)(index)
    }

    /// Result *i* has the type of operand `of[i]`; unknown if that is left out.
    fn like(&self, of: &[usize]) -> Answer {
        Ok(of.iter().map(|&i| self.operand(i).map(|o| o.ty.clone().into())).collect())
    }
}

/// One result, a tensor.
fn one(element: ElementType, dims: impl Into<Vec<u64>>) -> Answer {
    Ok(vec![Some(TensorType::new(element, dims).into())])
}

/// One result, a tensor; `value` computes its elements if a tensor of that size may be constant.
fn folded(
    element: ElementType,
    dims: impl Into<Vec<u64>>,
    value: impl FnOnce(&[u64]) -> Option<Const>,
) -> Answer {
    Ok(vec![Some(fold(element, dims, value))])
}

fn fold(
    element: ElementType,
    dims: impl Into<Vec<u64>>,
    value: impl FnOnce(&[u64]) -> Option<Const>,
) -> Fact {
    let ty = TensorType::new(element, dims);
    let value = match ty.element_count() {
        _ if !Const::may_be(&ty) => None,
        // There is nothing to compute, and the other extents may have any size.
        Some(0) if element.is_float() => Const::floats(element, []),
        Some(0) => Const::ints(element, []),
        _ => value(&ty.dims),
    };
    Fact { ty: ty.into(), value }
}

fn product(dims: &[u64]) -> Result<u64, Refusal> {
    if dims.contains(&0) {
        return Ok(0);
    }
    let product = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    product.map_or_else(|| wrong(format!("extents {} make 2^64 elements or more", show(dims))), Ok)
}

/// The broadcast of all extents.
fn broadcast(all: &[&[u64]]) -> Result<Vec<u64>, Refusal> {
    broadcast_or(all, |_, _| {
        let shown: Vec<String> = all.iter().map(|d| show(d)).collect();
        format!("{} do not broadcast", shown.join(" and "))
    })
}

/// The same; `refusal` makes the message from the position of the operand that does not match the earlier ones, and from the axis
/// counted from the last, which is 1.
fn broadcast_or(all: &[&[u64]], refusal: impl FnOnce(usize, usize) -> String) -> Result<Vec<u64>, Refusal> {
    let rank = all.iter().map(|d| d.len()).max().unwrap_or(0);
    let mut out = vec![1u64; rank];
    for (i, dims) in all.iter().enumerate() {
        let lead = rank - dims.len();
        for (j, (o, &d)) in out[lead..].iter_mut().zip(*dims).enumerate() {
            match (*o, d) {
                (_, 1) => {}
                (1, _) => *o = d,
                (a, b) if a == b => {}
                _ => return wrong(refusal(i, dims.len() - j)),
            }
        }
    }
    Ok(out)
}

/// The known element types, in words.
pub(crate) const ELEMENT_TYPES: &str = "ONNX numbers them from 1 (float) to 26 (int2)";

/// The code of ONNX's `DataType` for the element type.
pub(crate) fn data_type(element: ElementType) -> i32 {
    let code = (1..=64).find(|&code| element_type(code) == Some(element));
    code.expect("every element type has a code") as i32
}

/// The element type with this number in ONNX's `TensorProto.DataType`.
pub fn element_type(code: i64) -> Option<ElementType> {
    use ElementType::*;
    Some(match code {
        1 => Float,
        2 => Uint8,
        3 => Int8,
        4 => Uint16,
        5 => Int16,
        6 => Int32,
        7 => Int64,
        8 => String,
        9 => Bool,
        10 => Float16,
        11 => Double,
        12 => Uint32,
        13 => Uint64,
        14 => Complex64,
        15 => Complex128,
        16 => Bfloat16,
        17 => Float8e4m3fn,
        18 => Float8e4m3fnuz,
        19 => Float8e5m2,
        20 => Float8e5m2fnuz,
        21 => Uint4,
        22 => Int4,
        23 => Float4e2m1,
        24 => Float8e8m0,
        25 => Uint2,
        26 => Int2,
        _ => return None,
    })
}
