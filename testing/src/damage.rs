//! Small changes to a graph, each of which changes its results.

use lmsc_ir::rng::Source;
use lmsc_ir::{
    Attr, Data, Def, Digest, ElementType, Float, Graph, Initializer, Name, Node, NodeId, Op, TensorType,
    Type, Update, Value, ValueId,
};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident),* $(,)?) => {
        /// A kind of change that [`damage`] makes to a graph.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Damage { $($(#[$doc])* $kind),* }

        impl Damage {
            /// Every kind, in declaration order.
            pub const ALL: &[Damage] = &[$(Damage::$kind),*];
        }
    };
}

kinds! {
    /// A node is removed; readers of its result read its operand instead.
    DropNode,
    /// A node whose results have no reader is removed.
    DropDeadNode,
    /// A superfluous node is added.
    AddNode,
    /// Two operands of a node change places.
    SwapOperands,
    /// An operand reads another value of the same type.
    RewireOperand,
    /// An operand is left out.
    OmitOperand,
    /// A swap-in reads the result of another swap-out.
    RewireSwapIn,
    /// An operand goes through a smaller type, which does not hold it, and back.
    NarrowOperand,
    /// An attribute has another value.
    ChangeAttribute,
    /// An attribute is gone.
    RemoveAttribute,
    /// A node has another operator.
    ChangeOperator,
    /// A domain of operators has another version.
    ChangeVersion,
    /// A result has another extent or element type.
    ChangeResultType,
    /// Two results of a node change places.
    ExchangeResults,
    /// A result is left out.
    OmitResult,
    /// Two outputs change places.
    ExchangeOutputs,
    /// An output is gone.
    RemoveOutput,
    /// An output is another value of the same type, under the output's name.
    RewireOutput,
    /// An input has another name.
    RenameInput,
    /// Two inputs change places.
    ExchangeInputs,
    /// An initializer has other bytes.
    ChangeInitializer,
    /// An update edge is gone.
    DropUpdate,
    /// An update edge points to another variable.
    RetargetUpdate,
    /// The new value of a variable is another result, or none.
    ChangeNewValue,
    /// A node that updates a variable runs twice.
    RepeatUpdate,
    /// A random node has another name, and with it another seed.
    Reseed,
    /// A random node that computes another one again no longer says so.
    ForgetOrigin,
}

/// The graph with one change, so that it computes something else; `None` if no place for this kind was found.
///
/// The place is drawn from `u`. The results stay the same only if the change exchanges two values that happen to be equal, such
/// as two equal nodes. The result is still a well-formed graph: values are read after they are computed.
pub fn damage(graph: &Graph, kind: Damage, u: &mut impl Source) -> Option<Graph> {
    let mut g = graph.clone();
    for _ in 0..64 {
        if try_damage(&mut g, kind, u).is_some() {
            let renamed = matches!(kind, Damage::RenameInput | Damage::Reseed | Damage::RewireOutput);
            return Some(if renamed { reindexed(&g) } else { g });
        }
    }
    None
}

/// Damages one random place, or leaves the graph unchanged if the place does not suit the kind.
fn try_damage(g: &mut Graph, kind: Damage, u: &mut impl Source) -> Option<()> {
    match kind {
        Damage::DropNode => drop_node(g, u),
        Damage::DropDeadNode => drop_dead_node(g, u),
        Damage::AddNode => add_node(g, u),
        Damage::SwapOperands => swap_operands(g, u),
        Damage::RewireOperand => rewire_operand(g, u),
        Damage::OmitOperand => omit_operand(g, u),
        Damage::RewireSwapIn => rewire_swap_in(g, u),
        Damage::NarrowOperand => narrow_operand(g, u),
        Damage::ChangeAttribute => change_attribute(g, u),
        Damage::RemoveAttribute => remove_attribute(g, u),
        Damage::ChangeOperator => change_operator(g, u),
        Damage::ChangeVersion => change_version(g, u),
        Damage::ChangeResultType => change_result_type(g, u),
        Damage::ExchangeResults => exchange_results(g, u),
        Damage::OmitResult => omit_result(g, u),
        Damage::ExchangeOutputs => exchange_outputs(g, u),
        Damage::RemoveOutput => remove_output(g, u),
        Damage::RewireOutput => rewire_output(g, u),
        Damage::RenameInput => rename_input(g, u),
        Damage::ExchangeInputs => exchange_inputs(g, u),
        Damage::ChangeInitializer => change_initializer(g, u),
        Damage::DropUpdate => drop_update(g, u),
        Damage::RetargetUpdate => retarget_update(g, u),
        Damage::ChangeNewValue => change_new_value(g, u),
        Damage::RepeatUpdate => repeat_update(g, u),
        Damage::Reseed => reseed(g, u),
        Damage::ForgetOrigin => forget_origin(g, u),
    }
}

