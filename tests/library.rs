//! The library as a client program uses it: it compiles to the files of the command, and its session runs the
//! steps of `lmsc run`.

use std::collections::BTreeMap;

use crate::support::Bench;
use lmsc::{Compiled, Compiler, Device, Error, ErrorKind, Session, TensorData};
use lmsc_ir::{Bytes, ElementType, TensorType};
use safetensors::SafeTensors;

const STEP: &str = "
step (float[4,8] x, float[8,8] w, float[] lr) => (float[] loss, float[8,8] w_new) {
    [forward] float[4,8] h = MatMul(x, w)
    [act] float[4,8] a = Tanh(h)
    [square] float[4,8] s = Mul(a, a)
    [loss] float[] loss = ReduceSum<keepdims = 0>(s)
    [back_a] float[4,8] da = Add(a, a)
    [one] float[4,8] t = Mul(da, s)
    [back_h] float[4,8] dh = Sub(da, t)
    [xt] float[8,4] xt = Transpose<perm = [1, 0]>(x)
    [grad] float[8,8] g = MatMul(xt, dh)
    [scaled] float[8,8] u = Mul(g, lr)
    [update] float[8,8] w_new = Sub(w, u) updates (w as w_new)
}";

fn tiny(name: &str) -> Compiler {
    let folder = format!("{}/testdata/models/{name}", env!("CARGO_MANIFEST_DIR"));
    Compiler::new(format!("{folder}/training_model.onnx"))
        .optimizer(format!("{folder}/optimizer_model.onnx"))
        .dim("batch", 8)
}

fn budget(text: &str) -> lmsc::budget::Goal {
    text.parse().unwrap()
}

fn floats(count: usize, of: impl Fn(usize) -> f32) -> Vec<u8> {
    (0..count).flat_map(|i| of(i).to_le_bytes()).collect()
}

fn number(tensor: &TensorData) -> f32 {
    f32::from_le_bytes(tensor.bytes[..4].try_into().unwrap())
}

/// A session with its first values.
fn opened(compiled: &Compiled) -> Session {
    let mut session = compiled.session(Device::Host).unwrap();
    session.set("w", None, &floats(64, |i| (i as f32 * 0.7).sin() * 0.3)).unwrap();
    session.set("lr", None, &0.05_f32.to_le_bytes()).unwrap();
    session
}

fn batch(step: usize) -> Vec<u8> {
    floats(32, |i| ((i + 5 * step) as f32).cos())
}

fn losses(session: &mut Session, steps: std::ops::Range<usize>) -> Vec<f32> {
    let loss = |step| number(&session.step([("x", None, &batch(step)[..])]).unwrap()["loss"]);
    steps.map(loss).collect()
}

#[test]
fn the_library_compiles_as_the_command_does() {
    let bench = Bench::new();
    let compiled = tiny("tiny_mlp").target("host").budget(budget("0.6x")).compile().unwrap();
    let folder = "testdata/models/tiny_mlp";
    let told = bench.run(&format!(
        "{folder}/training_model.onnx --optimizer {folder}/optimizer_model.onnx --dim batch=8 --target host --budget 0.6x --json"
    ));
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["hash"], compiled.report.hash.as_str());
    assert_eq!(told["after"]["peak"], compiled.report.after.peak);
    assert!(compiled.report.after.peak < compiled.report.before.peak);
    compiled.verify().unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(compiled.plan().unwrap()).is_ok());
}

#[test]
fn the_output_is_read_back_and_never_replaces_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let compiled = tiny("tiny_mlp").target("host").budget(budget("0.6x")).compile().unwrap();
    for name in ["step.onnx", "step.lms", "step.mlir"] {
        let path = folder.path().join(name);
        compiled.write(&path).unwrap();
        let again = Compiler::new(&path).target("host").compile().unwrap();
        assert_eq!(again.report.before.peak, compiled.report.after.peak, "{name}");
    }
    let path = folder.path().join("model.lms");
    std::fs::write(&path, STEP).unwrap();
    let error = Compiler::new(&path).compile().unwrap().write(&path).unwrap_err();
    assert!(error.to_string().contains("which is read"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), STEP);
}

#[test]
fn state_stays_from_step_to_step() {
    let mut session = opened(&Compiler::from_bytes(STEP).compile().unwrap());
    let all = losses(&mut session, 0..4);
    assert!(all[3] < all[0], "{all:?}");
    assert_eq!(session.steps(), 4);
    assert_eq!(session.variables().keys().collect::<Vec<_>>(), ["w"]);
    assert_eq!(session.outputs().map(|(name, _)| name).collect::<Vec<_>>(), ["loss"]);
}

#[test]
fn a_budget_changes_no_bit() {
    let trained = |compiler: Compiler| {
        let mut session = compiler.target("host").compile().unwrap().session(Device::Host).unwrap();
        let given: Vec<_> = session
            .inputs()
            .iter()
            .chain(session.variables())
            .map(|(n, ty)| (n.clone(), ty.clone()))
            .collect();
        for (name, ty) in given {
            let bytes = lmsc::run::synthetic(&name, &lmsc_ir::Type::Tensor(ty.clone()), 7);
            session.set(&name, Some(&ty), &bytes).unwrap();
        }
        for _ in 0..3 {
            session.step::<Option<&TensorType>>([]).unwrap();
        }
        session.state().unwrap()
    };
    let free = trained(tiny("tiny_mlp"));
    assert!(free.len() > 3);
    assert_eq!(trained(tiny("tiny_mlp").budget(budget("0.6x"))), free);
}

