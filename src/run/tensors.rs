//! Tensors by name, in files: parameters, state and batches.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use lmsc_ir::{Advice, Data, Digest, ElementType, Graph, TensorType, Type, words};
use lmsc_onnx::file::Opened;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};

use super::checkpoint;
use crate::{Code, Error, load};

/// The tensors of a file. Bytes are read on request, and the file is not mapped, so that a truncated file gives an
/// error.
pub(crate) struct Tensors {
    path: PathBuf,
    by_name: BTreeMap<String, (TensorType, Place)>,
    /// The metadata of a file that `lmsc` saved.
    pub(crate) says: Option<String>,
    /// The digests of the tensors, of a file that states them.
    digests: BTreeMap<String, Digest>,
}

/// The place of a tensor's bytes.
enum Place {
    Memory(Bytes),
    File(Arc<Opened>, Range<u64>),
}

impl Place {
    /// A part of the place of a whole file.
    fn part(&self, range: Range<u64>) -> Place {
        match self {
            Place::Memory(bytes) => Place::Memory(bytes.slice(range.start as usize..range.end as usize)),
            Place::File(file, _) => Place::File(Arc::clone(file), range),
        }
    }
}

/// The key of the metadata.
const SAYS: &str = "lmsc";

const TYPES: [(Dtype, ElementType); 13] = [
    (Dtype::F32, ElementType::Float),
    (Dtype::F64, ElementType::Double),
    (Dtype::F16, ElementType::Float16),
    (Dtype::BF16, ElementType::Bfloat16),
    (Dtype::I8, ElementType::Int8),
    (Dtype::I16, ElementType::Int16),
    (Dtype::I32, ElementType::Int32),
    (Dtype::I64, ElementType::Int64),
    (Dtype::U8, ElementType::Uint8),
    (Dtype::U16, ElementType::Uint16),
    (Dtype::U32, ElementType::Uint32),
    (Dtype::U64, ElementType::Uint64),
    (Dtype::BOOL, ElementType::Bool),
];

/// Bytes of a safetensors file before its header: the header's length.
const LENGTH: u64 = 8;

impl Tensors {
    /// The tensors of the safetensors file at the path.
    pub(crate) fn read(path: &Path) -> Result<Tensors, Error> {
        let reading = |e: io::Error| Error::reading(path, &e);
        let wrong = |e: &dyn std::fmt::Display| {
            Error::in_file(Code::Malformed, path, format!("no file of the format safetensors: {e}"))
        };
        let opened = Opened::new(path).map_err(reading)?.map(Arc::new);
        let (header, first, whole) = match opened {
            Some(file) => {
                let (header, first) = header(&file, path)?;
                let begin = first.len() as u64;
                let end = begin.checked_add(header.data_len() as u64);
                if end != Some(file.length()) {
                    return Err(wrong(&"it is cut short, or longer than its header says"));
                }
                let all = 0..file.length();
                (header, first, Place::File(file, all))
            }
            None => return Tensors::of_bytes(std::fs::read(path).map_err(reading)?.into(), path),
        };
        Tensors::listed(path, &header, &first, &whole)
    }

    /// The tensors in these bytes of a safetensors file; `path` is its name in messages.
    pub(crate) fn of_bytes(bytes: Bytes, path: &Path) -> Result<Tensors, Error> {
        let (length, header) = SafeTensors::read_metadata(&bytes).map_err(|e| {
            Error::in_file(Code::Malformed, path, format!("no file of the format safetensors: {e}"))
        })?;
        let end = (LENGTH + length as u64).checked_add(header.data_len() as u64);
        if end != Some(bytes.len() as u64) {
            let message =
                "no file of the format safetensors: it is cut short, or longer than its header says";
            return Err(Error::in_file(Code::Malformed, path, message));
        }
        let first = bytes.slice(..LENGTH as usize + length);
        Tensors::listed(path, &header, &first, &Place::Memory(bytes))
    }

