use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::damage::{Damage, damage};
use crate::graphs::{Size, training_graph};
use crate::rng::{Rng, Source};
use crate::{Place, TensorType};

fn graphs(count: u64) -> impl Iterator<Item = (u64, Graph)> {
    let sizes = [5, 9, 16, 30, 60, 120];
    (0..count).map(move |seed| {
        let size = Size::nodes(sizes[seed as usize % sizes.len()]);
        (seed, training_graph(&mut Rng::new(seed), size))
    })
}

/// A rewriting by hand: swaps every third activation that has a late reader, with indices also encoded, recomputes others, and
/// clones views of swapped-in values. Returns the graph and the numbers of added nodes.
fn rewrite(original: &Graph, u: &mut impl Source) -> (Graph, Equivalence) {
    let mut g = original.clone();
    let mut readers: Vec<Vec<NodeId>> = vec![Vec::new(); g.value_capacity()];
    for &id in g.order() {
        g.node(id).reads().for_each(|v| readers[v.as_u32() as usize].push(id));
    }
    let mut before: Vec<Vec<NodeId>> = vec![Vec::new(); g.node_capacity()];
    let mut after = before.clone();
    let mut added = Equivalence { nodes: 0, twins: 0, swaps: 0, casts: 0 };
    let values: Vec<ValueId> = original.values().map(|(v, _)| v).collect();
    for value in values {
        let Some(producer) = original.producer(value) else { continue };
        if original.value(value).place.is_host() {
            continue;
        }
        let Some(&late) = readers[value.as_u32() as usize].last() else { continue };
        match u.below(6) {
            0 | 1 => {
                let copy = |g: &mut Graph, op: &str, from: ValueId, place| {
                    let mut node = Node::new(g.fresh_node_name("swap"), Op::new(crate::LMSC_DOMAIN, op));
                    node.operands.push(Some(from));
                    let ty = g.value(from).ty.clone();
                    let name = g.fresh_value_name("copy");
                    let id = g.add_node(node, [Some((name, ty, place))]);
                    (id, g.node(id).results[0].unwrap())
                };
                let index = ["MaxPool", "TopK"].contains(&original.node(producer).op.name())
                    && is_index(original, value);
                let encoded = index && u.chance(50);
                let mut leaving = value;
                if encoded {
                    let encoding;
                    (encoding, leaving) = cast(&mut g, value, crate::ElementType::Int32, 6);
                    after[producer.as_u32() as usize].push(encoding);
                    added.casts += 2;
                }
                let (out, host) = copy(&mut g, "SwapOut", leaving, Place::Host);
                let (into, mut back) = copy(&mut g, "SwapIn", host, Place::Device);
                after[producer.as_u32() as usize].push(out);
                added.swaps += 2;
                let mut coming = vec![into];
                if encoded {
                    let decoding;
                    (decoding, back) = cast(&mut g, back, crate::ElementType::Int64, 7);
                    coming.push(decoding);
                }
                let effects = g.node(late).op.effects();
                let reader_of_view = late_view_reader(&g, late, &readers).filter(|_| effects.view);
                let (at, view) = match reader_of_view {
                    // The viewed value is swapped instead of the view; the late reader reads a view of the copy.
                    Some(reader) => (reader, Some(clone(&mut g, late, value, back, false))),
                    None => (late, None),
                };
                before[at.as_u32() as usize].append(&mut coming);
                match view {
                    Some(view) => {
                        added.twins += 1;
                        before[at.as_u32() as usize].push(view);
                        let (old, new) = (g.node(late).results[0].unwrap(), g.node(view).results[0].unwrap());
                        rewire(&mut g, at, old, new);
                    }
                    None => rewire(&mut g, at, value, back),
                }
            }
            2 if repeat(g.node(producer)) != Repeat::Never && !g.node(producer).op.is_swap() => {
                let twin = clone(&mut g, producer, value, value, true);
                let index = original.node(producer).results.iter().position(|r| *r == Some(value)).unwrap();
                let again = g.node(twin).results[index].unwrap();
                if u.chance(50) {
                    // Results of the twin without a reader are left out.
                    let others = 0..g.node(twin).results.len();
                    others.filter(|&i| i != index).for_each(|i| g.node_mut(twin).results[i] = None);
                }
                rewire(&mut g, late, value, again);
                before[late.as_u32() as usize].push(twin);
                added.twins += 1;
            }
            _ => {}
        }
    }
    let mut order = Vec::new();
    for &id in original.order() {
        order.append(&mut before[id.as_u32() as usize]);
        order.push(id);
        order.append(&mut after[id.as_u32() as usize]);
    }
    g.set_order(order);
    (g, added)
}

fn is_index(g: &Graph, value: ValueId) -> bool {
    g.value(value).ty.as_tensor().is_some_and(|t| t.element == crate::ElementType::Int64)
}

fn cast(g: &mut Graph, from: ValueId, to: crate::ElementType, code: i64) -> (NodeId, ValueId) {
    let mut node = Node::new(g.fresh_node_name("cast"), Op::new("", "Cast"));
    node.attributes.push(("to".into(), Attr::Int(code)));
    node.operands.push(Some(from));
    let dims = g.value(from).ty.as_tensor().unwrap().dims.clone();
    let name = g.fresh_value_name("cast");
    let id = g.add_node(node, [Some((name, TensorType::new(to, dims).into(), Place::Device))]);
    (id, g.node(id).results[0].unwrap())
}

fn late_view_reader(g: &Graph, view: NodeId, readers: &[Vec<NodeId>]) -> Option<NodeId> {
    let result = g.node(view).results.first().copied().flatten()?;
    readers.get(result.as_u32() as usize)?.last().copied()
}

fn rewire(g: &mut Graph, node: NodeId, old: ValueId, new: ValueId) {
    g.node_mut(node).operands.iter_mut().flatten().filter(|v| **v == old).for_each(|v| *v = new);
}

/// A copy of the node that reads `new` for `old`.
fn clone(g: &mut Graph, id: NodeId, old: ValueId, new: ValueId, recomputes: bool) -> NodeId {
    let mut node = g.node(id).clone();
    node.name = g.fresh_node_name("twin");
    node.recomputes = recomputes.then_some(id);
    node.operands.iter_mut().flatten().filter(|v| **v == old).for_each(|v| *v = new);
    let mut results = Vec::new();
    for (index, result) in node.results.iter().enumerate() {
        let ty = result.map(|v| g.value(v).ty.clone());
        results.push(ty.map(|ty| (format!("{}_{index}", g.fresh_value_name(&node.name)), ty, Place::Device)));
    }
    g.add_node(node, results)
}