#[test]
fn a_session_goes_on_from_state_and_from_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (compiled, file) =
        (Compiler::from_bytes(STEP).compile().unwrap(), folder.path().join("c.safetensors"));
    let mut first = opened(&compiled);
    losses(&mut first, 0..2);
    first.save(&file).unwrap();
    let state = first.state().unwrap();
    let rest = losses(&mut first, 2..5);

    let mut second = opened(&compiled);
    second.load_state(state.iter().map(|(name, t)| (&**name, Some(&t.ty), &t.bytes[..]))).unwrap();
    assert_eq!(losses(&mut second, 2..5), rest);

    let mut third = compiled.session(Device::Host).unwrap();
    third.resume(&file).unwrap();
    assert_eq!(third.steps(), 2);
    assert_eq!(losses(&mut third, 2..5), rest);
    let saved = std::fs::read(&file).unwrap();
    let saved = SafeTensors::deserialize(&saved).unwrap();
    assert!(saved.tensor("w").is_ok() && saved.tensor("lr").is_ok());
}

#[test]
fn a_checkpoint_is_that_of_the_command() {
    let (bench, folder) = (Bench::new(), tempfile::tempdir().unwrap());
    let [model, saved, data, end] = ["step.lms", "saved.safetensors", "data.safetensors", "end.safetensors"]
        .map(|n| folder.path().join(n));
    std::fs::write(&model, STEP).unwrap();
    let mut session = opened(&Compiler::new(&model).compile().unwrap());
    losses(&mut session, 0..2);
    session.save(&saved).unwrap();
    losses(&mut session, 2..3);
    let batch = batch(2);
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![4, 8], &batch).unwrap();
    std::fs::write(&data, safetensors::serialize([("x", view)], None).unwrap()).unwrap();
    let command = format!(
        "run {} --resume {} --data {} --steps 1 --save {}",
        model.display(),
        saved.display(),
        data.display(),
        end.display()
    );
    let outcome = bench.run(&command);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let end_bytes = std::fs::read(&end).unwrap();
    let w = SafeTensors::deserialize(&end_bytes).unwrap().tensor("w").unwrap().data().to_vec();
    assert_eq!(w, session.get("w").unwrap().bytes);

    let mut resumed = Compiler::new(&model).compile().unwrap().session(Device::Host).unwrap();
    resumed.resume(&end).unwrap();
    assert_eq!(resumed.steps(), 3);
    assert_eq!(losses(&mut resumed, 3..4), losses(&mut session, 3..4));
}

#[test]
fn wrong_inputs_are_named() {
    let compiled = Compiler::from_bytes(STEP).compile().unwrap();
    let mut session = compiled.session(Device::Host).unwrap();
    let says = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        error.to_string()
    };
    let x = batch(0);
    assert!(says(session.step([("x", None, &x[..])]).unwrap_err()).contains("the input `lr` first"));
    assert!(says(session.set("v", None, &x).unwrap_err()).contains("takes no `v`"));
    assert!(
        says(session.set("x", None, &x[1..]).unwrap_err()).contains("`x` has 127 bytes; expected float[4,8]")
    );
    let double = TensorType::new(ElementType::Double, [2, 8]);
    let told = says(session.set("x", Some(&double), &x).unwrap_err());
    assert!(told.contains("`x` is double[2,8]; expected float[4,8]"), "{told}");
    assert!(says(session.get("nothing").unwrap_err()).contains("has no `nothing`"));
}

#[test]
fn refusals_and_faults_are_told_apart() {
    let error = Compiler::from_bytes(STEP).target("host").budget(budget("100")).compile().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refusal, "{error}");
    let refusal = error.refusal().unwrap();
    assert_eq!((error.code().number(), refusal.budget), ("LMS0101", Bytes(100)));
    assert!(refusal.node.is_some() && refusal.needed > Some(refusal.budget), "{refusal:?}");
    let smallest = refusal.smallest_budget().unwrap().bytes;
    let compiled =
        Compiler::from_bytes(STEP).target("host").budget(budget(&smallest.0.to_string())).compile();
    assert!(compiled.is_ok(), "{smallest}");
    for bytes in [&b""[..], b"\xff\xfe\x00", b"step (", b"\x08\x07\x12"] {
        let error = Compiler::from_bytes(bytes).compile().err().unwrap();
        assert!(error.kind() == ErrorKind::Input && error.to_string().contains("<bytes>"), "{error}");
    }
    let planner = Compiler::from_bytes(STEP).planner("best").budget(budget("1GiB")).compile();
    assert!(planner.err().unwrap().to_string().contains("there is no planner `best`"));
}

#[test]
fn printed_output_is_an_answer() {
    let of = |words: &[&str]| lmsc::cli::output_of(words.iter().map(Into::into));
    assert!(of(&["lmsc", "targets"]).unwrap().contains("a100-pcie4"));
    let error = of(&["lmsc", "plan"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    let all: BTreeMap<&str, bool> = BTreeMap::from([("passes", true), ("nothing-of-this-name.onnx", false)]);
    for (word, is_command) in all {
        assert_eq!(of(&["lmsc", word]).is_ok(), is_command);
    }
}
