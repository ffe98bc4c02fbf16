//! Types of results of `Loop` and `Scan`, from their bodies.

use lmsc_ir::{ElementType, TensorType, Type};

use super::Decided;
use super::bodies::{Around, Bodies, wrong};
use crate::proto::{GraphProto, NodeProto};
use crate::shapes::{Const, Fact, Query, Refusal};

/// Maximum number of nodes of a body that are visited, over all iterations, to find the results of every iteration.
const MOST_WALKED: usize = 10_000;

/// A loop whose number of iterations is known, and the results of its body.
pub(super) struct Simulated {
    pub(super) count: usize,
    /// Number of nodes of all iterations.
    pub(super) nodes: usize,
    carried: Vec<Option<Fact>>,
    /// For each result, the elements of the iterations.
    scans: Vec<Vec<Option<Fact>>>,
}

/// A loop in the graph.
struct Loop<'q> {
    body: &'q GraphProto,
    /// Maximum number of iterations; `None` if it is not limited.
    most: Option<u64>,
    /// The values carried from one iteration to the next, as before the first one.
    carried: Vec<Option<Fact>>,
}

impl Bodies<'_> {
    /// The decided control flow of the node, if it is known.
    pub(super) fn decided(&self, node: &NodeProto, query: &Query<'_>, around: Around<'_>) -> Option<Decided> {
        let is_plain = |name: &str| subgraph(node, name).is_ok();
        match query.op.key() {
            ("", "If") => {
                let taken = truth(query.operands.first().copied().flatten()?.value)?;
                is_plain(if taken { "then_branch" } else { "else_branch" }).then_some(Decided::Branch(taken))
            }
            ("", "Loop") if is_plain("body") => {
                let found = self.simulate(node, query, around).ok().flatten()?;
                let Simulated { count, nodes, scans, carried } = found;
                if count == 0 && !scans.is_empty() {
                    return skipped(carried.len(), self.repeat(node, query, around).ok()?);
                }
                Some(Decided::Iterations { count, nodes })
            }
            ("", "Scan") if query.version >= 9 && is_plain("body") => {
                let body = subgraph(node, "body").ok()?;
                let count = usize::try_from(scan_length(node, query).ok().flatten()?).ok()?;
                let nodes = count.checked_mul(body.node.len() + query.operands.len() + body.output.len())?;
                if count == 0 {
                    let carried = scan_states(node, query).ok()?;
                    return skipped(carried, self.scan(node, query, around).ok()?);
                }
                Some(Decided::Iterations { count, nodes })
            }
            _ => None,
        }
    }

    pub(super) fn repeat(
        &self,
        node: &NodeProto,
        query: &Query<'_>,
        around: Around<'_>,
    ) -> Result<Vec<Option<Fact>>, Refusal> {
        if let Some(Simulated { count, carried, scans, .. }) = self.simulate(node, query, around)?
            && (count > 0 || scans.is_empty())
        {
            let scans = scans.into_iter().map(|elements| {
                let first = elements.first()?.as_ref()?;
                let alike = elements.iter().all(|e| e.as_ref().is_some_and(|e| e.ty == first.ty));
                alike.then(|| stacked(&first.ty, 0, count as u64)).flatten()
            });
            return Ok(carried.into_iter().chain(scans).collect());
        }
        let body = subgraph(node, "body")?;
        let constant = |index: usize| query.operands.get(index).copied().flatten().map(|o| o.value);
        let before: Vec<Option<Fact>> = carried(query, 2);
        let given = [scalar(ElementType::Int64, None), scalar(ElementType::Bool, Some(1))];
        let given = given.into_iter().map(Some).chain(before.clone()).collect();
        let mut after = self.results(body, given, around)?.into_iter();
        let goes_on = after.next().flatten().and_then(|fact| truth(fact.value.as_ref()));
        let states: Vec<Option<Fact>> = after.by_ref().take(before.len()).collect();
        unchanged(&before, &states)?;
        let starts = constant(1).map_or(Some(true), truth);
        let count = match (constant(0).flatten().and_then(Const::as_ints), starts, goes_on) {
            (Some(&[count]), Some(true), Some(true)) => u64::try_from(count).ok(),
            (Some(_), Some(false), _) => Some(0),
            _ => None,
        };
        let scans = after.map(|element| stacked(&element?.ty, 0, count?));
        Ok(states.into_iter().chain(scans).collect())
    }

    /// The results of all iterations in order; `None` if their number is not known or too large.
    pub(super) fn simulate(
        &self,
        node: &NodeProto,
        query: &Query<'_>,
        around: Around<'_>,
    ) -> Result<Option<Simulated>, Refusal> {
        let Some(Loop { body, most, mut carried }) = known_loop(node, query)? else { return Ok(None) };
        let size = body.node.len().max(1);
        let mut scans = vec![Vec::new(); body.output.len().saturating_sub(1 + carried.len())];
        let mut count = 0;
        while most.is_none_or(|most| (count as u64) < most) {
            count += 1;
            if count * size > MOST_WALKED {
                return Ok(None);
            }
            let given =
                [scalar(ElementType::Int64, Some(count as i64 - 1)), scalar(ElementType::Bool, Some(1))];
            let given = given.into_iter().map(Some).chain(carried.iter().cloned()).collect();
            let mut after = match self.results(body, given, around) {
                Ok(after) => after.into_iter(),
                Err(Refusal::Unknown(_)) => return Ok(None),
                Err(wrong) => return Err(wrong),
            };
            let goes_on = after.next().flatten().and_then(|fact| truth(fact.value.as_ref()));
            let states = carried.len();
            carried = after.by_ref().take(states).collect();
            for (scan, element) in scans.iter_mut().zip(after) {
                scan.push(element);
            }
            match goes_on {
                Some(true) => {}
                Some(false) => break,
                None => return Ok(None),
            }
        }
        Ok(Some(Simulated { count, nodes: count * (body.node.len() + scans.len()), carried, scans }))
    }

    pub(super) fn scan(
        &self,
        node: &NodeProto,
        query: &Query<'_>,
        around: Around<'_>,
    ) -> Result<Vec<Option<Fact>>, Refusal> {
        if query.version < 9 {
            return Err(Refusal::Unknown(
                "before version 9 it has a batch axis, which lmsc does not know".into(),
            ));
        }
        let body = subgraph(node, "body")?;
        let length = scan_length(node, query)?;
        let states = scan_states(node, query)?;
        let mut given = carried(query, 0);
        let axes = scan_attribute(node, "scan_input_axes");
        for (i, fact) in given[states..].iter_mut().enumerate() {
            let Some(ty) = fact.as_ref().and_then(|fact| fact.ty.as_tensor()) else { continue };
            let mut dims = ty.dims.to_vec();
            dims.remove(axis(axes.get(i).copied().unwrap_or(0), ty.dims.len())?);
            *fact = Some(TensorType::new(ty.element, dims).into());
        }
        let before = given[..states].to_vec();
        let mut after = self.results(body, given, around)?.into_iter();
        let carried: Vec<Option<Fact>> = after.by_ref().take(states).collect();
        unchanged(&before, &carried)?;
        let axes = scan_attribute(node, "scan_output_axes");
        let scans = after.enumerate().map(|(i, element)| {
            let ty = element?.ty;
            let axis = axis(axes.get(i).copied().unwrap_or(0), ty.as_tensor()?.dims.len() + 1).ok()?;
            stacked(&ty, axis, length?)
        });
        Ok(carried.into_iter().chain(scans).collect())
    }
}