fn drop_node(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.op.is_swap())?;
    let result = g.node(id).results.first().copied().flatten()?;
    let operand = g.node(id).operands.iter().flatten().copied();
    let operand = operand.into_iter().find(|&v| g.value(v).ty == g.value(result).ty)?;
    let unread = |v| uses(g, v) == 0;
    if g.node(id).defines().skip(1).all(unread) && !g.outputs.contains(&result) {
        redirect(g, result, operand);
        remove(g, id);
        return Some(());
    }
    None
}

fn drop_dead_node(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let reads = |n: NodeId| g.node(n).reads().map(|v| whole(g, v)).collect::<Vec<_>>();
    let again = |id: NodeId| {
        let same = |n: NodeId| g.node(n).op == g.node(id).op && reads(n) == reads(id);
        g.order().iter().any(|&n| n != id && same(n))
    };
    let mut read = vec![false; g.value_capacity()];
    let reads_of_all = g.order().iter().flat_map(|&n| g.node(n).reads());
    reads_of_all.chain(g.outputs.iter().copied()).for_each(|v| read[v.as_u32() as usize] = true);
    let dead = |id: NodeId| g.node(id).defines().all(|v| !read[v.as_u32() as usize]) && !again(id);
    let all: Vec<NodeId> =
        g.order().iter().copied().filter(|&n| !g.node(n).op.is_swap() && dead(n)).collect();
    let id = pick(u, &all)?;
    remove(g, id);
    Some(())
}

fn add_node(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| n.results.first().is_some_and(Option::is_some))?;
    let read = g.node(id).results[0]?;
    let mut extra = Node::new(g.fresh_node_name("extra"), Op::new("", "Cos"));
    extra.operands.push(Some(read));
    let (name, value) = (g.fresh_value_name("extra"), g.value(read));
    let result = (name, value.ty.clone(), value.place);
    g.add_node(extra, [Some(result)]);
    Some(())
}

fn swap_operands(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| n.operands.len() > 1)?;
    let count = g.node(id).operands.len();
    let (i, j) = (u.below(count), u.below(count));
    let operands = &mut g.node_mut(id).operands;
    operands.swap(i, j);
    (operands[i] != operands[j]).then_some(())
}

fn rewire_operand(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.op.is_swap())?;
    let index = u.below(g.node(id).operands.len());
    let old = g.node(id).operands.get(index).copied()??;
    let new = another(g, u, old, Some(id))?;
    g.set_operand(id, index, new);
    Some(())
}

fn omit_operand(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.op.is_swap())?;
    let index = u.below(g.node(id).operands.len());
    g.node_mut(id).operands.get_mut(index)?.take().map(|_| ())
}

fn rewire_swap_in(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| n.op.is_swap_in())?;
    let old = g.node(id).operands[0]?;
    let from = |v: ValueId| {
        let origin = g.producer(v).filter(|&n| g.node(n).op.is_swap_out());
        origin.and_then(|n| g.node(n).operands[0])
    };
    let ticks = g.ticks();
    let tick = |n: NodeId| ticks[n.as_u32() as usize];
    let others: Vec<ValueId> = g
        .order()
        .iter()
        .filter(|&&n| g.node(n).op.is_swap_out() && tick(n) < tick(id))
        .flat_map(|&n| g.node(n).defines())
        .filter(|&v| from(v) != from(old) && g.value(v).ty == g.value(old).ty)
        .collect();
    let new = pick(u, &others)?;
    g.set_operand(id, 0, new);
    Some(())
}

fn narrow_operand(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.op.is_swap())?;
    let index = u.below(g.node(id).operands.len());
    let wide = g.node(id).operands.get(index).copied()??;
    let ty = g.value(wide).ty.as_tensor()?.clone();
    // The codes of ONNX's `TensorProto.DataType`.
    let casts = match ty.element {
        ElementType::Float => [(ElementType::Float16, 10), (ElementType::Float, 1)],
        ElementType::Int64 if g.producer(wide).is_none() => {
            [(ElementType::Int32, 6), (ElementType::Int64, 7)]
        }
        _ => return None,
    };
    let before = g.order().iter().position(|&n| n == id)?;
    let (mut order, mut value) = (g.order().to_vec(), wide);
    for (i, (element, code)) in casts.into_iter().enumerate() {
        let mut cast = Node::new(g.fresh_node_name("narrow"), Op::new("", "Cast"));
        cast.attributes.push(("to".into(), Attr::Int(code)));
        cast.operands.push(Some(value));
        let ty = Type::Tensor(TensorType::new(element, ty.dims.clone()));
        let result = (g.fresh_value_name("narrow"), ty, g.value(wide).place);
        let cast = g.add_node(cast, [Some(result)]);
        order.insert(before + i, cast);
        value = g.node(cast).results[0]?;
    }
    g.set_order(order);
    g.set_operand(id, index, value);
    Some(())
}

