//! Random training graphs.
//!
//! [`training_graph`] makes graphs like those of exporters: a forward pass with skips, branches, views, dropout and batch
//! normalization, a loss, the backward pass by reverse-mode differentiation, and updates of the parameters. The operators are
//! those of the corpus, and the types are correct, so a graph can be planned, rewritten and run.

use std::collections::HashMap;

use lmsc_ir::{
    Attr, Data, ElementType, Graph, LMSC_DOMAIN, Node, NodeId, Op, Place, TensorType, Type, Update, ValueId,
};

use lmsc_ir::domains::MS;
use lmsc_ir::rng::{Rng, Source};

/// The requested size of a graph.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Approximate number of nodes, at least 5.
    pub nodes: usize,
    /// Maximum size of a tensor in bytes, exceeded only if a tiny bound leaves no choice.
    pub tensor_bytes: u64,
}

impl Size {
    /// About `nodes` nodes, with tensors of a few bytes to 4 MiB.
    pub fn nodes(nodes: usize) -> Size {
        Size { nodes, tensor_bytes: 4 << 20 }
    }
}

/// A random training step that keeps the invariants of [`Graph`].
///
/// Every node that reads a variable's old value is ordered before the node that overwrites it. Runs in time
/// proportional to the size.
///
/// ```
/// use lmsc_testing::{Rng, Size, training_graph};
/// let graph = training_graph(&mut Rng::new(7), Size::nodes(40));
/// assert_eq!(lmsc_ir::Graph::parse(&graph.to_text()).unwrap().to_text(), graph.to_text());
/// ```
pub fn training_graph(u: &mut impl Source, size: Size) -> Graph {
    let mut b = Builder::new(u, size);
    let mut x = b.start();
    while b.planned() + 8 < size.nodes {
        x = b.layer(x);
    }
    let loss = b.loss(x);
    b.backward(loss);
    b.updates();
    b.finish(loss)
}

/// The end of the step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Gradients are outputs.
    Gradients,
    /// Gradients are added to buffers, in place.
    Accumulate,
    /// Plain gradient descent, of gradients or of accumulated gradients.
    Sgd {
        accumulated: bool,
    },
    AdamW,
}

/// A forward node that is differentiated.
struct Forward<'n> {
    node: &'n Node,
    attributes: Vec<(&'n str, Attr)>,
    /// The gradient of its first result.
    g: ValueId,
}

impl Forward<'_> {
    fn operand(&self, index: usize) -> ValueId {
        self.node.operands[index].expect("forward nodes have all their operands")
    }

    fn result(&self, index: usize) -> ValueId {
        self.node.results[index].expect("what the backward pass reads was asked for")
    }
}

struct Builder<'u, S> {
    u: &'u mut S,
    size: Size,
    graph: Graph,
    /// By value: whether the loss may depend on it through a parameter.
    needs: Vec<bool>,
    /// By value: the parts of its gradient found so far.
    gradients: Vec<Vec<ValueId>>,
    /// Forward nodes that have a gradient.
    tape: Vec<NodeId>,
    parameters: Vec<ValueId>,
    /// Activations of one shape, for skips.
    by_dims: HashMap<Vec<u64>, Vec<ValueId>>,
    constants: HashMap<(Vec<u64>, Vec<i64>), ValueId>,
    shapes: HashMap<ValueId, ValueId>,
    outputs: Vec<ValueId>,
    /// Position of the first update in the order.
    first_update: usize,
    ending: Ending,
    /// Whether small parameters are initializers instead of inputs.
    stored: bool,
    long_names: bool,
    early_updates: bool,
    pools: usize,
}

fn float(dims: impl Into<Vec<u64>>) -> Option<TensorType> {
    Some(TensorType::new(ElementType::Float, dims))
}

fn int64(dims: impl Into<Vec<u64>>) -> Option<TensorType> {
    Some(TensorType::new(ElementType::Int64, dims))
}

fn boolean(dims: impl Into<Vec<u64>>) -> Option<TensorType> {
    Some(TensorType::new(ElementType::Bool, dims))
}

fn ints(values: &[i64]) -> Attr {
    Attr::Ints(values.to_vec())
}

fn product(dims: &[u64]) -> u64 {
    dims.iter().product()
}