/// A loop of no iteration, if the types of all its results are known.
fn skipped(carried: usize, results: Vec<Option<Fact>>) -> Option<Decided> {
    let scans = results.into_iter().skip(carried).map(|fact| fact?.ty.as_tensor().cloned());
    Some(Decided::Skipped { carried, scans: scans.collect::<Option<Vec<_>>>()? })
}

/// The list of integers in the attribute; empty if it is left out.
fn scan_attribute<'n>(node: &'n NodeProto, name: &str) -> &'n [i64] {
    node.attribute.iter().find(|a| a.name() == name).map_or(&[], |a| &a.ints)
}

/// Number of operands of a `Scan` that are carried from one iteration to the next.
fn scan_states(node: &NodeProto, query: &Query<'_>) -> Result<usize, Refusal> {
    let scanned = node.attribute.iter().find(|a| a.name() == "num_scan_inputs").map_or(0, |a| a.i());
    let scanned = usize::try_from(scanned).ok().filter(|&s| (1..=query.operands.len()).contains(&s));
    let problem = || wrong("attribute `num_scan_inputs` is not a number of its operands".to_owned());
    scanned.map(|scanned| query.operands.len() - scanned).ok_or_else(problem)
}

/// Number of iterations of a `Scan`.
fn scan_length(node: &NodeProto, query: &Query<'_>) -> Result<Option<u64>, Refusal> {
    let axes = scan_attribute(node, "scan_input_axes");
    let mut length = None;
    for (i, operand) in query.operands.iter().skip(scan_states(node, query)?).enumerate() {
        let Some(ty) = operand.and_then(|operand| operand.ty.as_tensor()) else { continue };
        let extent = ty.dims[axis(axes.get(i).copied().unwrap_or(0), ty.dims.len())?];
        if *length.get_or_insert(extent) != extent {
            return Err(wrong("its scanned operands differ in length".to_owned()));
        }
    }
    Ok(length)
}

