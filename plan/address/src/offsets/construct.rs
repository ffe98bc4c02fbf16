//! Constructive layouts, buffer by buffer, improved by changing the order.

use std::cmp::Reverse;

use lmsc_ir::rng::{Rng, Source};
use lmsc_schedule::tuned;

use super::{Buffer, Layout, Sections};

/// Facts about buffers for pairwise comparison.
pub(super) struct Field<'a> {
    buffers: &'a [Buffer],
    /// For each buffer, the start of its list of neighbours; one more at the end.
    starts: Vec<u32>,
    /// Buffers that are live at the same time, some of them listed twice.
    neighbours: Vec<u32>,
    /// For each buffer, the load of the fullest section in which it is live, the length of its lifetime, and bytes times length.
    total: Vec<u64>,
    length: Vec<u64>,
    area: Vec<u128>,
    /// Steps so far; a step visits one neighbour.
    pub(super) work: u64,
}

/// Maximum number of pairs of neighbours that are listed.
const MOST_PAIRS: usize = 1 << 24;

/// Number of rules that order buffers.
const ORDERS: usize = 6;

impl<'a> Field<'a> {
    /// The field; none if too many buffers are live at once.
    pub(super) fn of(buffers: &'a [Buffer], sections: &Sections, load: &[u64]) -> Option<Field<'a>> {
        let parts = |buffer: &'a Buffer| {
            buffer.present().map(|(_, part)| (sections.at(part.live.start), sections.at(part.live.end)))
        };
        let mut events: Vec<(u32, bool, u32)> = Vec::new();
        for (index, buffer) in (0u32..).zip(buffers) {
            // Parts with adjacent lifetimes are merged.
            let mut spans: Vec<(u32, u32)> = parts(buffer).collect();
            spans.sort_unstable();
            let mut merged: Vec<(u32, u32)> = Vec::new();
            for (begin, end) in spans {
                match merged.last_mut().filter(|last| last.1 >= begin) {
                    Some(last) => last.1 = end.max(last.1),
                    None => merged.push((begin, end)),
                }
            }
            events.extend(merged.into_iter().flat_map(|(b, e)| [(b, true, index), (e, false, index)]));
        }
        events.sort_unstable();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut live: Vec<u32> = Vec::new();
        for (_, comes, index) in events {
            if !comes {
                let at = live.iter().position(|&i| i == index).expect("what leaves has come");
                live.swap_remove(at);
                continue;
            }
            pairs.extend(live.iter().flat_map(|&other| [(index, other), (other, index)]));
            if pairs.len() > MOST_PAIRS {
                return None;
            }
            live.push(index);
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut starts = vec![0u32; buffers.len() + 1];
        pairs.iter().for_each(|&(of, _)| starts[of as usize + 1] += 1);
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let length =
            |buffer: &Buffer| buffer.present().map(|(_, p)| p.live.end - p.live.start).max().unwrap_or(0);
        let area = |buffer: &Buffer| {
            buffer.present().map(|(_, p)| u128::from(p.bytes) * u128::from(p.live.end - p.live.start)).sum()
        };
        let total = |buffer: &'a Buffer| {
            let fullest =
                parts(buffer).filter_map(|(begin, end)| load[begin as usize..end as usize].iter().max());
            fullest.copied().max().unwrap_or(0)
        };
        Some(Field {
            buffers,
            starts,
            neighbours: pairs.into_iter().map(|(_, other)| other).collect(),
            total: buffers.iter().map(total).collect(),
            length: buffers.iter().map(length).collect(),
            area: buffers.iter().map(area).collect(),
            work: 0,
        })
    }