    /// The tensors that the header lists. Their bytes begin behind the `first` ones of the whole file.
    fn listed(path: &Path, header: &Metadata, first: &[u8], whole: &Place) -> Result<Tensors, Error> {
        let (mut by_name, begin) = (BTreeMap::new(), first.len() as u64);
        let names = header.offset_keys();
        for (name, info) in names.iter().filter_map(|name| Some((name, header.info(name)?))) {
            let Some((_, element)) = TYPES.iter().find(|(dtype, _)| *dtype == info.dtype) else {
                let message = format!("`{name}` has elements of {:?}, which ONNX does not have", info.dtype);
                return Err(Error::in_file(Code::Malformed, path, message));
            };
            let dims: Vec<u64> = info.shape.iter().map(|&dim| dim as u64).collect();
            let (from, to) = (begin + info.data_offsets.0 as u64, begin + info.data_offsets.1 as u64);
            by_name.insert(name.clone(), (TensorType::new(*element, dims), whole.part(from..to)));
        }
        let says = header.metadata().as_ref().and_then(|says| says.get(SAYS)).cloned();
        let digests = says.as_deref().map(|says| checkpoint::digests(first, says)).transpose();
        let digests = digests.map_err(|damaged| damage(path, damaged))?.unwrap_or_default();
        Ok(Tensors { path: path.to_owned(), by_name, says, digests })
    }

    /// The initializers of the ONNX model at the path. Only their sizes must be known, not those of other values.
    pub(crate) fn of_model(path: &Path) -> Result<Tensors, Error> {
        let model = lmsc_onnx::Model::read(path).map_err(|e| load::not_read(&e))?;
        lmsc_onnx::file::check_external_data(&model).map_err(|e| Error::new(Code::Model, e.message()))?;
        let (mut files, mut by_name) = (Files::new(model.folder.clone()), BTreeMap::new());
        for (name, ty, data) in
            lmsc_onnx::initializers(&model).map_err(|e| Error::in_file(Code::Malformed, path, e))?
        {
            let place = match data {
                Data::Inline(bytes) => Place::Memory(bytes),
                Data::External { location, offset, length } => {
                    let (file, range) = files.find(&name, &location, offset, length)?;
                    Place::File(file, range)
                }
                Data::Digest { .. } => continue,
            };
            by_name.insert(name, (ty, place));
        }
        Ok(Tensors { path: path.to_owned(), by_name, says: None, digests: BTreeMap::new() })
    }

    /// The names and types of the tensors.
    pub(crate) fn types(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        self.by_name.iter().map(|(name, (ty, _))| (&**name, ty))
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Removes the tensors whose names `wanted` rejects.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(&str) -> bool) {
        self.by_name.retain(|name, _| wanted(name));
    }

    /// The bytes of the tensor of this name; empty if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) also if they are not those that were saved.
    pub(crate) fn bytes(&self, name: &str) -> Result<Bytes, Error> {
        let bytes: Bytes = match self.by_name.get(name) {
            None => return Ok(Bytes::new()),
            Some((_, Place::Memory(bytes))) => bytes.clone(),
            Some((_, Place::File(file, range))) => {
                file.read(range.clone()).map_err(|e| Error::reading(&self.path, &e))?.into()
            }
        };
        match self.digests.get(name) {
            Some(digest) if *digest != Digest::of(&bytes) => {
                Err(damage(&self.path, format!("it is damaged: `{name}` has other bytes than were saved")))
            }
            _ => Ok(bytes),
        }
    }

    /// Reads all tensors, to notice damage before anything is changed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.digests.keys().try_for_each(|name| self.bytes(name).map(drop))
    }
}

/// The error of a damaged file, with the generation before it if there is one.
fn damage(path: &Path, damaged: String) -> Error {
    let error = Error::in_file(Code::Malformed, path, damaged);
    let before = generation(path, 1);
    if before.is_file() {
        error.with_help(format!("the checkpoint before it is {}", before.display()))
    } else {
        error.with_help("take another checkpoint; --keep 2 keeps the one before the last")
    }
}