/// The value that the node casts, if it is a plain Cast between these element types.
fn cast_between(g: &Graph, node: &Node, from: &str, to: &str, code: i64) -> Option<ValueId> {
    let (&[Some(operand)], &[Some(result)]) = (&node.operands[..], &node.results[..]) else { return None };
    let (before, after) = (g.value(operand).ty.to_string(), g.value(result).ty.to_string());
    let plain = node.op.to_string() == "Cast" && node.attributes.len() == 1 && node.updates.is_empty();
    let to_code = matches!(node.attribute("to"), Some(Attr::Int(c)) if *c == code);
    (plain && to_code && before.starts_with(from) && before.replace(from, to) == after).then_some(operand)
}

/// The meaning of the graph, computed independently of `check`: every value is a digest of the text of its computation. Two
/// graphs of one meaning compute the same, up to collisions of digests.
fn meaning(g: &Graph) -> String {
    use xxhash_rust::xxh3::xxh3_128;
    let mut of: BTreeMap<ValueId, u128> = BTreeMap::new();
    let mut once = Vec::new();
    let mut pure = BTreeSet::new();
    // By digest of an encoded index, the digests of the index and of the node; and such nodes, which do not count.
    let mut encodings: BTreeMap<u128, (u128, u128)> = BTreeMap::new();
    let (mut indices, mut decoded) = (BTreeSet::new(), BTreeSet::new());
    let updated = g.variables();
    for &v in &g.inputs {
        of.insert(v, xxh3_128(format!("input {}", g.value(v).name).as_bytes()));
    }
    for i in &g.initializers {
        let value = g.value(i.value);
        let name = if updated.contains(&i.value) { &*value.name } else { "" };
        let text = format!("{name} {} {} {:?}", value.ty, i.data.len(), i.data.digest());
        of.insert(i.value, xxh3_128(text.as_bytes()));
    }
    for &id in g.order() {
        let node = g.node(id);
        if node.op.is_swap() {
            let from = of[&node.operands[0].unwrap()];
            of.insert(node.results[0].unwrap(), from);
            continue;
        }
        let mut origin = id;
        while let Some(next) = g.node(origin).recomputes {
            origin = next;
        }
        let types = |i: usize| {
            let like = node.results[i].or(g.node(origin).results.get(i).copied().flatten());
            like.map(|v| g.value(v).ty.to_string())
        };
        let mut attributes: Vec<String> = node.attributes.iter().map(|a| format!("{a:?}")).collect();
        attributes.sort();
        let effects = node.op.effects();
        let mut updates: Vec<_> = node.updates.iter().map(|u| (of[&u.variable], u.result)).collect();
        updates.sort();
        let text = format!(
            "{} {:?} {attributes:?} {:?} {:?} {updates:?} {:?}",
            node.op,
            g.opsets.get(node.op.domain()),
            node.operands.iter().map(|v| v.map(|v| of[&v])).collect::<Vec<_>>(),
            (0..node.results.len()).map(types).collect::<Vec<_>>(),
            effects.random.then_some(&g.node(origin).name),
        );
        let digest = xxh3_128(text.as_bytes());
        if let Some(from) = cast_between(g, node, "int32", "int64", 7)
            && let Some(&(index, encoding)) = encodings.get(&of[&from])
        {
            of.insert(node.results[0].unwrap(), index);
            decoded.insert(encoding);
            continue;
        }
        let mut salt = 0;
        if effects.writes.is_empty() && node.updates.is_empty() {
            pure.insert(digest);
        } else {
            salt = once.iter().filter(|d| **d == digest).count();
            once.push(digest);
        }
        for (index, result) in node.results.iter().enumerate() {
            if let Some(value) = result {
                of.insert(*value, xxh3_128(format!("{digest} {salt} {index}").as_bytes()));
                if index == 1 && ["MaxPool", "TopK"].contains(&node.op.name()) {
                    indices.insert(of[value]);
                }
            }
        }
        if let Some(from) = cast_between(g, node, "int64", "int32", 6).filter(|v| indices.contains(&of[v])) {
            encodings.insert(of[&node.results[0].unwrap()], (of[&from], digest));
        }
    }
    pure.retain(|digest| !decoded.contains(digest));
    once.sort();
    let port = |v: &ValueId| format!("{} {} {}", g.value(*v).name, g.value(*v).ty, of[v]);
    let inputs: Vec<String> = g.inputs.iter().map(port).collect();
    let outputs: Vec<String> = g.outputs.iter().map(port).collect();
    format!("{inputs:?} {outputs:?} {once:?} {pure:?}")
}

#[test]
fn a_graph_equals_itself_and_its_text() {
    for (seed, graph) in graphs(300) {
        let same = check(&graph, &graph).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(same.nodes + same.twins, graph.order().len(), "seed {seed}");
        assert_eq!(same.swaps, 0, "seed {seed}");
        let again = Graph::parse(&graph.to_text()).unwrap();
        assert_eq!(check(&graph, &again), Ok(same), "seed {seed}");
        assert_eq!(check(&again, &graph), Ok(same), "seed {seed}");
    }
}

#[test]
fn swaps_recomputation_and_cloned_views_change_nothing() {
    let (mut all_swaps, mut all_twins, mut all_casts) = (0, 0, 0);
    for (seed, graph) in graphs(300) {
        let own = check(&graph, &graph).unwrap();
        let (rewritten, added) = rewrite(&graph, &mut Rng::new(seed));
        let text = || format!("seed {seed}\n{}\n{}", graph.to_text(), rewritten.to_text());
        let same = check(&graph, &rewritten).unwrap_or_else(|e| panic!("{e}\n{}", text()));
        let twins = own.twins + added.twins;
        assert_eq!(same, Equivalence { nodes: own.nodes, twins, ..added }, "{}", text());
        check(&rewritten, &graph).unwrap_or_else(|e| panic!("{e}\n{}", text()));
        // The rewritten graph is rewritten once more.
        let (twice, _) = rewrite(&rewritten, &mut Rng::new(!seed));
        check(&graph, &twice).unwrap_or_else(|e| panic!("{e}\n{}", text()));
        assert_eq!(meaning(&graph), meaning(&twice), "{}", text());
        all_swaps += added.swaps;
        all_twins += added.twins;
        all_casts += added.casts;
    }
    assert!(all_swaps > 1000 && all_twins > 500 && all_casts > 20, "{all_swaps} {all_twins} {all_casts}");
}

