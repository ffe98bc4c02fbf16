//! Runs through the functions of a module and writes their computation into a graph.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use lmsc_ir::{Attr, Data, ElementType, Graph, Name, Node, NodeId, Op, Place, TensorType, ValueId};

use super::HloStep;
use super::parse::{Argument, Attribute, Attributes, Block, Function, Loc, Module, Operation, find};
use super::rules::Window;
use super::state::{self, Found};
use super::term::{Is, Scalar, Term, joined, padded};

/// Why a module is not imported.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) is_unsupported: bool,
}

pub(super) type Got<T> = Result<T, Fault>;

/// Maximum number of operations that are run through, calls inlined and loops unrolled.
const MOST: u64 = 1 << 20;

/// Maximum depth of calls and regions.
const DEEPEST: u32 = 64;

/// Operators of ONNX are those of this version; `BitCast` is newer.
const OPSET: i64 = 21;
const OPSET_OF_BIT_CAST: i64 = 26;

/// Values of a function, by name.
type Scope<'m> = HashMap<&'m str, Vec<Term>>;

/// The interpreter.
pub(super) struct Importer<'m> {
    module: &'m Module<'m>,
    functions: BTreeMap<&'m str, &'m Function<'m>>,
    pub(super) graph: Graph,
    constants: HashMap<(TensorType, Vec<u8>), ValueId>,
    /// Poolings that pick the largest element, by tensor and window.
    pub(super) pools: BTreeMap<(ValueId, Window), NodeId>,
    /// Reversed tensors, each with its source and the reversed axes.
    pub(super) mirrors: HashMap<ValueId, (Term, Vec<usize>)>,
    /// Values of the function that the regions of the operation read.
    captured: Scope<'m>,
    /// The position of the operation that is read.
    pub(super) at: usize,
    /// The name that its nodes get.
    base: Name,
    left: u64,
    depth: u32,
}

/// The step that the module describes.
pub(super) fn step(module: &Module<'_>) -> Got<HloStep> {
    let mut functions = BTreeMap::new();
    for function in &module.functions {
        if functions.insert(&*function.name, function).is_some() {
            let message = format!("there are two functions `@{}`", function.name);
            return Err(Fault { at: function.at, message, is_unsupported: false });
        }
    }
    let Some(main) = functions.get("main").copied().or(module.functions.first()) else {
        let message = "the module has no function".to_owned();
        return Err(Fault { at: 0, message, is_unsupported: false });
    };
    let name = module.name.clone().unwrap_or_else(|| main.name.clone());
    let mut importer = Importer {
        module,
        functions,
        graph: Graph::new(name.replace('\n', " ")),
        constants: HashMap::new(),
        pools: BTreeMap::new(),
        mirrors: HashMap::new(),
        captured: Scope::new(),
        at: main.at,
        base: "".into(),
        left: MOST,
        depth: 0,
    };
    importer.graph.opsets.insert(String::new(), OPSET);
    importer.graph.opsets.insert("com.microsoft".to_owned(), 1);
    importer.on_one_device()?;
    importer.main(main)
}

impl<'m> Importer<'m> {
    fn on_one_device(&self) -> Got<()> {
        for name in ["mhlo.num_partitions", "mhlo.num_replicas"] {
            if let Some(Attribute::Int(count @ 2..)) = find(&self.module.attributes, name) {
                return self.refuse(format!(
                    "the step is for {count} devices (`{name}`), and lmsc plans one; export it for one device"
                ));
            }
        }
        Ok(())
    }

    fn main(mut self, main: &'m Function<'m>) -> Got<HloStep> {
        let mut arguments = Vec::new();
        let mut inputs = Vec::new();
        for argument in &main.arguments {
            self.at = argument.at;
            self.sized(&argument.ty)?;
            let name = self.graph.fresh_value_name(&self.name_of_argument(argument));
            let value = self.graph.add_input(name.clone(), argument.ty.clone(), Place::Device);
            inputs.push(name.to_string());
            arguments.push(Term::value(argument.ty.clone(), value));
        }
        let results = self.function(main, arguments)?;
        let mut outputs = Vec::new();
        for (index, (term, (_, attributes))) in results.into_iter().zip(&main.results).enumerate() {
            outputs.push(self.output(term, index, attributes)?);
        }
        self.without_dead_nodes();
        let Found { pairs, notices } = state::pairs(main, &inputs, &outputs)?;
        Ok(HloStep { graph: self.graph, state: pairs, notices })
    }

