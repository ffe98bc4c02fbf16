//! Opens and rewrites a model of 500 MB with inline weights, beside a plain copy of the same file.
//!
//! `cargo bench -p lmsc-onnx --bench large_model`. Fails if the process ever holds more than 60 MB of memory of its
//! own (pages of mapped files belong to the system and are not counted). Without `--bench`, as `cargo test
//! --benches` runs it, the model is small.
#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lmsc_onnx::file::{Model, map, save};
use lmsc_onnx::proto::*;
use lmsc_onnx::wire;

const WEIGHTS: usize = 125;
const NODES: usize = 2500;
const ROUNDS: usize = 5;
const LIMIT: u64 = 60_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weight = if std::env::args().any(|a| a == "--bench") { 4_000_000 } else { 100_000 };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let [input, output, copy] = ["in.onnx", "out.onnx", "copy.onnx"].map(|n| folder.path().join(n));
    write_model(&input, weight)?;
    let bytes = fs::metadata(&input)?.len();
    println!("{} MB, {WEIGHTS} weights, {NODES} nodes; best and median of {ROUNDS}", bytes / 1_000_000);

    let peak = Peak::start();
    let (mut walk, mut open, mut rewrite, mut system, mut plain) = Default::default();
    for _ in 0..ROUNDS {
        time(&mut system, || fs::copy(&input, &copy).map(drop))?;
        time(&mut plain, || read_write(&input, &copy))?;
        let model = time(&mut open, || Model::open(&input))?;
        time(&mut rewrite, || save(&model.proto, &output))?;
        let (map, _) = map(&input)?;
        time(&mut walk, || wire::check::<ModelProto>(&map))?;
    }
    let anonymous = peak.stop();
    assert!(same(&input, &output)?, "the rewritten model differs");

    row("wire::check", &mut walk, None);
    row("Model::open", &mut open, None);
    row("save", &mut rewrite, Some(bytes));
    row("fs::copy", &mut system, Some(bytes));
    row("read + write, 1 MiB", &mut plain, Some(bytes));
    println!("save / read + write: {:.2}", rewrite[0].as_secs_f64() / plain[0].as_secs_f64());
    match anonymous {
        Some(anonymous) => {
            println!("peak RssAnon {:.1} MB", anonymous as f64 / 1e6);
            assert!(anonymous < LIMIT, "peak RssAnon is {anonymous} bytes, more than {LIMIT}");
        }
        None => println!("peak RssAnon not measured: no /proc/self/status"),
    }
    Ok(())
}

/// Weights one by one, so that this program's own peak stays small.
fn write_model(path: &Path, weight: usize) -> io::Result<()> {
    use prost::Message;
    let node = |i: usize| NodeProto {
        input: vec![format!("x{i}"), format!("w{}", i % WEIGHTS)],
        output: vec![format!("x{}", i + 1)],
        name: Some(format!("/layer.{i}/MatMul")),
        op_type: Some("MatMul".into()),
        attribute: vec![AttributeProto {
            name: Some("axis".into()),
            i: Some(-1),
            r#type: Some(AttributeType::Int as i32),
            ..Default::default()
        }],
        metadata_props: vec![StringStringEntryProto {
            key: Some("namespace".into()),
            value: Some("model".into()),
        }],
        ..Default::default()
    };
    let nodes =
        GraphProto { node: (0..NODES).map(node).collect(), name: Some("g".into()), ..Default::default() };
    let tensor = |i: usize| GraphProto {
        initializer: vec![TensorProto {
            dims: vec![(weight / 4) as i64],
            data_type: Some(DataType::Float as i32),
            name: Some(format!("w{i}")),
            raw_data: Some(vec![i as u8; weight].into()),
            ..Default::default()
        }],
        ..Default::default()
    };
    let length = nodes.encoded_len() + (0..WEIGHTS).map(|i| tensor(i).encoded_len()).sum::<usize>();
    let mut out = BufWriter::new(File::create(path)?);
    let mut head = vec![8, 10, 7 << 3 | 2];
    prost::encoding::encode_varint(length as u64, &mut head);
    out.write_all(&head)?;
    out.write_all(&nodes.encode_to_vec())?;
    for i in 0..WEIGHTS {
        out.write_all(&tensor(i).encode_to_vec())?;
    }
    out.flush()
}

fn read_write(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            n => to.write_all(&buffer[..n])?,
        }
    }
}

fn same(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let n = a.read(&mut left)?;
        if n == 0 {
            return Ok(true);
        }
        b.read_exact(&mut right[..n])?;
        if left[..n] != right[..n] {
            return Ok(false);
        }
    }
}

fn time<T, E>(into: &mut Vec<Duration>, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let start = Instant::now();
    let result = run()?;
    into.push(start.elapsed());
    Ok(result)
}

fn row(name: &str, times: &mut [Duration], bytes: Option<u64>) {
    times.sort();
    let (best, median) = (times[0].as_secs_f64(), times[times.len() / 2].as_secs_f64());
    print!("{name:20} {:9.3} ms {:9.3} ms", best * 1e3, median * 1e3);
    match bytes {
        Some(bytes) => println!(" {:7.2} GB/s", bytes as f64 / best / 1e9),
        None => println!(),
    }
}

/// Samples this process's anonymous memory every millisecond; the system keeps no peak of that alone.
struct Peak {
    thread: std::thread::JoinHandle<()>,
}

static STOP: AtomicBool = AtomicBool::new(false);
static HIGHEST: AtomicU64 = AtomicU64::new(0);

impl Peak {
    fn start() -> Self {
        let thread = std::thread::spawn(|| {
            while !STOP.load(Ordering::Relaxed) {
                HIGHEST.fetch_max(anonymous().unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Peak { thread }
    }

    fn stop(self) -> Option<u64> {
        STOP.store(true, Ordering::Relaxed);
        self.thread.join().ok()?;
        Some(HIGHEST.load(Ordering::Relaxed)).filter(|&bytes| bytes > 0)
    }
}

fn anonymous() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
