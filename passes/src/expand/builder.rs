use std::collections::BTreeMap;
use std::ops::Range;

use lmsc_ir::{Attr, Data, ElementType, Graph, Node, NodeId, Op, Place, TensorType, Type, ValueId, nhwc};

/// The constants that the pass added, by type and bytes.
#[derive(Default)]
pub(super) struct Constants(BTreeMap<(ElementType, Vec<u64>, Vec<u8>), ValueId>);

/// Adds the nodes that replace one node.
pub(super) struct Builder<'g> {
    graph: &'g mut Graph,
    constants: &'g mut Constants,
    origin: NodeId,
    nodes: Vec<NodeId>,
    /// Constants that were added for this node.
    made: Vec<(ElementType, Vec<u64>, Vec<u8>)>,
    results: BTreeMap<usize, ValueId>,
}

/// The nodes that were added, in order, and the values that replace results, by index.
pub(super) struct Built {
    pub(super) nodes: Vec<NodeId>,
    pub(super) results: BTreeMap<usize, ValueId>,
}

impl<'g> Builder<'g> {
    pub(super) fn new(graph: &'g mut Graph, constants: &'g mut Constants, origin: NodeId) -> Builder<'g> {
        Builder { graph, constants, origin, nodes: Vec::new(), made: Vec::new(), results: BTreeMap::new() }
    }

    pub(super) fn finish(self) -> Built {
        Built { nodes: self.nodes, results: self.results }
    }

    /// Gives up: the added nodes are in no order, so their constants must not be reused.
    pub(super) fn forget(self) {
        for key in self.made {
            self.constants.0.remove(&key);
        }
    }

    pub(super) fn graph(&self) -> &Graph {
        self.graph
    }

    fn node(&self) -> &Node {
        self.graph.node(self.origin)
    }

    /// The operand, if the node has it.
    pub(super) fn operand(&self, index: usize) -> Option<ValueId> {
        self.node().operands.get(index).copied().flatten()
    }

    /// The operand, if the node has it and it is a tensor of floats.
    pub(super) fn floats(&self, index: usize) -> Option<ValueId> {
        self.operand(index).filter(|&value| self.ty(value).is_some_and(|ty| ty.element == ElementType::Float))
    }

    /// Whether the node has a result of this index, named or not.
    pub(super) fn has_result(&self, index: usize) -> bool {
        index < self.node().results.len()
    }

    /// Whether the result is named, so that other nodes may read it.
    pub(super) fn wants(&self, index: usize) -> bool {
        self.node().results.get(index).copied().flatten().is_some()
    }

    /// The type of the result, if it is named.
    pub(super) fn wanted(&self, index: usize) -> Option<TensorType> {
        self.ty(self.node().results.get(index).copied().flatten()?)
    }

    pub(super) fn ty(&self, value: ValueId) -> Option<TensorType> {
        self.graph.value(value).ty.as_tensor().cloned()
    }

    /// The extents of a tensor.
    pub(super) fn dims(&self, value: ValueId) -> Vec<u64> {
        self.ty(value).map(|ty| ty.dims).unwrap_or_default()
    }

    /// Whether the node has the attribute.
    pub(super) fn has(&self, name: &str) -> bool {
        self.node().attribute(name).is_some()
    }

    /// The given attribute, or else the default of the operator's contract.
    fn attribute(&self, name: &str) -> Option<&Attr> {
        self.graph.attribute(self.node(), name)
    }

    /// Whether the operator has an attribute of this name: a rule that several operators share may only read those that it has.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.node().op.contract().is_some_and(|contract| contract.knows(name))
    }

    pub(super) fn texts(&self, name: &str) -> Option<Vec<&[u8]>> {
        match self.attribute(name) {
            Some(Attr::Strings(list)) => Some(list.iter().map(|text| &text[..]).collect()),
            _ => None,
        }
    }

    /// The integer, or its default; `None` if it has none, or the attribute has another type.
    pub(super) fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            Attr::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether the integer, or its default, is not zero; `None` as above.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        Some(self.int(name)? != 0)
    }

    /// The float, or its default; `None` if it has none, or the attribute has another type.
    pub(super) fn float(&self, name: &str) -> Option<f32> {
        match self.attribute(name)? {
            Attr::Float(value) => Some(value.0),
            _ => None,
        }
    }

    /// A list of `count` integers, or `count` times `each` where there is none; `None` if the attribute has another type or
    /// length.
    pub(super) fn repeated(&self, name: &str, each: i64, count: usize) -> Option<Vec<i64>> {
        match self.attribute(name) {
            None => Some(vec![each; count]),
            Some(Attr::Ints(list)) if list.len() == count => Some(list.clone()),
            Some(_) => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&[u8]> {
        match self.attribute(name) {
            Some(Attr::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The axis in the attribute, counted from the front.
    pub(super) fn axis(&self, rank: usize) -> Option<usize> {
        let axis = self.int("axis")?;
        let axis = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(axis).ok().filter(|&axis| axis < rank)
    }

    /// Adds a node with an operator of ONNX; returns its results.
    pub(super) fn many<'a>(
        &mut self,
        op: &str,
        attributes: impl IntoIterator<Item = (&'a str, Attr)>,
        operands: &[ValueId],
        types: impl IntoIterator<Item = Option<TensorType>>,
    ) -> Vec<Option<ValueId>> {
        let base = format!("{}/{op}", self.node().name);
        let mut node = Node::new(self.graph.fresh_node_name(&base), Op::new("", op));
        node.attributes = attributes.into_iter().map(|(name, attr)| (name.into(), attr)).collect();
        node.operands = operands.iter().copied().map(Some).collect();
        let mut results = Vec::new();
        for (i, ty) in types.into_iter().enumerate() {
            let name = ty.as_ref().map(|_| self.graph.fresh_value_name(&format!("{base}_{i}")));
            results.push(ty.zip(name).map(|(ty, name)| (name, Type::Tensor(ty), Place::Device)));
        }
        let id = self.graph.add_node(node, results);
        self.nodes.push(id);
        self.graph.node(id).results.to_vec()
    }

    /// As `many`, for one result.
    pub(super) fn add<'a>(
        &mut self,
        op: &str,
        attributes: impl IntoIterator<Item = (&'a str, Attr)>,
        operands: &[ValueId],
        ty: TensorType,
    ) -> ValueId {
        self.many(op, attributes, operands, [Some(ty)])[0].expect("it has one result")
    }

    pub(super) fn unary(&mut self, op: &str, x: ValueId) -> Option<ValueId> {
        let ty = self.ty(x)?;
        Some(self.add(op, [], &[x], ty))
    }

    /// Adds an operator of two operands of one element type, with broadcasting.
    pub(super) fn binary(&mut self, op: &str, a: ValueId, b: ValueId) -> Option<ValueId> {
        let dims = broadcast(&self.dims(a), &self.dims(b))?;
        let compares = ["Equal", "Greater"].contains(&op);
        let element = if compares { ElementType::Bool } else { self.ty(a)?.element };
        Some(self.add(op, [], &[a, b], TensorType::new(element, dims)))
    }

    /// Adds the node's operator with channels first, with transpositions of its images, and gives its results.
    pub(super) fn channels_first(&mut self) -> Option<()> {
        let form = nhwc::of(&self.node().op)?;
        let mut node = Node::new("", form.first_op());
        node.attributes = self.node().attributes.clone();
        let rank = |b: &Builder<'_>, value| b.ty(value).map(|ty| ty.dims.len());
        for (index, operand) in self.node().operands.clone().into_iter().enumerate() {
            let moved = match operand.filter(|_| form.operands.contains(&index)) {
                Some(image) => Some(self.transpose(image, &nhwc::to_first(rank(self, image)?))?),
                None => operand,
            };
            node.operands.push(moved);
        }
        node.name = self.graph.fresh_node_name(&format!("{}/{}", self.node().name, form.first.1));
        let results: Vec<_> = (self.node().results.clone().into_iter().enumerate())
            .map(|(index, result)| {
                let ty = self.graph.value(result?).ty.clone();
                let ty = if form.results.contains(&index) { nhwc::first_type(&ty) } else { ty };
                Some((self.graph.fresh_value_name(&format!("{}_{index}", node.name)), ty, Place::Device))
            })
            .collect();
        let id = self.graph.add_node(node, results);
        self.nodes.push(id);
        for (index, result) in self.graph.node(id).results.clone().into_iter().enumerate() {
            let Some(mut value) = result else { continue };
            if form.results.contains(&index) {
                value = self.transpose(value, &nhwc::to_last(rank(self, value)?))?;
            }
            self.give(index, value)?;
        }
        Some(())
    }

    /// A float scalar.
    pub(super) fn scalar(&mut self, value: f32) -> ValueId {
        self.constant(TensorType::new(ElementType::Float, []), value.to_le_bytes().to_vec())
    }

    /// An integer scalar.
    pub(super) fn integer(&mut self, value: i64) -> ValueId {
        self.constant(TensorType::new(ElementType::Int64, []), value.to_le_bytes().to_vec())
    }

    /// A list of integers.
    pub(super) fn list(&mut self, values: &[i64]) -> ValueId {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(TensorType::new(ElementType::Int64, [values.len() as u64]), bytes)
    }

    /// A constant of the type; equal constants of a graph are added once.
    pub(super) fn constant(&mut self, ty: TensorType, bytes: Vec<u8>) -> ValueId {
        let key = (ty.element, ty.dims.clone(), bytes.clone());
        if let Some(&known) = self.constants.0.get(&key) {
            return known;
        }
        let value = Attr::Tensor(ty.clone(), Data::Inline(bytes.into()));
        let made = self.add("Constant", [("value", value)], &[], ty);
        self.constants.0.insert(key.clone(), made);
        self.made.push(key);
        made
    }

    /// Floats of these extents, all 0.
    pub(super) fn zeros(&mut self, dims: &[u64]) -> ValueId {
        let shape = self.list(&dims.iter().map(|&dim| dim as i64).collect::<Vec<_>>());
        let zero = Attr::Tensor(TensorType::new(ElementType::Float, [1]), Data::Inline(vec![0; 4].into()));
        self.add("ConstantOfShape", [("value", zero)], &[shape], TensorType::new(ElementType::Float, dims))
    }

    /// The value, cast to floats or to 64-bit integers.
    pub(super) fn cast(&mut self, x: ValueId, to: ElementType) -> Option<ValueId> {
        // The numbers are those of ONNX's `TensorProto.DataType`.
        let code = match to {
            ElementType::Float => 1,
            ElementType::Int64 => 7,
            _ => return None,
        };
        let ty = TensorType::new(to, self.dims(x));
        Some(self.add("Cast", [("to", Attr::Int(code))], &[x], ty))
    }

    pub(super) fn scaled(&mut self, x: ValueId, factor: f32) -> Option<ValueId> {
        let factor = self.scalar(factor);
        self.binary("Mul", x, factor)
    }

    pub(super) fn reshape(&mut self, x: ValueId, dims: &[u64]) -> Option<ValueId> {
        // A 0 would mean the operand's extent.
        if dims.contains(&0) {
            return None;
        }
        let ty = TensorType::new(self.ty(x)?.element, dims);
        let shape = self.list(&dims.iter().map(|&dim| dim as i64).collect::<Vec<_>>());
        Some(self.add("Reshape", [], &[x, shape], ty))
    }

    /// The slice of a range along one axis.
    pub(super) fn slice(&mut self, x: ValueId, axis: usize, range: Range<u64>) -> Option<ValueId> {
        let mut ty = self.ty(x)?;
        *ty.dims.get_mut(axis)? = range.end - range.start;
        let [from, to, along] = [range.start, range.end, axis as u64].map(|at| self.list(&[at as i64]));
        Some(self.add("Slice", [], &[x, from, to, along], ty))
    }

    /// The tensors, concatenated along an axis.
    pub(super) fn concat(&mut self, parts: &[ValueId], axis: usize) -> Option<ValueId> {
        let mut ty = self.ty(*parts.first()?)?;
        ty.dims[axis] = parts.iter().map(|&part| self.dims(part)[axis]).sum();
        match parts {
            [one] => Some(*one),
            parts => Some(self.add("Concat", [("axis", (axis as i64).into())], parts, ty)),
        }
    }

    /// The matrix product; `a` may have batch dimensions.
    pub(super) fn matmul(&mut self, a: ValueId, b: ValueId) -> Option<ValueId> {
        let (mut ty, columns) = (self.ty(a)?, *self.dims(b).last()?);
        *ty.dims.last_mut()? = columns;
        Some(self.add("MatMul", [], &[a, b], ty))
    }

    /// The products of matrices whose batch dimensions are broadcast.
    pub(super) fn product(&mut self, left: ValueId, right: ValueId) -> Option<ValueId> {
        let (a, b) = (self.dims(left), self.dims(right));
        let ([batch @ .., rows, _], [others @ .., _, columns]) = (&*a, &*b) else { return None };
        let dims = [&broadcast(batch, others)?[..], &[*rows, *columns]].concat();
        let ty = TensorType::new(self.ty(left)?.element, dims);
        Some(self.add("MatMul", [], &[left, right], ty))
    }

    pub(super) fn transpose(&mut self, x: ValueId, permutation: &[usize]) -> Option<ValueId> {
        let ty = self.ty(x)?;
        let dims: Vec<u64> = permutation.iter().map(|&axis| ty.dims[axis]).collect();
        let order: Vec<i64> = permutation.iter().map(|&axis| axis as i64).collect();
        Some(self.add("Transpose", [("perm", order.into())], &[x], TensorType::new(ty.element, dims)))
    }

    /// The sum over the axes, which stay as extents of 1 if `keeps`.
    pub(super) fn sum(&mut self, x: ValueId, axes: &[usize], keeps: bool) -> Option<ValueId> {
        let ty = self.ty(x)?;
        let dims = ty
            .dims
            .iter()
            .enumerate()
            .filter_map(|(i, &dim)| if axes.contains(&i) { keeps.then_some(1) } else { Some(dim) });
        let result = TensorType::new(ty.element, dims.collect::<Vec<_>>());
        let axes = self.list(&axes.iter().map(|&axis| axis as i64).collect::<Vec<_>>());
        Some(self.add("ReduceSum", [("keepdims", i64::from(keeps).into())], &[x, axes], result))
    }

    /// Replaces the result by the value; does nothing if the result is not named, and `None` if the types differ.
    pub(super) fn give(&mut self, index: usize, value: ValueId) -> Option<()> {
        let Some(ty) = self.wanted(index) else { return Some(()) };
        if self.ty(value)? != ty {
            return None;
        }
        self.give_written(index, value)
    }

    /// The same for a result that is written in place, even if it is not named. A value replaces only one result.
    pub(super) fn give_written(&mut self, index: usize, value: ValueId) -> Option<()> {
        let own = self.graph.producer(value).is_some_and(|node| self.nodes.contains(&node));
        let producer = self.graph.producer(value).map(|node| self.graph.node(node));
        let constant = producer.is_some_and(|node| node.op.key() == ("", "Constant"));
        let taken = self.results.values().any(|&other| other == value);
        let value = if own && !constant && !taken { value } else { self.unary("Identity", value)? };
        self.results.insert(index, value);
        Some(())
    }
}

/// The broadcast of the extents; `None` if they do not match.
fn broadcast(a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    let rank = a.len().max(b.len());
    let extent = |dims: &[u64], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    let of = |i| match (extent(a, i), extent(b, i)) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    };
    (0..rank).map(of).collect()
}