    fn name_of_argument(&self, argument: &Argument<'m>) -> String {
        let said =
            match find(&argument.attributes, "jax.arg_info").or(find(&argument.attributes, "onnx.name")) {
                Some(Attribute::Text(text)) => Some(text.clone()),
                _ => self.place(&argument.loc),
            };
        let name = said.unwrap_or_else(|| argument.name.trim_start_matches('%').to_owned());
        one_line(&name)
    }

    /// Makes the term an output, of the name that the signature gives.
    fn output(&mut self, term: Term, index: usize, attributes: &Attributes) -> Got<String> {
        let said = find(attributes, "jax.result_info").or(find(attributes, "onnx.name"));
        let name = match said {
            Some(Attribute::Text(text)) if !text.is_empty() => one_line(text),
            _ => format!("result[{index}]"),
        };
        self.base = "output".into();
        let ty = term.ty.clone();
        let mut value = self.whole(&term)?;
        if self.graph.producer(value).is_none() || self.graph.outputs.contains(&value) {
            value = self.node("Identity", &[value], Vec::new(), ty)?;
        }
        if *self.graph.value(value).name != *name {
            let name = self.graph.fresh_value_name(&name);
            self.graph.rename(value, name);
        }
        self.graph.outputs.push(value);
        Ok(self.graph.value(value).name.to_string())
    }

