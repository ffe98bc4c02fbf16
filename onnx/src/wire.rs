//! A walk over the raw bytes of a message, before they are decoded.
//!
//! `prost` drops unknown fields and stops at the first error without giving its place. This walk finds, by the schema that every
//! message of [`proto`](crate::proto) has, everything that decoding would lose or refuse, and gives its place. After `Ok`,
//! decoding succeeds and loses nothing.
//!
//! It reads only keys, lengths and names; the elements of tensors are skipped, and their pages are not loaded.

use std::fmt;
use std::ops::Range;

use lmsc_ir::Advice;

/// How many messages may stand inside each other below the outermost one: as many as `prost` follows.
///
/// One subgraph takes three: node, attribute, graph.
pub const MAX_NESTING: usize = 100;

/// Maximum number of different faults that [`check`] collects before it stops.
pub const MAX_FAULTS: usize = 8;

/// Maximum memory of messages, in bytes: for any file, and additionally for each byte of the file.
///
/// Real graphs take six to nine bytes per byte; two bytes of an empty message would take over two hundred.
const MAX_MEMORY: (usize, usize) = (256 << 20, 16);

/// A message's name and fields.
#[derive(Debug)]
pub struct Schema {
    /// Its name in Rust.
    pub name: &'static str,
    /// Its fields, in the order of their numbers; at most 32.
    pub fields: &'static [Field],
    /// The size of its struct, in bytes.
    pub size: usize,
}

/// A field of a message.
#[derive(Debug)]
pub struct Field {
    /// Its number on the wire.
    pub number: u32,
    /// Its identifier in Rust; see [`Field::name`].
    pub ident: &'static str,
    /// How many times it may occur.
    pub label: Label,
    /// The kind of its contents.
    pub kind: FieldKind,
}

/// How many times a field may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Once.
    Optional,
    /// Once, and only when no other such field of its message occurs.
    OneOf,
    /// Any number of times.
    Repeated,
    /// Any number of chunks, each a packed array; never element by element.
    Packed,
}

/// The kind of a field's contents.
#[derive(Clone, Copy, Debug)]
pub enum FieldKind {
    /// An integer of 64 bits, of variable length.
    Varint,
    /// An integer of 32 bits, of variable length.
    Int32,
    /// Four bytes.
    Fixed32,
    /// Eight bytes.
    Fixed64,
    /// UTF-8 text.
    Text,
    /// Any bytes.
    Bytes,
    /// A message.
    Message(fn() -> &'static Schema),
}

impl Field {
    /// Its name in the ONNX definition.
    pub fn name(&self) -> &'static str {
        self.ident.strip_prefix("r#").unwrap_or(self.ident)
    }
}

/// A message that knows its schema.
pub trait Described {
    /// The schema of this message.
    fn schema() -> &'static Schema;
}

/// All faults that prevent reading bytes without loss.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", Lines(faults))]
pub struct WireError {
    /// The faults, at least one and at most [`MAX_FAULTS`] different ones, in the order of the bytes.
    pub faults: Vec<Fault>,
}

/// A fault that prevents reading bytes without loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The message with the fault, such as `graph.node[17].attribute[2]`; empty for the outermost one.
    pub place: String,
    /// The offset of the first byte of the faulty field.
    pub offset: usize,
    /// The problem.
    pub problem: FieldError,
    /// Number of further messages of the same kind with the same fault.
    pub more: usize,
}

