//! The trace of a real run, for Perfetto or chrome://tracing.

use std::time::Duration;

use lmsc_ir::program::{Action, Program, Stream, Wait};
use lmsc_runtime::Event;
use serde_json::{Value, json};

/// The trace of a run: a row for each stream, a row for the waits of the compute stream, and the bytes of the arena
/// in use.
pub(crate) fn trace(program: &Program, events: &[Event]) -> Value {
    let micros = |time: Duration| time.as_nanos() as f64 / 1000.0;
    let mut all: Vec<Value> = Vec::new();
    let mut named = |what: &str, row: usize, name: &str| {
        all.push(json!({ "ph": "M", "pid": 0, "tid": row, "name": what, "args": { "name": name } }));
    };
    named("process_name", 0, "training steps, as they ran");
    for (row, name) in ["compute", "out", "in", "waiting"].into_iter().enumerate() {
        named("thread_name", row, name);
    }
    let mut events: Vec<&Event> = events.iter().collect();
    events.sort_by_key(|event| (event.begun, event.stream, event.step, event.command));
    for event in events {
        let (begun, length) = (micros(event.begun), micros(event.ended.saturating_sub(event.begun)));
        let command = &program.stream(event.stream)[event.command as usize];
        let (name, category, args) = match &command.action {
            Action::Turn => ("turn".to_owned(), "caller", json!({ "step": event.step })),
            Action::Launch(launch) => {
                let args = json!({ "step": event.step, "operator": launch.op.to_string() });
                (launch.node.to_string(), "compute", args)
            }
            Action::Copy(copy) => {
                (copy.node.to_string(), "copy", json!({ "step": event.step, "bytes": copy.bytes }))
            }
        };
        let row = event.stream as usize;
        all.push(json!({
            "ph": "X", "pid": 0, "tid": row, "ts": begun, "dur": length, "cat": category, "name": name, "args": args
        }));
        if let (Stream::Compute, Some(cause)) = (event.stream, event.cause) {
            let waited = micros(event.waited);
            let args = json!({ "step": event.step, "stream": cause.stream.to_string() });
            let name = format!("{name} waits for {}", cause_name(program, &cause));
            all.push(json!({
                "ph": "X", "pid": 0, "tid": 3, "ts": waited, "dur": begun - waited, "cat": "wait", "name": name,
                "args": args
            }));
        }
        all.push(json!({
            "ph": "C", "pid": 0, "ts": begun, "name": "arena", "args": { "bytes": event.live }
        }));
    }
    json!({ "traceEvents": all, "displayTimeUnit": "ms" })
}

/// The name of the node for which a command waits.
pub(crate) fn cause_name(program: &Program, wait: &Wait) -> String {
    let action = &program.stream(wait.stream)[wait.command as usize].action;
    let node = action.node().map_or("the caller's turn", |node| node);
    if wait.before { format!("{node} of the step before") } else { node.to_owned() }
}