fn change_attribute(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.attributes.is_empty())?;
    let attributes = &mut g.node_mut(id).attributes;
    let index = u.below(attributes.len());
    change_value(&mut attributes[index].1, u)
}

fn remove_attribute(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.attributes.is_empty())?;
    let attributes = &mut g.node_mut(id).attributes;
    attributes.remove(u.below(attributes.len()));
    Some(())
}

fn change_operator(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.op.is_swap())?;
    let op = &mut g.node_mut(id).op;
    let name = match op.name() {
        "Relu" => "Tanh".to_owned(),
        "Add" => "Sub".to_owned(),
        "Squeeze" => "Unsqueeze".to_owned(),
        name => format!("{name}2"),
    };
    *op = Op::new(op.domain(), &name);
    Some(())
}

fn change_version(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.op.is_swap())?;
    let domain = g.node(id).op.domain().to_owned();
    *g.opsets.get_mut(&*domain)? += 1;
    Some(())
}

fn change_result_type(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.op.is_swap())?;
    let index = u.below(g.node(id).results.len());
    let value = g.node(id).results.get(index).copied()??;
    let Type::Tensor(tensor) = &mut g.value_mut(value).ty else { return None };
    match u.below(2 + tensor.dims.len()) {
        0 => tensor.dims.push(1),
        1 => {
            use lmsc_ir::ElementType::*;
            tensor.element = if tensor.element == Float { Float16 } else { Float };
        }
        axis => tensor.dims[axis - 2] += 1,
    }
    Some(())
}

fn exchange_results(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| n.defines().count() > 1)?;
    let count = g.node(id).results.len();
    let (i, j) = (u.below(count), u.below(count));
    let (a, b) = (g.node(id).results[i]?, g.node(id).results[j]?);
    if a == b || uses(g, a) + uses(g, b) == 0 {
        return None;
    }
    g.node_mut(id).results.swap(i, j);
    g.set_def(a, Def::Result(id, j));
    g.set_def(b, Def::Result(id, i));
    Some(())
}

fn omit_result(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    // A recomputed node may leave out results without a reader.
    let id = node(g, u, |n| n.results.len() > 1 && n.recomputes.is_none())?;
    let index = u.below(g.node(id).results.len());
    let value = g.node(id).results[index]?;
    if uses(g, value) > 0 {
        return None;
    }
    g.node_mut(id).results[index] = None;
    Some(())
}

fn exchange_outputs(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let (i, j) = (u.below(g.outputs.len()), u.below(g.outputs.len()));
    (i != j).then(|| g.outputs.swap(i, j))
}

fn remove_output(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let index = u.below(g.outputs.len());
    (!g.outputs.is_empty()).then(|| g.outputs.remove(index)).map(|_| ())
}

fn rewire_output(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let index = u.below(g.outputs.len());
    let old = *g.outputs.get(index)?;
    let new = another(g, u, old, None)?;
    if !matches!(g.def(new), Def::Result(..)) || g.outputs.contains(&new) {
        return None;
    }
    let (name, other) = (g.value(old).name.clone(), g.value(new).name.clone());
    (g.value_mut(new).name, g.value_mut(old).name) = (name, other);
    g.outputs[index] = new;
    Some(())
}

fn rename_input(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let input = pick(u, &g.inputs)?;
    let name = format!("{}_renamed", g.value(input).name);
    g.value_mut(input).name = g.fresh_value_name(&name);
    Some(())
}

fn exchange_inputs(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let (i, j) = (u.below(g.inputs.len()), u.below(g.inputs.len()));
    (i != j).then(|| g.inputs.swap(i, j))
}

fn change_initializer(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let index = u.below(g.initializers.len());
    let Initializer { value, data } = g.initializers.get(index)?.clone();
    if uses(g, value) == 0 {
        return None;
    }
    g.initializers[index].data = other_data(&data, u)?;
    Some(())
}