    /// Removes nodes on which no output depends, and constants that nothing reads.
    fn without_dead_nodes(&mut self) {
        let mut needed = vec![false; self.graph.node_capacity()];
        let mut open: Vec<NodeId> =
            self.graph.outputs.iter().filter_map(|&v| self.graph.producer(v)).collect();
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut needed[id.as_u32() as usize], true) {
                open.extend(self.graph.predecessors(id));
            }
        }
        let order = self.graph.order().iter().copied().filter(|id| needed[id.as_u32() as usize]).collect();
        self.graph.set_order(order);
    }

    /// The name that the program gave to a place.
    fn place(&self, loc: &Loc<'_>) -> Option<String> {
        let mut loc = loc;
        // A chain of aliases that is longer is a cycle.
        for _ in 0..8 {
            match loc {
                Loc::Nowhere => return None,
                Loc::Name(name) => return Some(name.clone()),
                Loc::Alias(alias) => loc = self.module.places.get(alias)?,
            }
        }
        None
    }

    fn function(&mut self, function: &'m Function<'m>, arguments: Vec<Term>) -> Got<Vec<Term>> {
        if arguments.len() != function.arguments.len() {
            return self.wrong(format!(
                "`@{}` takes {} arguments, and is given {}",
                function.name,
                function.arguments.len(),
                arguments.len()
            ));
        }
        let mut scope = Scope::new();
        for (argument, term) in function.arguments.iter().zip(arguments) {
            self.same(&argument.ty, &term.ty)?;
            scope.insert(argument.name, vec![term]);
        }
        let results = self.block(&function.body, &mut scope)?;
        if results.len() != function.results.len() {
            return self.wrong(format!("`@{}` does not return what it declares", function.name));
        }
        for (term, (ty, _)) in results.iter().zip(&function.results) {
            self.same(ty, &term.ty)?;
        }
        Ok(results)
    }

    /// Runs through the block's operations; its arguments are in the scope. Returns its results.
    fn block(&mut self, block: &'m Block<'m>, scope: &mut Scope<'m>) -> Got<Vec<Term>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.refuse("calls are nested too deep: recursion has no end that is known".to_owned());
        }
        for op in &block.operations {
            self.begin(op)?;
            let mut terms = Vec::with_capacity(op.operands.len());
            for reference in &op.operands {
                let found = scope.get(reference.name).and_then(|terms| terms.get(reference.index));
                match found {
                    Some(term) => terms.push(term.clone()),
                    None => {
                        self.at = reference.at;
                        return self.wrong(format!("`{}` is not defined here", reference.name));
                    }
                }
            }
            if op.name == "stablehlo.return" {
                self.depth -= 1;
                return Ok(terms);
            }
            let results = match op.name.as_str() {
                "func.call" => self.call(op, "callee", terms)?,
                "stablehlo.composite" => self.composite(op, terms)?,
                "stablehlo.while" => self.unrolled(op, terms, scope)?,
                "stablehlo.case" | "stablehlo.if" => self.decided(op, terms, scope)?,
                _ => {
                    if !op.regions.is_empty() {
                        self.captured.clear();
                        op.regions.iter().for_each(|region| capture(region, scope, &mut self.captured));
                    }
                    self.operator(op, terms)?
                }
            };
            // Inlined operations had their own places.
            self.at = op.at;
            self.bind(op, results, scope)?;
        }
        self.at = block.operations.last().map_or(self.at, |op| op.at);
        self.wrong("the block does not end with `return`".to_owned())
    }

    fn begin(&mut self, op: &Operation<'m>) -> Got<()> {
        self.at = op.at;
        self.charge(1)?;
        for ty in &op.types {
            self.sized(ty)?;
        }
        let base = self.place(&op.loc).map(|place| short(&place));
        self.base = match base {
            Some(base) if !base.is_empty() => base.into(),
            _ => op.name.split('.').next_back().unwrap_or_default().into(),
        };
        Ok(())
    }

    fn bind(&mut self, op: &Operation<'m>, results: Vec<Term>, scope: &mut Scope<'m>) -> Got<()> {
        let count: usize = op.results.iter().map(|(_, count)| count).sum();
        if count != 0 && count != results.len() {
            return self.wrong(format!("`{}` has {} results, not {count}", op.name, results.len()));
        }
        if op.types.len() != results.len() {
            return self.wrong(format!(
                "`{}` has {} results, not {}",
                op.name,
                results.len(),
                op.types.len()
            ));
        }
        for (ty, term) in op.types.iter().zip(&results) {
            self.same(ty, &term.ty)?;
        }
        let mut results = results.into_iter();
        for &(name, count) in &op.results {
            scope.insert(name, results.by_ref().take(count).collect());
        }
        Ok(())
    }

    fn call(&mut self, op: &Operation<'m>, attribute: &str, terms: Vec<Term>) -> Got<Vec<Term>> {
        let Some(Attribute::Symbol(name)) = op.attribute(attribute) else {
            return self.wrong("the name of the function is missing".to_owned());
        };
        let Some(function) = self.functions.get(name.as_str()).copied() else {
            return self.wrong(format!("there is no function `@{name}`"));
        };
        self.function(function, terms)
    }

    fn composite(&mut self, op: &'m Operation<'m>, terms: Vec<Term>) -> Got<Vec<Term>> {
        if let Some(Attribute::Text(name)) = op.attribute("name")
            && name.starts_with("chlo.")
            && let Some(results) = self.named(name, op, &terms)?
        {
            return Ok(results);
        }
        self.call(op, "decomposition", terms)
    }

    /// A loop, turn by turn, as long as its condition is known.
    fn unrolled(&mut self, op: &'m Operation<'m>, terms: Vec<Term>, scope: &mut Scope<'m>) -> Got<Vec<Term>> {
        let [condition, body] = &op.regions[..] else {
            return self.wrong("a loop has a condition and a body".to_owned());
        };
        let mut carried = terms;
        loop {
            self.enter(condition, &carried, scope)?;
            let holds = self.block(condition, scope)?;
            self.at = op.at;
            match holds.first().and_then(Term::integer) {
                Some(0) => return Ok(carried),
                Some(_) => {}
                None => {
                    return self.refuse(
                        "the number of turns of this loop depends on data; lmsc unrolls loops whose number of turns is \
                         known, such as jax.lax.scan and jax.lax.fori_loop with constant bounds"
                            .to_owned(),
                    );
                }
            }
            self.enter(body, &carried, scope)?;
            let next = self.block(body, scope)?;
            self.at = op.at;
            if next.len() != carried.len() {
                return self.wrong("the body does not return as many values as the loop carries".to_owned());
            }
            for (old, new) in carried.iter().zip(&next) {
                self.same(&old.ty, &new.ty)?;
            }
            carried = next;
        }
    }

    fn enter(&mut self, block: &'m Block<'m>, terms: &[Term], scope: &mut Scope<'m>) -> Got<()> {
        if block.arguments.len() != terms.len() {
            return self.wrong("the region does not take as many values as it is given".to_owned());
        }
        for ((name, ty), term) in block.arguments.iter().zip(terms) {
            self.same(ty, &term.ty)?;
            scope.insert(name, vec![term.clone()]);
        }
        Ok(())
    }

    /// `case` and `if`: the branch, if it is known, or all of them with a choice among their results.
    fn decided(&mut self, op: &'m Operation<'m>, terms: Vec<Term>, scope: &mut Scope<'m>) -> Got<Vec<Term>> {
        let [index] = &terms[..] else { return self.wrong("a choice has one operand".to_owned()) };
        if op.regions.is_empty() || !index.dims().is_empty() {
            return self.wrong("a choice takes a scalar and has branches".to_owned());
        }
        let last = op.regions.len() - 1;
        let is_if = op.name == "stablehlo.if";
        if let Some(known) = index.integer() {
            let branch = if is_if {
                usize::from(known == 0).min(last)
            } else {
                usize::try_from(known).map_or(last, |known| known.min(last))
            };
            return self.block(&op.regions[branch], scope);
        }
        let mut chosen = self.block(&op.regions[last], scope)?;
        for branch in (0..last).rev() {
            let results = self.block(&op.regions[branch], scope)?;
            self.begin(op)?;
            if results.len() != chosen.len() {
                return self.wrong("the branches do not return equally many values".to_owned());
            }
            let condition = if is_if {
                index.clone()
            } else {
                let number = self.integer(&index.ty, branch as i64)?;
                self.each("Equal", &[index, &number], ElementType::Bool, &[])?
            };
            let pairs = results.iter().zip(&chosen);
            let pairs =
                pairs.map(|(yes, no)| self.choose(&condition, yes, no)).collect::<Got<Vec<Term>>>()?;
            chosen = pairs;
        }
        Ok(chosen)
    }

    pub(super) fn choose(&mut self, condition: &Term, yes: &Term, no: &Term) -> Got<Term> {
        self.same(&yes.ty, &no.ty)?;
        match condition.integer() {
            Some(0) => Ok(no.clone()),
            Some(_) => Ok(yes.clone()),
            None => self.each("Where", &[condition, yes, no], yes.ty.element, yes.dims()),
        }
    }

    /// The results of a small region for known scalars; nothing is added to the graph.
    pub(super) fn known_results(&mut self, block: &'m Block<'m>, terms: &[Term]) -> Option<Vec<Term>> {
        let (nodes, at, base) = (self.graph.order().len(), self.at, self.base.clone());
        let mut scope = self.captured.clone();
        let depth = self.depth;
        let results = self.enter(block, terms, &mut scope).and_then(|()| self.block(block, &mut scope));
        (self.at, self.base, self.depth) = (at, base, depth);
        results.ok().filter(|_| self.graph.order().len() == nodes)
    }

    /// Counts work, so that calls of calls and long loops come to an end.
    pub(super) fn charge(&mut self, work: u64) -> Got<()> {
        match self.left.checked_sub(work) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.refuse(format!(
                "with all calls inlined and all loops unrolled, the step has more than {MOST} operations; export it with \
                 fewer turns"
            )),
        }
    }

    pub(super) fn refuse<T>(&self, message: impl Into<String>) -> Got<T> {
        Err(Fault { at: self.at, message: message.into(), is_unsupported: true })
    }

    pub(super) fn wrong<T>(&self, message: impl Into<String>) -> Got<T> {
        Err(Fault { at: self.at, message: message.into(), is_unsupported: false })
    }

    /// Refuses tensors whose size in bytes no program can hold.
    fn sized(&self, ty: &TensorType) -> Got<()> {
        match ty.byte_size() {
            Some(_) if ty.dims.len() <= 32 => Ok(()),
            _ => self.wrong(format!("{ty} is too large")),
        }
    }

    pub(super) fn same(&self, wanted: &TensorType, found: &TensorType) -> Got<()> {
        if wanted == found {
            return Ok(());
        }
        self.wrong(format!("{found} stands where the text says {wanted}"))
    }

    /// A node with one result, which is the value returned.
    pub(super) fn node(
        &mut self,
        operator: &str,
        operands: &[ValueId],
        attributes: Vec<(&str, Attr)>,
        ty: TensorType,
    ) -> Got<ValueId> {
        Ok(self.nodes(operator, operands, attributes, vec![ty])?[0])
    }

    /// A node with these results. An operator of com.microsoft has its domain before its name.
    pub(super) fn nodes(
        &mut self,
        operator: &str,
        operands: &[ValueId],
        attributes: Vec<(&str, Attr)>,
        types: Vec<TensorType>,
    ) -> Got<Vec<ValueId>> {
        self.charge(1)?;
        types.iter().try_for_each(|ty| self.sized(ty))?;
        if operator == "BitCast" {
            self.graph.opsets.insert(String::new(), OPSET_OF_BIT_CAST);
        }
        let op = match operator.strip_prefix("com.microsoft.") {
            Some(name) => Op::new("com.microsoft", name),
            None => Op::new("", operator),
        };
        let mut node = Node::new(self.graph.fresh_node_name(&self.base), op);
        node.operands = operands.iter().copied().map(Some).collect();
        node.attributes = attributes.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let mut results = Vec::new();
        for (index, ty) in types.into_iter().enumerate() {
            let base = if index == 0 { self.base.to_string() } else { format!("{}.{index}", self.base) };
            results.push(Some((self.graph.fresh_value_name(&base), ty.into(), Place::Device)));
        }
        // The places of the largest elements are wanted later, if at all.
        if operator == "MaxPool" {
            results.push(None);
        }
        let id = self.graph.add_node(node, results);
        Ok(self.graph.node(id).defines().collect())
    }

    /// A constant of the file: one for all that have its type and its bytes.
    pub(super) fn constant(&mut self, ty: TensorType, bytes: &[u8]) -> ValueId {
        if let Some(&value) = self.constants.get(&(ty.clone(), bytes.to_vec())) {
            return value;
        }
        let name = self.graph.fresh_value_name("constant");
        let data = Data::Inline(bytes::Bytes::copy_from_slice(bytes));
        let value = self.graph.add_initializer(name, ty.clone(), data);
        self.constants.insert((ty, bytes.to_vec()), value);
        value
    }

    /// A list of integers, as operators take axes, extents and pads.
    pub(super) fn integers(&mut self, list: &[i64]) -> ValueId {
        let bytes: Vec<u8> = list.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(TensorType::new(ElementType::Int64, [list.len() as u64]), &bytes)
    }

    /// The integer in each element of the type.
    pub(super) fn integer(&self, ty: &TensorType, value: i64) -> Got<Term> {
        match super::fold::scalar(ty.element, value) {
            Some(scalar) => Ok(Term::splat(ty.clone(), scalar)),
            None => self.refuse(format!("there is no integer {value} of type {}", ty.element)),
        }
    }

    /// A value of the graph that broadcasts to the term.
    pub(super) fn small(&mut self, term: &Term) -> Got<ValueId> {
        match &term.is {
            Is::Value(value) => Ok(*value),
            Is::Splat(scalar) => Ok(self.constant(TensorType::new(term.ty.element, []), scalar)),
            Is::Rows(_) => self.whole(term),
        }
    }

    /// A value of the graph with all of the term's elements.
    pub(super) fn whole(&mut self, term: &Term) -> Got<ValueId> {
        if let Is::Rows(rows) = &term.is {
            let rows = Rc::clone(rows);
            let rows = rows.iter().map(|row| self.whole(row)).collect::<Got<Vec<_>>>()?;
            return match &rows[..] {
                [row] => Ok(*row),
                _ => self.node("Concat", &rows, vec![("axis", Attr::Int(0))], term.ty.clone()),
            };
        }
        let value = self.small(term)?;
        if self.dims_of(value) == term.dims() {
            return Ok(value);
        }
        if let (Is::Splat(scalar), Some(count @ ..=16)) = (&term.is, term.ty.element_count()) {
            let bytes = scalar.repeat(count as usize);
            return Ok(self.constant(term.ty.clone(), &bytes));
        }
        if self.graph.value(value).ty.as_tensor().and_then(TensorType::element_count)
            == term.ty.element_count()
        {
            return self.reshaped(value, term.dims());
        }
        let dims: Vec<i64> = term.dims().iter().map(|&d| d as i64).collect();
        let dims = self.integers(&dims);
        self.node("Expand", &[value, dims], Vec::new(), term.ty.clone())
    }

    pub(super) fn dims_of(&self, value: ValueId) -> &[u64] {
        self.graph.value(value).ty.as_tensor().map_or(&[], |ty| &ty.dims)
    }

    pub(super) fn element_of(&self, value: ValueId) -> ElementType {
        self.graph.value(value).ty.as_tensor().map_or(ElementType::Float, |ty| ty.element)
    }

    /// The value with these extents, which have as many elements.
    pub(super) fn reshaped(&mut self, value: ValueId, dims: &[u64]) -> Got<ValueId> {
        if self.dims_of(value) == dims {
            return Ok(value);
        }
        let ty = TensorType::new(self.element_of(value), dims);
        let list: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
        let shape = self.integers(&list);
        // An extent of 0 is itself, and not that of the operand.
        let attributes = if dims.contains(&0) { vec![("allowzero", Attr::Int(1))] } else { Vec::new() };
        self.node("Reshape", &[value, shape], attributes, ty)
    }

    /// An operator that works element by element, on operands that broadcast. The result's extents are those of `dims`, or if
    /// they are empty of the first operand.
    pub(super) fn each(
        &mut self,
        operator: &str,
        terms: &[&Term],
        element: ElementType,
        dims: &[u64],
    ) -> Got<Term> {
        self.each_with(operator, terms, Vec::new(), element, dims)
    }

    /// The same with attributes.
    pub(super) fn each_with(
        &mut self,
        operator: &str,
        terms: &[&Term],
        attributes: Vec<(&str, Attr)>,
        element: ElementType,
        dims: &[u64],
    ) -> Got<Term> {
        let whole = if dims.is_empty() { terms.first().map_or(&[][..], |term| term.dims()) } else { dims };
        let ty = TensorType::new(element, whole);
        let mut values = Vec::new();
        let mut small: Vec<u64> = Vec::new();
        for term in terms {
            if !term.dims().is_empty() && term.dims() != whole {
                return self.wrong(format!("{} and {ty} do not go together", term.ty));
            }
            let value = self.small(term)?;
            match joined(&small, self.dims_of(value)) {
                Some(dims) => small = dims,
                None => return self.wrong(format!("{} and {ty} do not go together", term.ty)),
            }
            values.push(value);
        }
        let value = self.node(operator, &values, attributes, TensorType::new(element, small))?;
        Ok(Term::value(ty, value))
    }

    /// The extents of the term's value, with ones before them: 1 where the term repeats it.
    pub(super) fn padded(&self, value: ValueId, term: &Term) -> Vec<u64> {
        padded(self.dims_of(value), term.dims().len())
    }

    /// A constant with these elements.
    pub(super) fn elements(&mut self, ty: TensorType, scalar: Option<Scalar>, bytes: &[u8]) -> Term {
        match scalar {
            Some(scalar) => Term::splat(ty, scalar),
            None => {
                let value = self.constant(ty.clone(), bytes);
                Term::value(ty, value)
            }
        }
    }
}

/// Puts the values of the function that the block reads among the captured ones.
fn capture<'m>(block: &Block<'m>, scope: &Scope<'m>, captured: &mut Scope<'m>) {
    for op in &block.operations {
        for reference in &op.operands {
            if let Some(terms) = scope.get(reference.name) {
                captured.entry(reference.name).or_insert_with(|| terms.clone());
            }
        }
        op.regions.iter().for_each(|region| capture(region, scope, captured));
    }
}

fn one_line(name: &str) -> String {
    name.replace(['\n', '\r'], " ")
}

/// The path of an operation within the step: `jvp()/dot_general` of `jit(step)/jvp()/dot_general`.
fn short(place: &str) -> String {
    const LONGEST: usize = 120;
    let place = match place.split_once('/') {
        Some((first, rest)) if first.starts_with("jit(") => rest,
        _ => place,
    };
    one_line(place).chars().take(LONGEST).collect()
}
