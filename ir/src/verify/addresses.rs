//! I7: the next owner of an address waits for all uses by the previous owner.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Checker, Invariant};
use crate::reach::{Group, unreached};
use crate::{Moves, NodeId, Place, RunId, Storages, ValueId, Workspace};

/// Bytes that are at one address for some time: a run of a storage, or the workspace of a node.
struct Tenant {
    what: What,
    bytes: Range<u64>,
    /// The node that defines them; none for bytes that the caller gives.
    from: Option<NodeId>,
    /// Whether they must be resident when the step ends.
    kept: bool,
}

#[derive(Clone, Copy)]
enum What {
    Run(RunId, ValueId),
    Workspace(NodeId),
}

impl Checker<'_> {
    /// I7, for all runs and workspaces that have addresses.
    pub(super) fn addresses(&mut self, storages: &Storages) {
        let graph = self.graph;
        self.adjacency(storages);
        self.returns();
        let tenants = self.tenants(storages);
        let heirs = self.heirs(&tenants);
        let mut uses: Vec<Vec<NodeId>> = vec![Vec::new(); storages.runs().count()];
        if heirs.iter().any(|heirs| !heirs.is_empty()) {
            for &id in graph.order() {
                for run in storages.touched(graph, id) {
                    let list = &mut uses[run.as_u32() as usize];
                    if list.last() != Some(&id) {
                        list.push(id);
                    }
                }
            }
        }
        let owners: Vec<usize> = (0..tenants.len()).filter(|&owner| !heirs[owner].is_empty()).collect();
        let group = |&owner: &usize| Group {
            sources: match tenants[owner].what {
                What::Run(run, _) => std::mem::take(&mut uses[run.as_u32() as usize]),
                What::Workspace(node) => vec![node],
            },
            targets: heirs[owner].iter().filter_map(|&heir| tenants[heir].from).collect(),
        };
        let groups: Vec<Group> = owners.iter().map(group).collect();
        for (group, index, user) in unreached(graph, &groups) {
            let (owner, definer) = (owners[group], groups[group].targets[index]);
            let message = format!(
                "{} and {} overlap, but no edge orders {} before {}",
                self.tenant(&tenants[owner]),
                self.tenant(&tenants[heirs[owner][index]]),
                self.node(user),
                self.node(definer)
            );
            self.report(Invariant::I7, message);
        }
    }

    /// All runs and workspaces that have addresses, in the order of their definitions.
    fn tenants(&mut self, storages: &Storages) -> Vec<Tenant> {
        let graph = self.graph;
        let mut kept = vec![false; storages.runs().count()];
        for &output in &graph.outputs {
            for &(_, run) in storages.runs_of(storages.storage(output)) {
                kept[run.as_u32() as usize] = true;
            }
        }
        let mut tenants = Vec::new();
        let mut add = |what, (base, begin, bytes): (u64, u64, u64), from, kept| {
            let start = base.checked_add(begin);
            match start.and_then(|start| Some(start..start.checked_add(bytes)?)) {
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) => tenants.push(Tenant { what, bytes, from, kept }),
                None => {
                    let tenant = self.tenant(&Tenant { what, bytes: 0..0, from, kept });
                    self.report(Invariant::I7, format!("{tenant} ends beyond the last address"));
                }
            }
        };
        for (id, run) in storages.runs() {
            let root = storages.get(run.storage).root;
            if let Place::DeviceAt(base) = graph.value(root).place {
                let storage = storages.get(run.storage);
                let kept = match storage.moves {
                    Some(Moves::Leaves) => false,
                    Some(Moves::Returns) => true,
                    None => storage.is_given(graph) || kept[id.as_u32() as usize],
                };
                add(What::Run(id, root), (base, run.begin, run.bytes.0), graph.producer(root), kept);
            }
        }
        for &id in graph.order() {
            if let Some(Workspace { address, bytes }) = graph.node(id).workspace {
                add(What::Workspace(id), (address, 0, bytes.0), Some(id), false);
            }
        }
        let ticks = graph.ticks();
        tenants.sort_by_key(|tenant| tenant.from.map(|node| ticks[node.as_u32() as usize]));
        tenants
    }

    /// For each tenant, the tenants that take over bytes from it directly, as indices.
    ///
    /// If all uses of the previous tenant reach a tenant, then by induction so do the uses of every earlier one.
    fn heirs(&mut self, tenants: &[Tenant]) -> Vec<Vec<usize>> {
        // The owner of each range of bytes, by the first address, with the end.
        let mut owners: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
        let mut heirs = vec![Vec::new(); tenants.len()];
        for (heir, tenant) in tenants.iter().enumerate() {
            let Range { start, end } = tenant.bytes;
            let mut previous = Vec::new();
            let overlapping: Vec<u64> =
                owners.range(..end).rev().map(|(&s, _)| s).take_while(|s| owners[s].0 > start).collect();
            for s in overlapping {
                let (e, owner) = owners.remove(&s).expect("the key was just listed");
                previous.push(owner);
                if s < start {
                    owners.insert(s, (start, owner));
                }
                if e > end {
                    owners.insert(end, (e, owner));
                }
            }
            owners.insert(start, (end, heir));
            previous.sort_unstable();
            previous.dedup();
            for owner in previous {
                let (one, other) = (self.tenant(&tenants[owner]), self.tenant(tenant));
                if tenant.from.is_none() {
                    let message = format!("{one} and {other} overlap and both exist from the start");
                    self.report(Invariant::I7, message);
                    continue;
                }
                heirs[owner].push(heir);
                // Bytes that are kept until the end are used after the last node.
                if tenants[owner].kept {
                    let message = format!("{other} overwrites {one}, which the caller keeps");
                    self.report(Invariant::I7, message);
                }
            }
        }
        heirs
    }

    /// I7: a variable that returns is at its old address.
    fn returns(&mut self) {
        let graph = self.graph;
        for &id in graph.order().iter().filter(|&&id| graph.node(id).op.is_swap_in()) {
            let node = graph.node(id);
            for update in &node.updates {
                let back = update.result.and_then(|r| node.results.get(r).copied().flatten());
                let Some(back) = back else { continue };
                if graph.value(back).place != graph.value(update.variable).place {
                    let names = (self.value(update.variable), self.value(back));
                    let message = format!("`{}` returns as `{}` to another place", names.0, names.1);
                    self.report(Invariant::I7, message);
                }
            }
        }
    }

    fn tenant(&self, tenant: &Tenant) -> String {
        match tenant.what {
            What::Run(_, root) => format!("`{}`", self.value(root)),
            What::Workspace(node) => format!("the workspace of {}", self.node(node)),
        }
    }

    /// I7: the result of a Join has an address if its runs have one, and it is where they are.
    fn adjacency(&mut self, storages: &Storages) {
        let graph = self.graph;
        for (id, storage) in storages.iter() {
            let joined = graph.producer(storage.root).is_some_and(|n| graph.node(n).op.is_join());
            let address = |value: ValueId, offset: u64| match graph.value(value).place {
                Place::DeviceAt(start) => Some(start.saturating_add(offset)),
                _ => None,
            };
            for &(begin, run) in storages.runs_of(id).iter().filter(|_| joined) {
                let run = storages.run(run);
                let part = storages.get(run.storage).root;
                if address(storage.root, begin) != address(part, run.begin) {
                    let message = format!(
                        "`{}` joins `{}`, which does not lie where it belongs",
                        self.value(storage.root),
                        self.value(part)
                    );
                    self.report(Invariant::I7, message);
                }
            }
        }
        if storages.has_too_many_runs() {
            self.report(Invariant::I8, "ranges of tensors are copied in too many pieces".to_owned());
        }
    }
}
