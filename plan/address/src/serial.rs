//! The serial order in which addresses are assigned.

use cranelift_entity::{EntityRef, SecondaryMap};
use lmsc_schedule::{Act, ActId, Acts, Instruction};

/// For each act, the previous one of its engine; the start and the end belong to none.
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

/// The order in which every copy out is as early, and every copy in as late, as the engines' orders allow.
///
/// In it, blocks are allocated for as short as possible, counted in positions. Every placement that is possible under the
/// times of a schedule is also possible in this order: under those times, copies out end later and copies in start earlier.
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
    /// Adds the act after all acts that it waits for.
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
