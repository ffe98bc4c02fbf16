//! Names of values that are in a file and not in the graph.

use foldhash::{HashSet, HashSetExt};
use lmsc_ir::Graph;

/// Gives each of them a name of its own.
pub(crate) struct NewNames<'g> {
    graph: &'g Graph,
    taken: HashSet<String>,
}

impl<'g> NewNames<'g> {
    pub(crate) fn of(graph: &'g Graph) -> NewNames<'g> {
        NewNames { graph, taken: HashSet::new() }
    }

    /// A name that begins with `base`, that nothing in the graph has, and that is returned only once.
    pub(crate) fn value(&mut self, base: &str) -> String {
        let mut name = self.graph.fresh_value_name(base).to_string();
        let mut number = 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = self.graph.fresh_value_name(&format!("{base}_{number}")).to_string();
        }
        name
    }
}