/// The problem of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum FieldError {
    #[error("field {number} is not known to lmsc, and would be lost")]
    Unknown { number: u32 },
    #[error("the bytes end inside a number")]
    Truncated,
    #[error("a number is longer than 64 bits")]
    Overflow,
    #[error("this is not the beginning of a field")]
    Key,
    #[error("`{field}` is {length} bytes long, but what holds it ends after {left}")]
    Length { field: String, length: u64, left: usize },
    #[error("`{field}` has wire type {found} where {expected} is expected")]
    WireType { field: &'static str, found: u8, expected: u8 },
    #[error("`{field}` is written element by element, and lmsc keeps only packed arrays")]
    Unpacked { field: &'static str },
    #[error("`{field}` is longer than 32 bits")]
    Range { field: &'static str },
    #[error("`{field}` does not hold a whole number of elements")]
    Elements { field: &'static str },
    #[error("`{field}` is not UTF-8 text")]
    Text { field: &'static str },
    #[error("`{field}` has a line end, which no name has")]
    LineEnd { field: &'static str },
    #[error("`{field}` occurs twice, and one would be lost")]
    Twice { field: &'static str },
    #[error("`{first}` and `{second}` are both set, where only one may be")]
    Exclusive { first: &'static str, second: &'static str },
    #[error(
        "`{field}` lies more than {MAX_NESTING} messages deep; subgraphs may stand about {} deep in one another",
        MAX_NESTING / 3 - 1
    )]
    Nesting { field: &'static str },
    #[error(
        "up to here, {count} messages take {} MiB of memory, more than {} MiB and {} bytes for each byte of the file",
        bytes >> 20,
        MAX_MEMORY.0 >> 20,
        MAX_MEMORY.1
    )]
    Memory { count: usize, bytes: usize },
}

impl FieldError {
    /// Whether the bytes are valid, but reading them would lose something.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self, FieldError::Unknown { .. } | FieldError::Unpacked { .. } | FieldError::Twice { .. })
    }

    /// Whether the bytes are damaged: no writer would produce them.
    pub(crate) fn is_damage(&self) -> bool {
        use FieldError::*;
        matches!(
            self,
            Truncated | Overflow | Key | Length { .. } | WireType { .. } | Range { .. } | Elements { .. }
        )
    }

    /// How to fix it.
    pub fn help(&self) -> &'static str {
        match self {
            FieldError::Unknown { .. } => {
                "such fields come from other programs, or from ONNX newer than IR version 14: export the model with \
                 that version, or drop them in Python with model.DiscardUnknownFields()"
            }
            FieldError::Unpacked { .. } | FieldError::Twice { .. } => {
                "load the model and save it again with the `onnx` package"
            }
            FieldError::Text { .. } => "export the model again, with names in UTF-8",
            FieldError::LineEnd { .. } => "export the model again, with names of one line",
            FieldError::Exclusive { .. } => "export the model again",
            FieldError::Nesting { .. } => "export the model with fewer branches and loops inside one another",
            FieldError::Memory { .. } => "the file is damaged, or made to do harm: copy or export it again",
            FieldError::Truncated
            | FieldError::Overflow
            | FieldError::Key
            | FieldError::Length { .. }
            | FieldError::WireType { .. }
            | FieldError::Range { .. }
            | FieldError::Elements { .. } => "copy the file again, or export the model again",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "model" } else { &brief(&self.place) };
        write!(f, "{place}: {} [byte {}", self.problem, self.offset)?;
        if self.more > 0 {
            write!(f, ", and {} more alike", self.more)?;
        }
        f.write_str("]")
    }
}

/// The place; of a deeply nested one only both ends: `graph.node[0].attribute[0].g … (93 more) … .node[0]`.
pub(crate) fn brief(place: &str) -> String {
    const ENDS: usize = 4;
    let parts: Vec<&str> = place.split('.').collect();
    match parts.len().checked_sub(2 * ENDS) {
        None | Some(0..=2) => place.to_owned(),
        Some(more) => {
            let (begin, end) = (&parts[..ENDS], &parts[ENDS + more..]);
            format!("{} … ({more} more) … .{}", begin.join("."), end.join("."))
        }
    }
}

/// The faults, one a line.
struct Lines<'a>(&'a [Fault]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            write!(f, "{}  {fault}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl Advice for WireError {
    fn helps(&self) -> Vec<String> {
        let mut helps: Vec<String> = Vec::new();
        for help in self.faults.iter().map(|fault| fault.problem.help()) {
            if !helps.iter().any(|known| known == help) {
                helps.push(help.to_owned());
            }
        }
        helps
    }
}

/// `Ok` if `bytes` can be decoded as an `M` without loss.
///
/// Time is linear in the number of fields; stack and memory are bounded by [`MAX_NESTING`].
///
/// # Errors
/// [`WireError`] with every fault up to [`MAX_FAULTS`]. A fault after which the rest is unreadable is the last.
pub fn check<M: Described>(bytes: &[u8]) -> Result<(), WireError> {
    let mut walk = Walk { bytes, stack: Vec::new(), faults: Vec::new(), messages: 0, memory: 0 };
    walk.stack.push(Frame::new(M::schema(), None, 0, 0, bytes.len()));
    if let Err((offset, problem)) = walk.run() {
        walk.record(offset, problem);
    }
    if walk.faults.is_empty() {
        return Ok(());
    }
    Err(WireError { faults: walk.faults.into_iter().map(|(_, fault)| fault).collect() })
}

/// The schema of the message that has a fault, and the fault.
type Found = (*const Schema, Fault);

struct Walk<'a> {
    bytes: &'a [u8],
    stack: Vec<Frame>,
    faults: Vec<Found>,
    /// Number of messages so far, and the bytes of memory that they will take.
    messages: usize,
    memory: usize,
}

/// A message that the walk is inside of.
struct Frame {
    schema: &'static Schema,
    /// The field of the enclosing message that holds this one.
    field: Option<&'static Field>,
    key_at: usize,
    start: usize,
    end: usize,
    /// One bit per field of the schema.
    seen: u32,
    one_of: Option<&'static Field>,
}

