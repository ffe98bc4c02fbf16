//! A step in the form that the paper records: operations on variables, one after the other (DQN §3, §4.2).

use std::collections::BTreeMap;

use lmsc_ir::Phase;
use lmsc_schedule::problem::{COMPUTE, Duplex, Link, Operator, Problem, Tensor, TensorId};
use serde::{Deserialize, Serialize};

/// The format that the first line of a trace names.
pub const FORMAT: &str = "lmsc-trace-1";

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Its memory is allocated.
    Malloc,
    /// Its memory is freed.
    Free,
    /// A kernel reads it.
    Read,
    /// A kernel writes it.
    Write,
}

/// One operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The kind of the operation.
    pub verb: Verb,
    /// Its start without a memory limit, in nanoseconds.
    pub nanos: u64,
    /// Its variable: the index of a tensor, or a higher number for an operator's workspace.
    pub variable: u32,
    /// The size of the variable.
    pub bytes: u64,
    /// The tick of its operator.
    pub tick: u32,
}

impl Operation {
    /// Whether a kernel reads or writes.
    pub fn is_access(&self) -> bool {
        matches!(self.verb, Verb::Read | Verb::Write)
    }
}

/// The operations of a step of the problem without a memory limit, in their order.
///
/// An operator allocates its results and its workspace, reads, writes, and when it has ended, the tensors that it uses last
/// are freed. Allocating and freeing take no time (§4.7).
pub fn operations(problem: &Problem) -> Vec<Operation> {
    let uses = problem.uses();
    let mut operations = Vec::new();
    let (mut begin, mut workspace) = (0, problem.tensors.len() as u32);
    for (tick, op) in problem.ops.iter().enumerate() {
        let tick = tick as u32;
        let end = begin + op.nanos;
        let mut push = |verb, nanos, variable, bytes| {
            operations.push(Operation { verb, nanos, variable, bytes, tick });
        };
        let mut of = |verb, nanos, tensor: TensorId| {
            push(verb, nanos, tensor.as_u32(), problem.tensors[tensor].bytes);
        };
        op.produces.iter().for_each(|&t| of(Verb::Malloc, begin, t));
        op.reads.iter().for_each(|&t| of(Verb::Read, begin, t));
        op.changes.iter().chain(&op.produces).for_each(|&t| of(Verb::Write, begin, t));
        let over = |t: &TensorId| !problem.tensors[*t].kept && uses.of(*t).last() == Some(&tick);
        op.touches().filter(over).for_each(|t| of(Verb::Free, end, t));
        if op.workspace > 0 {
            push(Verb::Malloc, begin, workspace, op.workspace);
            push(Verb::Write, begin, workspace, op.workspace);
            push(Verb::Free, end, workspace, op.workspace);
            workspace += 1;
        }
        begin = end;
    }
    // Writes of an operator come before the frees after it.
    operations.sort_by_key(|o| (o.tick, o.verb == Verb::Free, o.is_access()));
    operations
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    name: String,
    end_ns: u64,
    link: LinkFacts,
    #[serde(default, skip_serializing_if = "is_zero")]
    resident_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkFacts {
    out_bytes_per_second: u64,
    in_bytes_per_second: u64,
    #[serde(default)]
    latency_ns: u64,
    duplex: Duplex,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    op: Verb,
    time_ns: u64,
    variable: u32,
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<u32>,
    #[serde(default, skip_serializing_if = "Part::is_forward")]
    phase: Part,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    recomputable: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pinned: bool,
}

/// [`Phase`] in a file.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    #[default]
    Forward,
    Backward,
    Update,
}