#[test]
fn every_kind_of_damage_is_seen() {
    let mut tally: BTreeMap<Damage, [usize; 3]> = BTreeMap::new();
    for (seed, graph) in graphs(200) {
        let (rewritten, _) = rewrite(&graph, &mut Rng::new(seed));
        for &kind in Damage::ALL {
            for (n, sound) in [&graph, &rewritten].into_iter().enumerate() {
                let mut u = Rng::new(seed * 1000 + kind as u64 * 2 + n as u64);
                let Some(damaged) = damage(sound, kind, &mut u) else { continue };
                let [attempts, real, named] = tally.entry(kind).or_default();
                *attempts += 1;
                let text = || format!("seed {seed}, {kind:?}\n{}\n{}", graph.to_text(), damaged.to_text());
                let there = check(&graph, &damaged);
                let back = check(&damaged, &graph);
                assert_eq!(there.is_ok(), back.is_ok(), "{there:?} {back:?} {}", text());
                match there {
                    Ok(_) => assert_eq!(meaning(&graph), meaning(&damaged), "{}", text()),
                    Err(difference) => {
                        *real += 1;
                        *named += usize::from(!matches!(difference, Difference::Malformed { .. }));
                    }
                }
            }
        }
    }
    for &kind in Damage::ALL {
        let [attempts, real, named] = tally.get(&kind).copied().unwrap_or_default();
        assert!(attempts >= 30, "{kind:?}: {attempts} attempts");
        assert!(real * 100 >= attempts * 95, "{kind:?}: {real} of {attempts}");
        assert!(named * 100 >= real * 85, "{kind:?}: {named} of {real} are differences of meaning");
    }
}

#[test]
fn several_damages_do_not_cancel_unseen() {
    for (seed, graph) in graphs(200) {
        let mut u = Rng::new(seed);
        let mut damaged = graph.clone();
        for _ in 0..4 {
            let kind = Damage::ALL[u.below(Damage::ALL.len())];
            damaged = damage(&damaged, kind, &mut u).unwrap_or(damaged);
        }
        let verdict = check(&graph, &damaged);
        assert_eq!(verdict.is_ok(), meaning(&graph) == meaning(&damaged), "seed {seed}: {verdict:?}");
    }
}

#[test]
fn time_grows_with_the_graph_alone() {
    // A chain of twins of twins, and a chain of copies of copies: a quadratic algorithm would not finish.
    let mut g = Graph::new("g");
    let ty = TensorType::new(crate::ElementType::Float, [4]);
    let x = g.add_input("x", ty.clone(), Place::Device);
    let mut add = |op: Op, from: ValueId, recomputes| {
        let mut node = Node::new(format!("n{}", g.node_capacity()), op);
        node.operands.push(Some(from));
        node.recomputes = recomputes;
        let name = format!("v{}", g.value_capacity());
        let id = g.add_node(node, [Some((name, ty.clone().into(), Place::Host))]);
        g.node(id).results[0].unwrap()
    };
    let (mut copy, mut origin) = (x, None);
    for i in 0..100_000u32 {
        add(Op::new("", "Relu"), x, origin);
        origin = Some(NodeId::from_u32(2 * i));
        copy = add(Op::new(crate::LMSC_DOMAIN, "SwapOut"), copy, None);
    }
    let same = check(&g, &g).unwrap();
    assert_eq!(same, Equivalence { nodes: 1, twins: 99_999, swaps: 100_000, casts: 0 });
}

/// A graph with every construct that a message can be about.
const STEP: &str = r#"<opset: "" = 17, "com.microsoft" = 1>
step (float[4] x, float[4] w, float[4] m, float[4] buffer, float[4] grad) => (float[4] y, float[4] z)
<
   float[4] one = {1.0, 1.0, 1.0, 1.0},
   float[4] bias = {0.5, 0.5, 0.5, 0.5},
   float[4] two = {2.0, 2.0, 2.0, 2.0}
>
{
   [mul] float[4] h = Mul(x, w)
   [soft] float[4] s = Softmax<axis = -1>(h)
   [drop] float[4] d, bool[4] mask = Dropout(s, _, one)
   [loop] float[4] l = Loop<body = opaque bytes(3, 0x00000000000000000000000000000001)>(d) captures (h)
   [acc] bool[4] flag, float[4] b2 = com.microsoft.InPlaceAccumulatorV2(buffer, grad) updates (buffer as b2)
   [add] float[4] y = Add(l, bias)
   [sub] float[4] z = Sub(y, h)
}
"#;

/// The message for `STEP` against `STEP` with these texts replaced.
fn message(replacements: &[(&str, &str)]) -> String {
    let mut text = STEP.to_owned();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let (a, b) = (Graph::parse(STEP).unwrap(), Graph::parse(&text).unwrap());
    check(&a, &b).unwrap_err().to_string()
}

#[test]
fn messages_name_the_node_and_what_differs() {
    let of = |from, to| message(&[(from, to)]);
    assert_eq!(of("axis = -1", "axis = 0"), "node `soft` (Softmax): attribute `axis` is 0, was -1");
    assert_eq!(of("<axis = -1>", ""), "node `soft` (Softmax): attribute `axis` is absent, was -1");
    assert_eq!(of("Mul(x", "Mul<a = \"\n\">(x"), "node `mul` (Mul): attribute `a` is \"\\n\", was absent");
    assert_eq!(of("Mul(x, w)", "Div(x, w)"), "node `mul` (Mul): the operator is Div now");
    assert_eq!(of("\"\" = 17", "\"\" = 18"), "node `mul` (Mul): version 18 of its domain, was 17");
    assert_eq!(
        of("Sub(y, h)", "Sub(h, y)"),
        "node `sub` (Sub): operand 0 reads `h` of node `mul` (Mul) instead of `y` of node `add` (Add)"
    );
    assert_eq!(
        of("Mul(x, w)", "Mul(x, _)"),
        "node `mul` (Mul): operand 1 reads nothing instead of input `w`"
    );
    assert_eq!(
        of("(s, _, one)", "(s, one, one)"),
        "node `drop` (Dropout): operand 1 reads initializer `one` instead of nothing"
    );
    assert_eq!(
        of("(s, _, one)", "(s, _, two)"),
        "node `drop` (Dropout): operand 2 reads initializer `two` instead of initializer `one`"
    );
    assert_eq!(
        of("{0.5, 0.5, 0.5, 0.5}", "{0.5, 0.5, 0.5, 0.25}"),
        "node `add` (Add): operand 1: initializer `bias` holds float[4] of 16 bytes, digest d7540dd9fdb5a948, was float[4] of \
         16 bytes, digest 7c9221cebc3090a6"
    );
    assert_eq!(
        of("captures (h)", "captures (s)"),
        "node `loop` (Loop): its subgraphs read `s` of node `soft` (Softmax) instead of `h` of node `mul` (Mul)"
    );
    assert_eq!(of("bool[4] mask", "_"), "node `drop` (Dropout): result 1 is nothing, was bool[4]");
    assert_eq!(
        of("float[4] h =", "float[2,2] h ="),
        "node `mul` (Mul): result 0 is float[2,2], was float[4]"
    );
    assert_eq!(
        of("updates (buffer as b2)", "updates (m as b2)"),
        "node `acc` (com.microsoft.InPlaceAccumulatorV2): updates `m` as result 1, was `buffer` as result 1"
    );
    assert_eq!(
        of("updates (buffer as b2)", "updates (buffer)"),
        "node `acc` (com.microsoft.InPlaceAccumulatorV2): updates `buffer`, was `buffer` as result 1"
    );
    assert_eq!(
        of("updates (buffer as b2)", ""),
        "node `acc` (com.microsoft.InPlaceAccumulatorV2): updates nothing, was `buffer` as result 1"
    );
    assert_eq!(
        of("[drop]", "[drop2]"),
        "node `drop` (Dropout): it is random, and its seed is 0x6cbe11c93e8aad7a, was 0xf1a2a766dcd55bac"
    );
    assert_eq!(
        of(
            "   [sub]",
            "   [acc2] bool[4] f, float[4] b3 = com.microsoft.InPlaceAccumulatorV2(buffer, grad) updates \
             (buffer as b3)\n   [sub]"
        ),
        "node `acc2` (com.microsoft.InPlaceAccumulatorV2): it may not be repeated or left out, and runs 2 times, was 1"
    );
    assert_eq!(
        of("   [sub]", "   [new] float[4] n = Relu(x)\n   [sub]"),
        "node `new` (Relu) is not in the original graph"
    );
    assert_eq!(
        message(&[("   [soft] float[4] s = Softmax<axis = -1>(h)\n", ""), ("Dropout(s", "Dropout(h")]),
        "node `soft` (Softmax) is missing from the rewritten graph"
    );
}

