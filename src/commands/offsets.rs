//! `lmsc offsets`: addresses for buffers with known lifetimes.

use std::io::Read;
use std::path::Path;

use lmsc_ir::words;
use lmsc_plan::offsets::{Effort, LayoutFlaw, Table, check, load, place};
use serde::Serialize;

use crate::cli::args::OffsetsArgs;
use crate::files::{check_target, write_atomically};
use crate::{Code, Error};

/// The result, as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Answer<'a> {
    /// Version of this format.
    format: u32,
    buffers: usize,
    capacity_bytes: u64,
    /// The most bytes that are live at once, and the first time at which they are: no layout is smaller.
    load_bytes: u64,
    load_at: u64,
    fits: bool,
    /// Whether it is proven that no layout fits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    impossible: bool,
    /// The bytes of the layout, or of the smallest layout that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    layout_bytes: Option<u64>,
    /// The buffers' addresses, if they fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    placed: Vec<Placed<'a>>,
}

/// A buffer and the address of its first byte.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Placed<'a> {
    id: &'a str,
    offset: u64,
}

/// Places the buffers of a file; returns the layout and its size as text or JSON.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if they do not fit, with the smallest capacity that was found;
/// [`ErrorKind::Input`](crate::ErrorKind) for a faulty file.
pub fn offsets(args: &OffsetsArgs) -> Result<String, Error> {
    args.output.iter().try_for_each(|path| check_target(path))?;
    let table =
        Table::parse(&text(&args.file)?).map_err(|why| Error::in_file(Code::Malformed, &args.file, why))?;
    let buffers = &table.buffers;
    let capacity = args.capacity.0;
    let (load_bytes, load_at) = load(buffers);
    let mut answer = Answer {
        format: 1,
        buffers: buffers.len(),
        capacity_bytes: capacity,
        load_bytes,
        load_at,
        fits: true,
        impossible: false,
        layout_bytes: None,
        placed: Vec::new(),
    };
    let summary = |fact: &str| {
        let buffers = words::count(buffers.len(), "buffer");
        format!(
            "{buffers} {fact} {capacity} bytes; at most {load_bytes} bytes are live at once, at {load_at}"
        )
    };
    match place(buffers, capacity, Effort::percent(args.effort)) {
        Ok(layout) => {
            check(buffers, &layout, capacity).map_err(|flaw: LayoutFlaw| Error::ours(flaw.to_string()))?;
            answer.layout_bytes = Some(layout.bytes);
            answer.placed =
                table.ids.iter().zip(&layout.addresses).map(|(id, &offset)| Placed { id, offset }).collect();
            let csv = table.with_offsets(&layout);
            match args.output.as_deref() {
                Some(path) if path == Path::new("-") => return Ok(csv),
                Some(path) => write_atomically(path, |w| w.write_all(csv.as_bytes()))?,
                None => {}
            }
            Ok(if args.json {
                json(&answer)
            } else {
                format!("{}\nthe layout ends at {}\n", summary("lie in"), layout.bytes)
            })
        }
        Err(no) => {
            (answer.fits, answer.impossible) = (false, no.proven);
            answer.layout_bytes = no.found.map(|found| found.bytes);
            let fact = if no.proven { "cannot lie in" } else { "were not placed in" };
            let error = Error::new(Code::Buffers, summary(fact)).with_help(match answer.layout_bytes {
                Some(bytes) => format!("give --capacity {bytes}, the smallest for which a layout was found"),
                None => {
                    "two buffers whose offsets are given overlap; leave one of these offsets out".to_owned()
                }
            });
            Err(if args.json { error.with_answer(json(&answer).trim_end().to_owned()) } else { error })
        }
    }
}

fn json(answer: &Answer<'_>) -> String {
    serde_json::to_string_pretty(answer).expect("an answer is JSON") + "\n"
}

/// The text of the file, or of standard input.
fn text(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(|_| ())
    } else {
        std::fs::read_to_string(path).map(|read| text = read)
    };
    read.map(|()| text).map_err(|error| Error::reading(path, &error))
}
