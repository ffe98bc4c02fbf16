//! Memonger: keeps few tensors of the forward pass and recomputes the segments between them.

use lmsc_schedule::problem::{Problem, Window};
use lmsc_schedule::{Absences, Acts, Direction, DoesNotFit, Plan, Request, Simulator};

use crate::extract::turn;
use crate::offload;
use lmsc_planners::ours::remat::{Dead, Dropped, Rematerializer, Rewritten};

/// Thresholds tried at an effort of 100.
const THRESHOLDS: u128 = 64;

/// The fastest of the plans that keep the tensors that cross from one segment of the forward pass to the next and recompute
/// the others.
///
/// A segment ends where the bytes that cross are a local minimum, once it has produced more bytes than a threshold. The last
/// segment is kept whole: it would be needed again at once. Nothing is swapped, and [`Request::recompute`] is assumed.
///
/// # Errors
/// [`DoesNotFit`] if no threshold makes everything fit, with the bytes that the best of them needs.
///
/// # Source
/// Chen et al., *Training deep nets with sublinear memory cost*, arXiv:1604.06174, §4, and the authors' code
/// (`make_mirror_plan` and `search_plan` in mxnet-memonger). There the user marks where a segment may end, and the search
/// minimizes memory over six thresholds around `√(kept · longest / 2)`; here it minimizes time within the budget, over
/// thresholds of the whole range.
pub(crate) fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let budget = request.budget;
    let remat = Rematerializer::new(request.problem);
    let forward = Forward::new(request.problem, &remat);
    let mut best: Option<(u64, u64, Rewritten)> = None;
    let mut refusal: Option<DoesNotFit> = None;
    for cuts in forward.choices(request.effort) {
        let Some(rewritten) = remat.rewrite(&forward.dropped(&cuts), Dead::default()) else { continue };
        let (tick, needed) = offload::most(&rewritten.problem.live_by_moment(&rewritten.problem.uses()));
        let nanos = rewritten.problem.compute_nanos();
        if needed > budget {
            let tick = rewritten.op_origin.get(tick as usize).copied().unwrap_or(0);
            refusal = refusal.filter(|r| r.needed <= needed).or(Some(DoesNotFit { tick, needed, budget }));
        } else if best.as_ref().is_none_or(|&(n, bytes, _)| (nanos, needed) < (n, bytes)) {
            best = Some((nanos, needed, rewritten));
        }
    }
    let refusal = refusal.unwrap_or(DoesNotFit { tick: 0, needed: 0, budget });
    let (_, _, Rewritten { problem, op_origin, tensor_origin }) = best.ok_or(refusal)?;
    let absences = Absences::default();
    let acts = Acts::of(&problem, &absences);
    let times = Simulator::default().run(&acts, &acts.order, budget, Direction::Forward);
    let schedule = acts.schedule(&absences, &acts.order, &times.map_err(|_| refusal)?);
    Ok(Plan { problem, op_origin, tensor_origin, schedule })
}

/// The forward pass: its possible cuts, and its tensors that can be recomputed.
struct Forward<'a> {
    remat: &'a Rematerializer<'a>,
    /// Ticks before which a segment may end, ascending.
    marks: Vec<u32>,
    /// For each tick, the bytes produced before it.
    produced: Vec<u64>,
    /// Windows across the turn of tensors that can be recomputed, by tensor.
    windows: Vec<Window>,
}

