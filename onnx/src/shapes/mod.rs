//! Types of every result of a node, by rules of our own, with the values of the small integer tensors that shapes
//! are computed from.
//!
//! A rule is a function of a `Cx`; `table.rs` has one row an operator. Rules are total: whatever a file claims,
//! a rule answers, says that it cannot tell (`Refusal::Unknown`; then the file's `value_info` decides), or says
//! what contradicts what (`Refusal::Wrong`). No rule's time or memory depends on an extent.

mod constant;
mod conv;
mod elementwise;
mod graph;
mod loss;
mod movement;
mod normalization;
mod product;
mod quantize;
mod random;
mod reduce;
mod rnn;
mod sequence;
mod shape;
mod table;
mod training;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use lmsc_ir::{Attr, ElementType, Name, Op, TensorType, Type};

pub use constant::Const;
pub use graph::constants;
pub(crate) use graph::{Constants, operands, producer};

/// What is known about a value: its type, and its elements if they are few and constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Element type and extents.
    pub ty: Type,
    /// The elements.
    pub value: Option<Const>,
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

/// What a file says about a value's type: as much of it as is said in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declared {
    /// What an element is.
    pub element: Option<ElementType>,
    /// The extents, if their number is known; `None` for one that is not.
    pub dims: Option<Vec<Option<u64>>>,
}

impl Declared {
    /// The type, if nothing is missing.
    pub fn complete(&self) -> Option<TensorType> {
        let dims = self.dims.as_ref()?.iter().copied().collect::<Option<Vec<u64>>>()?;
        Some(TensorType::new(self.element?, dims))
    }

    /// Whether a value of type `ty` is as declared.
    pub fn agrees(&self, ty: &Type) -> bool {
        let Type::Tensor(ty) = ty else { return self.element.is_none() && self.dims.is_none() };
        let extents = self.dims.as_ref().is_none_or(|dims| {
            dims.len() == ty.dims.len() && dims.iter().zip(&ty.dims).all(|(d, t)| d.is_none_or(|d| d == *t))
        });
        extents && self.element.is_none_or(|e| e == ty.element)
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
pub struct Operand<'a> {
    /// The value's name, for messages.
    pub name: &'a str,
    /// Its type.
    pub ty: &'a Type,
    /// Its elements, if they are constant.
    pub value: Option<&'a Const>,
}

/// One result that a [`Query`] asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The value's name, for messages.
    pub name: &'a str,
    /// What the file says about it.
    pub declared: Option<&'a Declared>,
}

/// The node that computes an operand.
#[derive(Clone, Copy, Debug)]
pub struct Producer<'a> {
    /// Its operator.
    pub op: &'a Op,
    /// Which of its results the operand is.
    pub result: usize,
    /// The type of its own operand 0.
    pub operand: Option<&'a Type>,
}

/// A node whose results' types are asked for.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The node's name, for messages.
    pub node: &'a str,
    /// The operator.
    pub op: &'a Op,
    /// The version of the operator's domain.
    pub version: i64,
    /// Operands by position; `None` where one is left out.
    pub operands: &'a [Option<Operand<'a>>],
    /// The node's attributes.
    pub attributes: &'a [(Name, Attr)],
    /// Results by position; `None` where one is left out.
    pub results: &'a [Option<Wanted<'a>>],
    /// The producer of the operand at a position, seen through copies.
    pub producer: &'a dyn Fn(usize) -> Option<Producer<'a>>,
}