fn drop_update(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.updates.is_empty())?;
    let updates = &mut g.node_mut(id).updates;
    updates.remove(u.below(updates.len()));
    Some(())
}

fn retarget_update(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.updates.is_empty())?;
    let index = u.below(g.node(id).updates.len());
    let old = g.node(id).updates[index].variable;
    let new = pick(u, &g.inputs)?;
    let taken = g.node(id).updates.iter().any(|update| update.variable == new);
    (new != old && !taken).then(|| g.node_mut(id).updates[index].variable = new)
}

fn change_new_value(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| n.updates.iter().any(|update| update.result.is_some()))?;
    let node = g.node(id);
    let index = u.below(node.updates.len());
    let Update { variable, result } = node.updates[index];
    let other = Some(u.below(1 + node.results.len()));
    let other = other.filter(|&r| node.results.get(r).is_some_and(Option::is_some));
    (other != result).then(|| g.node_mut(id).updates[index] = Update { variable, result: other })
}

fn repeat_update(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let id = node(g, u, |n| !n.updates.is_empty())?;
    let mut again = g.node(id).clone();
    again.name = g.fresh_node_name(&format!("{}_again", again.name));
    let named = |v: Option<ValueId>| {
        let Value { name, ty, place, .. } = g.value(v?).clone();
        Some((g.fresh_value_name(&format!("{name}_again")), ty, place))
    };
    let results: Vec<Option<(Name, Type, lmsc_ir::Place)>> =
        again.results.iter().map(|&v| named(v)).collect();
    g.add_node(again, results);
    Some(())
}

fn reseed(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let random = |n: &Node| n.op.effects().random && n.recomputes.is_none();
    let id = node(g, u, random)?;
    let name = g.fresh_node_name(&format!("{}_renamed", g.node(id).name));
    g.node_mut(id).name = name;
    Some(())
}

fn forget_origin(g: &mut Graph, u: &mut impl Source) -> Option<()> {
    let random = |n: &Node| n.op.effects().random && n.recomputes.is_some();
    let id = node(g, u, random)?;
    g.node_mut(id).recomputes = None;
    Some(())
}

fn pick<T: Copy>(u: &mut impl Source, items: &[T]) -> Option<T> {
    items.get(u.below(items.len())).copied()
}

/// A random node for which `fits` is true.
fn node(g: &Graph, u: &mut impl Source, fits: impl Fn(&Node) -> bool) -> Option<NodeId> {
    let fitting: Vec<NodeId> = g.order().iter().copied().filter(|&n| fits(g.node(n))).collect();
    pick(u, &fitting)
}

/// A random value of the type of `value` that is computed before `reader` and is not a copy or view of `value`.
fn another(g: &Graph, u: &mut impl Source, value: ValueId, reader: Option<NodeId>) -> Option<ValueId> {
    let ticks = g.ticks();
    let before = |v: ValueId| match g.def(v) {
        Def::Result(n, _) => {
            let limit = reader.map_or(u32::MAX, |r| ticks[r.as_u32() as usize]);
            ticks[n.as_u32() as usize] < limit
        }
        Def::Nothing => false,
        _ => true,
    };
    let fits = |&v: &ValueId| {
        v != value && g.value(v).ty == g.value(value).ty && before(v) && whole(g, v) != whole(g, value)
    };
    let others: Vec<ValueId> = g.values().map(|(v, _)| v).filter(fits).collect();
    pick(u, &others)
}

/// The value that the value is a copy of.
fn whole(g: &Graph, mut value: ValueId) -> ValueId {
    while let Some(swap) = g.producer(value).map(|n| g.node(n)).filter(|n| n.op.is_swap())
        && let Some(Some(from)) = swap.operands.first()
    {
        value = *from;
    }
    value
}

/// Number of reads of the value by nodes and as an output.
fn uses(g: &Graph, value: ValueId) -> usize {
    let reads = g.order().iter().flat_map(|&n| g.node(n).reads());
    reads.chain(g.outputs.iter().copied()).filter(|&v| v == value).count()
}

fn redirect(g: &mut Graph, from: ValueId, to: ValueId) {
    for id in g.order().to_vec() {
        let node = g.node_mut(id);
        let reads = node.operands.iter_mut().flatten().chain(&mut node.captures);
        reads.filter(|v| **v == from).for_each(|v| *v = to);
    }
}