/// The path of an earlier generation of a checkpoint: the one before has the number 1.
pub(crate) fn generation(path: &Path, number: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Gives `keep - 1` earlier generations of the file their next names, and links the file itself as the first of them.
fn shift(path: &Path, keep: u64) -> io::Result<()> {
    let path = match path.canonicalize() {
        Ok(path) if keep > 1 && path.is_file() => path,
        _ => return Ok(()),
    };
    for number in (1..keep - 1).rev() {
        match fs::rename(generation(&path, number), generation(&path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let first = generation(&path, 1);
    match fs::remove_file(&first) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Not every file system has links.
    fs::hard_link(&path, &first).or_else(|_| fs::copy(&path, &first).map(drop))
}

/// The header of a safetensors file, and the file's bytes up to its end.
fn header(file: &Opened, path: &Path) -> Result<(Metadata, Vec<u8>), Error> {
    let wrong = |e: &dyn std::fmt::Display| {
        Error::in_file(Code::Malformed, path, format!("no file of the format safetensors: {e}"))
    };
    let read = |range| file.read(range).map_err(|e| Error::reading(path, &e));
    if file.length() < LENGTH {
        return Err(wrong(&"header too small"));
    }
    let length = read(0..LENGTH)?.first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes));
    let end = length.checked_add(LENGTH).filter(|&end| end <= file.length());
    let Some(end) = end else { return Err(wrong(&"header too large")) };
    let first = read(0..end)?;
    Ok((serde_json::from_slice(&first[LENGTH as usize..]).map_err(|e| wrong(&e))?, first))
}

/// The format's name of the type's elements.
fn dtype(path: &Path, name: &str, ty: &TensorType) -> Result<Dtype, Error> {
    let known = TYPES.iter().find(|(_, element)| *element == ty.element).map(|(dtype, _)| *dtype);
    known.ok_or_else(|| {
        Error::in_file(
            Code::Malformed,
            path,
            format!("`{name}` is {ty}, which the format safetensors does not have"),
        )
    })
}

/// Refuses tensors of types that a safetensors file cannot hold.
pub(crate) fn check_types<'a>(
    path: &Path,
    types: impl IntoIterator<Item = (&'a str, &'a Type)>,
) -> Result<(), Error> {
    for (name, ty) in types {
        match ty.as_tensor() {
            Some(ty) => _ = dtype(path, name, ty)?,
            None => {
                let message = format!(
                    "`{name}` is {ty}, a list of tensors, which the format safetensors does not have"
                );
                return Err(Error::in_file(Code::Malformed, path, message));
            }
        }
    }
    Ok(())
}

/// Writes tensors of these types and the metadata into the file, completely or not at all, and keeps `keep - 1`
/// generations of the files before it. Calls `bytes` for one tensor after the other.
pub(crate) fn write(
    path: &Path,
    types: &BTreeMap<String, TensorType>,
    says: Option<String>,
    keep: u64,
    mut bytes: impl FnMut(&str) -> io::Result<Bytes>,
) -> Result<(), Error> {
    let mut order = Vec::new();
    for (name, ty) in types {
        order.push((dtype(path, name, ty)?, name, ty));
    }
    // The format's order: the widest elements first, so that all are aligned.
    order.sort_by(|(left, name, _), (right, other, _)| right.cmp(left).then(name.cmp(other)));
    let (mut infos, mut begin) = (Vec::new(), 0);
    for &(dtype, name, ty) in &order {
        let shape = ty.dims.iter().map(|&dim| dim as usize).collect();
        let end = begin + ty.byte_size().unwrap_or_default().0 as usize;
        infos.push((name.clone(), TensorInfo { dtype, shape, data_offsets: (begin, end) }));
        begin = end;
    }
    let says = says.map(|says| HashMap::from([(SAYS.to_owned(), says)]));
    let header = Metadata::new(says, infos).map_err(|e| Error::in_file(Code::Malformed, path, e))?;
    let header = serde_json::to_vec(&header).map_err(|e| Error::in_file(Code::Malformed, path, e))?;
    let length = header.len().next_multiple_of(LENGTH as usize);
    let mut first = [&(length as u64).to_le_bytes()[..], &header].concat();
    first.resize(LENGTH as usize + length, b' ');
    checkpoint::seal(&mut first);
    let content = |file: &mut File| {
        file.write_all(&first)?;
        for (_, name, ty) in &order {
            let bytes = bytes(name)?;
            if bytes.len() as u64 != ty.byte_size().unwrap_or_default().0 {
                return Err(io::Error::other(format!("the bytes of `{name}` are missing")));
            }
            file.write_all(&bytes)?;
        }
        // The content must be on the disk before it replaces an older checkpoint.
        if file.metadata()?.is_file() { file.sync_all().and_then(|()| shift(path, keep)) } else { Ok(()) }
    };
    let written = lmsc_onnx::file::write_whole(path, content);
    written.and_then(|()| lmsc_onnx::file::sync_entry(path)).map_err(|e| Error::writing(path, &e))
}

/// Files beside a model, each opened once.
pub(crate) struct Files {
    folder: PathBuf,
    opened: BTreeMap<String, Arc<Opened>>,
}

impl Files {
    pub(crate) fn new(folder: Option<PathBuf>) -> Files {
        Files { folder: folder.unwrap_or_else(|| PathBuf::from(".")), opened: BTreeMap::new() }
    }

    /// The file at this location, and the range of bytes of the tensor.
    fn find(
        &mut self,
        name: &str,
        location: &str,
        offset: u64,
        length: u64,
    ) -> Result<(Arc<Opened>, Range<u64>), Error> {
        let path = self.folder.join(location);
        let file = match self.opened.get(location) {
            Some(file) => Arc::clone(file),
            None => {
                let opened = Opened::new(&path).map_err(|e| Error::reading(&path, &e))?;
                let file =
                    opened.ok_or_else(|| Error::in_file(Code::Malformed, &path, "it is no regular file"))?;
                Arc::clone(self.opened.entry(location.to_owned()).or_insert(Arc::new(file)))
            }
        };
        match offset.checked_add(length).filter(|&end| end <= file.length()) {
            Some(end) => Ok((file, offset..end)),
            None => {
                Err(Error::in_file(Code::Malformed, &path, format!("it ends before the bytes of `{name}`")))
            }
        }
    }

    fn read(&mut self, name: &str, location: &str, offset: u64, length: u64) -> Result<Bytes, Error> {
        let (file, range) = self.find(name, location, offset, length)?;
        let bytes = file.read(range).map_err(|e| Error::reading(&self.folder.join(location), &e))?;
        Ok(bytes.into())
    }
}

/// Larger initializers stay in their files until the session has memory for them. Kernels read only smaller ones
/// while they are prepared.
const SMALL: u64 = 1 << 16;

/// Reads the bytes of small initializers from files beside the model into the graph.
pub(crate) fn inline_small(graph: &mut Graph, files: &mut Files) -> Result<(), Error> {
    for index in 0..graph.initializers.len() {
        let name = graph.value(graph.initializers[index].value).name.clone();
        match &graph.initializers[index].data {
            Data::Digest { .. } => {
                let message = format!("the text has no bytes of the initializer `{name}`");
                return Err(Error::new(Code::Values, message).with_help("run the .onnx file"));
            }
            Data::External { location, offset, length } if *length <= SMALL => {
                let bytes = files.read(&name, location, *offset, *length)?;
                graph.initializers[index].data = Data::Inline(bytes);
            }
            Data::Inline(_) | Data::External { .. } => {}
        }
    }
    Ok(())
}

/// Calls `set` for large initializers that are still in files, and keeps only the digest of each large one: the
/// session has the bytes.
pub(crate) fn let_go(
    graph: &mut Graph,
    files: &mut Files,
    mut set: impl FnMut(&str, &[u8]) -> Result<bool, Error>,
) -> Result<(), Error> {
    for index in 0..graph.initializers.len() {
        let name = graph.value(graph.initializers[index].value).name.clone();
        let initializer = &mut graph.initializers[index];
        let length = initializer.data.len();
        if length <= SMALL {
            continue;
        }
        if let Data::External { location, offset, length } = &initializer.data {
            let bytes = files.read(&name, location, *offset, *length)?;
            // The program has only inputs that the step uses.
            set(&name, &bytes)?;
            initializer.data = Data::Inline(bytes);
        }
        if let Some(digest) = initializer.data.digest() {
            initializer.data = Data::Digest { length, digest };
        }
    }
    Ok(())
}

/// The faults of tensors for values of these names and types; empty if there are none.
///
/// With `batches`, a tensor may have one more dimension in front.
pub(crate) fn mismatches<'a>(
    tensors: impl IntoIterator<Item = (&'a str, &'a TensorType)>,
    expected: &BTreeMap<String, Type>,
    many: &str,
    batches: bool,
) -> Vec<String> {
    let fits = |stored: &TensorType, ty: &TensorType| {
        let more = batches && stored.dims.len() == ty.dims.len() + 1 && stored.dims[1..] == ty.dims;
        stored.element == ty.element && (stored.dims == ty.dims || more && stored.dims[0] > 0)
    };
    let (mut unknown, mut wrong) = (Vec::new(), Vec::new());
    for (name, stored) in tensors {
        match expected.get(name) {
            None => unknown.push(name),
            Some(Type::Tensor(ty)) if fits(stored, ty) => {}
            Some(ty) => wrong.push(format!("`{name}` is {stored}; expected {ty}")),
        }
    }
    if let [first, others @ ..] = &unknown[..] {
        let instead = words::instead(first, expected.keys().map(|name| &**name), many);
        let others = match others {
            [] => String::new(),
            [other] => format!(" and no `{other}`"),
            others => format!(", and {} more of the file are no {many} of the step", others.len()),
        };
        wrong.insert(0, format!("there is no `{first}`{others}; {instead}"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use lmsc_ir::ElementType;

    use super::*;
    use crate::run::checkpoint::{Checkpoint, says};

    /// The bytes of a checkpoint with a tensor of this number of floats.
    fn checkpoint_of(floats: u64) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.safetensors");
        let types = BTreeMap::from([
            ("step".to_owned(), TensorType::new(ElementType::Int64, [1])),
            ("w".to_owned(), TensorType::new(ElementType::Float, [floats])),
        ]);
        let bytes = |name: &str| Ok(vec![7; types[name].byte_size().unwrap().0 as usize].into());
        let mut checkpoint = Checkpoint::new(3, "host".to_owned(), false);
        checkpoint.write(&path, 1, &types, bytes).unwrap();
        fs::read(&path).unwrap()
    }

    fn resumed(bytes: &Bytes) -> Result<(), Error> {
        let path = Path::new("c.safetensors");
        let tensors = Tensors::of_bytes(bytes.clone(), path)?;
        says(path, &tensors)?;
        tensors.check()
    }

    #[test]
    fn every_byte_of_a_checkpoint_that_changes_is_found() {
        // Each change costs a digest of the whole, so the time grows with the square.
        let floats = lmsc_testing::cases(1 << 8, 1 << 13, 1 << 18);
        let whole = checkpoint_of(floats);
        resumed(&whole.clone().into()).unwrap();
        let mut found = 0;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            assert!(resumed(&bytes.into()).is_err(), "byte {at}");
            found += 1;
        }
        assert_eq!(found, whole.len());
    }
}
