//! The input from which a kernel is prepared, and the possible errors in it.

use lmsc_ir::{Attr, ElementType, Graph, Name, NodeId, Op, Storages, TensorType, Type, ValueId};

/// An operand of a node: its type, and its bytes if they are the same at every step.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The type.
    pub ty: &'a Type,
    /// Its bytes, if they are known before the step.
    pub constant: Option<&'a [u8]>,
}

/// All properties of a node that its kernel depends on.
#[derive(Clone, Debug)]
pub struct Spec<'a> {
    /// The node's name, for messages.
    pub node: &'a str,
    /// The operator.
    pub op: &'a Op,
    /// The version of the operator's domain.
    pub opset: i64,
    /// Attributes in the file's order.
    pub attributes: &'a [(Name, Attr)],
    /// Operands by position; `None` if an optional one is left out.
    pub operands: Vec<Option<Operand<'a>>>,
    /// Types of the results by position; `None` if one is unused.
    pub results: Vec<Option<&'a Type>>,
    /// `(operand, result)`: the operand's bytes are in the result's buffer, and are overwritten.
    pub in_place: Vec<(usize, usize)>,
    /// Seed of a random operator, used together with step and run. A node that recomputes another one has the seed of that one.
    pub seed: u64,
}

impl<'a> Spec<'a> {
    /// The specification of a node; `constant` gives the bytes of values that are the same at every step.
    pub fn of(
        graph: &'a Graph,
        storages: &Storages,
        id: NodeId,
        constant: impl Fn(ValueId) -> Option<&'a [u8]>,
    ) -> Spec<'a> {
        let node = graph.node(id);
        let opset = graph.opsets.get(node.op.domain()).copied();
        let operand = |v: ValueId| Operand { ty: &graph.value(v).ty, constant: constant(v) };
        Spec {
            node: &node.name,
            op: &node.op,
            opset: opset.unwrap_or(i64::MAX),
            attributes: &node.attributes,
            operands: node.operands.iter().map(|v| v.map(operand)).collect(),
            results: node.results.iter().map(|v| v.map(|v| &graph.value(v).ty)).collect(),
            in_place: storages.in_place(graph, id),
            seed: graph.seed(id),
        }
    }
}

/// Why there is no kernel for a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// The operator is not in the table.
    #[error("node `{node}`: the host has no kernel for {op}")]
    NoKernel {
        /// The node's name.
        node: String,
        /// The operator.
        op: String,
    },
    /// The operator is in the table, but not in this form.
    #[error("node `{node}` ({op}): {problem}")]
    Refused {
        /// The node's name.
        node: String,
        /// The operator.
        op: String,
        /// The error, or the unsupported form.
        problem: String,
    },
}

/// An attribute that is a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
}

/// An error in a node, without its name.
#[derive(Debug)]
pub struct SpecError(pub String);

/// A refusal.
pub fn refuse<T>(problem: impl Into<String>) -> Result<T, SpecError> {
    Err(SpecError(problem.into()))
}

