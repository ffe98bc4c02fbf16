//! Constants whose elements the pass reads: factors of scores, and masks.

use std::rc::Rc;

use foldhash::{HashMap, HashMapExt, HashSet};
use lmsc_ir::domains::ONNX;
use lmsc_ir::{Attr, Constants, Data, Def, ElementType, Graph, ValueId};

/// Larger constants are not read.
const LARGEST: u64 = 1 << 26;

/// The elements of a constant, as `float`; truth values are 0 and 1.
pub(super) type Elements = Rc<[f32]>;

/// The constants of a graph that no input and no update replaces, and the values that are computed from them alone by moving
/// elements, or by arithmetic on a single one.
pub(super) struct Known<'g> {
    graph: &'g Graph,
    integers: Constants,
    /// Initializers that may change.
    open: HashSet<ValueId>,
    found: HashMap<ValueId, Option<Elements>>,
}

impl<'g> Known<'g> {
    pub(super) fn of(graph: &'g Graph) -> Known<'g> {
        let open = graph.inputs.iter().copied().chain(graph.variables()).collect();
        Known { graph, integers: Constants::of(graph), open, found: HashMap::new() }
    }

    fn dims(&self, value: ValueId) -> Option<&'g [u64]> {
        Some(&self.graph.value(value).ty.as_tensor()?.dims)
    }

    /// The number, if all elements are equal.
    pub(super) fn number(&mut self, value: ValueId) -> Option<f32> {
        let elements = self.elements(value)?;
        let first = *elements.first()?;
        elements.iter().all(|&x| x == first).then_some(first)
    }

    /// The elements, if they are known.
    pub(super) fn elements(&mut self, value: ValueId) -> Option<Elements> {
        // Operands before results: a chain of any length takes no stack.
        let mut open = vec![value];
        while let Some(&value) = open.last() {
            if self.found.contains_key(&value) {
                open.pop();
                continue;
            }
            let missing = self.needs(value).into_iter().find(|it| !self.found.contains_key(it));
            match missing {
                Some(operand) => open.push(operand),
                None => {
                    let elements = self.computed(value);
                    self.found.insert(value, elements);
                    open.pop();
                }
            }
        }
        self.found.get(&value).cloned().flatten()
    }

    /// The operands whose elements make those of the value.
    fn needs(&self, value: ValueId) -> Vec<ValueId> {
        let Some(node) = self.graph.producer(value).map(|id| self.graph.node(id)) else { return Vec::new() };
        let count = match node.op.key() {
            (ONNX, "Cast" | "Sqrt" | "Reciprocal" | "Not") => 1,
            (ONNX, "Identity" | "Reshape" | "Squeeze" | "Unsqueeze" | "Slice" | "Expand" | "Flatten") => 1,
            (ONNX, "Pow" | "Mul" | "Div") => 2,
            _ => 0,
        };
        node.operands.iter().take(count).flatten().copied().collect()
    }