/// Why the type of a result is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The node is not valid.
    #[error(
        "node `{node}` ({op}): {reason}; the graph is not valid, or the values given with --dim do not go \
         together: correct these, or export the model again"
    )]
    Invalid {
        /// The node.
        node: Box<str>,
        /// Its operator.
        op: Box<str>,
        /// What contradicts what.
        reason: Box<str>,
    },
    /// What the operator computes is not what the file declares.
    #[error(
        "node `{node}` ({op}): result {index} `{result}` is {inferred}, but the file's value_info (or output) \
         says {declared}; remove or correct the entry of `{result}`"
    )]
    Contradiction {
        /// The node.
        node: Box<str>,
        /// Its operator.
        op: Box<str>,
        /// The result's position.
        index: usize,
        /// The result's name.
        result: Box<str>,
        /// What the rules say.
        inferred: Box<str>,
        /// What the file says.
        declared: Box<str>,
    },
    /// Neither a rule nor the file says what the result is.
    #[error(
        "node `{node}` ({op}): the type of result {index} `{result}` is not known: {reason}; add a value_info \
         entry for `{result}` with its element type and every extent (for example with \
         onnx.helper.make_tensor_value_info and graph.value_info.append)"
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
    },
    /// The result has more elements than any machine.
    #[error(
        "node `{node}` ({op}): result {index} `{result}` of type {ty} has more than 2^60 bytes, or more than 64 axes; check the \
         extents of the node's operands and the values given with --dim"
    )]
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
    },
}

/// Why a rule has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It cannot tell; `value_info` may.
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

/// What a rule says about each result; fewer entries, or `None`, where it cannot tell.
type Answer = Result<Vec<Option<Fact>>, Refusal>;

/// How the results' types follow from the operands.
type Rule = fn(&Cx<'_>) -> Answer;

/// Whether there is a rule for the operator.
pub fn has_rule(op: &Op) -> bool {
    table::rule(op).is_some()
}

/// Every operator that has a rule, as (domain, name), sorted.
pub fn operators() -> Vec<(&'static str, &'static str)> {
    table::operators()
}

/// What is known about every result of the node: an entry for every result asked for, `None` for the others.
///
/// # Errors
/// [`ShapeError`] if the node is not valid, contradicts what the file declares, or has a result of whose type
/// neither a rule nor the declaration says enough.
pub fn infer<'a>(query: &'a Query<'a>) -> Result<Vec<Option<Fact>>, ShapeError> {
    match table::rule(query.op).map(|rule| rule(&Cx { query })) {
        Some(Ok(facts)) => settle(query, facts, "the operator's rule does not cover it"),
        Some(Err(Refusal::Unknown(reason))) => settle(query, Vec::new(), &reason),
        Some(Err(Refusal::Wrong(reason))) => {
            let (node, op) = (query.node.into(), query.op.to_string().into());
            Err(ShapeError::Invalid { node, op, reason: reason.into_owned().into() })
        }
        None => settle(query, Vec::new(), "lmsc has no shape rule for this operator"),
    }
}

/// `facts` for exactly the results asked for, checked against what the file declares and completed from it;
/// `reason` says why those that are missing are.
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
        if let (Some(known), Some(declared)) = (&*fact, wanted.declared)
            && !declared.agrees(&known.ty)
        {
            let (node, op, result) = at();
            let (inferred, declared) = (known.ty.to_string().into(), declared.to_string().into());
            return Err(ShapeError::Contradiction { node, op, index, result, inferred, declared });
        }
        if fact.is_none() {
            *fact = wanted.declared.and_then(Declared::complete).map(Fact::from);
        }
        let Some(known) = fact else {
            let (node, op, result) = at();
            return Err(ShapeError::Unknown { node, op, index, result, reason: reason.into() });
        };
        if !is_possible(&known.ty) {
            let (node, op, result) = at();
            return Err(ShapeError::TooLarge { node, op, index, result, ty: known.ty.to_string().into() });
        }
        let count = known.ty.as_tensor().and_then(TensorType::element_count);
        if known.value.as_ref().is_some_and(|v| Some(v.len() as u64) != count) {
            known.value = None;
        }
    }
    Ok(facts)
}

/// More axes than this has no tensor of any framework; so the size of a type is bounded.
const MOST_AXES: usize = 64;

