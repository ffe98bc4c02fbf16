//! Buffers in MiniMalloc's CSV format: `id,lower,upper,size`, and optional columns.

use std::collections::BTreeSet;
use std::fmt::Write;

use lmsc_ir::words;

use super::{Buffer, Layout, Part};

/// The possible columns; the first four are required.
const COLUMNS: [&str; 6] = ["id", "lower", "upper", "size", "alignment", "offset"];
const NEEDED: usize = 4;

/// The maximum sum of sizes, alignments and addresses.
const MOST: u64 = 1 << 62;

/// Buffers with their names in the file.
#[derive(Clone, Debug)]
pub struct Table {
    /// For each buffer, its `id`.
    pub ids: Vec<String>,
    /// The buffers, in the file's order.
    pub buffers: Vec<Buffer>,
    has_alignment: bool,
}

/// A malformed line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Malformed {
    /// Counted from 1.
    pub line: usize,
    /// The defect.
    pub what: Wrong,
}

/// A defect of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A required column is missing.
    #[error("there is no column `{0}`; the first line names the columns, at least id,lower,upper,size")]
    NoColumn(&'static str),
    /// A column without a meaning.
    #[error("there is no meaning for a column `{name}`; {instead}")]
    UnknownColumn {
        /// Its name.
        name: String,
        /// The available columns.
        instead: String,
    },
    /// Two columns with the same name.
    #[error("the column `{0}` is there twice")]
    ColumnTwice(&'static str),
    /// Too many or too few fields.
    #[error("it has {found}; the first line has {expected}")]
    Fields {
        /// The number in this line.
        found: String,
        /// The number in the first line.
        expected: usize,
    },
    /// A field that is no number of the required range.
    #[error("`{column}` is `{text}`; it is a whole number, at least {least}")]
    Number {
        /// The column.
        column: &'static str,
        /// The field.
        text: String,
        /// The smallest number that it may be.
        least: u64,
    },
    /// A lifetime that ends before it begins.
    #[error("`upper` is {upper}, before `lower`, {lower}; a buffer is live from lower until before upper")]
    Lifetime {
        /// The start of the lifetime.
        lower: u64,
        /// The end of the lifetime.
        upper: u64,
    },
    /// Parts of a buffer on lines that are not adjacent.
    #[error("the id `{0}` was there before; lines of one id are parts of one buffer and follow one another")]
    Scattered(String),
    /// A part that contradicts the buffer's first line.
    #[error("`{column}` contradicts the first line of `{id}`")]
    Contradicts {
        /// The column.
        column: &'static str,
        /// The buffer.
        id: String,
    },
    /// A given offset that is not aligned.
    #[error("`offset` is {offset}, which is no multiple of the `alignment`, {alignment}")]
    Unaligned {
        /// The offset.
        offset: u64,
        /// The alignment.
        alignment: u64,
    },
    /// Numbers whose sum does not fit 64 bits.
    #[error("sizes, alignments and offsets are together above 2^62")]
    TooLarge,
}

/// The fields of a line.
struct Row<'a> {
    id: &'a str,
    part: Part,
    alignment: u64,
    offset: Option<u64>,
}

impl Table {
    /// The buffers that the text lists.
    ///
    /// # Errors
    /// [`Malformed`], with the first malformed line.
    pub fn parse(text: &str) -> Result<Table, Malformed> {
        // Spreadsheets write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let (line, header) = lines.next().unwrap_or((1, ""));
        let columns = columns(header).map_err(|what| Malformed { line, what })?;
        let has = |name| columns.iter().any(|&column| COLUMNS[column] == name);
        let mut table = Table { ids: Vec::new(), buffers: Vec::new(), has_alignment: has("alignment") };
        let (mut known, mut sum) = (BTreeSet::new(), 0u64);
        for (line, text) in lines {
            let wrong = |what| Malformed { line, what };
            let row = row(&columns, text).map_err(wrong)?;
            for number in [row.part.bytes, row.alignment, row.offset.unwrap_or(0)] {
                sum = sum.checked_add(number).filter(|&sum| sum <= MOST).ok_or(wrong(Wrong::TooLarge))?;
            }
            table.add(row, &mut known).map_err(wrong)?;
        }
        Ok(table)
    }