#[test]
fn messages_name_the_place_in_the_signature() {
    let of = |from, to| message(&[(from, to)]);
    assert_eq!(message(&[("float[4] x,", "float[4] x2,"), ("(x,", "(x2,")]), "input 0 is `x2`, was `x`");
    assert_eq!(of("float[4] m,", "float[5] m,"), "input 2 `m` is float[5], was float[4]");
    assert_eq!(of(", float[4] z)", ")"), "the rewritten graph has 1 output, the original 2");
    assert_eq!(of("(float[4] y, float[4] z)", "(float[4] z, float[4] y)"), "output 0 is `z`, was `y`");
    assert_eq!(
        message(&[("] y = Add", "] t = Add"), ("] z = Sub(y", "] y = Sub(t"), ("[4] z)", "[4] t)")]),
        "output 1 is `t`, was `z`"
    );
    let swapped = STEP.replace("] y = Add", "] q = Add").replace("] z = Sub(y", "] y = Sub(q");
    let swapped = swapped.replace("] q =", "] z =").replace("Sub(q", "Sub(z");
    let (a, b) = (Graph::parse(STEP).unwrap(), Graph::parse(&swapped).unwrap());
    assert_eq!(
        check(&a, &b).unwrap_err().to_string(),
        "output 0 `y` is `y` of node `sub` (Sub), was `y` of node `add` (Add)"
    );
}

#[test]
fn messages_tell_a_wrong_copy_from_a_wrong_recomputation() {
    let swap = "   [out_h] float[4]@host h_host = ai.lmsc.SwapOut(h)\n   [out_s] float[4]@host s_host = \
                ai.lmsc.SwapOut(s)\n   [in] float[4] back = ai.lmsc.SwapIn(HOST)\n   [sub]";
    let with = |host: &str| message(&[("   [sub]", &swap.replace("HOST", host)), ("(y, h)", "(y, back)")]);
    assert_eq!(
        with("s_host"),
        "node `sub` (Sub): operand 1 reads `back`, a copy of `s` of node `soft` (Softmax) instead of `h` of node `mul` (Mul)"
    );
    assert_eq!(with("s"), "rewritten graph: node `in` (ai.lmsc.SwapIn): `s` was never swapped out");
    let again = |twin: &str| message(&[("   [sub]", &format!("   {twin}\n   [sub]")), ("(y, h)", "(y, h2)")]);
    assert_eq!(
        again("[mul2] float[4] h2 = Mul(w, x) recomputes [mul]"),
        "node `mul2` (Mul) recomputes `mul`, but differs from it: operand 0 reads input `w` instead of input `x`"
    );
    assert_eq!(
        again("[mul2] float[4] h2 = Mul(w, x)"),
        "node `sub` (Sub): operand 1 reads `h2` of node `mul2` (Mul) instead of `h` of node `mul` (Mul)"
    );
    assert_eq!(
        message(&[("   [sub]", "   [d2] float[4] e, _ = Dropout(s, _, one)\n   [sub]")]),
        "node `d2` (Dropout) is not in the original graph"
    );
    assert_eq!(
        again(
            "[acc2] bool[4] f, float[4] h2 = com.microsoft.InPlaceAccumulatorV2(buffer, grad) recomputes [acc]"
        ),
        "rewritten graph: node `acc2` (com.microsoft.InPlaceAccumulatorV2): it updates a variable or holds a subgraph, so it \
         may not be repeated"
    );
    // A twin that reads the operands of its origin, but names another node as its origin.
    assert_eq!(
        message(&[("   [sub]", "   [mul2] float[4] h2 = Mul(x, w) recomputes [soft]\n   [sub]")]),
        "node `mul2` (Mul) recomputes `soft`, but differs from it: the operator is Mul now"
    );
}

/// A variable that is updated in place; the same on the host between steps, or swapped out and returned.
#[test]
fn variables_hold_the_same_after_the_step() {
    let step = "g (float[4] x, float[4] w, float[] lr) => (float[4] w_new) {
        [mul] float[4] h = Mul(x, w)
        [sgd] float[4] w_new = ai.lmsc.SGDOptimizer(lr, w, h) updates (w as w_new)
    }";
    let on_host = "g (float[4] x, float[4]@host w, float[] lr) => (float[4]@host w_new) {
        [in] float[4] w_in = ai.lmsc.SwapIn(w)
        [mul] float[4] h = Mul(x, w_in)
        [again] float[4] w_in2 = ai.lmsc.SwapIn(w) after [mul]
        [sgd] float[4] w_in_new = ai.lmsc.SGDOptimizer(lr, w_in2, h) updates (w_in2 as w_in_new)
        [out] float[4]@host w_new = ai.lmsc.SwapOut(w_in_new) updates (w as w_new)
    }";
    let returns = "g (float[4] x, float[4] w, float[] lr) => (float[4] w_new) {
        [out] float[4]@host w_host = ai.lmsc.SwapOut(w)
        [mul] float[4] h = Mul(x, w)
        [in] float[4] w_in = ai.lmsc.SwapIn(w_host) updates (w as w_in) after [mul]
        [sgd] float[4] w_new = ai.lmsc.SGDOptimizer(lr, w_in, h) updates (w_in as w_new)
    }";
    let of = |text: &str| {
        let (a, b) = (Graph::parse(step).unwrap(), Graph::parse(text).unwrap());
        check(&a, &b).map_or_else(|difference| difference.to_string(), |_| "equal".to_owned())
    };
    assert_eq!((of(on_host), of(returns)), ("equal".to_owned(), "equal".to_owned()));
    assert_eq!(
        of(&on_host.replace(" updates (w as w_new)", "")),
        "after the step, variable `w` holds what it held before, was `w_new` of node `sgd` (ai.lmsc.SGDOptimizer)"
    );
    assert_eq!(
        of(&on_host.replace("w_new = ai.lmsc.SwapOut(w_in_new)", "w_new = ai.lmsc.SwapOut(w_in2)")),
        "output 0 `w_new` is `w_new`, a copy of input `w`, was `w_new` of node `sgd` (ai.lmsc.SGDOptimizer)"
    );
    assert_eq!(
        of(&returns.replace(" updates (w as w_in)", "")),
        "after the step, variable `w` holds what it held before, was `w_new` of node `sgd` (ai.lmsc.SGDOptimizer)"
    );
}

