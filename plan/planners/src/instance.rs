//! Problems from instance files: JSON, a chain (`lmsc-planner-chain-1`) or operators (`lmsc-planner-dag-1`, and `-2` where they
//! run on several lanes); or a [trace].
//!
//! Times of chains and operators are microseconds, sizes bytes, bandwidths bytes per second.

use lmsc_ir::Phase;
use lmsc_schedule::problem::{
    COMPUTE, Duplex, Lane, Link, Operator, Problem, ProblemError, Tensor, TensorId,
};
use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::trace::{self, TraceError};

/// The content of an instance file.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The name in the file.
    pub name: String,
    /// Its operators and tensors. A chain's link is half duplex, and that of operators full, unless the file says otherwise.
    pub problem: Problem,
    /// The chain, if the file holds one.
    pub chain: Option<Chain>,
}

/// The format of operators on one lane, and that of operators on several. A reader of the former alone would let the latter wait
/// for each other.
const ONE_LANE: &str = "lmsc-planner-dag-1";
const LANES: &str = "lmsc-planner-dag-2";

/// Tensors of a `lmsc-planner-dag-1` file below this many bytes stay on the device.
pub const SMALLEST_SWAPPABLE: u64 = 1 << 20;

/// The reason why a text is no instance.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum InstanceError {
    #[error("not an instance: {0}")]
    Json(#[from] serde_json::Error),
    #[error(
        "the format is `{0}`; lmsc reads lmsc-planner-chain-1, lmsc-planner-dag-1, lmsc-planner-dag-2 and lmsc-trace-1"
    )]
    Format(String),
    #[error("`{field}` has {found} entries; {stages} stages need {needed}")]
    Length { field: &'static str, found: usize, stages: usize, needed: usize },
    #[error("`{field}` {index} is {found}; write {expected}")]
    Number { field: &'static str, index: usize, found: f64, expected: &'static str },
    #[error("operator {0} is of kind {1}, which `kinds` does not have")]
    Kind(usize, usize),
    #[error("operator {0} names tensor {1}, which `tensor_bytes` does not have")]
    Tensor(usize, usize),
    #[error("`{0}` names {1}, which is not there, or has no bytes")]
    Named(&'static str, usize),
    #[error("`lanes` and `on_lane` are of the format lmsc-planner-dag-2; the file is lmsc-planner-dag-1")]
    Lanes,
    #[error("tensor {0} has no bytes, but operator {1} names it; leave it out")]
    Empty(usize, usize),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

#[derive(Deserialize)]
struct Header {
    format: String,
    name: String,
}

#[derive(Deserialize)]
#[expect(non_snake_case, reason = "these are the keys of the file")]
struct ChainFile {
    beta: f64,
    uF: Vec<f64>,
    uB: Vec<f64>,
    x: Vec<u64>,
    y: Vec<u64>,
    exF: Vec<u64>,
    exB: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct DagFile {
    bw_d2h: f64,
    bw_h2d: f64,
    /// Time of each copy beyond the transfer of its bytes.
    #[serde(default)]
    latency_ns: u64,
    /// Whether copies in the two directions share one engine.
    #[serde(default)]
    half_duplex: bool,
    tensor_bytes: Vec<u64>,
    /// Swappable tensors; by default, those of at least [`SMALLEST_SWAPPABLE`] bytes.
    #[serde(default)]
    swappable: Option<Vec<usize>>,
    /// Tensors that exist before the first operator; by default, those that no operator produces.
    #[serde(default)]
    given: Option<Vec<usize>>,
    /// Tensors that must exist after the last operator.
    #[serde(default)]
    kept: Vec<usize>,
    kinds: Vec<String>,
    ops: Vec<DagOp>,
    /// Pairs of an operator and one of its inputs, which it changes in place.
    #[serde(default)]
    changes: Vec<(usize, usize)>,
    /// `lmsc-planner-dag-2`: the lanes of operators beside `compute`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lanes: Vec<LaneFile>,
    /// Pairs of an operator and its lane, from 1; the others compute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    on_lane: Vec<(usize, u8)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LaneFile {
    name: String,
    /// Whether its recomputable operators may run again.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    repeats: bool,
}

fn yes() -> bool {
    true
}

/// Kind, phase (0 forward, 1 backward, 2 update), microseconds, workspace bytes, inputs, outputs, recomputable.
#[derive(Serialize, Deserialize)]
struct DagOp(usize, u8, f64, u64, Vec<usize>, Vec<usize>, u8);

impl Instance {
    /// The instance that the text describes.
    ///
    /// # Errors
    /// [`InstanceError`] gives the wrong field and the expected value.
    pub fn parse(text: &str) -> Result<Instance, InstanceError> {
        // A trace has more than one value.
        let first = serde_json::Deserializer::from_str(text).into_iter().next();
        let header: Header = first.unwrap_or_else(|| serde_json::from_str(text))?;
        let (problem, chain) = match header.format.as_str() {
            trace::FORMAT => (trace::parse(text)?.1, None),
            "lmsc-planner-chain-1" => {
                let chain = chain(&serde_json::from_str(text)?)?;
                (chain.problem(), Some(chain))
            }
            ONE_LANE | LANES => {
                let file: DagFile = serde_json::from_str(text)?;
                if header.format == ONE_LANE && !(file.lanes.is_empty() && file.on_lane.is_empty()) {
                    return Err(InstanceError::Lanes);
                }
                (dag(file)?, None)
            }
            _ => return Err(InstanceError::Format(header.format)),
        };
        problem.check()?;
        Ok(Instance { name: header.name, problem, chain })
    }
}

/// The problem as an instance file of the format `lmsc-planner-dag-1`, or `-2` if it has several lanes, which [`Instance::parse`] reads as the same problem.
/// Bandwidths are rounded to 53 bits.
pub fn to_json(problem: &Problem, name: &str) -> String {
    #[derive(Serialize)]
    struct Named<'a> {
        format: &'static str,
        name: &'a str,
        #[serde(flatten)]
        file: DagFile,
    }
    let index = |tensor: &TensorId| tensor.as_u32() as usize;
    let those = |is: fn(&Tensor) -> bool| {
        problem.tensors.iter().filter(|(_, facts)| is(facts)).map(|(tensor, _)| index(&tensor)).collect()
    };
    let op = |op: &Operator| {
        let phase = match op.phase {
            Phase::Forward => 0,
            Phase::Backward => 1,
            Phase::Update => 2,
        };
        let (reads, produces) =
            (op.reads.iter().map(index).collect(), op.produces.iter().map(index).collect());
        let micros = op.nanos as f64 / 1000.0;
        DagOp(op.kind as usize, phase, micros, op.workspace, reads, produces, op.recomputable.into())
    };
    let changes = problem.ops.iter().enumerate();
    let file = DagFile {
        bw_d2h: problem.link.out_bytes_per_second as f64,
        bw_h2d: problem.link.in_bytes_per_second as f64,
        latency_ns: problem.link.latency_nanos,
        half_duplex: problem.link.duplex == Duplex::Half,
        tensor_bytes: problem.tensors.values().map(|tensor| tensor.bytes).collect(),
        swappable: Some(those(|tensor| tensor.swappable)),
        given: Some(those(|tensor| tensor.given)),
        kept: those(|tensor| tensor.kept),
        kinds: problem.kinds.clone(),
        ops: problem.ops.iter().map(op).collect(),
        changes: changes.flat_map(|(at, op)| op.changes.iter().map(move |t| (at, index(t)))).collect(),
        lanes: problem.lanes[1..]
            .iter()
            .map(|Lane { name, repeats }| LaneFile { name: name.clone(), repeats: *repeats })
            .collect(),
        on_lane: problem
            .ops
            .iter()
            .enumerate()
            .filter(|(_, op)| op.lane > 0)
            .map(|(at, op)| (at, op.lane))
            .collect(),
    };
    let format = if problem.has_lanes() { LANES } else { ONE_LANE };
    serde_json::to_string(&Named { format, name, file }).expect("an instance is JSON") + "\n"
}

fn chain(file: &ChainFile) -> Result<Chain, InstanceError> {
    let stages = file.uF.len();
    let lengths = [
        ("uB", file.uB.len(), stages),
        ("x", file.x.len(), stages + 1),
        ("y", file.y.len(), stages + 1),
        ("exF", file.exF.len(), stages),
        ("exB", file.exB.len(), stages),
    ];
    for (field, found, needed) in lengths {
        if found != needed {
            return Err(InstanceError::Length { field, found, stages, needed });
        }
    }
    let all_nanos = |field, micros: &[f64]| -> Result<Vec<u64>, InstanceError> {
        micros.iter().enumerate().map(|(i, &m)| nanos(field, i, m)).collect()
    };
    Ok(Chain {
        forward_nanos: all_nanos("uF", &file.uF)?,
        backward_nanos: all_nanos("uB", &file.uB)?,
        activation_bytes: file.x.clone(),
        gradient_bytes: file.y.clone(),
        forward_workspace: file.exF.clone(),
        backward_workspace: file.exB.clone(),
        bytes_per_second: bandwidth("beta", file.beta)?,
    })
}

fn dag(file: DagFile) -> Result<Problem, InstanceError> {
    let mut problem = Problem {
        link: Link {
            out_bytes_per_second: bandwidth("bw_d2h", file.bw_d2h)?,
            in_bytes_per_second: bandwidth("bw_h2d", file.bw_h2d)?,
            latency_nanos: file.latency_ns,
            duplex: if file.half_duplex { Duplex::Half } else { Duplex::Full },
        },
        kinds: file.kinds,
        ..Problem::default()
    };
    let named = |field, list: &[usize]| members(field, list, &file.tensor_bytes);
    let mut given = vec![true; file.tensor_bytes.len()];
    match &file.given {
        Some(list) => given = named("given", list)?,
        None => file.ops.iter().flat_map(|op| &op.5).for_each(|&output| {
            given.get_mut(output).into_iter().for_each(|given| *given = false);
        }),
    }
    let kept = named("kept", &file.kept)?;
    let swappable = match &file.swappable {
        Some(list) => named("swappable", list)?,
        None => file.tensor_bytes.iter().map(|&bytes| bytes >= SMALLEST_SWAPPABLE).collect(),
    };
    let mut ids: Vec<Option<TensorId>> = Vec::with_capacity(given.len());
    for (at, &bytes) in file.tensor_bytes.iter().enumerate() {
        let tensor = Tensor { bytes, swappable: swappable[at], given: given[at], kept: kept[at] };
        ids.push((bytes > 0).then(|| problem.tensors.push(tensor)));
    }
    for (tick, DagOp(kind, phase, micros, workspace, inputs, outputs, recomputable)) in
        file.ops.into_iter().enumerate()
    {
        if kind >= problem.kinds.len() {
            return Err(InstanceError::Kind(tick, kind));
        }
        let named = |tensors: Vec<usize>| -> Result<Vec<TensorId>, InstanceError> {
            let id = |t: usize| {
                let id = ids.get(t).ok_or(InstanceError::Tensor(tick, t))?;
                id.ok_or(InstanceError::Empty(t, tick))
            };
            tensors.into_iter().map(id).collect()
        };
        problem.ops.push(Operator {
            kind: kind as u32,
            phase: match phase {
                0 => Phase::Forward,
                2 => Phase::Update,
                _ => Phase::Backward,
            },
            nanos: nanos("t_us of operator", tick, micros)?,
            workspace,
            reads: named(inputs)?,
            produces: named(outputs)?,
            changes: Vec::new(),
            recomputable: recomputable != 0,
            lane: COMPUTE,
        });
    }
    problem.lanes.extend(file.lanes.into_iter().map(|LaneFile { name, repeats }| Lane { name, repeats }));
    for (tick, lane) in file.on_lane {
        problem.ops.get_mut(tick).ok_or(InstanceError::Named("on_lane", tick))?.lane = lane;
    }
    if file.swappable.is_none() {
        for op in problem.ops.iter().filter(|op| op.is_reduction()) {
            op.reads.iter().for_each(|&tensor| problem.tensors[tensor].swappable = false);
        }
    }
    for (tick, tensor) in file.changes {
        let id = ids.get(tensor).copied().flatten().ok_or(InstanceError::Named("changes", tensor))?;
        problem.ops.get_mut(tick).ok_or(InstanceError::Named("changes", tick))?.changes.push(id);
    }
    Ok(problem)
}

/// For each tensor, whether it is in the list.
fn members(field: &'static str, list: &[usize], bytes: &[u64]) -> Result<Vec<bool>, InstanceError> {
    let mut members = vec![false; bytes.len()];
    for &tensor in list {
        match bytes.get(tensor) {
            Some(1..) => members[tensor] = true,
            _ => return Err(InstanceError::Named(field, tensor)),
        }
    }
    Ok(members)
}

/// Microseconds in whole nanoseconds.
fn nanos(field: &'static str, index: usize, micros: f64) -> Result<u64, InstanceError> {
    match micros {
        m if (0.0..1e15).contains(&m) => Ok((m * 1000.0).round() as u64),
        found => Err(InstanceError::Number { field, index, found, expected: "microseconds from 0 to 1e15" }),
    }
}

fn bandwidth(field: &'static str, found: f64) -> Result<u64, InstanceError> {
    match found {
        b if (1.0..1e18).contains(&b) => Ok(b as u64),
        _ => {
            let expected = "bytes per second, at least 1";
            Err(InstanceError::Number { field, index: 0, found, expected })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_becomes_forward_and_backward_operators() {
        let text = r#"{"format": "lmsc-planner-chain-1", "name": "two", "beta": 1e9,
            "uF": [1, 2.5], "uB": [3, 4], "x": [8, 16, 32], "y": [0, 16, 0], "exF": [0, 1], "exB": [2, 0]}"#;
        let Instance { problem, chain, .. } = Instance::parse(text).unwrap();
        assert_eq!(chain.unwrap().stages(), 2);
        assert_eq!(problem.ops.iter().map(|op| op.nanos).collect::<Vec<_>>(), [1000, 2500, 4000, 3000]);
        // Loss gradients have no bytes: F_1 holds x_1, x_2, x_0 and its workspace; B_1 adds y_1.
        assert_eq!(problem.live_bytes(), [8 + 16, 8 + 16 + 32 + 1, 8 + 16 + 32 + 16, 8 + 16 + 16 + 2]);
        assert_eq!(problem.needed_bytes(), [24, 49, 64, 42]);
    }

    #[test]
    fn written_instances_read_back_equal() {
        for seed in 0..200 {
            let rng = &mut lmsc_testing::Rng::new(seed);
            let mut problem = match seed % 2 {
                0 => lmsc_testing::random::problem(rng, 12),
                _ => lmsc_testing::random::problem_with_lanes(rng, 12),
            };
            problem.lanes[1..].iter_mut().for_each(|lane| lane.repeats = seed % 3 > 0);
            let Link { out_bytes_per_second, in_bytes_per_second, .. } = &mut problem.link;
            for bandwidth in [out_bytes_per_second, in_bytes_per_second] {
                *bandwidth = *bandwidth as f64 as u64;
            }
            let text = to_json(&problem, "random");
            let Instance { name, problem: read, chain } = Instance::parse(&text).unwrap();
            assert!(name == "random" && chain.is_none());
            assert_eq!(format!("{read:?}"), format!("{problem:?}"), "seed {seed}");
            let format = if problem.has_lanes() { LANES } else { ONE_LANE };
            assert!(text.contains(format), "seed {seed}");
        }
    }

    #[test]
    fn lanes_are_of_the_second_format_and_their_faults_are_named() {
        let parsed = |version: u32, more: &str| {
            let head = format!(
                r#""format": "lmsc-planner-dag-{version}", "name": "d", "bw_d2h": 1e9, "bw_h2d": 1e9"#
            );
            let bytes = r#""tensor_bytes": [4194304, 4, 4], "kinds": ["k"]"#;
            let ops = r#""ops": [[0, 0, 1, 0, [], [0], 1], [0, 1, 1, 0, [0], [1], 0], [0, 2, 1, 0, [0, 1], [2], 0]]"#;
            Instance::parse(&format!("{{{head}, {bytes}, {ops}, {more}}}"))
        };
        let error = |version, more: &str| parsed(version, more).unwrap_err().to_string();
        let lanes = r#""lanes": [{"name": "comm"}], "on_lane": [[1, 1]]"#;
        let problem = parsed(2, lanes).unwrap().problem;
        assert_eq!(problem.reductions(), [(1, Some(2))]);
        assert!(!problem.tensors[TensorId::from_u32(0)].swappable, "an operand of a reduction stays");
        assert_eq!(
            error(1, lanes),
            "`lanes` and `on_lane` are of the format lmsc-planner-dag-2; the file is lmsc-planner-dag-1"
        );
        assert_eq!(
            error(2, &format!("{lanes}, \"swappable\": [0]")),
            "tensor t0 is the operand of the reduction of operator 1 and could leave before its wait; let it be not swappable"
        );
        assert_eq!(
            error(2, r#""lanes": [{"name": "comm"}], "on_lane": [[0, 2]]"#),
            "operator 0 runs on lane 2, which there is not"
        );
        assert_eq!(
            error(2, r#""on_lane": [[7, 1]]"#),
            "`on_lane` names 7, which is not there, or has no bytes"
        );
        let five = r#"{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}"#;
        assert_eq!(
            error(2, &format!("\"lanes\": [{five}]")),
            "there are 5 lanes; write 1 to 4, the first for the operators that compute"
        );
    }

    #[test]
    fn faults_of_an_instance_are_named() {
        let error = |text: &str| Instance::parse(text).unwrap_err().to_string();
        let dag = |ops: &str| {
            let head = r#""format": "lmsc-planner-dag-1", "name": "d", "bw_d2h": 1e9, "bw_h2d": 1e9"#;
            error(&format!(r#"{{{head}, "tensor_bytes": [4, 4], "kinds": ["k"], "ops": [{ops}]}}"#))
        };
        assert_eq!(dag("[1, 0, 1, 0, [0], [1], 1]"), "operator 0 is of kind 1, which `kinds` does not have");
        assert_eq!(
            dag("[0, 0, 1, 0, [0], [2], 1]"),
            "operator 0 names tensor 2, which `tensor_bytes` does not have"
        );
        assert_eq!(
            dag("[0, 0, -1, 0, [0], [1], 1]"),
            "`t_us of operator` 0 is -1; write microseconds from 0 to 1e15"
        );
        assert_eq!(dag("[0, 0, 1, 0, [0, 0], [1], 1]"), "operator 0 reads tensor t0 twice; name it once");
        assert_eq!(dag(r#"], "kept": [2"#), "`kept` names 2, which is not there, or has no bytes");
        assert_eq!(dag(r#"], "changes": [[3, 1]"#), "`changes` names 3, which is not there, or has no bytes");
        assert_eq!(
            error(r#"{"format": "other", "name": ""}"#),
            "the format is `other`; lmsc reads lmsc-planner-chain-1, lmsc-planner-dag-1, lmsc-planner-dag-2 and lmsc-trace-1"
        );
    }
}