    fn computed(&self, value: ValueId) -> Option<Elements> {
        let ty = self.graph.value(value).ty.as_tensor()?;
        if ty.byte_size()?.0 > LARGEST || ty.element_count()? > LARGEST / 4 {
            return None;
        }
        if let Some(Data::Inline(bytes)) = self.integers.get(value) {
            return read(ty.element, bytes);
        }
        let node = match self.graph.def(value) {
            Def::Initializer(index) => {
                let Data::Inline(bytes) = &self.graph.initializers[index].data else { return None };
                return if self.open.contains(&value) { None } else { read(ty.element, bytes) };
            }
            Def::Result(id, 0) => self.graph.node(id),
            _ => return None,
        };
        let operand = |at: usize| {
            let value = node.operands.get(at).copied().flatten()?;
            Some((value, self.found.get(&value).cloned().flatten()?))
        };
        let each = |f: &dyn Fn(f32) -> f32| Some(operand(0)?.1.iter().map(|&x| f(x)).collect::<Elements>());
        let both = |f: &dyn Fn(f32, f32) -> f32| {
            let (a, b) = (operand(0)?.1, operand(1)?.1);
            let (&[a], &[b]) = (&*a, &*b) else { return None };
            Some([f(a, b)].into())
        };
        match node.op.key() {
            (ONNX, "Constant") => match &node.attributes[..] {
                [(name, Attr::Tensor(ty, Data::Inline(bytes)))] if &**name == "value" => {
                    read(ty.element, bytes)
                }
                [(name, Attr::Float(number))] if &**name == "value_float" => Some([number.0].into()),
                _ => None,
            },
            (ONNX, "ConstantOfShape") => {
                let number = match node.attribute("value") {
                    None => 0.0,
                    Some(Attr::Tensor(ty, Data::Inline(bytes))) => *read(ty.element, bytes)?.first()?,
                    Some(_) => return None,
                };
                Some(vec![number; ty.element_count()? as usize].into())
            }
            (ONNX, "Cast") => {
                let is_exact = matches!(ty.element, ElementType::Float | ElementType::Double);
                is_exact.then(|| each(&|x| x)).flatten()
            }
            (ONNX, "Identity" | "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten") => Some(operand(0)?.1),
            (ONNX, "Expand") => {
                let (_, elements) = operand(0)?;
                let &[number] = &*elements else { return None };
                Some(vec![number; ty.element_count()? as usize].into())
            }
            (ONNX, "Slice") => {
                let (value, elements) = operand(0)?;
                self.slice(node.operands.get(1..)?, self.dims(value)?, &elements)
            }
            (ONNX, "Not") => each(&|x| 1.0 - x),
            (ONNX, "Sqrt") => each(&f32::sqrt),
            (ONNX, "Reciprocal") => each(&|x| 1.0 / x),
            (ONNX, "Pow") => both(&f32::powf),
            (ONNX, "Mul") => both(&|a, b| a * b),
            (ONNX, "Div") => both(&|a, b| a / b),
            _ => None,
        }
    }

    /// The elements of a slice, in steps of one.
    fn slice(&self, operands: &[Option<ValueId>], dims: &[u64], elements: &[f32]) -> Option<Elements> {
        let list = |at: usize| match operands.get(at).copied().flatten() {
            None => Some(None),
            Some(value) => {
                let Data::Inline(bytes) = self.integers.get(value)? else { return None };
                let element = self.graph.value(value).ty.as_tensor()?.element;
                Some(Some(read(element, bytes)?.iter().map(|&x| x as i64).collect::<Vec<_>>()))
            }
        };
        let (starts, ends) = (list(0)??, list(1)??);
        let axes = list(2)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
        if list(3)?.is_some_and(|steps| steps.iter().any(|&step| step != 1)) {
            return None;
        }
        let mut ranges: Vec<(usize, usize)> = dims.iter().map(|&dim| (0, dim as usize)).collect();
        for ((&axis, &start), &end) in axes.iter().zip(&starts).zip(&ends) {
            let axis = usize::try_from(if axis < 0 { axis + dims.len() as i64 } else { axis }).ok()?;
            let extent = *dims.get(axis)? as i64;
            let within = |at: i64| (if at < 0 { at + extent } else { at }).clamp(0, extent) as usize;
            ranges[axis] = (within(start), within(end).max(within(start)));
        }
        let mut taken: Vec<f32> = elements.to_vec();
        let mut inner = 1;
        for (&dim, &(start, end)) in dims.iter().zip(&ranges).rev() {
            let row = dim as usize * inner;
            if row > 0 && (start, end) != (0, dim as usize) {
                taken = taken.chunks(row).flat_map(|row| &row[start * inner..end * inner]).copied().collect();
            }
            inner *= end - start;
        }
        Some(taken.into())
    }
}

/// Reads elements as `float`. Integers are exact below 2^24, and larger ones are no index of a tensor that is read here.
fn read(element: ElementType, bytes: &[u8]) -> Option<Elements> {
    Some(match element {
        ElementType::Float => bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
        ElementType::Double => bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b) as f32).collect(),
        ElementType::Int64 => bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b) as f32).collect(),
        ElementType::Int32 => bytes.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b) as f32).collect(),
        ElementType::Bool => bytes.iter().map(|&b| f32::from(u8::from(b != 0))).collect(),
        _ => return None,
    })
}