#[test]
fn graphs_without_meaning_are_refused() {
    let of = |from, to| message(&[(from, to)]);
    assert_eq!(
        of("Mul(x, w)", "Mul(x, z)"),
        "rewritten graph: node `mul` (Mul): it reads `z`, which is not computed before"
    );
    assert_eq!(
        of("Mul(x, w)", "Mul(x, h)"),
        "rewritten graph: node `mul` (Mul): it reads `h`, which is not computed before"
    );
    assert_eq!(
        of("Mul(x, w)", "Mul(x, gone)"),
        "rewritten graph: node `mul` (Mul): it reads `gone`, which nothing defines"
    );
    assert_eq!(
        of("Mul(x, w)", "Mul(x, w) recomputes [mul]"),
        "rewritten graph: node `mul` (Mul): it recomputes itself"
    );
    assert_eq!(
        message(&[("Mul(x, w)", "Mul(x, w) recomputes [sub]"), ("Sub(y, h)", "Sub(y, h) recomputes [mul]")]),
        "rewritten graph: node `mul` (Mul): it recomputes itself"
    );
    assert_eq!(
        of("updates (buffer as b2)", "updates (h as b2)"),
        "rewritten graph: node `acc` (com.microsoft.InPlaceAccumulatorV2): it updates `h`, which is neither an input nor an \
         initializer"
    );
    let swap = |node: &str| message(&[("   [sub]", &format!("   [c] {node}\n   [sub]"))]);
    let swap_of =
        |node: &str| swap(node).replace("rewritten graph: node `c` (ai.lmsc.", "").replacen("): ", ": ", 1);
    assert_eq!(
        swap_of("float[4] c = ai.lmsc.SwapOut(h, h)"),
        "SwapOut: a swap has one operand and one result"
    );
    assert_eq!(swap_of("float[4] c = ai.lmsc.SwapOut(_)"), "SwapOut: a swap has one operand and one result");
    assert_eq!(swap_of("= ai.lmsc.SwapOut(h)"), "SwapOut: a swap has one operand and one result");
    assert_eq!(
        swap_of("float[4] c = ai.lmsc.SwapOut<begin = 0>(h)"),
        "SwapOut: attribute `begin` of a swap is not understood"
    );
    assert_eq!(
        swap_of("float[3] c = ai.lmsc.SwapOut(h)"),
        "SwapOut: the copy of `h` is float[3], but that is float[4]"
    );
    assert_eq!(
        swap_of("float[4] c = ai.lmsc.SwapOut(h) updates (w)"),
        "SwapOut: a swap only copies, and what it updates it copies whole"
    );

    // Errors that the parser rejects.
    let a = Graph::parse(STEP).unwrap();
    let mul = a.node_named("mul").unwrap();
    let mut b = a.clone();
    b.set_order([a.order(), &[mul]].concat());
    assert_eq!(
        check(&a, &b).unwrap_err().to_string(),
        "rewritten graph: node `mul` (Mul): it stands twice in the order"
    );
    let mut b = a.clone();
    b.set_order(a.order()[1..].to_vec());
    let message = "original graph: node `soft` (Softmax): it reads `h`, which is not computed before";
    assert_eq!(check(&b, &a).unwrap_err().to_string(), message);
    let mut b = a.clone();
    b.node_mut(mul).results.push(a.value_named("x"));
    assert_eq!(
        check(&a, &b).unwrap_err().to_string(),
        "rewritten graph: node `mul` (Mul): `x` is defined twice"
    );
    let mut b = a.clone();
    b.set_recomputes(a.node_named("sub").unwrap(), mul);
    b.set_order(a.order()[1..].to_vec());
    assert!(matches!(check(&a, &b), Err(Difference::Malformed { .. })));
}

#[test]
fn equal_constants_are_one_but_equal_variables_are_two() {
    let text = |reads: &str, writes: &str| {
        format!(
            "g (float[1] lr, float[1] g) => (float[1] y) < float[1] a = {{1.0}}, float[1] b = {{1.0}} > {{
               [n] float[1] y = Relu({reads})
               {writes}
            }}"
        )
    };
    let parse = |reads, writes| Graph::parse(&text(reads, writes)).unwrap();
    assert!(check(&parse("a", ""), &parse("b", "")).is_ok());
    let update = |variable: &str| {
        format!("[sgd] float[1] w = ai.lmsc.SGDOptimizer(lr, {variable}, g) updates ({variable} as w)")
    };
    let (a, b) = (update("a"), update("b"));
    assert!(check(&parse("a", &a), &parse("a", &a)).is_ok());
    assert!(check(&parse("a", &a), &parse("b", &a)).is_err());
    assert_eq!(
        check(&parse("a", &a), &parse("a", &b)).unwrap_err().to_string(),
        "node `sgd` (ai.lmsc.SGDOptimizer): operand 1 reads initializer `b` instead of initializer `a`"
    );
}

#[test]
fn optimizers_over_sequences_are_not_repeated_though_no_edge_tells_what_they_update() {
    let step = |more: &str| {
        let text = "g (float[1] lr, seq(float[2]) w, seq(float[2]) g) => (bool[1] done) {
            [sgd] bool[1] done = com.microsoft.SGDOptimizerV2(lr, w, g)
        ";
        Graph::parse(&format!("{text}{more}}}")).unwrap()
    };
    let again = "[sgd2] bool[1] done2 = com.microsoft.SGDOptimizerV2(lr, w, g)";
    assert_eq!(
        check(&step(""), &step(again)).unwrap_err().to_string(),
        "node `sgd2` (com.microsoft.SGDOptimizerV2): it may not be repeated or left out, and runs 2 times, was 1"
    );
    assert!(check(&step(""), &step(&format!("{again} recomputes [sgd]"))).is_err());
}