/// The loop, if its maximum number of iterations is known, or the body decides its end.
fn known_loop<'q>(node: &'q NodeProto, query: &Query<'_>) -> Result<Option<Loop<'q>>, Refusal> {
    let body = subgraph(node, "body")?;
    let operand = |index: usize| query.operands.get(index).copied().flatten();
    let most = match operand(0) {
        None => None,
        Some(most) => match most.value.and_then(Const::as_ints) {
            Some(&[most]) => Some(most.max(0) as u64),
            _ => return Ok(None),
        },
    };
    let starts = match operand(1) {
        None => true,
        Some(condition) => match truth(condition.value) {
            Some(starts) => starts,
            None => return Ok(None),
        },
    };
    let carried =
        query.operands.iter().skip(2).map(|operand| {
            operand.map(|operand| Fact { ty: operand.ty.clone(), value: operand.value.cloned() })
        });
    Ok(Some(Loop { body, most: if starts { most } else { Some(0) }, carried: carried.collect() }))
}

/// The types of the operands from this position on. Their elements change from one iteration to the next.
fn carried(query: &Query<'_>, from: usize) -> Vec<Option<Fact>> {
    let ty = |operand: &Option<crate::shapes::Operand<'_>>| operand.map(|operand| operand.ty.clone().into());
    query.operands.iter().skip(from).map(ty).collect()
}

/// Refuses values whose types differ from iteration to iteration.
fn unchanged(before: &[Option<Fact>], after: &[Option<Fact>]) -> Result<(), Refusal> {
    for (index, (before, after)) in before.iter().zip(after).enumerate() {
        if let (Some(before), Some(after)) = (before, after)
            && before.ty != after.ty
        {
            let reason = format!(
                "an iteration makes carried value {index}, which is {}, {}, and the number of iterations is not known",
                before.ty, after.ty
            );
            return Err(Refusal::Unknown(reason.into()));
        }
    }
    Ok(())
}

fn subgraph<'n>(node: &'n NodeProto, name: &str) -> Result<&'n GraphProto, Refusal> {
    let graph = node.attribute.iter().find(|a| a.name() == name).and_then(|a| a.g.as_deref());
    graph.ok_or_else(|| wrong(format!("attribute `{name}` is missing")))
}

fn scalar(element: ElementType, value: Option<i64>) -> Fact {
    let value = value.and_then(|value| Const::ints(element, [Some(value)]));
    Fact { ty: TensorType::new(element, []).into(), value }
}

fn truth(value: Option<&Const>) -> Option<bool> {
    match value?.as_ints()? {
        &[value] => Some(value != 0),
        _ => None,
    }
}

/// The type of `count` tensors of one type, stacked along a new axis.
fn stacked(ty: &Type, axis: usize, count: u64) -> Option<Fact> {
    let ty = ty.as_tensor()?;
    let mut dims = ty.dims.to_vec();
    dims.insert(axis, count);
    Some(TensorType::new(ty.element, dims).into())
}

fn axis(axis: i64, rank: usize) -> Result<usize, Refusal> {
    let from_front = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    let found = from_front.and_then(|a| usize::try_from(a).ok()).filter(|&a| a < rank);
    found.ok_or_else(|| wrong(format!("a scan axis is {axis}, but the tensor has rank {rank}")))
}
