use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};

use lmsc_ir::program::{Command, ContentId, Launch, Residency, Transfer};
use lmsc_ir::{Bytes, Op};

use super::*;
use crate::device::Tensors;

/// Operations of a device: the copies of each copy stream, and the launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Done {
    out: usize,
    back: usize,
    launches: usize,
}

/// A device without memory, whose n-th copy fails, or whose n-th launch panics.
#[derive(Default)]
struct Faulty {
    copy: Option<usize>,
    launch: Option<usize>,
    done: Mutex<Done>,
}

impl Tensors for Faulty {
    fn peek(&self, _: Memory, _: &PlacedTensor) -> Result<Cow<'_, [u8]>, String> {
        Ok(Cow::Borrowed(&[]))
    }

    fn poke(&self, _: Memory, _: &PlacedTensor, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

impl Device for Faulty {
    fn arrive(&self, _: Stream, _: u32, _: &dyn Fn() -> bool) -> bool {
        true
    }

    fn leave(&self, _: &Residency) {}

    fn launch(&self, _: u32, _: StepContext) -> Result<(), String> {
        let mut done = self.done.lock().unwrap();
        done.launches += 1;
        let count = done.launches;
        drop(done);
        assert!(Some(count) != self.launch, "the launch fails on purpose");
        Ok(())
    }

    fn copy(&self, stream: Stream, _: &Transfer) -> Result<(), String> {
        let mut done = self.done.lock().unwrap();
        *(if stream == Stream::Out { &mut done.out } else { &mut done.back }) += 1;
        if Some(done.out + done.back) == self.copy { Err("the link is down".to_owned()) } else { Ok(()) }
    }
}

fn wait(stream: Stream, command: u32, before: bool) -> Wait {
    Wait { stream, command, before }
}

/// Two launches, and between them two tensors that are swapped out and in; at the next step they are swapped out again.
fn program() -> Program {
    let launch = |node: &str| {
        Action::Launch(Box::new(Launch {
            node: node.into(),
            op: Op::new("", "Relu"),
            opset: 20,
            attributes: Vec::new(),
            seed: 0,
            operands: Vec::new(),
            results: Vec::new(),
            in_place: Vec::new(),
            workspace: 0..0,
        }))
    };
    let copy = |node: &str| {
        let content = ContentId::from_u32(0);
        Action::Copy(Transfer { node: node.into(), content, begin: 0, bytes: 0, device: 0, host: 0 })
    };
    let command = |action, waits: &[Wait], tick| Command { action, waits: waits.to_vec(), tick };
    use Stream::{Compute, In, Out};
    let compute = vec![
        command(Action::Turn, &[], 0),
        command(launch("forward"), &[], 1),
        command(launch("backward"), &[wait(In, 0, false), wait(In, 1, false)], 6),
    ];
    let out = vec![
        command(copy("out_a"), &[wait(Compute, 1, false), wait(In, 0, true)], 2),
        command(copy("out_b"), &[wait(In, 1, true)], 3),
    ];
    let back = vec![
        command(copy("in_a"), &[wait(Out, 0, false), wait(Compute, 2, true)], 4),
        command(copy("in_b"), &[wait(Out, 1, false)], 5),
    ];
    Program {
        name: "g".to_owned(),
        arena: Bytes::ZERO,
        slab: Bytes::ZERO,
        contents: Default::default(),
        prelude: Vec::new(),
        given: Vec::new(),
        outputs: Vec::new(),
        streams: [compute, out, back],
    }
}

/// Ends the run after this number of steps, or aborts it there.
struct Ending {
    after: u64,
    fails: bool,
}

impl StepObserver for Ending {
    fn turn(&mut self, turn: &mut Turn<'_>) -> Result<(), String> {
        match (turn.number == self.after, self.fails) {
            (true, true) => return Err("enough".to_owned()),
            (true, false) => turn.end(),
            (false, _) => {}
        }
        Ok(())
    }
}

const STEPS: u64 = 4;
const NEVER: Ending = Ending { after: STEPS, fails: false };

/// The result of a run on the device, and the device's operations; `None` if it panicked. A run that hangs fails the test.
fn run(device: Faulty, mut watch: Ending) -> (Option<Result<Measurements, RunError>>, Done) {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let what = Drive { steps: STEPS, start: StepContext::default(), has_left: false, traces: true };
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drive(&device, &program(), what, &mut watch)
        }));
        let done = *device.done.lock().unwrap();
        _ = tell.send((ran.ok(), done));
    });
    match told.recv_timeout(Duration::from_secs(20)) {
        Ok(ran) => ran,
        Err(RecvTimeoutError::Timeout) => panic!("the streams wait for each other for ever"),
        Err(RecvTimeoutError::Disconnected) => panic!("the run told nothing"),
    }
}

#[test]
fn steps_run_to_the_end() {
    let (ran, done) = run(Faulty::default(), NEVER);
    let measured = ran.unwrap().unwrap();
    assert_eq!((measured.steps.len(), measured.events.len()), (4, 4 * 7));
    assert_eq!(done, Done { out: 8, back: 8, launches: 8 });
}

#[test]
fn a_copy_that_fails_ends_every_stream_and_is_named() {
    for n in 1..=16 {
        let (ran, done) = run(Faulty { copy: Some(n), ..Faulty::default() }, NEVER);
        let error = ran.unwrap().unwrap_err();
        // The copies of a step run one after the other: each waits for the one before it.
        let (round, place) = ((n - 1) / 4, (n - 1) % 4);
        let RunError::Copy { node, stream, step, why } = &error else { panic!("{error}") };
        assert_eq!((*step, &**why), (round as u64 + 1, "the link is down"));
        assert!(
            match place {
                0 => (&**node, *stream) == ("out_a", Stream::Out),
                3 => (&**node, *stream) == ("in_b", Stream::In),
                _ => [("out_b", Stream::Out), ("in_a", Stream::In)].contains(&(node, *stream)),
            },
            "{error}"
        );
        assert!(done.launches <= 2 * round + 2, "{done:?} after {n} copies");
    }
}

#[test]
fn a_launch_that_panics_ends_every_stream() {
    for n in 1..=8 {
        let (ran, done) = run(Faulty { launch: Some(n), ..Faulty::default() }, NEVER);
        assert!(ran.is_none());
        assert_eq!(done.launches, n);
    }
}

#[test]
fn a_run_that_is_ended_has_run_whole_steps() {
    for after in 0..=STEPS {
        let (ran, done) = run(Faulty::default(), Ending { after, fails: false });
        assert_eq!(ran.unwrap().unwrap().steps.len(), after);
        let whole = 2 * after as usize;
        assert_eq!(done, Done { out: whole, back: whole, launches: whole });
    }
}

#[test]
fn a_run_that_is_given_up_says_why() {
    for after in 0..STEPS {
        let (ran, done) = run(Faulty::default(), Ending { after, fails: true });
        assert_eq!(ran.unwrap().unwrap_err(), RunError::Stopped("enough".to_owned()));
        assert_eq!(done.launches as u64, 2 * after);
    }
}