#[test]
fn the_order_of_attributes_and_names_of_pure_nodes_are_free() {
    let a = "g (float[2] x) => (float[2] y) {
        [n1] float[2] h = F<p = 1, q = [1, 2]>(x)
        [n2] float[2] k = G(x)
        [n3] float[2] y = Add(h, k)
    }";
    let b = "other (float[2] x) => (float[2] y) {
        [m2] float[2] k2 = G(x)
        [m1] float[2] h2 = F<q = [1, 2], p = 1>(x) after [m2]
        [m3] float[2] y = Add(h2, k2)
    }";
    let (a, b) = (Graph::parse(a).unwrap(), Graph::parse(b).unwrap());
    assert_eq!(check(&a, &b), Ok(Equivalence { nodes: 3, twins: 0, swaps: 0, casts: 0 }));
}

/// The verdict on a Cast of `v` from `wide` to `narrow` before a swap-out and one back after the swap-in.
fn encoded(
    produce: &str,
    (wide, there): (&str, i64),
    (narrow, back): (&str, i64),
) -> Result<Equivalence, String> {
    let text = |between: &str, read: &str| {
        let inputs = "float[2,9] x, int64[2,9] ids, float[2,2147483649] long";
        format!(
            "<opset: \"\" = 17> g ({inputs}) => (float[] y) {{ {produce} {between} [use] float[] y = F({read}) }}"
        )
    };
    let between = format!(
        "[enc] {narrow}[2,3] e = Cast<to = {there}>(v)
         [out] {narrow}[2,3]@host h = ai.lmsc.SwapOut(e)
         [in] {narrow}[2,3] b = ai.lmsc.SwapIn(h)
         [dec] {wide}[2,3] d = Cast<to = {back}>(b)"
    );
    let [original, rewritten] = [text("", "v"), text(&between, "d")].map(|text| Graph::parse(&text).unwrap());
    check(&original, &rewritten).map_err(|e| e.to_string())
}

/// TFLMS §4.2.1: a swap is `f⁻¹ ∘ f`, and the identity where `f` loses nothing.
#[test]
fn an_encoding_is_erased_where_the_definition_bounds_the_value() {
    let of = |produce: &str| encoded(produce, ("int64", 6), ("int32", 7));
    let erased = Ok(Equivalence { nodes: 2, twins: 0, swaps: 2, casts: 2 });
    assert_eq!(of("[p] float[2,3] m, int64[2,3] v = MaxPool(x)"), erased);
    assert_eq!(of("[p] int64[2,3] v = ArgMax(x)"), erased);
    assert_eq!(of("[p] int64[2,3] v = ArgMin(x)"), erased);
    assert_eq!(of("[p] float[2,3] m, int64[2,3] v = TopK(x)"), erased);
    assert_eq!(of("[p] int64[2,3] v = NonZero(x)"), erased);
    assert_eq!(of("[p] int64[2,3] v = Shape(x)"), erased);
    assert_eq!(of("[p] int64[2,3] v = Size(x)"), erased);
    let narrow = of("[p0] int32[2,3] n = G(x) [p] int64[2,3] v = Cast<to = 7>(n)");
    assert_eq!(narrow, Ok(Equivalence { nodes: 3, twins: 0, swaps: 2, casts: 2 }));
}

#[test]
fn an_encoding_that_may_lose_something_is_refused() {
    let of = |produce: &str| encoded(produce, ("int64", 6), ("int32", 7)).unwrap_err();
    let reads = "node `use` (F): operand 0 reads `d` of node `dec` (Cast) instead of ";
    // Nothing bounds the value, or it is not the index.
    assert_eq!(of("[p] int64[2,3] v = Abs(ids)"), format!("{reads}`v` of node `p` (Abs)"));
    assert_eq!(of("[p] int64[2,3] v = MaxPool(ids)"), format!("{reads}`v` of node `p` (MaxPool)"));
    assert_eq!(
        of("[p] int64[2,3] v = my.domain.ArgMax(x)"),
        format!("{reads}`v` of node `p` (my.domain.ArgMax)")
    );
    assert_eq!(
        of("[p] int64[2,3] v, int64[2,3] i = TopK(ids)"),
        format!("{reads}`v`, result 0 of node `p` (TopK)")
    );
    let double = "[p0] double[2,3] n = G(x) [p] int64[2,3] v = Cast<to = 7>(n)";
    assert_eq!(of(double), format!("{reads}`v` of node `p` (Cast)"));
    // The tensor has more elements than 32 bits can index.
    let of_long = |op: &str| format!("[p] float[2,3] m, int64[2,3] v = {op}(long)");
    assert_eq!(of(&of_long("MaxPool")), format!("{reads}`v`, result 1 of node `p` (MaxPool)"));
    assert_eq!(of(&of_long("TopK")), format!("{reads}`v`, result 1 of node `p` (TopK)"));
    for op in ["ArgMax", "ArgMin", "NonZero", "Shape", "Size"] {
        assert_eq!(of(&format!("[p] int64[2,3] v = {op}(long)")), format!("{reads}`v` of node `p` ({op})"));
    }
    // Other types, or Casts to other types than their results have.
    let relu = "[p] float[2,3] v = Relu(x)";
    assert_eq!(
        encoded(relu, ("float", 10), ("float16", 1)).unwrap_err(),
        format!("{reads}`v` of node `p` (Relu)")
    );
    let index = "[p] float[2,3] m, int64[2,3] v = MaxPool(x)";
    for (wide, narrow) in [
        (("int64", 12), ("uint32", 7)),
        (("int64", 5), ("int16", 7)),
        (("int64", 7), ("int32", 7)),
        (("int64", 6), ("int32", 6)),
        (("uint64", 6), ("int32", 13)),
    ] {
        let refusal = encoded(&index.replace("int64", wide.0), wide, narrow).unwrap_err();
        assert_eq!(refusal, format!("{reads}`v`, result 1 of node `p` (MaxPool)"));
    }
}