/// Accessors for the constructors of kernels.
impl Spec<'_> {
    /// The given attribute, or else the default of the operator's contract.
    fn attribute(&self, name: &str) -> Option<&Attr> {
        self.op.attribute(self.opset, self.attributes, name)
    }

    /// Whether the operator has an attribute of this name: a reader that several operators share may only read those that it has.
    pub fn knows(&self, name: &str) -> bool {
        self.op.contract().is_some_and(|contract| contract.knows(name))
    }

    fn wrong_kind<T>(&self, name: &str, expected: &str) -> Result<T, SpecError> {
        refuse(format!("attribute `{name}` is not {expected}"))
    }

    fn need_attribute<T>(&self, name: &str, value: Option<T>) -> Result<T, SpecError> {
        value.map_or_else(|| refuse(format!("attribute `{name}` is missing")), Ok)
    }

    /// The integer attribute, or its default.
    pub fn int(&self, name: &str) -> Result<i64, SpecError> {
        self.need_attribute(name, self.int_if_any(name)?)
    }

    /// The integer attribute; `None` if it is left out and has no default.
    pub fn int_if_any(&self, name: &str) -> Result<Option<i64>, SpecError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Int(i)) => Ok(Some(*i)),
            Some(_) => self.wrong_kind(name, "an integer"),
        }
    }

    /// The integer attribute, or its default, as a truth value.
    pub fn flag(&self, name: &str) -> Result<bool, SpecError> {
        Ok(self.int(name)? != 0)
    }

    /// The attribute of type float, or its default.
    pub fn float(&self, name: &str) -> Result<f32, SpecError> {
        self.need_attribute(name, self.float_if_any(name)?)
    }

    /// The attribute of type float; `None` if it is left out and has no default.
    pub fn float_if_any(&self, name: &str) -> Result<Option<f32>, SpecError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Float(f)) => Ok(Some(f.0)),
            Some(_) => self.wrong_kind(name, "a float"),
        }
    }

    /// The attribute, if it may be an integer or a float.
    pub(crate) fn number(&self, name: &str) -> Result<Option<Number>, SpecError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Int(i)) => Ok(Some(Number::Int(*i))),
            Some(Attr::Float(f)) => Ok(Some(Number::Float(f.0))),
            Some(_) => self.wrong_kind(name, "a number"),
        }
    }

    pub(crate) fn floats(&self, name: &str) -> Result<Option<Vec<f32>>, SpecError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Floats(list)) => Ok(Some(list.iter().map(|f| f.0).collect())),
            Some(_) => self.wrong_kind(name, "a list of floats"),
        }
    }

    pub(crate) fn ints(&self, name: &str) -> Result<Option<&[i64]>, SpecError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Ints(list)) => Ok(Some(list)),
            Some(_) => self.wrong_kind(name, "a list of integers"),
        }
    }

    /// The attribute of type string, or its default.
    pub fn string(&self, name: &str) -> Result<String, SpecError> {
        match self.attribute(name) {
            None => self.need_attribute(name, None),
            Some(Attr::String(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
            Some(_) => self.wrong_kind(name, "a string"),
        }
    }

    pub(crate) fn strings(&self, name: &str) -> Result<Vec<String>, SpecError> {
        match self.attribute(name) {
            None => Ok(Vec::new()),
            Some(Attr::Strings(list)) => {
                Ok(list.iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect())
            }
            Some(_) => self.wrong_kind(name, "a list of strings"),
        }
    }

    /// The bytes of a tensor attribute whose data is in the file.
    pub fn bytes(&self, name: &str) -> Result<Option<(&TensorType, Vec<u8>)>, SpecError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attr::Tensor(ty, lmsc_ir::Data::Inline(bytes))) => Ok(Some((ty, bytes.to_vec()))),
            Some(_) => self.wrong_kind(name, "a tensor with its data in the model"),
        }
    }

    /// Whether the attribute is given.
    pub fn says(&self, name: &str) -> bool {
        self.attributes.iter().any(|(given, _)| &**given == name)
    }

    /// Refuses tensors that no process can address, those without elements included: constructors multiply the extents of a tensor
    /// without a check of each product.
    pub fn expect_addressable(&self) -> Result<(), SpecError> {
        let operands = self.operands.iter().map(|operand| operand.map(|operand| operand.ty));
        let all = operands.enumerate().map(|(index, ty)| ("operand", index, ty));
        let results = self.results.iter().enumerate().map(|(index, ty)| ("result", index, *ty));
        for (part, index, ty) in all.chain(results) {
            let tensors = match ty {
                None => &[][..],
                Some(Type::Tensor(tensor)) => std::slice::from_ref(tensor),
                Some(Type::Sequence(tensors)) => tensors,
            };
            if let Some(tensor) = tensors.iter().find(|tensor| !is_addressable(&tensor.dims)) {
                return refuse(format!(
                    "{part} {index} is {tensor}; such extents are more than memory has addresses"
                ));
            }
        }
        Ok(())
    }

    /// Whether the operand is present.
    pub fn has(&self, operand: usize) -> bool {
        self.operands.get(operand).is_some_and(Option::is_some)
    }

    /// The type of an operand that is required and must be a tensor.
    pub fn tensor(&self, operand: usize) -> Result<&TensorType, SpecError> {
        match self.operands.get(operand).and_then(|o| o.as_ref()).map(|o| o.ty) {
            Some(Type::Tensor(tensor)) => Ok(tensor),
            Some(Type::Sequence(_)) => refuse(format!("operand {operand} is a sequence; expected a tensor")),
            None => refuse(format!("operand {operand} is missing")),
        }
    }

    /// Extents of an operand that must be a tensor.
    pub fn dims(&self, operand: usize) -> Result<Vec<usize>, SpecError> {
        Ok(extents(self.tensor(operand)?))
    }

    /// Element type of an operand that must be a tensor.
    pub fn element(&self, operand: usize) -> Result<ElementType, SpecError> {
        Ok(self.tensor(operand)?.element)
    }

    /// Whether the result is used.
    pub fn wants(&self, result: usize) -> bool {
        self.results.get(result).is_some_and(Option::is_some)
    }

    /// Refuses an operand that is left out.
    pub fn need(&self, operand: usize) -> Result<(), SpecError> {
        if self.has(operand) { Ok(()) } else { refuse(format!("operand {operand} is missing")) }
    }

    /// Refuses an operand of other extents; it may be left out.
    pub fn expect_dims(&self, operand: usize, dims: &[usize]) -> Result<(), SpecError> {
        if !self.has(operand) || self.dims(operand)? == dims {
            return Ok(());
        }
        refuse(format!("operand {operand} is {}; expected the extents {dims:?}", self.tensor(operand)?))
    }

    /// Refuses an operand of another number of elements; it may be left out.
    pub fn expect_count(&self, operand: usize, count: usize) -> Result<(), SpecError> {
        if !self.has(operand) || crate::meaning::count(&self.dims(operand)?) == count {
            return Ok(());
        }
        let ty = self.tensor(operand)?;
        refuse(format!("operand {operand} is {ty}; expected {}", lmsc_ir::words::count(count, "element")))
    }

    /// Refuses a result of another number of elements; it may be left out.
    pub fn expect_result_count(&self, result: usize, count: usize) -> Result<(), SpecError> {
        if !self.wants(result) || crate::meaning::count(&self.result_dims(result)?) == count {
            return Ok(());
        }
        let ty = self.result(result)?;
        refuse(format!("result {result} is {ty}; expected {}", lmsc_ir::words::count(count, "element")))
    }

    /// The type of a result that must be used and be a tensor.
    pub fn result(&self, result: usize) -> Result<&TensorType, SpecError> {
        match self.results.get(result).and_then(|r| *r) {
            Some(Type::Tensor(tensor)) => Ok(tensor),
            Some(Type::Sequence(_)) => refuse(format!("result {result} is a sequence; expected a tensor")),
            None => refuse(format!("result {result} is not asked for")),
        }
    }

    /// Extents of a result that must be a tensor.
    pub fn result_dims(&self, result: usize) -> Result<Vec<usize>, SpecError> {
        Ok(extents(self.result(result)?))
    }

    /// Refuses a result that does not have `count` elements of `float`; it may be left out.
    pub fn expect_float_result(&self, result: usize, count: usize) -> Result<(), SpecError> {
        if self.wants(result) {
            self.expect_result(result, ElementType::Float)?;
        }
        self.expect_result_count(result, count)
    }

    /// Refuses a result of another element type.
    pub fn expect_result(&self, result: usize, element: ElementType) -> Result<(), SpecError> {
        let ty = self.result(result)?;
        if ty.element == element {
            Ok(())
        } else {
            refuse(format!("result {result} is {ty}; expected {element}"))
        }
    }

    /// Refuses a result whose type differs from that of an operand.
    pub fn expect_like(&self, result: usize, operand: usize) -> Result<(), SpecError> {
        self.expect_result(result, self.element(operand)?)?;
        self.expect_result_count(result, crate::meaning::count(&self.dims(operand)?))
    }

    /// The elements of a sequence operand.
    pub fn sequence(&self, operand: usize) -> Result<&[TensorType], SpecError> {
        match self.operands.get(operand).and_then(|o| o.as_ref()).map(|o| o.ty) {
            Some(Type::Sequence(elements)) => Ok(elements),
            _ => refuse(format!("operand {operand} is not a sequence")),
        }
    }

    /// Whether the operand is overwritten by the result.
    pub fn is_in_place(&self, operand: usize, result: usize) -> bool {
        self.in_place.contains(&(operand, result))
    }

    /// The integers of an operand that is constant; `None` if it is left out.
    pub fn constants(&self, operand: usize) -> Result<Option<Vec<i64>>, SpecError> {
        let Some(Some(value)) = self.operands.get(operand) else { return Ok(None) };
        let element = self.tensor(operand)?.element;
        // An operand without elements is known, wherever it comes from.
        let nothing = self.tensor(operand)?.dims.contains(&0).then_some(&[][..]);
        let Some(bytes) = value.constant.or(nothing) else {
            return refuse(format!(
                "operand {operand} is computed in the step; expected a constant, or what follows from shapes"
            ));
        };
        Ok(Some(match element {
            ElementType::Int64 => bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect(),
            ElementType::Int32 => {
                bytes.as_chunks().0.iter().map(|b| i64::from(i32::from_le_bytes(*b))).collect()
            }
            other => return refuse(format!("operand {operand} is {other}; expected integers")),
        }))
    }

    /// The floats of an operand that is constant; `None` if it is left out or empty.
    pub fn constant_floats(&self, operand: usize) -> Result<Option<Vec<f32>>, SpecError> {
        let Some(Some(value)) = self.operands.get(operand) else { return Ok(None) };
        if self.tensor(operand)?.dims.contains(&0) {
            return Ok(None);
        }
        match (self.tensor(operand)?.element, value.constant) {
            (ElementType::Float, Some(bytes)) => {
                Ok(Some(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()))
            }
            (ElementType::Float, None) => {
                refuse(format!("operand {operand} is computed in the step; expected a constant"))
            }
            (other, _) => refuse(format!("operand {operand} is {other}; expected floats")),
        }
    }

    /// The dimension that an axis names, counted from the end if negative.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, SpecError> {
        let signed = rank as i64;
        let at = if axis < 0 { axis + signed } else { axis };
        if (0..signed).contains(&at) {
            Ok(at as usize)
        } else {
            refuse(format!("axis {axis} is out of range for rank {rank}"))
        }
    }

    /// Refuses an operand of another element type.
    pub fn expect(&self, operand: usize, element: ElementType) -> Result<(), SpecError> {
        let found = self.element(operand)?;
        if found == element {
            Ok(())
        } else {
            refuse(format!("operand {operand} is {found}; this kernel takes {element}"))
        }
    }

    /// Refuses an operand that is not `float`.
    pub fn expect_floats(&self, operands: impl IntoIterator<Item = usize>) -> Result<(), SpecError> {
        operands.into_iter().filter(|&i| self.has(i)).try_for_each(|i| self.expect(i, ElementType::Float))
    }
}

/// An address of a process has this many bits. The bytes of 2^47 elements of any type fit 64 bits.
const ADDRESS_BITS: u32 = 47;

/// Whether the product of the extents, without those of 0, is a number of elements that an address space holds.
pub(crate) fn is_addressable(extents: &[u64]) -> bool {
    let all = extents.iter().try_fold(1u64, |all, &extent| all.checked_mul(extent.max(1)));
    all.is_some_and(|all| all <= 1 << ADDRESS_BITS)
}

/// The extents of a tensor.
pub(crate) fn extents(ty: &TensorType) -> Vec<usize> {
    ty.dims.iter().map(|&d| d as usize).collect()
}