impl Part {
    fn is_forward(&self) -> bool {
        *self == Part::Forward
    }
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// The trace of a step of the problem as JSON lines, which [`parse`] reads: the same costs, without names of operators.
pub fn to_lines(problem: &Problem, name: &str) -> String {
    let uses = problem.uses();
    let untouched = problem.tensors.iter().filter(|(id, t)| t.is_variable() && uses.of(*id).is_empty());
    let link = problem.link;
    let header = Header {
        format: FORMAT.to_owned(),
        name: name.to_owned(),
        end_ns: problem.compute_nanos(),
        link: LinkFacts {
            out_bytes_per_second: link.out_bytes_per_second,
            in_bytes_per_second: link.in_bytes_per_second,
            latency_ns: link.latency_nanos,
            duplex: link.duplex,
        },
        resident_bytes: untouched.map(|(_, t)| t.bytes).sum(),
    };
    let mut text = json(&header);
    for operation in operations(problem) {
        let op = &problem.ops[operation.tick as usize];
        let access = operation.is_access();
        let tensor = problem.tensors.get(TensorId::from_u32(operation.variable));
        text += &json(&Line {
            op: operation.verb,
            time_ns: operation.nanos,
            variable: operation.variable,
            bytes: operation.bytes,
            kernel: access.then_some(operation.tick),
            phase: match op.phase {
                Phase::Backward if access => Part::Backward,
                Phase::Update if access => Part::Update,
                _ => Part::Forward,
            },
            recomputable: op.recomputable && operation.verb == Verb::Write,
            pinned: tensor.is_none_or(|t| !t.swappable),
        });
    }
    text
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and names are JSON") + "\n"
}

/// The reason why a text is no trace. Lines count from 1.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line is no JSON, or has other fields.
    #[error("line {line}: {why}")]
    Json {
        /// The line.
        line: usize,
        /// The defect.
        why: serde_json::Error,
    },
    /// There is no first line, or it names another format.
    #[error("the first line is to name the format, `{FORMAT}`")]
    NoHeader,
    /// The time of this line is before that of the line above.
    #[error("line {0}: it begins before the line above; write operations in the order of their times")]
    Order(usize),
    /// The access in this line belongs to no kernel.
    #[error("line {0}: which kernel reads or writes is not said; give `kernel`, a number for each launch")]
    NoKernel(usize),
    /// The lines of a kernel are not adjacent, or have different times.
    #[error("line {line}: kernel {kernel} has begun before, at another time or before another kernel")]
    Kernel {
        /// The line that names it again.
        line: usize,
        /// Its number.
        kernel: u32,
    },
    /// A variable has another size than before.
    #[error("line {line}: variable {variable} has {found} bytes, but {bytes} above")]
    Bytes {
        /// The line.
        line: usize,
        /// The variable.
        variable: u32,
        /// Its bytes there.
        found: u64,
        /// Its bytes before.
        bytes: u64,
    },
    /// A variable is allocated twice, used or freed after it was freed, or used before it is allocated.
    #[error(
        "line {line}: variable {variable} is {now}, but {before} above; memory that is used anew is another variable"
    )]
    Life {
        /// The line.
        line: usize,
        /// The variable.
        variable: u32,
        /// The operation in this line.
        now: &'static str,
        /// The earlier operation.
        before: &'static str,
    },
    /// No kernel uses this variable.
    #[error("variable {0} is allocated, but no kernel reads or writes it; leave it out")]
    Untouched(u32),
    /// The step ends before its last kernel begins.
    #[error("`end_ns` is {end}, but the last kernel begins at {begin}")]
    End {
        /// The end of the step.
        end: u64,
        /// The start of that kernel.
        begin: u64,
    },
    /// The link's bandwidth in this field is 0.
    #[error("`{0}` is 0; write bytes per second, at least 1")]
    Bandwidth(&'static str),
}

/// The state of a variable while lines are read.
struct Variable {
    bytes: u64,
    swappable: bool,
    allocated: bool,
    freed: bool,
    touched: bool,
}

/// One launch, from its lines.
struct Kernel {
    number: u32,
    begin: u64,
    phase: Part,
    recomputable: bool,
    reads: Vec<u32>,
    writes: Vec<u32>,
}

/// The name in the trace, and the problem of its step.
///
/// A kernel lasts until the next begins. Variables that are not allocated exist before the step, those that are not freed
/// after it; memory is held from the first write to the last access, even if it was allocated earlier.
///
/// # Errors
/// [`TraceError`] names the line. [`Problem::check`] is left to the caller.
pub fn parse(text: &str) -> Result<(String, Problem), TraceError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, first) = lines.next().ok_or(TraceError::NoHeader)?;
    let header: Header = serde_json::from_str(first).map_err(|why| TraceError::Json { line: 1, why })?;
    if header.format != FORMAT {
        return Err(TraceError::NoHeader);
    }
    let mut variables: BTreeMap<u32, Variable> = BTreeMap::new();
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut now = 0;
    for (index, text) in lines {
        let at = index + 1;
        let line: Line = serde_json::from_str(text).map_err(|why| TraceError::Json { line: at, why })?;
        if line.time_ns < now {
            return Err(TraceError::Order(at));
        }
        now = line.time_ns;
        live(&mut variables, &line, at)?;
        if matches!(line.op, Verb::Read | Verb::Write) {
            access(&mut kernels, &line, at)?;
        }
    }
    if let Some((&variable, _)) = variables.iter().find(|(_, v)| !v.touched) {
        return Err(TraceError::Untouched(variable));
    }
    let problem = problem(&header, &variables, kernels)?;
    Ok((header.name, problem))
}