impl Frame {
    fn new(
        schema: &'static Schema,
        field: Option<&'static Field>,
        key_at: usize,
        start: usize,
        end: usize,
    ) -> Self {
        debug_assert!(schema.fields.len() <= 32);
        Frame { schema, field, key_at, start, end, seen: 0, one_of: None }
    }
}

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const LENGTH: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

type Fatal = (usize, FieldError);

/// The wire types that a field may have.
struct Wire {
    /// That of a single element.
    single: u8,
    /// Whether the field is a packed array.
    packed: bool,
    /// That of the field.
    expected: u8,
}

impl Wire {
    /// The wire types of the field if it is written with wire type `wire`.
    fn of(field: &Field, wire: u8) -> Wire {
        let single = match field.kind {
            FieldKind::Varint | FieldKind::Int32 => VARINT,
            FieldKind::Fixed32 => FIXED32,
            FieldKind::Fixed64 => FIXED64,
            FieldKind::Text | FieldKind::Bytes | FieldKind::Message(_) => LENGTH,
        };
        let packed = single != LENGTH
            && match field.label {
                Label::Packed => true,
                Label::Repeated => wire == LENGTH,
                Label::Optional | Label::OneOf => false,
            };
        Wire { single, packed, expected: if packed { LENGTH } else { single } }
    }
}

impl Frame {
    /// Notes that the field at `position` of the schema occurs; refuses it where it may not occur again.
    fn occur(&mut self, position: usize) -> Result<(), FieldError> {
        let field = &self.schema.fields[position];
        if matches!(field.label, Label::Optional | Label::OneOf) {
            if self.seen & (1 << position) != 0 {
                return Err(FieldError::Twice { field: field.name() });
            }
            self.seen |= 1 << position;
        }
        if field.label == Label::OneOf
            && let Some(first) = self.one_of.replace(field)
        {
            return Err(FieldError::Exclusive { first: first.name(), second: field.name() });
        }
        Ok(())
    }
}

impl Walk<'_> {
    fn run(&mut self) -> Result<(), Fatal> {
        let bytes = self.bytes;
        let mut at = 0;
        while let Some(frame) = self.stack.last_mut() {
            if at == frame.end {
                self.stack.pop();
                continue;
            }
            let Frame { schema, end, .. } = *frame;
            let key_at = at;
            let (number, wire) = key(bytes, &mut at, end)?;
            let Some(position) = schema.fields.iter().position(|f| f.number == number) else {
                skip(bytes, &mut at, end, key_at, number, wire)?;
                self.record(key_at, FieldError::Unknown { number });
                if self.faults.len() == MAX_FAULTS {
                    return Ok(());
                }
                continue;
            };
            let field = &schema.fields[position];
            frame.occur(position).map_err(|problem| (key_at, problem))?;

            let Wire { single, packed, expected } = Wire::of(field, wire);
            if wire != expected {
                let field_name = field.name();
                return Err((
                    key_at,
                    if field.label == Label::Packed && wire == single {
                        FieldError::Unpacked { field: field_name }
                    } else {
                        FieldError::WireType { field: field_name, found: wire, expected }
                    },
                ));
            }
            if matches!(field.kind, FieldKind::Int32) && !packed {
                let value = varint(bytes, &mut at, end)?;
                // Most writers extend negative numbers to 64 bits, some only to 32.
                if value != value as i32 as u64 && value > u64::from(u32::MAX) {
                    return Err((key_at, FieldError::Range { field: field.name() }));
                }
                continue;
            }
            if expected != LENGTH {
                skip(bytes, &mut at, end, key_at, number, wire)?;
                continue;
            }

            let start = length(bytes, &mut at, end, key_at, || field.name().to_owned())?;
            if let FieldKind::Message(schema) = field.kind {
                self.enter(field, schema(), key_at, start..at).map_err(|problem| (key_at, problem))?;
                at = start;
            } else {
                check_content(field, &bytes[start..at]).map_err(|problem| (key_at, problem))?;
            }
        }
        Ok(())
    }

    /// Goes into a message, which has the bytes of `content`.
    fn enter(
        &mut self,
        field: &'static Field,
        schema: &'static Schema,
        key_at: usize,
        content: Range<usize>,
    ) -> Result<(), FieldError> {
        if self.stack.len() > MAX_NESTING {
            return Err(FieldError::Nesting { field: field.name() });
        }
        self.messages += 1;
        self.memory += schema.size;
        if self.memory > MAX_MEMORY.0 + MAX_MEMORY.1 * self.bytes.len() {
            return Err(FieldError::Memory { count: self.messages, bytes: self.memory });
        }
        self.stack.push(Frame::new(schema, Some(field), key_at, content.start, content.end));
        Ok(())
    }

    fn record(&mut self, offset: usize, problem: FieldError) {
        let schema: *const Schema = self.stack.last().map_or(std::ptr::null(), |f| f.schema);
        match self.faults.iter_mut().find(|(s, fault)| *s == schema && fault.problem == problem) {
            Some((_, fault)) => fault.more += 1,
            None => {
                self.faults.push((schema, Fault { place: self.place(), offset, problem, more: 0 }));
            }
        }
    }

    /// The path of the innermost message. Indices are counted here, by reading the enclosing messages again, so that the walk
    /// itself need not count.
    fn place(&self) -> String {
        let mut path = String::new();
        for (outer, inner) in self.stack.iter().zip(self.stack.iter().skip(1)) {
            let Some(field) = inner.field else { continue };
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(field.name());
            if field.label == Label::Repeated {
                let mut index = 0;
                let mut at = outer.start;
                while at < inner.key_at {
                    let key_at = at;
                    let Ok((number, wire)) = key(self.bytes, &mut at, outer.end) else { break };
                    if skip(self.bytes, &mut at, outer.end, key_at, number, wire).is_err() {
                        break;
                    }
                    index += usize::from(number == field.number);
                }
                path.push_str(&format!("[{index}]"));
            }
        }
        path
    }
}

