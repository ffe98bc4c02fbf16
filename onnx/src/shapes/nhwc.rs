//! Operators on images with channels last.

use lmsc_ir::nhwc::{self, permuted, to_first, to_last};
use lmsc_ir::{TensorType, Type};

use super::{ANY_VERSION, Answer, Cx, Declared, Operand, Query, Wanted, table, wrong};

/// The rule of the operator with channels first, on operands with channels first.
pub(super) fn nhwc(cx: &Cx<'_>) -> Answer {
    let query = cx.query;
    let Some(form) = nhwc::of(query.op) else { return wrong("no operator with channels last") };
    let op = form.first_op();
    let Some(rule) = table::rule(&op) else { return wrong("no operator with channels last") };
    let turned: Vec<Option<Type>> = (query.operands.iter().enumerate())
        .map(|(index, operand)| {
            operand.filter(|_| form.operands.contains(&index)).map(|it| nhwc::first_type(it.ty))
        })
        .collect();
    let operands: Vec<Option<Operand<'_>>> = (query.operands.iter().zip(&turned))
        .map(|(operand, turned)| match (operand, turned) {
            (Some(operand), Some(ty)) => Some(Operand { ty, value: None, ..*operand }),
            (operand, _) => *operand,
        })
        .collect();
    let declared: Vec<Option<Declared>> = (query.results.iter().enumerate())
        .map(|(index, wanted)| {
            let declared = (*wanted)?.declared.filter(|_| form.results.contains(&index))?.clone();
            let dims = declared.dims.map(|dims| permuted(&dims, &to_first(dims.len())));
            Some(Declared { dims, ..declared })
        })
        .collect();
    let results: Vec<Option<Wanted<'_>>> = (query.results.iter().zip(&declared))
        .map(|(wanted, turned)| wanted.map(|it| Wanted { declared: turned.as_ref().or(it.declared), ..it }))
        .collect();
    let first = Query {
        op: &op,
        version: ANY_VERSION,
        operands: &operands,
        results: &results,
        producer: &|_| None,
        ..*query
    };
    let mut facts = rule(&Cx { query: &first })?;
    for &index in form.results {
        if let Some(Some(fact)) = facts.get_mut(index)
            && let Type::Tensor(ty) = &fact.ty
        {
            *fact = TensorType::new(ty.element, permuted(&ty.dims, &to_last(ty.dims.len()))).into();
        }
    }
    Ok(facts)
}