    /// The smallest layout found, or one of at most `enough` bytes; none if fixed buffers overlap. Every order is tried,
    /// since none is best everywhere; the remaining steps are used to improve the best one.
    pub(super) fn search(&mut self, enough: u64, steps: u64) -> Option<Layout> {
        let mut best: Option<(Layout, Vec<u32>)> = None;
        for rule in 0..ORDERS {
            let order = self.order(rule);
            let found = self.first_fit(&order)?;
            if best.as_ref().is_none_or(|(best, _)| found.bytes < best.bytes) {
                best = Some((found, order));
            }
            if best.as_ref().is_some_and(|(best, _)| best.bytes <= enough) {
                break;
            }
        }
        let (mut best, mut order) = best?;
        let mut random = Rng::new(1);
        let is_free = |&i: &u32| self.buffers[i as usize].fixed.is_none();
        let fixed = order.iter().filter(|i| !is_free(i)).count();
        // A buffer that ends above `enough` is moved to a random earlier position.
        while best.bytes > enough && self.work < steps {
            let end = |i: u32| best.addresses[i as usize].saturating_add(self.buffers[i as usize].bytes());
            let over = |i: &usize| is_free(&order[*i]) && end(order[*i]) > enough;
            let over: Vec<usize> = (0..order.len()).filter(over).collect();
            if over.is_empty() {
                break;
            }
            let at = over[random.below(over.len())];
            let mut other = order.clone();
            other[fixed + random.below(at - fixed)..=at].rotate_right(1);
            let found = self.first_fit(&other)?;
            if found.bytes <= best.bytes {
                (best, order) = (found, other);
            }
        }
        Some(best)
    }

    /// The buffers in the order of a rule, fixed ones first.
    fn order(&self, rule: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.buffers.len() as u32).collect();
        order.sort_by_key(|&i| {
            let i = i as usize;
            let bytes = u128::from(self.buffers[i].bytes());
            let (length, total) = (u128::from(self.length[i]), u128::from(self.total[i]));
            let key = match rule {
                0 => (length, bytes),
                1 => (bytes, length),
                2 => (self.area[i], length),
                3 => (total, self.area[i]),
                4 => (total, length),
                _ => (total, bytes),
            };
            (self.buffers[i].fixed.is_none(), Reverse(key), i)
        });
        order
    }

    /// Places each buffer, in this order, at the lowest address that the previous ones leave free.
    fn first_fit(&mut self, order: &[u32]) -> Option<Layout> {
        let mut places: Vec<Option<u64>> = vec![None; self.buffers.len()];
        let mut taken: Vec<(u64, u64)> = Vec::new();
        let mut top = 0;
        for &index in order {
            let buffer = &self.buffers[index as usize];
            let list = self.starts[index as usize] as usize..self.starts[index as usize + 1] as usize;
            self.work += list.len() as u64 + 1;
            tuned::work(list.len() + 1);
            taken.clear();
            for &other in &self.neighbours[list] {
                if let Some(address) = places[other as usize] {
                    excluded(buffer, &self.buffers[other as usize], address, &mut taken);
                }
            }
            taken.sort_unstable();
            let mut address = buffer.fixed.unwrap_or(0);
            for &(begin, end) in &taken {
                if begin > address {
                    break;
                }
                if end > address {
                    if buffer.fixed.is_some() {
                        return None;
                    }
                    address = end.checked_next_multiple_of(buffer.alignment)?;
                }
            }
            places[index as usize] = Some(address);
            let is_present = buffer.present().next().is_some();
            top = if is_present { address.checked_add(buffer.bytes())?.max(top) } else { top };
        }
        Some(Layout { addresses: places.into_iter().map(Option::unwrap_or_default).collect(), bytes: top })
    }
}

/// Adds the addresses that are excluded for a buffer by another one at `address`.
fn excluded(buffer: &Buffer, other: &Buffer, address: u64, taken: &mut Vec<(u64, u64)>) {
    for (begin, part) in buffer.present() {
        for (its_begin, its) in other.present() {
            if part.live.start >= its.live.end || its.live.start >= part.live.end {
                continue;
            }
            let bottom = address.saturating_add(its_begin);
            // From the address at which the part's last byte is the other's first byte, to the one above the other.
            let end = bottom.saturating_add(its.bytes).saturating_sub(begin);
            let from = (bottom + 1).saturating_sub(begin.saturating_add(part.bytes));
            if from < end {
                taken.push((from, end));
            }
        }
    }
}