impl<'u, S: Source> Builder<'u, S> {
    fn new(u: &'u mut S, size: Size) -> Builder<'u, S> {
        let ending = match u.below(6) {
            0 | 1 => Ending::Sgd { accumulated: false },
            2 => Ending::AdamW,
            3 => Ending::Accumulate,
            4 => Ending::Sgd { accumulated: size.nodes > 20 },
            _ => Ending::Gradients,
        };
        let mut graph = Graph::new("step");
        for (domain, version) in [("", 17), (MS, 1), (LMSC_DOMAIN, 1)] {
            graph.opsets.insert(domain.to_owned(), version);
        }
        let (stored, long_names, early_updates) = (u.chance(20), u.chance(50), u.chance(50));
        Builder {
            u,
            size,
            graph,
            needs: Vec::new(),
            gradients: Vec::new(),
            tape: Vec::new(),
            parameters: Vec::new(),
            by_dims: HashMap::new(),
            constants: HashMap::new(),
            shapes: HashMap::new(),
            outputs: Vec::new(),
            first_update: 0,
            ending,
            stored,
            long_names,
            early_updates,
            pools: 0,
        }
    }

    /// Number of nodes of the step if the loss comes next.
    fn planned(&self) -> usize {
        let updates = match self.ending {
            Ending::Sgd { accumulated: true } => 2,
            _ => 1,
        };
        self.graph.order().len() * 2 + self.parameters.len() * updates
    }

    fn dims(&self, value: ValueId) -> Vec<u64> {
        self.graph.value(value).ty.as_tensor().map(|t| t.dims.clone()).unwrap_or_default()
    }

    fn fits(&self, dims: &[u64]) -> bool {
        product(dims) * 4 <= self.size.tensor_bytes
    }

    /// A candidate for which all of the tensors fit; the first candidate if there is none.
    fn extent(&mut self, candidates: &[u64], tensors: impl Fn(u64) -> Vec<Vec<u64>>) -> u64 {
        let fitting = candidates.iter().filter(|&&c| tensors(c).iter().all(|t| self.fits(t)));
        let fitting: Vec<u64> = fitting.copied().collect();
        fitting.get(self.u.below(fitting.len())).copied().unwrap_or(candidates[0])
    }

    fn emit(
        &mut self,
        (domain, op): (&str, &str),
        attributes: &[(&str, Attr)],
        operands: &[Option<ValueId>],
        results: Vec<Option<TensorType>>,
    ) -> NodeId {
        let n = self.graph.node_capacity();
        let name = match self.u.below(32) {
            31 => format!("{op} no. {n}"),
            _ if self.long_names => format!("/layer{}/{op}_{n}", n / 8),
            _ => format!("n{n}"),
        };
        let mut node = Node::new(name.as_str(), Op::new(domain, op));
        node.attributes = attributes.iter().map(|(name, attr)| ((*name).into(), attr.clone())).collect();
        node.operands = operands.into();
        let long = self.long_names;
        let named = |(k, ty): (usize, Option<TensorType>)| {
            let name = if long { format!("{name}_output_{k}") } else { format!("v{n}_{k}") };
            ty.map(|ty| (name, Type::Tensor(ty), Place::Device))
        };
        self.graph.add_node(node, results.into_iter().enumerate().map(named))
    }

    /// Emits a forward node; its first result has a gradient if an operand has.
    fn forward(
        &mut self,
        op: (&str, &str),
        attributes: &[(&str, Attr)],
        operands: &[Option<ValueId>],
        results: Vec<Option<TensorType>>,
    ) -> ValueId {
        let node = self.emit(op, attributes, operands, results);
        let result = self.result(node, 0);
        if operands.iter().flatten().any(|&v| self.wanted(v)) {
            self.set_wanted(result);
            self.tape.push(node);
        }
        result
    }

    fn result(&self, node: NodeId, index: usize) -> ValueId {
        self.graph.node(node).results[index].expect("only results that were asked for are used")
    }

    fn wanted(&self, value: ValueId) -> bool {
        self.needs.get(value.as_u32() as usize).copied().unwrap_or(false)
    }

    fn set_wanted(&mut self, value: ValueId) {
        self.needs.resize(self.graph.value_capacity(), false);
        self.needs[value.as_u32() as usize] = true;
    }

    fn parameter(&mut self, role: &str, dims: &[u64]) -> ValueId {
        if self.u.chance(4) {
            // Tied weights.
            let recent = self.parameters.len().saturating_sub(8);
            let same = self.parameters[recent..].iter().find(|p| self.dims(**p) == dims);
            if let Some(&parameter) = same {
                return parameter;
            }
        }
        let name = format!("layer{}.{role}", self.parameters.len());
        let ty = TensorType::new(ElementType::Float, dims);
        let parameter = if self.stored && product(dims) <= 1024 {
            let mut rng = Rng::new(self.u.word());
            let value = |_| (rng.below(2001) as f32 - 1000.0) / 10_000.0;
            let bytes: Vec<u8> = (0..product(dims)).map(value).flat_map(f32::to_le_bytes).collect();
            self.graph.add_initializer(name, ty, Data::Inline(bytes.into()))
        } else {
            self.graph.add_input(name, ty, Place::Device)
        };
        self.parameters.push(parameter);
        self.set_wanted(parameter);
        parameter
    }

    /// An int64 constant; mostly shared between equal values.
    fn constant(&mut self, dims: &[u64], values: &[i64]) -> ValueId {
        let key = (dims.to_vec(), values.to_vec());
        let shared = self.u.chance(80);
        if let Some(&constant) = self.constants.get(&key).filter(|_| shared) {
            return constant;
        }
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let name = format!("constant_{}", self.graph.initializers.len());
        let ty = TensorType::new(ElementType::Int64, dims);
        let constant = self.graph.add_initializer(name, ty, Data::Inline(bytes.into()));
        self.constants.insert(key, constant);
        constant
    }

    fn axes(&mut self, values: &[i64]) -> ValueId {
        self.constant(&[values.len() as u64], values)
    }

    fn scalar(&mut self, name: &str, ty: ElementType, bytes: &[u8]) -> ValueId {
        if let Some(value) = self.graph.value_named(name) {
            return value;
        }
        let data = Data::Inline(bytes.to_vec().into());
        self.graph.add_initializer(name, TensorType::new(ty, []), data)
    }

    /// The shape of a value as a run-time value: computed, or constant.
    fn shape_of(&mut self, value: ValueId) -> ValueId {
        if let Some(&shape) = self.shapes.get(&value) {
            return shape;
        }
        let dims = self.dims(value);
        if self.u.chance(40) {
            let dims: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
            return self.axes(&dims);
        }
        let node = self.emit(("", "Shape"), &[], &[Some(value)], vec![int64([dims.len() as u64])]);
        let shape = self.result(node, 0);
        self.shapes.insert(value, shape);
        shape
    }

    /// The input data: an image, a matrix or tokens.
    fn start(&mut self) -> ValueId {
        let batch = [1, 2, 3, 4, 8, 16, 32, 64][self.u.below(8)];
        let kind = if self.size.nodes < 20 { 0 } else { self.u.below(3) };
        match kind {
            1 => {
                let side = self.extent(&[4, 6, 8, 16, 32, 64], |s| vec![vec![batch, 4, s, s]]);
                let channels = [1, 3, 4][self.u.below(3)];
                let dims = [batch, channels, side, side];
                self.graph.add_input("x", TensorType::new(ElementType::Float, dims), Place::Device)
            }
            2 => {
                let tokens = self.extent(&[1, 3, 8, 16, 64], |t| vec![vec![batch, t, t]]);
                let width = self.extent(&[1, 4, 16, 64], |d| vec![vec![batch, tokens, d]]);
                let ty = TensorType::new(ElementType::Int64, [batch, tokens]);
                let ids = self.graph.add_input("ids", ty, Place::Device);
                let words = self.extent(&[5, 50, 1000], |w| vec![vec![w, width]]);
                let table = self.parameter("embedding", &[words, width]);
                let operands = [Some(table), Some(ids)];
                let result = vec![float([batch, tokens, width])];
                self.forward(("", "Gather"), &[("axis", 0.into())], &operands, result)
            }
            _ => {
                let width = self.extent(&[1, 3, 7, 16, 64, 256, 784], |d| vec![vec![batch, d]]);
                let ty = TensorType::new(ElementType::Float, [batch, width]);
                self.graph.add_input("x", ty, Place::Device)
            }
        }
    }

    /// One to a few nodes on top of `x`.
    fn layer(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let late = self.planned() * 10 > self.size.nodes * 8;
        let y = match (dims.len(), self.u.below(12)) {
            (4, 0..=3) => self.conv(x),
            (4, 4) => self.batch_norm(x),
            (4, 5) => self.pool(x),
            (2 | 3, 0..=2) => self.linear(x),
            (2 | 3, 3) => self.layer_norm(x),
            (3, 4) => self.attention(x),
            (2 | 3, 5) => self.transpose(x),
            (_, 6) => self.branches(x),
            (_, 7) => self.view(x),
            (_, 8) => self.skip(x),
            (_, 9) => self.dropout(x),
            (_, 10) => self.oddity(x),
            (3 | 4, 11) if late => self.flat(x),
            (2 | 3, 11) => self.top(x),
            _ => self.activation(x),
        };
        let dims = self.dims(y);
        self.by_dims.entry(dims).or_default().push(y);
        y
    }

    fn activation(&mut self, x: ValueId) -> ValueId {
        let ty = float(self.dims(x));
        match self.u.below(8) {
            5 => self.forward(("", "Tanh"), &[], &[Some(x)], vec![ty]),
            6 => self.forward(("", "Sigmoid"), &[], &[Some(x)], vec![ty]),
            7 => self.forward((MS, "Gelu"), &[], &[Some(x)], vec![ty]),
            4 => self.forward(("", "Softmax"), &[("axis", Attr::Int(-1))], &[Some(x)], vec![ty]),
            _ => self.forward(("", "Relu"), &[], &[Some(x)], vec![ty]),
        }
    }

    fn conv(&mut self, x: ValueId) -> ValueId {
        let [n, c, h, w] = self.dims(x)[..] else { return self.activation(x) };
        let kernel = if self.u.chance(60) { 3 } else { 1 };
        let stride = if h.min(w) >= 8 && self.pool_is_due() { 2 } else { 1 };
        let side = |extent: u64| (extent + 2 * (kernel / 2) - kernel) / stride + 1;
        let (oh, ow) = (side(h), side(w));
        let channels = self
            .extent(&[1, 2, 4, 8, 16, 32, 64, 128], |m| vec![vec![n, m, oh, ow], vec![m, c, kernel, kernel]]);
        let weight = self.parameter("weight", &[channels, c, kernel, kernel]);
        let mut operands = vec![Some(x), Some(weight)];
        if self.u.chance(40) {
            operands.push(Some(self.parameter("bias", &[channels])));
        }
        let (k, p, s) = (kernel as i64, (kernel / 2) as i64, stride as i64);
        let mut attributes = vec![
            ("dilations", ints(&[1, 1])),
            ("group", 1.into()),
            ("kernel_shape", ints(&[k, k])),
            ("pads", ints(&[p, p, p, p])),
            ("strides", ints(&[s, s])),
        ];
        if self.u.chance(50) {
            attributes.insert(0, ("auto_pad", "NOTSET".into()));
        }
        let mut y = self.forward(("", "Conv"), &attributes, &operands, vec![float([n, channels, oh, ow])]);
        if self.u.chance(40) {
            y = self.batch_norm(y);
        }
        if self.u.chance(60) { self.activation(y) } else { y }
    }

    /// Spatial extents shrink evenly over the forward pass, at most six times.
    fn pool_is_due(&mut self) -> bool {
        let due = self.planned() * 6 > (self.pools + 1) * self.size.nodes && self.pools < 6;
        self.pools += usize::from(due);
        due
    }

    fn batch_norm(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let c = dims[1];
        let (scale, bias) = (self.parameter("scale", &[c]), self.parameter("bias", &[c]));
        let n = self.graph.node_capacity();
        let mut statistic = |name: &str| {
            let name = format!("norm{n}.running_{name}");
            self.graph.add_input(name, TensorType::new(ElementType::Float, [c]), Place::Device)
        };
        let (mean, variance) = (statistic("mean"), statistic("var"));
        let named = self.u.chance(80);
        let new = if named { float([c]) } else { None };
        let results = vec![float(dims), new.clone(), new, float([c]), float([c])];
        let attributes = [("epsilon", 1e-5.into()), ("momentum", 0.9.into()), ("training_mode", 1.into())];
        let operands = [x, scale, bias, mean, variance].map(Some);
        let y = self.forward((MS, "BatchNormInternal"), &attributes, &operands, results);
        self.add_updates(self.graph.producer(y).expect("a node was just added"));
        y
    }

    fn pool(&mut self, x: ValueId) -> ValueId {
        let [n, c, h, w] = self.dims(x)[..] else { return self.activation(x) };
        if h.min(w) < 4 || !self.pool_is_due() {
            return self.activation(x);
        }
        let ty = float([n, c, h / 2, w / 2]);
        let window = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
        if self.u.chance(70) {
            let indices = int64([n, c, h / 2, w / 2]);
            self.forward(("", "MaxPool"), &window, &[Some(x)], vec![ty, indices])
        } else {
            self.forward(("", "AveragePool"), &window, &[Some(x)], vec![ty])
        }
    }

    /// The largest half of every row, with its indices.
    fn top(&mut self, x: ValueId) -> ValueId {
        let mut dims = self.dims(x);
        let last = dims.len() - 1;
        dims[last] = dims[last].div_ceil(2);
        let count = self.axes(&[dims[last] as i64]);
        let (values, indices) = (float(dims.clone()), int64(dims));
        self.forward(("", "TopK"), &[("axis", Attr::Int(-1))], &[Some(x), Some(count)], vec![values, indices])
    }

    fn linear(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let (width, rows) = (dims[dims.len() - 1], product(&dims[..dims.len() - 1]));
        let m = self.extent(&[1, 2, 7, 16, 64, 256, 1000], |m| vec![vec![rows, m], vec![width, m]]);
        self.linear_to(x, m)
    }

    fn linear_to(&mut self, x: ValueId, m: u64) -> ValueId {
        let mut dims = self.dims(x);
        let last = dims.len() - 1;
        let width = std::mem::replace(&mut dims[last], m);
        if dims.len() == 2 && self.u.chance(50) {
            let (weight, bias) = (self.parameter("weight", &[m, width]), self.parameter("bias", &[m]));
            let attributes = [("alpha", 1.0.into()), ("beta", 1.0.into()), ("transB", 1.into())];
            let operands = [x, weight, bias].map(Some);
            return self.forward(("", "Gemm"), &attributes, &operands, vec![float(dims)]);
        }
        let weight = if self.u.chance(10) {
            // A view of a variable.
            let flat = self.parameter("weight", &[width * m]);
            self.reshape(flat, &[width, m])
        } else {
            self.parameter("weight", &[width, m])
        };
        let operands = [Some(x), Some(weight)];
        let y = self.forward(("", "MatMul"), &[], &operands, vec![float(dims.clone())]);
        if self.size.nodes < 12 || self.u.chance(50) {
            return y;
        }
        let bias = self.parameter("bias", &[m]);
        self.forward(("", "Add"), &[], &[Some(y), Some(bias)], vec![float(dims)])
    }

    fn layer_norm(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let width = dims[dims.len() - 1];
        let (scale, bias) = (self.parameter("scale", &[width]), self.parameter("bias", &[width]));
        let mut rows = dims.clone();
        rows[dims.len() - 1] = 1;
        let results = vec![float(dims), float(rows.clone()), float(rows)];
        let attributes = [("axis", Attr::Int(-1)), ("epsilon", 1e-5.into())];
        self.forward(("", "LayerNormalization"), &attributes, &[x, scale, bias].map(Some), results)
    }

    /// The matrix product of tokens with themselves: a node that reads one value twice.
    fn attention(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let scores = [dims[0], dims[1], dims[1]];
        if !self.fits(&scores) {
            return self.activation(x);
        }
        let attributes = [("alpha", 1.0.into()), ("transA", 0.into()), ("transB", 1.into())];
        let operands = [Some(x), Some(x)];
        let s = self.forward((MS, "FusedMatMul"), &attributes, &operands, vec![float(scores)]);
        let s = self.forward(("", "Softmax"), &[("axis", Attr::Int(-1))], &[Some(s)], vec![float(scores)]);
        self.forward(("", "MatMul"), &[], &[Some(s), Some(x)], vec![float(dims)])
    }

    fn transpose(&mut self, x: ValueId) -> ValueId {
        let mut dims = self.dims(x);
        let rank = dims.len();
        dims.swap(rank - 1, rank - 2);
        let perm: &[i64] = if rank == 2 { &[1, 0] } else { &[0, 2, 1] };
        self.forward(("", "Transpose"), &[("perm", ints(perm))], &[Some(x)], vec![float(dims)])
    }

    fn dropout(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let ratio = self.scalar("ratio", ElementType::Float, &0.1f32.to_le_bytes());
        let training = self.scalar("training", ElementType::Bool, &[1]);
        let results = vec![float(dims.clone()), boolean(dims)];
        self.forward(("", "Dropout"), &[("seed", 3.into())], &[x, ratio, training].map(Some), results)
    }

    fn skip(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let other = match self.by_dims.get(&dims) {
            Some(same) if self.u.chance(85) => same[self.u.below(same.len())],
            _ => x,
        };
        let op = ["Add", "Add", "Add", "Mul", "Sub"][self.u.below(5)];
        let op = if other == x && op == "Sub" { "Mul" } else { op };
        self.forward(("", op), &[], &[Some(x), Some(other)], vec![float(dims)])
    }

    fn branches(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let count = 2 + self.u.below(3);
        let mut joined = dims.clone();
        joined[1] *= count as u64;
        let last = dims.len() - 1;
        if !self.fits(&joined) || !self.fits(&[joined[last], dims[last]]) {
            return self.activation(x);
        }
        let mut parts = Vec::new();
        for _ in 0..count {
            let mut part = x;
            for _ in 0..self.u.below(3) {
                part = if self.u.chance(20) { self.dropout(part) } else { self.activation(part) };
            }
            parts.push(Some(part));
        }
        let y = self.concat(&parts, 1, joined);
        match self.dims(y).len() {
            4 => self.conv(y),
            _ => self.linear_to(y, dims[last]),
        }
    }

    fn concat(&mut self, parts: &[Option<ValueId>], axis: i64, dims: Vec<u64>) -> ValueId {
        let attributes = [("axis", axis.into())];
        if self.u.chance(50) {
            let results = vec![float(dims), int64([parts.len() as u64])];
            self.forward((MS, "ConcatTraining"), &attributes, parts, results)
        } else {
            self.forward(("", "Concat"), &attributes, parts, vec![float(dims)])
        }
    }

    fn reshape(&mut self, x: ValueId, dims: &[u64]) -> ValueId {
        let shape: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
        let shape = self.axes(&shape);
        self.forward(("", "Reshape"), &[], &[Some(x), Some(shape)], vec![float(dims)])
    }

    /// Views, also of views; some have no reader.
    fn view(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let all = product(&dims);
        match self.u.below(5) {
            0 => self.forward(("", "Identity"), &[], &[Some(x)], vec![float(dims)]),
            1 => {
                let axes = self.axes(&[0]);
                let mut wide = dims.clone();
                wide.insert(0, 1);
                let y = self.forward(("", "Unsqueeze"), &[], &[Some(x), Some(axes)], vec![float(wide)]);
                self.forward(("", "Squeeze"), &[], &[Some(y), Some(axes)], vec![float(dims)])
            }
            2 => {
                let ty = float([dims[0], all.checked_div(dims[0]).unwrap_or(0)]);
                let y = self.forward(("", "Flatten"), &[("axis", 1.into())], &[Some(x)], vec![ty]);
                self.reshape(y, &dims)
            }
            3 => {
                let y = self.reshape(x, &[all]);
                let y = self.forward(("", "Identity"), &[], &[Some(y)], vec![float([all])]);
                self.reshape(y, &dims)
            }
            _ => {
                let y = self.reshape(x, &[all]);
                if self.u.chance(30) && self.outputs.len() < 3 {
                    self.outputs.push(y);
                }
                self.activation(x)
            }
        }
    }

    /// Rare constructs of exporters: results without a reader, empty tensors, activations that are outputs.
    fn oddity(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        match self.u.below(5) {
            0 => {
                self.emit(("", "Exp"), &[], &[Some(x)], vec![float(dims)]);
                x
            }
            1 => {
                let mut none = dims.clone();
                none[0] = 0;
                let name = format!("empty_{}", self.graph.initializers.len());
                let ty = TensorType::new(ElementType::Float, none.clone());
                let empty = self.graph.add_initializer(name, ty, Data::Inline(Vec::new().into()));
                let empty = self.forward(("", "Neg"), &[], &[Some(empty)], vec![float(none)]);
                self.concat(&[Some(x), Some(empty)], 0, dims)
            }
            2 => {
                self.shape_of(x);
                self.activation(x)
            }
            3 => self.forward(("", "Mul"), &[], &[Some(x), Some(x)], vec![float(dims)]),
            _ => {
                let y = self.activation(x);
                if self.outputs.len() < 3 {
                    self.outputs.push(y);
                }
                y
            }
        }
    }

    /// A matrix of the same elements, or of their spatial means.
    fn flat(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        match dims[..] {
            [n, c, h, w] => {
                let mut y = x;
                if self.u.chance(50) || n * c * h * w > 1 << 16 {
                    y = self.forward(("", "GlobalAveragePool"), &[], &[Some(x)], vec![float([n, c, 1, 1])]);
                }
                let all = product(&self.dims(y)) / n;
                self.forward(("", "Flatten"), &[("axis", 1.into())], &[Some(y)], vec![float([n, all])])
            }
            [b, t, d] => self.reshape(x, &[b * t, d]),
            _ => x,
        }
    }

    fn loss(&mut self, x: ValueId) -> ValueId {
        let small = self.size.nodes < 12;
        if !small && self.wanted(x) && self.u.chance(25) {
            let attributes = [("keepdims", 0.into())];
            return self.forward(("", "ReduceMean"), &attributes, &[Some(x)], vec![float([])]);
        }
        let mut x = self.flat(x);
        if !self.wanted(x) || self.u.chance(50) {
            let [rows, width] = self.dims(x)[..] else { unreachable!("a flat value is a matrix") };
            let classes = self.extent(&[2, 10, 100], |c| vec![vec![rows, c], vec![width, c]]);
            x = self.linear_to(x, classes);
        }
        let dims = self.dims(x);
        let labels = TensorType::new(ElementType::Int64, [dims[0]]);
        let labels = self.graph.add_input("labels", labels, Place::Device);
        let attributes = [("reduction", "mean".into())];
        let results = vec![float([]), float(dims)];
        self.forward(("", "SoftmaxCrossEntropyLoss"), &attributes, &[x, labels].map(Some), results)
    }

    /// Reverse-mode differentiation over the tape.
    fn backward(&mut self, loss: ValueId) {
        let seed = self.scalar("loss_grad", ElementType::Float, &1f32.to_le_bytes());
        self.add_gradient(loss, seed);
        for node in std::mem::take(&mut self.tape).into_iter().rev() {
            let result = self.result(node, 0);
            if let Some(gradient) = self.gradient(result) {
                self.differentiate(node, gradient);
            }
        }
    }

    fn add_gradient(&mut self, value: ValueId, part: ValueId) {
        let index = value.as_u32() as usize;
        if self.gradients.len() <= index {
            self.gradients.resize_with(index + 1, Vec::new);
        }
        self.gradients[index].push(part);
    }

    /// The sum of the parts of the value's gradient.
    fn gradient(&mut self, value: ValueId) -> Option<ValueId> {
        let parts = std::mem::take(self.gradients.get_mut(value.as_u32() as usize)?);
        let (&first, rest) = parts.split_first()?;
        let ty = float(self.dims(value));
        if rest.len() > 1 && self.u.chance(50) {
            let parts: Vec<Option<ValueId>> = parts.iter().copied().map(Some).collect();
            let node = self.emit(("", "Sum"), &[], &parts, vec![ty]);
            return Some(self.result(node, 0));
        }
        let mut sum = first;
        for &part in rest {
            let node = self.emit(("", "Add"), &[], &[Some(sum), Some(part)], vec![ty.clone()]);
            sum = self.result(node, 0);
        }
        Some(sum)
    }

    /// Emits a node whose results are gradients of these values, if they have one; others are left out.
    fn emit_gradients(
        &mut self,
        op: (&str, &str),
        attributes: &[(&str, Attr)],
        operands: &[ValueId],
        of: &[ValueId],
    ) {
        let ty =
            |v: &ValueId| self.wanted(*v).then(|| self.graph.value(*v).ty.as_tensor().cloned()).flatten();
        let mut results: Vec<Option<TensorType>> = of.iter().map(ty).collect();
        while results.last().is_some_and(Option::is_none) {
            results.pop();
        }
        if results.is_empty() {
            return;
        }
        let operands: Vec<Option<ValueId>> = operands.iter().copied().map(Some).collect();
        let node = self.emit(op, attributes, &operands, results);
        for (index, &value) in of.iter().enumerate() {
            if let Some(part) = self.graph.node(node).results.get(index).copied().flatten() {
                self.add_gradient(value, part);
            }
        }
    }

    fn differentiate(&mut self, id: NodeId, g: ValueId) {
        let node = self.graph.node(id).clone();
        let attributes = node.attributes.iter().map(|(name, attr)| (&**name, attr.clone())).collect();
        let it = Forward { node: &node, attributes, g };
        let is_done = self.differentiate_layer(&it)
            || self.differentiate_function(&it)
            || self.differentiate_layout(&it);
        assert!(is_done, "the tape holds only what is differentiated here, not {}", node.op);
    }

    /// Emits the gradients of a layer or of the loss; false for another operator.
    fn differentiate_layer(&mut self, it: &Forward<'_>) -> bool {
        let (g, x) = (it.g, it.operand(0));
        match it.node.op.key() {
            ("", "Conv") => {
                let of: Vec<ValueId> = it.node.operands.iter().copied().flatten().collect();
                self.emit_gradients((MS, "ConvGrad"), &it.attributes, &[g, x, it.operand(1)], &of);
            }
            (MS, "BatchNormInternal") => {
                let epsilon = [it.attributes[0].clone()];
                let operands = [g, x, it.operand(1), it.result(3), it.result(4)];
                let of = [x, it.operand(1), it.operand(2)];
                self.emit_gradients((MS, "BatchNormalizationGrad"), &epsilon, &operands, &of);
            }
            ("", "LayerNormalization") => {
                let operands = [g, x, it.operand(1), it.result(1), it.result(2)];
                let of = [x, it.operand(1), it.node.operands[2].expect("a bias")];
                self.emit_gradients((MS, "LayerNormalizationGrad"), &it.attributes, &operands, &of);
            }
            ("", "Gemm") => {
                let (w, b) = (it.operand(1), it.operand(2));
                self.emit_gradients(("", "Gemm"), &[], &[g, w], &[x]);
                self.emit_gradients(("", "Gemm"), &[("transA", 1.into())], &[g, x], &[w]);
                self.reduce(g, b);
            }
            ("", "MatMul") => self.differentiate_product(g, x, it.operand(1)),
            (MS, "FusedMatMul") => {
                let b = it.operand(1);
                self.emit_gradients((MS, "FusedMatMul"), &[], &[g, b], &[x]);
                self.emit_gradients((MS, "FusedMatMul"), &[("transA", 1.into())], &[g, x], &[b]);
            }
            ("", "SoftmaxCrossEntropyLoss") => {
                let operands = [g, it.result(1), it.operand(1)];
                self.emit_gradients((MS, "SoftmaxCrossEntropyLossGrad"), &it.attributes, &operands, &[x]);
            }
            _ => return false,
        }
        true
    }

    /// Emits the gradients of a function of elements or rows; false for another operator.
    fn differentiate_function(&mut self, it: &Forward<'_>) -> bool {
        let (g, x) = (it.g, it.operand(0));
        match it.node.op.key() {
            ("", "Add") => {
                self.pass(g, x);
                self.reduce(g, it.operand(1));
            }
            ("", "Sub") => {
                self.pass(g, x);
                self.emit_gradients(("", "Neg"), &[], &[g], &[it.operand(1)]);
            }
            ("", "Mul") => {
                let y = it.operand(1);
                self.emit_gradients(("", "Mul"), &[], &[g, y], &[x]);
                self.emit_gradients(("", "Mul"), &[], &[g, x], &[y]);
            }
            ("", "Neg") => self.emit_gradients(("", "Neg"), &[], &[g], &[x]),
            ("", "Relu") => {
                let read = if self.u.chance(75) { it.result(0) } else { x };
                self.emit_gradients((MS, "ReluGrad"), &[], &[g, read], &[x]);
            }
            ("", "Tanh") => self.emit_gradients((MS, "TanhGrad"), &[], &[g, it.result(0)], &[x]),
            ("", "Sigmoid") => self.emit_gradients((MS, "SigmoidGrad"), &[], &[g, it.result(0)], &[x]),
            (MS, "Gelu") => self.emit_gradients((MS, "GeluGrad"), &[], &[g, x], &[x]),
            ("", "Softmax") => {
                self.emit_gradients((MS, "SoftmaxGrad_13"), &it.attributes, &[g, it.result(0)], &[x]);
            }
            ("", "Dropout") => {
                let operands = [g, it.result(1), it.operand(1), it.operand(2)];
                self.emit_gradients((MS, "DropoutGrad"), &[], &operands, &[x]);
            }
            _ => return false,
        }
        true
    }

    /// Emits the gradients of a pooling, a selection or a view; false for another operator.
    fn differentiate_layout(&mut self, it: &Forward<'_>) -> bool {
        let (g, x) = (it.g, it.operand(0));
        match it.node.op.key() {
            ("", "MaxPool") => {
                self.emit_gradients(("", "MaxPoolGrad"), &it.attributes, &[g, it.result(1)], &[x]);
            }
            ("", "TopK") => {
                let shape = self.shape_of(x);
                self.emit_gradients(
                    (MS, "GatherElementsGrad"),
                    &it.attributes,
                    &[g, shape, it.result(1)],
                    &[x],
                );
            }
            ("", "AveragePool") => self.emit_gradients(("", "AveragePoolGrad"), &it.attributes, &[g], &[x]),
            ("", "GlobalAveragePool") => {
                let dims = self.dims(x);
                self.expand(g, product(&dims[2..]), x);
            }
            ("", "ReduceMean") => self.expand(g, product(&self.dims(x)), x),
            ("", "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze") => {
                let shape = self.shape_of(x);
                self.emit_gradients(("", "Reshape"), &[], &[g, shape], &[x]);
            }
            ("", "Identity") => self.emit_gradients(("", "Identity"), &[], &[g], &[x]),
            ("", "Transpose") => self.emit_gradients(("", "Transpose"), &it.attributes, &[g], &[x]),
            ("", "Gather") => {
                let shape = self.shape_of(x);
                self.emit_gradients((MS, "GatherGrad"), &it.attributes, &[shape, it.operand(1), g], &[x]);
            }
            (MS, "ConcatTraining") => {
                let of: Vec<ValueId> = it.node.operands.iter().copied().flatten().collect();
                self.split((MS, "SplitTraining"), &it.attributes, [g, it.result(1)], &of);
            }
            ("", "Concat") => {
                let of: Vec<ValueId> = it.node.operands.iter().copied().flatten().collect();
                let axis = if let Some((_, Attr::Int(axis))) = it.attributes.first() { *axis } else { 0 };
                let parts: Vec<i64> = of.iter().map(|&v| self.dims(v)[axis as usize] as i64).collect();
                let parts = self.axes(&parts);
                self.split(("", "Split"), &it.attributes, [g, parts], &of);
            }
            _ => return false,
        }
        true
    }

    fn differentiate_product(&mut self, g: ValueId, a: ValueId, b: ValueId) {
        let (trans_a, trans_b) = ([("transA", 1.into())], [("transB", 1.into())]);
        self.emit_gradients((MS, "FusedMatMul"), &trans_b, &[g, b], &[a]);
        let (dims, out) = (self.dims(a), self.dims(g));
        if dims.len() == self.dims(b).len() {
            return self.emit_gradients((MS, "FusedMatMul"), &trans_a, &[a, g], &[b]);
        }
        // A matrix under a batch: both operands are flattened to matrices.
        let (rows, width, m) = (product(&dims[..2]), dims[2], out[2]);
        let flat = |b: &mut Self, v: ValueId, dims: [u64; 2]| {
            let shape = b.axes(&dims.map(|d| d as i64));
            let node = b.emit(("", "Reshape"), &[], &[Some(v), Some(shape)], vec![float(dims)]);
            b.result(node, 0)
        };
        let (a, g) = (flat(self, a, [rows, width]), flat(self, g, [rows, m]));
        self.emit_gradients((MS, "FusedMatMul"), &trans_a, &[a, g], &[b]);
    }

    /// The gradient of the operand is `g` itself, under the same name or another.
    fn pass(&mut self, g: ValueId, x: ValueId) {
        if self.u.chance(20) {
            self.emit_gradients(("", "Identity"), &[], &[g], &[x]);
        } else if self.wanted(x) {
            self.add_gradient(x, g);
        }
    }

    /// The gradient of an operand that may have been broadcast to the shape of `g`.
    fn reduce(&mut self, g: ValueId, x: ValueId) {
        let (from, to) = (self.dims(g), self.dims(x));
        if from == to {
            return self.pass(g, x);
        }
        if self.wanted(x) {
            let axes: Vec<i64> = (0..(from.len() - to.len()) as i64).collect();
            let axes = self.axes(&axes);
            self.emit_gradients(("", "ReduceSum"), &[("keepdims", 0.into())], &[g, axes], &[x]);
        }
    }

    /// `g / count`, at every element of `x`.
    fn expand(&mut self, g: ValueId, count: u64, x: ValueId) {
        let count = self.constant(&[], &[count as i64]);
        let ty = float(self.dims(g));
        let attributes = [("scale_down", 1.into())];
        let scale = self.emit((MS, "Scale"), &attributes, &[Some(g), Some(count)], vec![ty]);
        let (scaled, shape) = (self.result(scale, 0), self.shape_of(x));
        self.emit_gradients(("", "Expand"), &[], &[scaled, shape], &[x]);
    }

    /// A result for every operand, whether it has a gradient or not.
    fn split(
        &mut self,
        op: (&str, &str),
        attributes: &[(&str, Attr)],
        operands: [ValueId; 2],
        of: &[ValueId],
    ) {
        let results = of.iter().map(|&v| float(self.dims(v))).collect();
        let node = self.emit(op, attributes, &operands.map(Some), results);
        for (index, &value) in of.iter().enumerate() {
            if self.wanted(value) {
                self.add_gradient(value, self.result(node, index));
            }
        }
    }

    /// Adds the update edges that the operator's row of the table specifies.
    fn add_updates(&mut self, node: NodeId) {
        for &(operand, result) in self.graph.node(node).op.effects().writes {
            let node_data = self.graph.node(node);
            let Some(variable) = node_data.operands.get(operand).copied().flatten() else { continue };
            let named = node_data.results.get(result).is_some_and(Option::is_some);
            self.graph.add_update(node, Update { variable, result: named.then_some(result) });
        }
    }

    fn updates(&mut self) {
        let gradients: Vec<(ValueId, ValueId)> =
            self.parameters.clone().into_iter().filter_map(|p| Some((p, self.gradient(p)?))).collect();
        self.first_update = self.graph.order().len();
        let one = |ty| TensorType::new(ty, [1]);
        let lr = match self.ending {
            Ending::Sgd { .. } | Ending::AdamW => {
                Some(self.graph.add_input("lr", one(ElementType::Float), Place::Device))
            }
            _ => None,
        };
        let step = (self.ending == Ending::AdamW)
            .then(|| self.graph.add_input("step", one(ElementType::Int64), Place::Device));
        let accumulates = matches!(self.ending, Ending::Accumulate | Ending::Sgd { accumulated: true });
        let reset = accumulates
            .then(|| self.graph.add_input("lazy_reset_grad", one(ElementType::Bool), Place::Device));
        let show = self.u.chance(30);
        for (parameter, mut g) in gradients {
            let ty = self.graph.value(parameter).ty.clone();
            let tensor = ty.as_tensor().cloned();
            let name = self.graph.value(parameter).name.to_string();
            if accumulates {
                let buffer = format!("{name}_grad.accumulation.buffer");
                let buffer = self.graph.add_input(buffer, ty.clone(), Place::Device);
                let mut results = vec![boolean([1])];
                if self.ending != Ending::Accumulate || self.u.chance(20) {
                    results.push(tensor.clone());
                }
                let operands = [Some(buffer), Some(g), reset];
                let node = self.emit((MS, "InPlaceAccumulatorV2"), &[], &operands, results);
                self.add_updates(node);
                if self.ending == Ending::Accumulate {
                    self.outputs.push(self.result(node, 0));
                    continue;
                }
                g = self.result(node, 1);
            }
            match self.ending {
                Ending::Sgd { .. } => {
                    let operands = [lr, Some(parameter), Some(g)];
                    let node = self.emit((LMSC_DOMAIN, "SGDOptimizer"), &[], &operands, vec![tensor]);
                    self.add_updates(node);
                    if show {
                        self.outputs.push(self.result(node, 0));
                    }
                }
                Ending::AdamW => {
                    let moments = ["m", "v"].map(|moment| {
                        let name = format!("{name}.{moment}");
                        Some(self.graph.add_input(name, ty.clone(), Place::Device))
                    });
                    let operands = [lr, step, Some(parameter), Some(g), moments[0], moments[1]];
                    let attributes = [
                        ("alpha", 0.9.into()),
                        ("beta", 0.999.into()),
                        ("epsilon", 1e-6.into()),
                        ("weight_decay", 0.01.into()),
                        ("adam_mode", 1.into()),
                        ("correct_bias", 1.into()),
                    ];
                    let results = vec![tensor.clone(), tensor.clone(), tensor];
                    let node = self.emit((LMSC_DOMAIN, "AdamWOptimizer"), &attributes, &operands, results);
                    self.add_updates(node);
                    if show {
                        self.outputs.push(self.result(node, 0));
                    }
                }
                _ => {
                    if self.u.chance(40) || self.graph.producer(g).is_none() {
                        let node = self.emit(("", "Identity"), &[], &[Some(g)], vec![tensor]);
                        g = self.result(node, 0);
                    }
                    self.outputs.push(g);
                }
            }
        }
    }

    fn finish(mut self, loss: ValueId) -> Graph {
        let roots = self.order_readers_before_writers();
        if self.early_updates {
            self.move_updates_forward();
        }
        let mut seen = vec![false; self.graph.value_capacity()];
        for value in std::iter::once(loss).chain(std::mem::take(&mut self.outputs)) {
            // The view of a variable would be overwritten before the caller reads it.
            let root = self.graph.def(roots[value.as_u32() as usize]);
            let computed = matches!(root, lmsc_ir::Def::Result(..));
            if computed && !std::mem::replace(&mut seen[value.as_u32() as usize], true) {
                self.graph.outputs.push(value);
            }
        }
        self.graph
    }

    /// Adds a control edge from every reader of a variable's old value, or of a view of it, to its writer. Returns the root of
    /// every view.
    fn order_readers_before_writers(&mut self) -> Vec<ValueId> {
        let graph = &mut self.graph;
        let mut roots: Vec<ValueId> = graph.values().map(|(id, _)| id).collect();
        let mut readers: Vec<Vec<NodeId>> = vec![Vec::new(); roots.len()];
        let mut edges = Vec::new();
        for &id in graph.order() {
            let node = graph.node(id);
            for value in node.reads() {
                readers[roots[value.as_u32() as usize].as_u32() as usize].push(id);
            }
            if let (true, Some(Some(from)), Some(to)) =
                (node.op.effects().view, node.operands.first(), node.defines().next())
            {
                roots[to.as_u32() as usize] = roots[from.as_u32() as usize];
            }
        }
        for &id in graph.order() {
            let node = graph.node(id);
            for update in &node.updates {
                let known = |n: NodeId| node.reads().any(|v| graph.producer(v) == Some(n));
                let readers = &readers[update.variable.as_u32() as usize];
                edges.extend(readers.iter().filter(|&&r| r != id && !known(r)).map(|&r| (id, r)));
            }
        }
        for (id, before) in edges {
            graph.add_after(id, before);
        }
        roots
    }

    /// Puts every update right after the last node that it waits for.
    fn move_updates_forward(&mut self) {
        let graph = &mut self.graph;
        let mut ticks = graph.ticks();
        let (steps, updates) = graph.order().split_at(self.first_update);
        let mut followers: Vec<Vec<NodeId>> = vec![Vec::new(); steps.len()];
        let mut order = Vec::with_capacity(graph.order().len());
        for &update in updates {
            let waits = graph.predecessors(update).map(|n| ticks[n.as_u32() as usize]).max();
            let tick = waits.unwrap_or(0).min(steps.len().saturating_sub(1) as u32);
            ticks[update.as_u32() as usize] = tick;
            followers[tick as usize].push(update);
        }
        for (&node, followers) in steps.iter().zip(followers) {
            order.push(node);
            order.extend(followers);
        }
        graph.set_order(order);
    }
}