#[test]
fn an_encoding_is_of_the_very_value_and_does_nothing_else() {
    let text = |more: &str, reads: &str| {
        let text = format!(
            "<opset: \"\" = 17> g (float[2,9] x, float[2,9] z, int64[2,3] w) => (float[] y) {{
               [p] float[2,3] m, int64[2,3] v = MaxPool(x)
               [q] float[2,3] n, int64[2,3] u = MaxPool(z)
               {more}
               [use] float[] y = F({reads})
            }}"
        );
        Graph::parse(&text).unwrap()
    };
    let original = text("", "v, u");
    let casts = "[e] int32[2,3] e = Cast<to = 6>(v) [f] int32[2,3] f = Cast<to = 6>(u)
                 [d] int64[2,3] d = Cast<to = 7>(e) [g] int64[2,3] g = Cast<to = 7>(f)";
    let same = check(&original, &text(casts, "d, g")).unwrap();
    assert_eq!(same, Equivalence { nodes: 3, twins: 0, swaps: 0, casts: 4 });
    let refused = |more: &str, reads: &str| check(&original, &text(more, reads)).unwrap_err().to_string();
    assert_eq!(
        refused(casts, "g, d"),
        "node `use` (F): operand 0 reads `g` of node `g` (Cast) instead of `v`, result 1 of node `p` (MaxPool)"
    );
    let other = refused(&casts.replace("Cast<to = 7>(f)", "Abs(f)"), "d, g");
    assert!(other.contains("reads `g` of node `g` (Abs)"), "{other}");
    assert_eq!(
        refused("[e] int32[2,3] e = Cast<to = 6>(v)", "v, u"),
        "node `e` (Cast) is not in the original graph"
    );
    let hidden = casts.replace("Cast<to = 7>(e)", "Cast<to = 7>(e) updates (w)");
    assert!(check(&original, &text(&hidden, "d, g")).is_err());
    // An encoding may have another reader too, in either graph.
    let with = |name: &str| format!("[{name}] int32[2,3] {name} = Cast<to = 6>(v) [r] float[] r = G({name})");
    let back = "[d] int64[2,3] d = Cast<to = 7>(k)";
    let other = text(&with("k"), "v, u");
    for more in
        [format!("{} {back}", with("k")), format!("{} [k] int32[2,3] k = Cast<to = 6>(v) {back}", with("j"))]
    {
        let rewritten = text(&more, "d, u");
        assert_eq!(check(&other, &rewritten).map(|same| same.swaps), Ok(0));
        assert_eq!(check(&rewritten, &other).map(|same| same.swaps), Ok(0));
    }
}

#[test]
fn ranges_join_to_what_they_are_ranges_of() {
    let original = Graph::parse(
        "g (float[2,3] x) => (float[2,3] y) {
            [a] float[2,3] h = Relu(x)
            [b] float[2,3] k = Exp(x)
            [c] float[2,3] y = Add(h, k)
        }",
    )
    .unwrap();
    let rewritten = |replacements: &[(&str, &str)]| {
        let mut text = "g (float[2,3] x) => (float[2,3] y) {
            [a] float[2,3] h = Relu(x)
            [b] float[2,3] k = Exp(x)
            [o1] float[2]@host h1 = ai.lmsc.SwapOut<begin = 0, end = 2>(h)
            [o2] float[2]@host h2 = ai.lmsc.SwapOut<begin = 4, end = 6>(h)
            [i1] float[2] k1 = ai.lmsc.SwapIn(h1)
            [i2] float[2] k2 = ai.lmsc.SwapIn(h2)
            [join] float[2,3] w = ai.lmsc.Join<begins = [0, 4]>(h, k1, k2)
            [c] float[2,3] y = Add(w, k)
        }"
        .to_owned();
        for (from, to) in replacements {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        check(&original, &Graph::parse(&text).unwrap()).map_err(|difference| difference.to_string())
    };
    let wrong = |replacements: &[(&str, &str)]| {
        let message = rewritten(replacements).unwrap_err();
        message.strip_prefix("rewritten graph: node `join` (ai.lmsc.Join): ").unwrap_or(&message).to_owned()
    };
    assert_eq!(rewritten(&[]), Ok(Equivalence { nodes: 3, twins: 0, swaps: 5, casts: 0 }));
    let all = ("begins = [0, 4]>(h, k1, k2)", "begins = [0, 2], dims = [2, 3]>(_, k1, k2)");
    let ends =
        ("float[2]@host h2 = ai.lmsc.SwapOut<begin = 4,", "float[4]@host h2 = ai.lmsc.SwapOut<begin = 2,");
    assert_eq!(
        rewritten(&[all, ends, ("float[2] k2", "float[4] k2")]),
        Ok(Equivalence { nodes: 3, twins: 0, swaps: 5, casts: 0 })
    );
    assert_eq!(wrong(&[("(h, k1, k2)", "(_, k1, k2)")]), "`k2` is not where the piece before it ends");
    assert_eq!(wrong(&[("(h, k1, k2)", "(h, k2, k1)")]), "`k2` is elements 4..6, and stands at 0..2");
    assert_eq!(
        wrong(&[("SwapOut<begin = 4, end = 6>(h)", "SwapOut<begin = 4, end = 6>(k)")]),
        "`k2` is a range of another tensor"
    );
    assert_eq!(wrong(&[("(h, k1, k2)", "(k, k1, k2)")]), "`k1` is a range of another tensor");
    assert_eq!(
        wrong(&[("begin = 0, end = 2", "begin = 1, end = 3")]),
        "`k1` is elements 1..3, and stands at 0..2"
    );
    assert_eq!(wrong(&[("(h, k1, k2)", "(h, k1, x)")]), "`x` is no range of a tensor");
    assert_eq!(
        wrong(&[("begin = 0, end = 2>(h)", "begin = 5, end = 7>(h)")]),
        "rewritten graph: node `o1` (ai.lmsc.SwapOut): 5..7 is no range of `h`"
    );
    // A range used in place of the tensor is not the tensor.
    assert_eq!(
        wrong(&[("[c] float[2,3] y = Add(w, k)", "[c] float[2,3] y = Add(h, k) [d] float[2] z = Relu(k1)")]),
        "node `d` (Relu) is not in the original graph"
    );
}

#[test]
fn a_variable_on_the_host_comes_and_goes_in_ranges() {
    let original = "g (float[4] w, float[] lr) => (float[4] w_new) {
        [sgd] float[4] w_new = ai.lmsc.SGDOptimizer(lr, w, w) updates (w as w_new)
    }";
    let text = crate::ranges::tests::VARIABLE;
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let [original, rewritten] =
            [original, &text.replacen(from, to, 1)].map(|text| Graph::parse(text).unwrap());
        check(&original, &rewritten).map_err(|difference| difference.to_string())
    };
    assert_eq!(with("lr", "lr"), Ok(Equivalence { nodes: 1, twins: 0, swaps: 6, casts: 0 }));
    assert_eq!(
        with(" updates (w as w_new)", "").unwrap_err(),
        "after the step, variable `w` holds what it held before, was `w_new` of node `sgd` (ai.lmsc.SGDOptimizer)"
    );
    assert_eq!(
        with("end = 4>(w_dev)", "end = 4>(w_in)").unwrap_err(),
        "rewritten graph: node `home` (ai.lmsc.Join): `h2` is a range of another tensor"
    );
    assert_eq!(
        with("updates (w as w_new)", "updates (w_in as w_new)").unwrap_err(),
        "rewritten graph: node `home` (ai.lmsc.Join): a join only names, and what it updates is what it names"
    );
}