/// Records the effect of the line on the lifetime of its variable.
fn live(variables: &mut BTreeMap<u32, Variable>, line: &Line, at: usize) -> Result<(), TraceError> {
    let known = variables.contains_key(&line.variable);
    let variable = variables.entry(line.variable).or_insert(Variable {
        bytes: line.bytes,
        swappable: true,
        allocated: line.op == Verb::Malloc,
        freed: false,
        touched: false,
    });
    if variable.bytes != line.bytes {
        let (found, bytes) = (line.bytes, variable.bytes);
        return Err(TraceError::Bytes { line: at, variable: line.variable, found, bytes });
    }
    let (now, before) = match line.op {
        Verb::Malloc => ("allocated", "used"),
        Verb::Free => ("freed", "freed"),
        Verb::Read | Verb::Write => ("used", "freed"),
    };
    if variable.freed || known && line.op == Verb::Malloc {
        let before = if variable.freed { "freed" } else { before };
        return Err(TraceError::Life { line: at, variable: line.variable, now, before });
    }
    variable.swappable &= !line.pinned;
    variable.freed = line.op == Verb::Free;
    variable.touched |= matches!(line.op, Verb::Read | Verb::Write);
    Ok(())
}

/// Records the read or write of the line's kernel.
fn access(kernels: &mut Vec<Kernel>, line: &Line, at: usize) -> Result<(), TraceError> {
    let number = line.kernel.ok_or(TraceError::NoKernel(at))?;
    match kernels.last() {
        Some(last) if last.number == number => {
            if last.begin != line.time_ns {
                return Err(TraceError::Kernel { line: at, kernel: number });
            }
        }
        Some(last) if last.number > number => {
            return Err(TraceError::Kernel { line: at, kernel: number });
        }
        _ => {
            let (reads, writes) = (Vec::new(), Vec::new());
            let begin = line.time_ns;
            kernels.push(Kernel { number, begin, phase: line.phase, recomputable: true, reads, writes });
        }
    }
    if let Some(kernel) = kernels.last_mut() {
        match line.op {
            Verb::Read => kernel.reads.push(line.variable),
            _ => {
                kernel.writes.push(line.variable);
                kernel.recomputable &= line.recomputable;
            }
        }
    }
    Ok(())
}

fn problem(
    header: &Header,
    variables: &BTreeMap<u32, Variable>,
    kernels: Vec<Kernel>,
) -> Result<Problem, TraceError> {
    let LinkFacts { out_bytes_per_second, in_bytes_per_second, latency_ns, duplex } = header.link;
    for (name, rate) in
        [("out_bytes_per_second", out_bytes_per_second), ("in_bytes_per_second", in_bytes_per_second)]
    {
        if rate == 0 {
            return Err(TraceError::Bandwidth(name));
        }
    }
    let mut problem = Problem {
        link: Link { out_bytes_per_second, in_bytes_per_second, latency_nanos: latency_ns, duplex },
        kinds: vec!["kernel".to_owned()],
        ..Problem::default()
    };
    let mut ids: BTreeMap<u32, TensorId> = BTreeMap::new();
    for (&number, variable) in variables {
        let &Variable { bytes, swappable, allocated, freed, .. } = variable;
        let tensor = Tensor { bytes, swappable, given: !allocated, kept: !freed };
        ids.insert(number, problem.tensors.push(tensor));
    }
    if header.resident_bytes > 0 {
        let bytes = header.resident_bytes;
        problem.tensors.push(Tensor { bytes, swappable: false, given: true, kept: true });
    }
    let mut there: Vec<bool> = problem.tensors.values().map(|tensor| tensor.given).collect();
    let begins: Vec<u64> = kernels.iter().map(|k| k.begin).chain([header.end_ns]).collect();
    let last = begins.iter().rev().nth(1).copied().unwrap_or(0);
    if header.end_ns < last {
        return Err(TraceError::End { end: header.end_ns, begin: last });
    }
    if begins[0] > 0 {
        problem.ops.push(op(Phase::Forward, begins[0]));
    }
    for (kernel, times) in kernels.into_iter().zip(begins.windows(2)) {
        let phase = match kernel.phase {
            Part::Forward => Phase::Forward,
            Part::Backward => Phase::Backward,
            Part::Update => Phase::Update,
        };
        let id = |number: &u32| ids[number];
        let mut op = op(phase, times[1] - times[0]);
        let written = kernel.writes.iter().map(id);
        (op.changes, op.produces) = written.partition(|tensor| there[tensor.as_u32() as usize]);
        op.reads = kernel.reads.iter().map(id).chain(op.changes.iter().copied()).collect();
        for tensors in [&mut op.reads, &mut op.changes, &mut op.produces] {
            tensors.sort_unstable();
            tensors.dedup();
        }
        op.recomputable = kernel.recomputable && !op.produces.is_empty();
        op.produces.iter().for_each(|tensor| there[tensor.as_u32() as usize] = true);
        problem.ops.push(op);
    }
    Ok(problem)
}

