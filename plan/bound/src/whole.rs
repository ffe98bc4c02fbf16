//! The bound for plans that swap whole tensors.
//!
//! As in [`mod@super::swap`], but at a moment a set of whole tensors is on the device whose bytes fit in the slack, and all
//! others have been copied, each in one copy of its own length. The best set for the copies is a scheduling problem with
//! release dates and one machine: copies in the order of their release, none before it. The least completion time over all
//! sets is found by dynamic programming over bytes, the latest release first: for every number of bytes the least completion
//! time so far and the least sum of durations so far, each independently. It remains a bound although two different sets may
//! give the two values, and also with bytes rounded to a quantum: down where resident bytes are counted, against the slack,
//! up where copied bytes are counted, against the bytes to be copied.
//!
//! From the start this bounds the starts of moments, from the end the time from their ends to the end of the step; their sum
//! at the best moment is the bound.

use lmsc_schedule::problem::Problem;
use lmsc_schedule::tuned::{self, Tunable};

use super::line::{Line, Rate};
use super::swap::{Table, Why};
use super::{Certificate, Proof};

/// Approximate number of steps of dynamic programming at one moment.
const STEPS: Tunable<u64> = Tunable::new(2_000_000);

/// Approximate number of states of dynamic programming.
const STATES: Tunable<u64> = Tunable::new(6000);

/// A bound on the makespan of every plan that only swaps whole tensors.
///
/// Evaluates at most a fixed number of moments, each for a fixed time, beyond the time of [`super::swap`].
pub(super) fn whole(problem: &Problem, budget: u64) -> Certificate {
    let line = Line::of(problem, budget);
    let seen = line.mirrored();
    let (before, after) = (table(&line), table(&seen));
    let last = line.len() - 1;
    let sum = |m: u32| before.end(&line, m).saturating_add(after.start[(last - m) as usize]);
    let at = (0..=last).max_by_key(|&m| (sum(m), std::cmp::Reverse(m))).unwrap_or(0);
    let mut whole = Certificate {
        nanos: sum(at),
        proof: Proof::Whole {
            at: line.when(at),
            before: before.facts(&line, [at]),
            after: after.facts(&seen, [last - at]),
        },
    };
    let pieces = super::swap::swap(problem, budget);
    if pieces.nanos >= whole.nanos {
        whole = pieces;
    }
    whole
}

fn table(line: &Line) -> Table {
    let moments = moments(line);
    Table::of(line, |moment, start| {
        moments.binary_search(&moment).ok()?;
        let mut items = Vec::new();
        for span in line.spans.iter().filter(|span| span.moments.contains(&moment)) {
            let Some(release) = span.release else { continue };
            let from = start[release as usize] + line.nanos[release as usize];
            items.push(Item { release, from, bytes: span.bytes });
        }
        items.sort_unstable_by_key(|item| (std::cmp::Reverse(item.release), item.bytes));
        let (start, quantum) = leaving(&items, line.slack[moment as usize], line.rates[0])?;
        Some((start, Why::Whole { quantum }))
    })
}

/// A tensor that stays resident or is copied out.
struct Item {
    release: u32,
    from: u64,
    bytes: u64,
}

/// The earliest time at which all but the slack has been copied out, and the quantum of bytes used for it.
fn leaving(items: &[Item], slack: u64, rate: Rate) -> Option<(u64, u64)> {
    let all: u64 = items.iter().map(|item| item.bytes).sum();
    let moves = all.checked_sub(slack).filter(|&moves| moves > 0)?;
    let states = STATES.get().min(STEPS.get() / items.len() as u64).max(100);
    let stays = slack < moves;
    let common = items.iter().fold(0, |a, item| gcd(a, item.bytes));
    let quantum = slack.min(moves).div_ceil(states).max(common);
    let states = if stays { slack / quantum } else { moves.div_ceil(quantum) } as usize;
    // By number of resident or copied quanta: the least completion time, and the least sum of durations.
    let (mut done, mut sum) = (vec![u64::MAX; states + 1], vec![u64::MAX; states + 1]);
    tuned::work(items.len() * states);
    (done[0], sum[0]) = (0, 0);
    for item in items {
        let nanos = rate.nanos(item.bytes, item.bytes);
        let moved = |done: u64, sum: u64| {
            let sum = sum.saturating_add(nanos);
            (done.max(item.from.saturating_add(sum)), sum)
        };
        let size = if stays { item.bytes / quantum } else { item.bytes.div_ceil(quantum) };
        let size = size.min(states as u64 + 1) as usize;
        for state in (0..=states).rev() {
            if stays {
                let (moved_done, moved_sum) = moved(done[state], sum[state]);
                let kept = state.checked_sub(size).map_or((u64::MAX, u64::MAX), |s| (done[s], sum[s]));
                (done[state], sum[state]) = (moved_done.min(kept.0), moved_sum.min(kept.1));
            } else if sum[state] < u64::MAX {
                let (moved_done, moved_sum) = moved(done[state], sum[state]);
                let to = (state + size).min(states);
                (done[to], sum[to]) = (done[to].min(moved_done), sum[to].min(moved_sum));
            }
        }
    }
    let least = if stays { done.into_iter().min() } else { done.pop() };
    least.map(|least| (least, quantum))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The moments at which bytes must be swapped out. If there are many, an even selection, and some of those at which more
/// bytes must be swapped out than at any earlier moment.
fn moments(line: &Line) -> Vec<u32> {
    let mut away = vec![0i64; line.nanos.len() + 1];
    for span in &line.spans {
        away[span.moments.start as usize] += span.bytes as i64;
        away[span.moments.end as usize] -= span.bytes as i64;
    }
    let (mut now, mut most) = (0, 0);
    let (mut all, mut records) = (Vec::new(), Vec::new());
    for (moment, (&slack, change)) in (0..).zip(line.slack.iter().zip(away)) {
        now += change;
        let excess = (now as u64).saturating_sub(slack);
        if excess > 0 {
            all.push(moment);
        }
        if excess > most {
            most = excess;
            records.push(moment);
        }
    }
    let steps = STEPS.get().min(STATES.get() * line.spans.len() as u64).max(1);
    let most = (64 * STEPS.get() / steps) as usize;
    let mut chosen = evenly(&all, most);
    if chosen.len() < all.len() {
        chosen = [evenly(&all, most / 2), evenly(&records, most / 2)].concat();
        chosen.sort_unstable();
        chosen.dedup();
    }
    chosen
}

/// At most `most` entries of the list, evenly spaced and including the last.
fn evenly(list: &[u32], most: usize) -> Vec<u32> {
    let chosen = list.len().min(most);
    (1..=chosen).map(|i| list[i * list.len() / chosen - 1]).collect()
}
