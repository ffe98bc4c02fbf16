use lmsc_ir::{Def, Graph, ValueId};

use crate::{Rng, Size, training_graph};

fn graphs() -> impl Iterator<Item = (u64, Graph)> {
    let sizes = [5, 8, 12, 20, 30, 50, 80, 120, 200, 400];
    (0..300).map(move |seed| {
        let size = Size::nodes(sizes[seed as usize % sizes.len()]);
        (seed, training_graph(&mut Rng::new(seed), size))
    })
}

#[test]
fn random_graphs_keep_every_invariant() {
    for (seed, graph) in graphs() {
        lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", graph.to_text()));
    }
}

#[test]
fn the_text_of_a_random_graph_reads_back() {
    for (seed, graph) in graphs() {
        let text = graph.to_text();
        let again = Graph::parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let again = Graph::parse(&again.to_text()).unwrap().to_text();
        assert_eq!(again, Graph::parse(&text).unwrap().to_text(), "seed {seed}");
    }
}

#[test]
fn every_value_is_computed_before_it_is_read_and_every_name_is_unique() {
    for (seed, graph) in graphs() {
        let ticks = graph.ticks();
        for &id in graph.order() {
            for before in graph.predecessors(id) {
                let (node, tick) = (&graph.node(id).name, ticks[id.as_u32() as usize]);
                assert!(ticks[before.as_u32() as usize] < tick, "seed {seed}: [{node}]");
            }
            assert_eq!(graph.node_named(&graph.node(id).name), Some(id), "seed {seed}");
        }
        for (id, value) in graph.values() {
            assert_ne!(graph.def(id), Def::Nothing, "seed {seed}: {}", value.name);
            assert_eq!(graph.value_named(&value.name), Some(id), "seed {seed}: {}", value.name);
        }
    }
}

#[test]
fn readers_of_an_old_value_come_before_its_writer() {
    for (seed, graph) in graphs() {
        let mut root: Vec<ValueId> = graph.values().map(|(v, _)| v).collect();
        for &id in graph.order() {
            let node = graph.node(id);
            if node.op.effects().view {
                let from = node.operands[0].unwrap();
                root[node.results[0].unwrap().as_u32() as usize] = root[from.as_u32() as usize];
            }
        }
        let mut written = vec![false; graph.value_capacity()];
        for &id in graph.order() {
            let node = graph.node(id);
            for value in node.reads() {
                let value = root[value.as_u32() as usize];
                assert!(!written[value.as_u32() as usize], "seed {seed}: [{}]", node.name);
            }
            node.updates.iter().for_each(|u| written[u.variable.as_u32() as usize] = true);
        }
        for &output in &graph.outputs {
            assert!(!written[root[output.as_u32() as usize].as_u32() as usize], "seed {seed}");
        }
    }
}

/// The constructs of the corpus must occur, otherwise the properties tested on random graphs mean little.
#[test]
fn random_graphs_hold_what_real_ones_do() {
    let mut found = std::collections::BTreeMap::new();
    let mut see = |what: &str| *found.entry(what.to_owned()).or_insert(0) += 1;
    for (_, graph) in graphs() {
        for &id in graph.order() {
            let node = graph.node(id);
            see(&node.op.to_string());
            let mut reads: Vec<ValueId> = node.reads().collect();
            reads.sort_unstable();
            if reads.windows(2).any(|pair| pair[0] == pair[1]) {
                see("reads one value twice");
            }
            if node.op.key() == ("com.microsoft", "ConvGrad") && node.results[0].is_none() {
                see("an omitted result");
            }
            if node.op.effects().view {
                let from = node.operands[0].unwrap();
                if graph.producer(from).is_some_and(|n| graph.node(n).op.effects().view) {
                    see("a view of a view");
                }
                if graph.def(from) == Def::Input {
                    see("a view of a variable");
                }
            }
            for read in node.reads() {
                if graph.outputs.contains(&read) {
                    see("an output that is used later");
                }
                if node.op.effects().view && graph.value(read).ty.byte_size().unwrap().0 >= 1 << 20 {
                    see("a view of a MiB");
                }
            }
        }
        for (_, value) in graph.values() {
            match value.ty.byte_size().unwrap().0 {
                0 => see("an empty tensor"),
                1..8 => see("a few bytes"),
                n if n >= 1 << 20 => see("a MiB"),
                _ => {}
            }
        }
        for variable in graph.variables() {
            if matches!(graph.def(variable), Def::Initializer(_)) {
                see("a variable of the file");
            }
        }
    }
    for what in [
        "reads one value twice",
        "an omitted result",
        "a view of a view",
        "a view of a variable",
        "an output that is used later",
        "an empty tensor",
        "a few bytes",
        "a MiB",
        "a variable of the file",
        "Conv",
        "com.microsoft.ConvGrad",
        "com.microsoft.BatchNormInternal",
        "MaxPoolGrad",
        "com.microsoft.GatherElementsGrad",
        "AveragePoolGrad",
        "com.microsoft.DropoutGrad",
        "com.microsoft.SplitTraining",
        "Split",
        "Shape",
        "Squeeze",
        "Flatten",
        "com.microsoft.InPlaceAccumulatorV2",
        "ai.lmsc.SGDOptimizer",
        "ai.lmsc.AdamWOptimizer",
        "com.microsoft.GatherGrad",
        "ReduceMean",
        "com.microsoft.LayerNormalizationGrad",
        "Transpose",
        "com.microsoft.SoftmaxCrossEntropyLossGrad",
        "com.microsoft.FusedMatMul",
        "Sum",
        "GlobalAveragePool",
    ] {
        assert!(found.get(what).is_some_and(|&n| n >= 5), "{what}: {:?}", found.get(what));
    }
}

#[test]
fn the_size_is_about_what_was_asked_for() {
    for nodes in [5, 50, 500, 5_000, 20_000] {
        for seed in 0..4 {
            let graph = training_graph(&mut Rng::new(seed), Size::nodes(nodes));
            let n = graph.order().len();
            assert!(n >= 4 && n * 2 >= nodes && n <= nodes * 2 + 30, "{nodes}: {n}");
        }
    }
}

#[test]
fn a_source_that_has_run_dry_ends() {
    for word in [0, 1, 5, 7, 11, u64::MAX] {
        let graph = training_graph(&mut || word, Size::nodes(1000));
        assert!(graph.order().len() > 400, "{word}: {}", graph.order().len());
    }
    let mut words = [9u64, 8, 7].into_iter();
    training_graph(&mut || words.next().unwrap_or(0), Size::nodes(60));
}

#[test]
fn the_same_seed_gives_the_same_graph() {
    for seed in 0..20 {
        let make = || training_graph(&mut Rng::new(seed), Size::nodes(100)).to_text();
        assert_eq!(make(), make());
    }
}

#[test]
fn no_tensor_is_larger_than_was_asked_for() {
    for seed in 0..40 {
        let size = Size { nodes: 150, tensor_bytes: 1 << 14 };
        let graph = training_graph(&mut Rng::new(seed), size);
        for (_, value) in graph.values() {
            // Indices of eight bytes stand beside activations of four.
            assert!(value.ty.byte_size().unwrap().0 <= 2 << 14, "seed {seed}: {} {}", value.name, value.ty);
        }
    }
}