/// Whether a value of this type has a size. An extent is also what `Shape` says in 64 signed bits, even where
/// another extent is zero.
pub(crate) fn is_possible(ty: &Type) -> bool {
    let odd = |t: &TensorType| t.dims.iter().any(|&d| d > i64::MAX as u64);
    ty.byte_size().is_some() && !ty.as_tensor().is_some_and(|t| t.dims.len() > MOST_AXES || odd(t))
}

/// What a rule sees of its node.
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

    /// The operand's tensor type, if it is there and a tensor.
    fn maybe(&self, index: usize) -> Option<&'a TensorType> {
        self.operand(index)?.ty.as_tensor()
    }

    /// The operand's tensor type.
    fn tensor(&self, index: usize) -> Result<&'a TensorType, Refusal> {
        match self.operand(index) {
            Some(operand) => match operand.ty {
                Type::Tensor(tensor) => Ok(tensor),
                Type::Sequence(_) => wrong(format!("operand {index} `{}` is a sequence", operand.name)),
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
            Some(None) => wrong(format!("operand {index} `{}` has no integers", operand.name)),
            None => {
                unknown(format!("it follows from the elements of `{}`, which are no constants", operand.name))
            }
        }
    }

    /// The operand's integers, which must be there.
    fn need_ints(&self, index: usize) -> Result<&'a [i64], Refusal> {
        self.ints(index)?.map_or_else(|| wrong(format!("operand {index} is missing")), Ok)
    }

    /// The operand's only integer; `None` if the operand is left out.
    fn maybe_scalar(&self, index: usize) -> Result<Option<i64>, Refusal> {
        match self.ints(index)? {
            None => Ok(None),
            Some(&[one]) => Ok(Some(one)),
            Some(many) => wrong(format!("operand {index} has {} elements, not one", many.len())),
        }
    }

    /// The operand's only integer.
    fn scalar(&self, index: usize) -> Result<i64, Refusal> {
        self.maybe_scalar(index)?.map_or_else(|| wrong(format!("operand {index} is missing")), Ok)
    }

    fn attribute(&self, name: &str) -> Option<&'a Attr> {
        self.query.attributes.iter().find(|(n, _)| &**n == name).map(|(_, a)| a)
    }

    /// The integer attribute, if it is there.
    fn int(&self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Int(i)) => Ok(Some(*i)),
            Some(_) => wrong(format!("attribute `{name}` is not an integer")),
        }
    }

    /// The integer attribute, or `default`.
    fn int_or(&self, name: &str, default: i64) -> Result<i64, Refusal> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// Whether the integer attribute is there and not zero.
    fn flag(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self.int_or(name, 0)? != 0)
    }

    /// The attribute of integers, if it is there.
    fn int_list(&self, name: &str) -> Result<Option<&'a [i64]>, Refusal> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Ints(ints)) => Ok(Some(ints)),
            // An empty list has no elements that could tell its kind.
            Some(Attr::Floats(none)) if none.is_empty() => Ok(Some(&[])),
            Some(_) => wrong(format!("attribute `{name}` is not a list of integers")),
        }
    }

    /// The string attribute, or an empty string.
    fn string(&self, name: &str) -> Result<&'a str, Refusal> {
        match self.attribute(name) {
            None => Ok(""),
            Some(Attr::String(s)) => match std::str::from_utf8(s) {
                Ok(s) => Ok(s),
                Err(_) => wrong(format!("attribute `{name}` is no text")),
            },
            Some(_) => wrong(format!("attribute `{name}` is not a string")),
        }
    }

    /// The element type that the attribute names by ONNX's number, if it is there.
    fn element(&self, name: &str) -> Result<Option<ElementType>, Refusal> {
        match self.int(name)? {
            None => Ok(None),
            Some(code) => match element_type(code) {
                Some(element) => Ok(Some(element)),
                None => wrong(format!("attribute `{name}`: {code} is no element type")),
            },
        }
    }

    /// The integers of the attribute, or else of the operand; `None` where both are left out. Operators that
    /// turned an attribute into an operand are read in both forms, whatever the version says.
    fn int_list_or_ints(&self, name: &str, index: usize) -> Result<Option<&'a [i64]>, Refusal> {
        match self.int_list(name)? {
            Some(ints) => Ok(Some(ints)),
            None => self.ints(index),
        }
    }

    /// What the file declares about the result.
    fn declared(&self, index: usize) -> Option<&'a Declared> {
        self.query.results.get(index).copied().flatten()?.declared
    }

    /// The node that computes the operand, seen through copies.
    fn producer(&self, index: usize) -> Option<Producer<'a>> {
        (self.query.producer)(index)
    }

    /// Result *i* has the type of operand `of[i]`; not known where that is left out.
    fn like(&self, of: &[usize]) -> Answer {
        Ok(of.iter().map(|&i| self.operand(i).map(|o| o.ty.clone().into())).collect())
    }
}

