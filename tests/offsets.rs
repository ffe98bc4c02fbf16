//! Addresses for real graphs that swap nothing: the arena is hardly larger than the largest sum of live bytes.

use std::path::{Path, PathBuf};

use crate::support::models::{load, models};
use lmsc_ir::{Bytes, Graph, NodeId, Storages};
use lmsc_passes::{Lowering, PassCx, lower};
use lmsc_plan::MemoryTimeline;

/// Every address is a multiple of this, so sizes are rounded up to it.
const ALIGNMENT: u64 = 64;

/// By how many ten thousandths the arena is larger than the load, at most.
const MOST: u64 = 100;

/// The most bytes that are live at a tick, each storage and workspace rounded up. No arena is smaller.
fn most_live(graph: &Graph, workspace: &dyn Fn(NodeId) -> Bytes) -> u64 {
    let memory = MemoryTimeline::of(graph);
    let ticks = graph.order().len();
    let mut live: Vec<u64> =
        graph.order().iter().map(|&node| workspace(node).0.next_multiple_of(ALIGNMENT)).collect();
    for (id, storage) in Storages::of(graph).iter().filter(|(_, storage)| !storage.on_host) {
        let range = &memory.live[id.as_u32() as usize];
        let end = (range.end as usize).min(ticks);
        for live in &mut live[(range.start as usize).min(end)..end] {
            *live += storage.bytes.0.next_multiple_of(ALIGNMENT);
        }
    }
    live.into_iter().max().unwrap_or(0)
}

/// By how many ten thousandths the arena of the graph is larger than its load.
fn excess(path: &Path) -> u64 {
    let graph = load(path);
    let workspace = PassCx::default().workspace(&graph);
    let program = lower(&graph, &Lowering { arena: None, workspace: &workspace }).unwrap();
    let load = most_live(&graph, &workspace);
    // Its last bytes may be those that the last tensor is rounded up by.
    let arena = program.arena.0.next_multiple_of(ALIGNMENT);
    assert!(load <= arena, "{}: {load} bytes live at once in {arena}", path.display());
    (arena - load) * 10_000 / load
}

#[test]
fn every_model_lies_within_a_hundredth_of_its_load() {
    let all = models();
    let of = |part: &[PathBuf]| -> Vec<(u64, PathBuf)> {
        part.iter().map(|path| (excess(path), path.clone())).collect()
    };
    let (one, other) = all.split_at(all.len() / 2);
    let mut excesses = std::thread::scope(|scope| {
        let one = scope.spawn(|| of(one));
        [of(other), one.join().unwrap()].concat()
    });
    excesses.sort();
    for (excess, path) in excesses.iter().rev().take(5) {
        println!("{}: {}.{:02} % above its load", path.display(), excess / 100, excess % 100);
    }
    assert!(excesses.iter().all(|(excess, _)| *excess <= MOST), "{excesses:#?}");
}
