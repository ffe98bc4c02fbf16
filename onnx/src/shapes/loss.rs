//! Losses and their gradients.

use lmsc_ir::{ElementType, TensorType};

use super::{Answer, Cx, Refusal, show, wrong};

/// The extents of the labels, which are those of the scores without axis 1.
fn labelled<'a>(cx: &Cx<'a>, scores: &TensorType, at: usize) -> Result<&'a [u64], Refusal> {
    let labels = cx.dims(at)?;
    let fits = match &*scores.dims {
        [batch, _, rest @ ..] => labels.first() == Some(batch) && labels[1..] == *rest,
        _ => false,
    };
    if !fits {
        let (labels, scores) = (cx.typed(at), cx.typed(at - 1));
        return wrong(format!(
            "the labels, {labels}, do not fit the scores, {scores}; expected the same extents without axis 1"
        ));
    }
    // Behind the labels are weights of the classes, and the label that is ignored.
    cx.expect(at + 1, &scores.dims[1..2])?;
    if cx.query.op.name().contains("Internal") {
        cx.expect_one(at + 2)?;
    }
    Ok(labels)
}

/// The element type of the loss that an attribute of some operators names.
fn output_type(cx: &Cx<'_>) -> Result<Option<ElementType>, Refusal> {
    if cx.knows("output_type") { cx.element("output_type") } else { Ok(None) }
}

/// The loss, reduced or one per label.
fn reduced(cx: &Cx<'_>, scores: &TensorType, labels: &[u64]) -> Result<TensorType, Refusal> {
    let element = output_type(cx)?.unwrap_or(scores.element);
    match cx.string("reduction")? {
        "none" => Ok(TensorType::new(element, labels)),
        "" | "mean" | "sum" => Ok(TensorType::new(element, [])),
        other => wrong(format!("attribute `reduction` is `{other}`; it is none, mean or sum")),
    }
}

/// `SoftmaxCrossEntropyLoss`: the loss and the log-probabilities.
pub(super) fn cross_entropy(cx: &Cx<'_>) -> Answer {
    let scores = cx.tensor(0)?;
    let loss = reduced(cx, scores, labelled(cx, scores, 1)?)?;
    let log_prob = TensorType::new(loss.element, &*scores.dims);
    Ok(vec![Some(loss.into()), Some(log_prob.into())])
}

/// `NegativeLogLikelihoodLoss`.
pub(super) fn negative_log_likelihood(cx: &Cx<'_>) -> Answer {
    let scores = cx.tensor(0)?;
    Ok(vec![Some(reduced(cx, scores, labelled(cx, scores, 1)?)?.into())])
}

/// `SoftmaxCrossEntropyLossGrad(dY, log_prob, labels, …)`: the type of the scores.
pub(super) fn cross_entropy_gradient(cx: &Cx<'_>) -> Answer {
    let log_prob = cx.tensor(1)?;
    let labels = labelled(cx, log_prob, 2)?;
    let dy = cx.dims(0)?;
    let expected = if cx.string("reduction")? == "none" { labels } else { &[] };
    if dy != expected && dy != [1] {
        return wrong(format!("dY is {}; its extents should be {}", cx.typed(0), show(expected)));
    }
    let element = output_type(cx)?.unwrap_or(log_prob.element);
    Ok(vec![Some(TensorType::new(element, &*log_prob.dims).into())])
}

/// `com.microsoft.SoftmaxCrossEntropy`, `SparseSoftmaxCrossEntropy`: classes on the last axis.
pub(super) fn last_axis_cross_entropy(cx: &Cx<'_>) -> Answer {
    let scores = cx.tensor(0)?;
    let labels = cx.dims(1)?;
    Ok(vec![Some(reduced(cx, scores, labels)?.into()), Some(scores.clone().into())])
}