    fn add(&mut self, row: Row<'_>, known: &mut BTreeSet<String>) -> Result<(), Wrong> {
        let (Some(id), Some(buffer)) = (self.ids.last(), self.buffers.last_mut()) else {
            return self.begin(row, known);
        };
        if id != row.id {
            return self.begin(row, known);
        }
        let contradicts = |column| Err(Wrong::Contradicts { column, id: row.id.to_owned() });
        if row.alignment != buffer.alignment {
            return contradicts("alignment");
        }
        let begin = buffer.bytes();
        if row
            .offset
            .is_some_and(|offset| buffer.fixed.and_then(|fixed| fixed.checked_add(begin)) != Some(offset))
        {
            return contradicts("offset");
        }
        buffer.parts.push(row.part);
        Ok(())
    }

    fn begin(&mut self, row: Row<'_>, known: &mut BTreeSet<String>) -> Result<(), Wrong> {
        if !known.insert(row.id.to_owned()) {
            return Err(Wrong::Scattered(row.id.to_owned()));
        }
        let alignment = row.alignment;
        if let Some(offset) = row.offset.filter(|offset| !offset.is_multiple_of(alignment)) {
            return Err(Wrong::Unaligned { offset, alignment });
        }
        self.ids.push(row.id.to_owned());
        self.buffers.push(Buffer { parts: [row.part].into(), alignment: row.alignment, fixed: row.offset });
        Ok(())
    }

    /// The table with an address for every line.
    pub fn with_offsets(&self, layout: &Layout) -> String {
        let alignment = if self.has_alignment { ",alignment" } else { "" };
        let mut text = format!("id,lower,upper,size{alignment},offset\n");
        for ((id, buffer), &address) in self.ids.iter().zip(&self.buffers).zip(&layout.addresses) {
            let mut offset = address;
            for Part { bytes, live } in &buffer.parts {
                let alignment =
                    if self.has_alignment { format!(",{}", buffer.alignment) } else { String::new() };
                _ = writeln!(text, "{id},{},{},{bytes}{alignment},{offset}", live.start, live.end);
                offset += bytes;
            }
        }
        text
    }
}

/// By field of a line, its index in [`COLUMNS`].
fn columns(header: &str) -> Result<Vec<usize>, Wrong> {
    let mut columns = Vec::new();
    for name in header.split(',').map(str::trim).filter(|_| !header.is_empty()) {
        let Some(column) = COLUMNS.iter().position(|&column| column == name) else {
            let instead = words::instead(name, COLUMNS, "columns");
            return Err(Wrong::UnknownColumn { name: name.chars().take(40).collect(), instead });
        };
        if columns.contains(&column) {
            return Err(Wrong::ColumnTwice(COLUMNS[column]));
        }
        columns.push(column);
    }
    match (0..NEEDED).find(|needed| !columns.contains(needed)) {
        Some(missing) => Err(Wrong::NoColumn(COLUMNS[missing])),
        None => Ok(columns),
    }
}

fn row<'a>(columns: &[usize], text: &'a str) -> Result<Row<'a>, Wrong> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    if fields.len() != columns.len() {
        return Err(Wrong::Fields { found: words::count(fields.len(), "field"), expected: columns.len() });
    }
    let field = |name: &str| {
        columns.iter().position(|&column| COLUMNS[column] == name).map(|at| fields[at]).unwrap_or_default()
    };
    let number = |column: &'static str, least: u64| {
        let text = field(column);
        let number = text.parse().ok().filter(|&number: &u64| number >= least);
        number.ok_or_else(|| Wrong::Number { column, text: text.chars().take(40).collect(), least })
    };
    let (lower, upper) = (number("lower", 0)?, number("upper", 0)?);
    if upper < lower {
        return Err(Wrong::Lifetime { lower, upper });
    }
    let optional = |column| if field(column).is_empty() { Ok(None) } else { number(column, 0).map(Some) };
    let alignment = if field("alignment").is_empty() { 1 } else { number("alignment", 1)? };
    let part = Part { bytes: number("size", 0)?, live: lower..upper };
    Ok(Row { id: field("id"), part, alignment, offset: optional("offset")? })
}