/// Checks the content of a length-delimited field that is no message.
fn check_content(field: &Field, content: &[u8]) -> Result<(), FieldError> {
    let is_whole = match field.kind {
        FieldKind::Text if std::str::from_utf8(content).is_err() => {
            return Err(FieldError::Text { field: field.name() });
        }
        // Reports, texts and messages have a line for each name.
        FieldKind::Text if content.contains(&b'\n') && !["doc_string", "value"].contains(&field.name()) => {
            return Err(FieldError::LineEnd { field: field.name() });
        }
        FieldKind::Fixed32 => content.len().is_multiple_of(4),
        FieldKind::Fixed64 => content.len().is_multiple_of(8),
        // The elements of `Label::Packed` are not checked here: the code that reads them checks them.
        FieldKind::Varint if field.label == Label::Repeated => {
            let mut at = 0;
            while at < content.len() && varint(content, &mut at, content.len()).is_ok() {}
            at == content.len()
        }
        FieldKind::Text | FieldKind::Bytes | FieldKind::Varint | FieldKind::Int32 | FieldKind::Message(_) => {
            true
        }
    };
    if is_whole { Ok(()) } else { Err(FieldError::Elements { field: field.name() }) }
}

/// A field's number and wire type.
fn key(bytes: &[u8], at: &mut usize, end: usize) -> Result<(u32, u8), Fatal> {
    let key_at = *at;
    let key = u32::try_from(varint(bytes, at, end)?).map_err(|_| (key_at, FieldError::Key))?;
    let (number, wire) = (key >> 3, (key & 7) as u8);
    if number == 0 || wire > FIXED32 || wire == END_GROUP {
        return Err((key_at, FieldError::Key));
    }
    Ok((number, wire))
}

fn varint(bytes: &[u8], at: &mut usize, end: usize) -> Result<u64, Fatal> {
    let start = *at;
    // Most numbers have one byte.
    if let Some(&byte) = bytes[start..end].first().filter(|byte| **byte < 0x80) {
        *at += 1;
        return Ok(byte.into());
    }
    let mut value = 0u64;
    for (i, &byte) in bytes[start..end].iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            if i == 9 && byte > 1 {
                return Err((start, FieldError::Overflow));
            }
            *at = start + i + 1;
            return Ok(value);
        }
    }
    Err((start, if end - start < 10 { FieldError::Truncated } else { FieldError::Overflow }))
}

/// Offset of the content of a length-delimited field; `at` moves behind it.
fn length(
    bytes: &[u8],
    at: &mut usize,
    end: usize,
    key_at: usize,
    name: impl Fn() -> String,
) -> Result<usize, Fatal> {
    let length = varint(bytes, at, end)?;
    let left = end - *at;
    if length > left as u64 {
        return Err((key_at, FieldError::Length { field: name(), length, left }));
    }
    let start = *at;
    *at += length as usize;
    Ok(start)
}

/// Moves `at` behind a field whose key has been read.
fn skip(bytes: &[u8], at: &mut usize, end: usize, key_at: usize, number: u32, wire: u8) -> Result<(), Fatal> {
    let fixed = |at: &mut usize, width: usize| {
        if end - *at < width {
            return Err((key_at, FieldError::Truncated));
        }
        *at += width;
        Ok(())
    };
    match wire {
        VARINT => varint(bytes, at, end).map(|_| ()),
        FIXED64 => fixed(at, 8),
        FIXED32 => fixed(at, 4),
        LENGTH => length(bytes, at, end, key_at, || format!("field {number}")).map(|_| ()),
        // Groups are older than ONNX, which has none, and their contents cannot be kept.
        START_GROUP => Err((key_at, FieldError::Unknown { number })),
        _ => Err((key_at, FieldError::Key)),
    }
}