impl<'a> Forward<'a> {
    fn new(problem: &'a Problem, remat: &'a Rematerializer<'a>) -> Forward<'a> {
        let turn = turn(problem).unwrap_or(0);
        let uses = problem.uses();
        let ticks = turn as usize;
        let mut produced = vec![0; ticks + 1];
        // For each tick, the bytes that exist before it and that the forward pass reads from then on.
        let mut crossing = vec![0i64; ticks + 2];
        for (tick, op) in problem.ops[..ticks].iter().enumerate() {
            produced[tick + 1] = produced[tick];
            for &tensor in &op.produces {
                let bytes = problem.tensors[tensor].bytes;
                let until =
                    uses.of(tensor).iter().take_while(|&&t| t < turn).last().map_or(tick, |&t| t as usize);
                produced[tick + 1] += bytes;
                crossing[tick + 1] += bytes as i64;
                crossing[until + 1] -= bytes as i64;
            }
        }
        (0..ticks).for_each(|t| crossing[t + 1] += crossing[t]);
        let is_low = |&t: &usize| {
            let before = t == 1 || crossing[t] <= crossing[t - 1];
            before && (t + 1 == ticks || crossing[t] <= crossing[t + 1])
        };
        let marks = (1..ticks).filter(is_low).map(|t| t as u32).collect();
        let across = |w: &Window| w.from <= turn && turn <= w.until && !problem.tensors[w.tensor].kept;
        Forward { remat, marks, produced, windows: remat.windows().into_iter().filter(across).collect() }
    }

    /// Cuts for thresholds from all bytes down to none, each choice once.
    fn choices(&self, effort: u32) -> Vec<Vec<u32>> {
        let count = (THRESHOLDS * u128::from(effort) / 100).max(1);
        let total = self.produced.last().copied().unwrap_or(0);
        let thresholds = (0..=count).rev().map(|step| (u128::from(total) * step / count) as u64);
        let mut choices: Vec<Vec<u32>> = thresholds.map(|threshold| self.cuts(threshold)).collect();
        choices.dedup();
        choices
    }

    /// The ticks before which segments of more than `threshold` bytes end.
    fn cuts(&self, threshold: u64) -> Vec<u32> {
        let mut begin = 0;
        let ends = self.marks.iter().copied().filter(|&mark| {
            let ends = self.produced[mark as usize] - self.produced[begin as usize] > threshold;
            begin = if ends { mark } else { begin };
            ends
        });
        ends.collect()
    }

    /// The tensors that cross no cut, of all segments but the last.
    fn dropped(&self, cuts: &[u32]) -> Vec<Dropped> {
        let Some(&last) = cuts.last() else { return Vec::new() };
        let stays = |window: &Window| {
            let producer = self.remat.producer(window.tensor).unwrap_or(0);
            producer >= last || cuts.iter().any(|&cut| producer < cut && cut < window.from)
        };
        let dropped = self.windows.iter().filter(|window| !stays(window));
        dropped.map(|&window| Dropped::new(window)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lmsc_planners::chain::Chain;

    /// Six stages that keep 10 bytes each.
    fn problem() -> Problem {
        let chain = Chain {
            forward_nanos: vec![1, 2, 4, 8, 16, 32],
            backward_nanos: vec![100; 6],
            activation_bytes: vec![10; 7],
            gradient_bytes: vec![0; 7],
            forward_workspace: vec![0; 6],
            backward_workspace: vec![0; 6],
            bytes_per_second: 1 << 30,
        };
        chain.problem()
    }

    #[test]
    fn a_stretch_ends_once_it_has_produced_more_than_the_threshold() {
        let problem = problem();
        let remat = Rematerializer::new(&problem);
        let forward = Forward::new(&problem, &remat);
        assert_eq!(forward.marks, [1, 2, 3, 4, 5]);
        assert_eq!([60, 30, 20, 10, 9].map(|t| forward.cuts(t).len()), [0, 1, 1, 2, 5]);
        assert_eq!((forward.cuts(20), forward.cuts(10)), (vec![3], vec![2, 4]));
    }

    #[test]
    fn tensors_inside_a_stretch_are_recomputed() {
        let problem = problem();
        // x_0, x_3 and x_4 … x_6 stay: x_1 and x_2 are recomputed before B_2, where x_0, x_3 and they are resident.
        let plan = plan(&Request::new(&problem, 50)).unwrap();
        assert_eq!(plan.op_origin, [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 9, 10, 11]);
        assert_eq!(plan.recompute_nanos(), 1 + 2);
        assert_eq!(plan.schedule.makespan(), problem.compute_nanos() + 3);
        assert_eq!(plan.schedule.copied_bytes(), (0, 0));
    }

    #[test]
    fn nothing_runs_twice_where_all_fits() {
        let problem = problem();
        let plan = plan(&Request::new(&problem, 70)).unwrap();
        assert_eq!(plan.schedule.makespan(), problem.compute_nanos());
    }

    #[test]
    fn a_problem_that_fits_at_no_threshold_is_refused() {
        // With the cut before F_4, F_2 is recomputed beside x_0 … x_2 and x_4.
        let refusal = plan(&Request::new(&problem(), 49)).unwrap_err();
        assert_eq!(refusal, DoesNotFit { tick: 2, needed: 50, budget: 49 });
    }
}