/// One result, a tensor.
fn one(element: ElementType, dims: impl Into<Vec<u64>>) -> Answer {
    Ok(vec![Some(TensorType::new(element, dims).into())])
}

/// One result, a tensor with elements that `value` computes if a tensor of that size may be constant.
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
        // There is nothing to compute, and the other extents may be anything.
        Some(0) if element.is_float() => Const::floats(element, []),
        Some(0) => Const::ints(element, []),
        _ => value(&ty.dims),
    };
    Fact { ty: ty.into(), value }
}

/// The axis counted from the front.
fn axis(axis: i64, rank: usize) -> Result<usize, Refusal> {
    let signed = rank as i64;
    if axis < -signed || axis >= signed {
        return wrong(format!("axis {axis} of a tensor of rank {rank}"));
    }
    Ok((if axis < 0 { axis + signed } else { axis }) as usize)
}

/// The axes counted from the front, as a mask; a repeated axis is an error.
fn axis_mask(axes: &[i64], rank: usize) -> Result<Vec<bool>, Refusal> {
    let mut mask = vec![false; rank];
    for &a in axes {
        if std::mem::replace(&mut mask[axis(a, rank)?], true) {
            return wrong(format!("axis {a} is named twice"));
        }
    }
    Ok(mask)
}

/// The integer as an extent.
fn extent(value: i64) -> Result<u64, Refusal> {
    u64::try_from(value).or_else(|_| wrong(format!("an extent of {value}")))
}

/// The wide integer as an extent.
fn extent_of(value: i128) -> Result<u64, Refusal> {
    match i64::try_from(value) {
        Ok(value) => extent(value),
        Err(_) => wrong(format!("an extent of {value}")),
    }
}

/// The integers as extents.
fn extents(values: &[i64]) -> Result<Vec<u64>, Refusal> {
    values.iter().map(|&v| extent(v)).collect()
}

fn product(dims: &[u64]) -> Result<u64, Refusal> {
    if dims.contains(&0) {
        return Ok(0);
    }
    let product = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    product.map_or_else(|| wrong(format!("more than 2^64 elements in {}", show(dims))), Ok)
}

/// The extents of operands broadcast with one another.
fn broadcast(all: &[&[u64]]) -> Result<Vec<u64>, Refusal> {
    let rank = all.iter().map(|d| d.len()).max().unwrap_or(0);
    let mut out = vec![1u64; rank];
    for dims in all {
        let lead = rank - dims.len();
        for (o, &d) in out[lead..].iter_mut().zip(*dims) {
            match (*o, d) {
                (_, 1) => {}
                (1, _) => *o = d,
                (a, b) if a == b => {}
                _ => {
                    let shown: Vec<String> = all.iter().map(|d| show(d)).collect();
                    return wrong(format!("{} do not broadcast", shown.join(" and ")));
                }
            }
        }
    }
    Ok(out)
}

/// `[2,3]`.
fn show(dims: &[u64]) -> String {
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    format!("[{}]", dims.join(","))
}

/// The element type that ONNX's `TensorProto.DataType` numbers so.
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