/// A batch normalization whose running statistics `m` and `v` are updated, followed by `more`.
fn normalized(more: &str, reads: &str) -> Graph {
    Graph::parse(&format!(
        "g (float[2,3] x, float[2,3] z, float[3] s, float[3] m, float[3] v) => (float[2,3] y, float[2,3] u) {{
            [bn] float[2,3] y, float[3] m2, float[3] v2, float[3] a, float[3] b =
                com.microsoft.BatchNormInternal<training_mode = 1>(x, s, s, m, v) updates (m as m2, v as v2)
            {more}
            [use] float[2,3] u = F({reads})
        }}"
    ))
    .unwrap()
}

#[test]
fn a_node_with_side_writes_is_recomputed_without_them() {
    let original = normalized("", "y, a");
    let again = |operands: &str, results: &str| {
        let clone = format!(
            "[bn2] float[2,3] y2, {results}, float[3] a2, float[3] b2 =
                com.microsoft.BatchNormInternal<training_mode = 1>({operands}) recomputes [bn]"
        );
        check(&original, &normalized(&clone, "y2, a2"))
    };
    let twin = Ok(Equivalence { nodes: 2, twins: 1, swaps: 0, casts: 0 });
    assert_eq!(again("x, s, s, _, _", "_, _"), twin);
    assert_eq!(again("x, s, s", "_, _"), twin);
    for (operands, results) in [
        ("z, s, s, _, _", "_, _"),
        ("x, m, s", "_, _"),
        ("x, s, s, m, v", "_, _"),
        ("x, s, s", "float[3] n, _"),
    ] {
        assert!(again(operands, results).is_err(), "({operands}) => {results}");
    }
    // It is not a twin of another node, or it writes the statistics of the origin.
    let alone = "[bn2] float[2,3] y2, _, _, float[3] a2 = com.microsoft.BatchNormInternal<training_mode = 1>(x, s, s)";
    assert!(check(&original, &normalized(alone, "y2, a2")).is_err());
    let twice = "[bn2] float[2,3] y2, float[3] m3, float[3] v3, float[3] a2, float[3] b2 =
        com.microsoft.BatchNormInternal<training_mode = 1>(x, s, s, m2, v2) updates (m as m3, v as v3) recomputes [bn]";
    assert!(check(&original, &normalized(twice, "y2, a2")).is_err());
}

#[test]
fn operators_may_have_no_operands() {
    let text = "g (float[2] x) => (float[2] y)\n{\n   [c] float[2] c = Constant<value_floats = [1.0, 2.0]>()\n   [a] float[2] y = Add(x, c)\n}\n";
    let graph = Graph::parse(text).unwrap();
    assert_eq!(check(&graph, &graph).unwrap().nodes, 2);
}

/// The error of [`check_cleaned`] for a rewriting of this graph.
fn cleaned(rewritten: &str) -> String {
    let original = "<opset: \"\" = 17> g (float[4,6] x, float[] r, bool[] t) => (float[4,6] y, float[24] z, float[4,6] v)
        < int64[1] one = {1} >
    {
        [a1] float[4,6] a1 = Relu(x)
        [a2] float[4,6] a2 = Relu(x)
        [y] float[4,6] y = Add(a1, a2)
        [dead] float[4,6] d = Tanh(a1)
        [deader] float[4,6] e = Exp(d)
        [drop1] float[4,6] v = Dropout(x, r, t)
        [drop2] float[4,6] w = Dropout(x, r, t)
        [size] int64[] n = Size(x)
        [list] int64[1] l = Mul(n, one)
        [z] float[24] z = Reshape(x, l)
    }";
    let [original, rewritten] = [original.to_owned(), rewritten_of(original, rewritten)];
    let [a, b] =
        [original, rewritten].map(|text| Graph::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")));
    check_cleaned(&a, &b).map_or_else(|difference| difference.to_string(), |_| "equal".to_owned())
}

/// The text with lines replaced: `[a2]` alone removes the node of that name, `[a2] …` replaces it, and the text after `;` is
/// replaced as `old -> new` everywhere.
fn rewritten_of(original: &str, changes: &str) -> String {
    let mut text = original.to_owned();
    for change in changes.split(';').map(str::trim).filter(|change| !change.is_empty()) {
        if let Some((old, new)) = change.split_once(" -> ") {
            text = text.replace(old, new);
            continue;
        }
        let name = &change[..change.find(']').unwrap() + 1];
        let line = |line: &str| {
            if line.trim_start().starts_with(name) {
                change[name.len()..].trim().is_empty().then(String::new).unwrap_or_else(|| change.to_owned())
            } else {
                line.to_owned()
            }
        };
        text = text.lines().map(line).collect::<Vec<_>>().join("\n");
    }
    text
}

#[test]
fn a_clean_up_is_proven() {
    for rewriting in [
        "",
        "[dead]; [deader]",
        "[deader]",
        "[a2]; Add(a1, a2) -> Add(a1, a1)",
        "[size]; [list] int64[1] l = Constant<value = int64[1] {24}>()",
        "[size] int64[] n = Constant<value = int64[] {24}>()",
        "[size]; [list]; int64[1] one = {1} -> int64[1] l = {24}",
        "[size] int64[] n = Constant<value = int64[] {24}>(); [dead]; [deader]; [a2]; Add(a1, a2) -> Add(a1, a1)",
    ] {
        assert_eq!(cleaned(rewriting), "equal", "{rewriting}");
    }
}

#[test]
fn a_clean_up_that_does_more_is_noticed() {
    for (rewriting, told) in [
        (
            "[a2]; Add(a1, a2) -> Add(a1, x)",
            "node `y` (Add): operand 1 reads input `x` instead of `a2` of node `a2` (Relu)",
        ),
        ("[drop2]", "node `drop2` (Dropout) is missing from the rewritten graph"),
        ("[drop2] float[4,6] w = Dropout(x, r, t) seed 7", "node `drop2` (Dropout): it is random"),
        ("[drop1]; [drop2] float[4,6] v = Dropout(x, r, t)", "node `drop1` (Dropout) is missing"),
        ("[dead] float[4,6] d = Tan(a1)", "node `dead` (Tan) is not in the original graph"),
        ("[deader] float[4,6] e = Exp(a1)", "node `deader` (Exp) is not in the original graph"),
        ("[size] int64[] n = Constant<value = int64[] {25}>()", "node `z` (Reshape): operand 1 reads"),
        ("int64[1] one = {1} -> int64[1] one = {-1}", "node `z` (Reshape): operand 1 reads"),
        ("[list] int64[1] l = Constant<value = int64[1] {-1}>()", "node `z` (Reshape): operand 1 reads"),
        ("[y] float[4,6] y = Mul(a1, a2)", "node `y` (Add): the operator is Mul now"),
    ] {
        let found = cleaned(rewriting);
        assert!(found.starts_with(told), "{rewriting}: {found}");
    }
}