fn op(phase: Phase, nanos: u64) -> Operator {
    let (reads, produces, changes) = Default::default();
    Operator {
        kind: 0,
        phase,
        nanos,
        workspace: 0,
        reads,
        produces,
        changes,
        recomputable: false,
        lane: COMPUTE,
    }
}

#[cfg(test)]
mod tests {
    use lmsc_testing::{Rng, random};

    use super::*;

    #[test]
    fn a_trace_that_is_read_again_costs_what_its_problem_does() {
        for seed in 0..400 {
            let mut problem = random::problem(&mut Rng::new(seed), 1 + seed as usize % 30);
            // An operator that touches nothing is in no trace: its time is added to the kernel before it.
            problem.ops.retain(|op| op.touches().next().is_some() || op.workspace > 0);
            let lines = to_lines(&problem, "random");
            let (name, again) = parse(&lines).unwrap_or_else(|error| panic!("{seed}: {error}\n{lines}"));
            assert_eq!((name.as_str(), again.check()), ("random", Ok(())), "{seed}");
            assert_eq!(again.live_bytes(), problem.live_bytes(), "{seed}");
            // A trace omits untouched tensors that exist before the first operator, so the first tick is not compared.
            let needed = |p: &Problem| p.needed_bytes().into_iter().skip(1).collect::<Vec<_>>();
            assert_eq!(needed(&again), needed(&problem), "{seed}");
            let nanos = |p: &Problem| p.ops.iter().map(|op| op.nanos).collect::<Vec<_>>();
            assert_eq!((nanos(&again), again.link), (nanos(&problem), problem.link), "{seed}");
            let (_, third) = parse(&to_lines(&again, "random")).unwrap();
            assert_eq!((&third.ops, &third.tensors), (&again.ops, &again.tensors), "{seed}");
        }
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let error = |lines: &[&str]| {
            let link = r#"{"out_bytes_per_second": 1, "in_bytes_per_second": 1, "duplex": "full"}"#;
            let header = format!(r#"{{"format": "{FORMAT}", "name": "t", "end_ns": 9, "link": {link}}}"#);
            let text = [&[header.as_str()], lines].concat().join("\n");
            parse(&text).map(|_| ()).unwrap_err().to_string()
        };
        let write = r#"{"op": "write", "time_ns": 3, "variable": 1, "bytes": 8, "kernel": 1}"#;
        let line = |op: &str, rest: &str| {
            format!(r#"{{"op": "{op}", "time_ns": 3, "variable": 1, "bytes": 8{rest}}}"#)
        };
        assert_eq!(
            error(&[write, r#"{"op": "free", "time_ns": 2, "variable": 1, "bytes": 8}"#]),
            "line 3: it begins before the line above; write operations in the order of their times"
        );
        assert_eq!(
            error(&[&line("read", "")]),
            "line 2: which kernel reads or writes is not said; give `kernel`, a number for each launch"
        );
        assert_eq!(
            error(&[write, &line("read", r#", "kernel": 0"#)]),
            "line 3: kernel 0 has begun before, at another time or before another kernel"
        );
        assert_eq!(
            error(&[write, &line("free", ""), &line("read", r#", "kernel": 2"#)]),
            "line 4: variable 1 is used, but freed above; memory that is used anew is another variable"
        );
        assert_eq!(
            error(&[write, &line("malloc", "")]),
            "line 3: variable 1 is allocated, but used above; memory that is used anew is another variable"
        );
        assert_eq!(
            error(&[&line("malloc", "")]),
            "variable 1 is allocated, but no kernel reads or writes it; leave it out"
        );
        assert_eq!(
            error(&[r#"{"op": "write", "time_ns": 10, "variable": 1, "bytes": 8, "kernel": 1}"#]),
            "`end_ns` is 9, but the last kernel begins at 10"
        );
        assert!(error(&[r#"{"op": "copy"}"#]).starts_with("line 2: unknown variant `copy`"));
    }
}
