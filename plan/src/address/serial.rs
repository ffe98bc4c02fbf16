//! The serial order in which addresses are promised.

use cranelift_entity::{EntityRef, SecondaryMap};

use crate::schedule::{Act, ActId, Acts, Instruction};

/// By act, the one before it on its engine; start and end are on none.
pub(super) fn queues(acts: &Acts, order: &[ActId]) -> SecondaryMap<ActId, Option<ActId>> {
    let mut before = SecondaryMap::with_capacity(acts.len());
    let mut last: [Option<ActId>; 3] = [None; 3];
    for &act in order {
        if matches!(acts.what[act], Act::Do(_)) {
            before[act] = last[acts.engine[act.index()] as usize].replace(act);
        }
    }
    before
}

/// The order in which every copy out comes as early, and every copy in as late, as the engines' orders let it.
///
/// Blocks are allocated in it for as short as they can be, counted in positions. Whatever placement is possible
/// under the times of a schedule is possible in this order too: in those times what is copied out leaves later
/// and what is copied in comes earlier.
pub(super) fn just_in_time(acts: &Acts, order: &[ActId]) -> Vec<ActId> {
    let queue = queues(acts, order);
    let outs = order.iter().filter(|&&a| matches!(acts.what[a], Act::Do(Instruction::Out(_))));
    let mut outs = outs.copied().peekable();
    let mut serial = Serial { placed: SecondaryMap::with_capacity(acts.len()), order: Vec::new() };
    let end = ActId::new(acts.len() - 1);
    serial.demand(acts, &queue, ActId::new(0));
    for &op in order.iter().filter(|&&a| acts.engine[a.index()] == 0 && a != end) {
        serial.demand(acts, &queue, op);
        while let Some(out) = outs.next_if(|&out| {
            let waits = acts.before.of(out).iter().chain(&queue[out]);
            waits.into_iter().all(|&before| serial.placed[before])
        }) {
            serial.demand(acts, &queue, out);
        }
    }
    order.iter().filter(|&&act| act != end).for_each(|&act| serial.demand(acts, &queue, act));
    serial.order.push(end);
    serial.order
}

struct Serial {
    placed: SecondaryMap<ActId, bool>,
    order: Vec<ActId>,
}

impl Serial {
    /// Adds the act, and before it whatever it waits for.
    fn demand(&mut self, acts: &Acts, queue: &SecondaryMap<ActId, Option<ActId>>, act: ActId) {
        let mut stack = vec![act];
        while let Some(&top) = stack.last() {
            let mut waits = acts.before.of(top).iter().chain(&queue[top]);
            if self.placed[top] {
                stack.pop();
            } else if let Some(&before) = waits.find(|&&before| !self.placed[before]) {
                stack.push(before);
            } else {
                self.placed[top] = true;
                self.order.push(top);
                stack.pop();
            }
        }
    }
}