/// Removes a node and every edge to it.
fn remove(g: &mut Graph, id: NodeId) {
    let order: Vec<NodeId> = g.order().iter().copied().filter(|&n| n != id).collect();
    for &n in &order {
        let node = g.node_mut(n);
        node.after.retain(|before| *before != id);
        node.recomputes = node.recomputes.filter(|&origin| origin != id);
    }
    g.set_order(order);
}

fn change_value(attr: &mut Attr, u: &mut impl Source) -> Option<()> {
    fn change<T>(list: &mut Vec<T>, u: &mut impl Source, other: impl Fn(&T) -> T) -> Option<()> {
        let index = u.below(list.len());
        let element = list.get(index)?;
        match u.below(3) {
            0 => list.push(other(element)),
            1 => drop(list.remove(index)),
            _ => list[index] = other(element),
        }
        Some(())
    }
    let longer = |text: &bytes::Bytes| [text, &b"!"[..]].concat().into();
    match attr {
        Attr::Int(value) => *value ^= 1 << u.below(64),
        Attr::Float(value) => *value = Float(f32::from_bits(value.0.to_bits() ^ (1 << u.below(32)))),
        Attr::String(text) => *text = longer(text),
        Attr::Ints(list) => change(list, u, |v| v + 1)?,
        Attr::Floats(list) => change(list, u, |v| Float(v.0 + 1.0))?,
        Attr::Strings(list) => change(list, u, longer)?,
        Attr::Tensor(_, data) | Attr::Opaque(data) => *data = other_data(data, u)?,
    }
    Some(())
}

/// Other bytes of the same number.
fn other_data(data: &Data, u: &mut impl Source) -> Option<Data> {
    match data {
        Data::Inline(bytes) => {
            let mut bytes = bytes.to_vec();
            let index = u.below(bytes.len());
            *bytes.get_mut(index)? ^= 1 << u.below(8);
            Some(Data::Inline(bytes.into()))
        }
        Data::External { location, offset, length } => {
            let (location, length) = (location.clone(), *length);
            Some(Data::External { location, offset: offset + 1, length })
        }
        Data::Digest { length, digest } => {
            let digest = match *digest {
                Digest::Blake3(mut bytes) => {
                    bytes[u.below(32)] ^= 1 << u.below(8);
                    Digest::Blake3(bytes)
                }
                Digest::Xxh3(number) => Digest::Xxh3(number ^ (1 << u.below(128))),
            };
            (*length > 0).then_some(Data::Digest { length: *length, digest })
        }
    }
}

/// The same graph, indexed by the current names of its nodes and values.
fn reindexed(graph: &Graph) -> Graph {
    let mut g = Graph::new(graph.name.clone());
    g.opsets = graph.opsets.clone();
    let mut values = vec![None; graph.value_capacity()];
    let mut copy = |g: &mut Graph, v: ValueId| {
        *values[v.as_u32() as usize].get_or_insert_with(|| g.add_value(graph.value(v).clone(), Def::Nothing))
    };
    let mut nodes = vec![None; graph.node_capacity()];
    for &id in graph.order() {
        let name = graph.node(id).name.clone();
        let new = g.add_node(Node::new(name, Op::new("", "")), std::iter::empty::<Option<(Name, _, _)>>());
        nodes[id.as_u32() as usize] = Some(new);
    }
    let node_of = |id: &NodeId| nodes[id.as_u32() as usize];
    for &input in &graph.inputs {
        let value = copy(&mut g, input);
        g.set_def(value, graph.def(input));
        g.inputs.push(value);
    }
    for Initializer { value, data } in &graph.initializers {
        let (def, value) = (graph.def(*value), copy(&mut g, *value));
        g.set_def(value, def);
        g.initializers.push(Initializer { value, data: data.clone() });
    }
    for id in graph.order() {
        let (Some(new), mut node) = (node_of(id), graph.node(*id).clone()) else { continue };
        for (index, result) in node.results.iter_mut().enumerate() {
            if let Some(value) = result {
                *value = copy(&mut g, *value);
                g.set_def(*value, Def::Result(new, index));
            }
        }
        node.operands.iter_mut().flatten().for_each(|v| *v = copy(&mut g, *v));
        node.captures.iter_mut().for_each(|v| *v = copy(&mut g, *v));
        node.updates.iter_mut().for_each(|update| update.variable = copy(&mut g, update.variable));
        node.after = node.after.iter().filter_map(node_of).collect();
        node.recomputes = node.recomputes.as_ref().and_then(node_of);
        *g.node_mut(new) = node;
    }
    g.outputs = graph.outputs.iter().map(|&v| copy(&mut g, v)).collect();
    g
}
