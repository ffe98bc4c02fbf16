//! Model files: mapped instead of read; written as a stream instead of assembled in memory.
//!
//! Both unsafe parts of the crate are here: mapping a file, and the [`BufMut`] through which `prost` writes.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes};
use lmsc_ir::Advice;
use lmsc_ir::words::count;
use prost::Message;

use crate::foreign::{self, Foreign};
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto};
use crate::wire::{self, Described, FieldError, WireError};

/// A model and its origin.
#[derive(Clone, Debug)]
pub struct Model {
    /// The messages. Their bytes are slices of the mapped file.
    pub proto: ModelProto,
    /// Its name in error messages: its path, or a name that the caller chose.
    pub name: String,
    /// The folder to which external data locations are relative; `None` if it did not come from a path.
    pub folder: Option<PathBuf>,
    /// The files whose mapped bytes the messages refer to.
    pub mapped: Vec<Arc<Opened>>,
}

/// The message about a file that has changed.
const CHANGED: &str = "was changed while it was in use; run the command again";

/// An open regular file, and its state when it was opened.
#[derive(Debug)]
pub struct Opened {
    name: String,
    file: File,
    length: u64,
    modified: Option<SystemTime>,
}

impl Opened {
    /// The file at `path`; none if it is not a regular file, such as a pipe.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(path: &Path) -> io::Result<Option<Opened>> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let name = path.display().to_string();
        let opened = Opened { name, file, length: metadata.len(), modified: metadata.modified().ok() };
        Ok(metadata.is_file().then_some(opened))
    }

    /// Size in bytes when it was opened.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of the file, read into memory.
    ///
    /// # Errors
    /// The system's error; or an error if the file was changed.
    pub fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(range.start))?;
        let read = file.read_exact(&mut bytes);
        if self.is_changed()? { Err(io::Error::other(format!("it {CHANGED}"))) } else { read.map(|()| bytes) }
    }

    /// `Ok` if the file has the same length and modification time as when it was opened.
    ///
    /// A file that another program replaces by renaming is unchanged: the open one still exists.
    ///
    /// # Errors
    /// An error that names the file. Its mapped bytes must not be used any more: access to bytes that were cut off ends the
    /// process.
    pub fn check(&self) -> io::Result<()> {
        if self.is_changed()? { Err(io::Error::other(format!("{} {CHANGED}", self.name))) } else { Ok(()) }
    }

    fn is_changed(&self) -> io::Result<bool> {
        let now = self.file.metadata()?;
        Ok((now.len(), now.modified().ok()) != (self.length, self.modified))
    }
}

/// Why a model could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file could not be opened, mapped or read.
    #[error("{}", cannot("read", name, source))]
    Read {
        /// The file.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// There are no bytes.
    #[error("{name} is empty")]
    Empty {
        /// The file.
        name: String,
    },
    /// The bytes are of another format.
    #[error("{name} is not an ONNX model{}", looking(*looks_like))]
    NotAModel {
        /// The file.
        name: String,
        /// The format that its first bytes indicate.
        looks_like: Option<Foreign>,
    },
    /// The bytes are a faulty model: damaged, or one that would not survive unchanged.
    #[error("{name} {}{source}", heading(source, *length))]
    Wire {
        /// The file.
        name: String,
        /// Size in bytes.
        length: usize,
        /// Every fault.
        source: WireError,
    },
    /// `prost` rejected bytes that [`wire::check`] had accepted: a fault of lmsc.
    #[error("{name} passed the check of its bytes but cannot be decoded: {source}; this is a fault of lmsc")]
    Decode {
        /// The file.
        name: String,
        /// The error of `prost`.
        source: prost::DecodeError,
    },
    /// The file could not be written. An existing file of its name is unchanged.
    #[error("{}", cannot("write", name, source))]
    Write {
        /// The file.
        name: String,
        /// The system's error.
        source: io::Error,
    },
}

fn looking(like: Option<Foreign>) -> String {
    like.map(|Foreign { what, .. }| format!(": it looks like {what}")).unwrap_or_default()
}

impl Advice for FileError {
    fn helps(&self) -> Vec<String> {
        match self {
            FileError::Empty { .. } => vec!["export the model again".to_owned()],
            FileError::NotAModel { looks_like, .. } => {
                let otherwise = "give the .onnx file that the exporter wrote";
                vec![looks_like.map_or(otherwise, |like| like.help).to_owned()]
            }
            FileError::Wire { source, .. } => source.helps(),
            FileError::Read { .. } | FileError::Decode { .. } | FileError::Write { .. } => Vec::new(),
        }
    }
}

/// The heading before the faults of a file of `length` bytes.
fn heading(source: &WireError, length: usize) -> String {
    let cut = source.faults.iter().find(|fault| fault.place.is_empty());
    match cut.map(|fault| &fault.problem) {
        Some(FieldError::Length { length: needed, left, .. }) => {
            let needed = u128::from(*needed) + (length - left) as u128;
            format!("is cut short: it has {} and needs {needed} or more:\n", count(length, "byte"))
        }
        Some(FieldError::Truncated) => format!("is cut short: it has {}:\n", count(length, "byte")),
        _ if source.faults.iter().any(|f| f.problem.is_damage()) => "is damaged:\n".to_owned(),
        _ if source.faults.iter().all(|f| f.problem.is_loss()) => "holds what lmsc would lose:\n".to_owned(),
        _ => "cannot be read:\n".to_owned(),
    }
}

/// Why a file could not be read or written, in a sentence; `verb` is the attempted operation.
pub fn cannot(verb: &str, name: &str, error: &io::Error) -> String {
    let reason = match error.kind() {
        io::ErrorKind::IsADirectory => return format!("{name} is a folder; name a file"),
        _ if error.get_ref().is_some() => error.to_string(),
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "a part of its path is a file, not a folder".to_owned(),
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
    };
    format!("cannot {verb} {name}: {reason}")
}

impl Model {
    /// The model in the file at `path`, mapped: its weights are read when they are used.
    ///
    /// A file that cannot be mapped (a pipe) is read, and has no folder.
    ///
    /// # Errors
    /// [`FileError`] if the file cannot be read, or not without loss.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let (bytes, mapped) = map(path).map_err(|source| FileError::Read { name: name.clone(), source })?;
        let mapped = mapped.into_iter().collect();
        Ok(Model { folder: model_folder(path), mapped, ..Model::from_bytes(bytes, name)? })
    }

    /// The model in the file at `path`, read into memory: later changes of the file have no effect.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let read = || match Opened::new(path)? {
            Some(file) => file.read(0..file.length()),
            None => fs::read(path),
        };
        let bytes = read().map_err(|source| FileError::Read { name: name.clone(), source })?;
        Ok(Model { folder: model_folder(path), ..Model::from_bytes(bytes.into(), name)? })
    }

    /// The model in `bytes`; `name` is its name in error messages. It has no folder.
    ///
    /// # Errors
    /// [`FileError`] if the bytes cannot be decoded without loss.
    pub fn from_bytes(bytes: Bytes, name: impl Into<String>) -> Result<Self, FileError> {
        let name = name.into();
        if bytes.is_empty() {
            return Err(FileError::Empty { name });
        }
        if let Err(source) = wire::check::<ModelProto>(&bytes) {
            return Err(refused(name, &bytes, source));
        }
        match ModelProto::decode(bytes) {
            Ok(proto) => Ok(Model { proto, name, folder: None, mapped: Vec::new() }),
            Err(source) => Err(FileError::Decode { name, source }),
        }
    }
}

/// Distinguishes a damaged model from bytes of another format.
fn refused(name: String, bytes: &[u8], source: WireError) -> FileError {
    let looks_like = foreign::looks_like(bytes);
    let first = source.faults.first().filter(|fault| fault.offset == 0 && fault.place.is_empty());
    // A truncated model has the beginning of a model.
    let begins_like_one = first.is_none_or(|f| match &f.problem {
        FieldError::Truncated => true,
        FieldError::Length { field, .. } => ModelProto::schema().fields.iter().any(|f| f.name() == *field),
        _ => false,
    });
    if looks_like.is_some() || !begins_like_one {
        FileError::NotAModel { name, looks_like }
    } else {
        FileError::Wire { name, length: bytes.len(), source }
    }
}

/// The folder of a model at this path, if it is a file.
fn model_folder(path: &Path) -> Option<PathBuf> {
    path.is_file().then(|| folder_of(path).to_owned())
}

/// The bytes of the file at `path`, mapped, and the file; the bytes of a pipe are read.
///
/// # Errors
/// The system's error.
pub fn map(path: &Path) -> io::Result<(Bytes, Option<Arc<Opened>>)> {
    let Some(opened) = Opened::new(path)? else { return Ok((fs::read(path)?.into(), None)) };
    // SAFETY: the mapping is private to this process and only read. lmsc itself replaces files by renaming and never
    // writes into one, so the mapped bytes do not change under it. If another program truncates the file meanwhile,
    // reading the missing bytes raises SIGBUS, which `exit_on_truncation` turns into an error message. A run maps no
    // file, and a compilation calls `Opened::check` before and after it writes.
    let map = unsafe { memmap2::Mmap::map(&opened.file)? };
    Ok((Bytes::from_owner(map), Some(Arc::new(opened))))
}

/// From now on, the process ends with exit status 2 and a message if it reads bytes of a mapped file that another program has cut
/// off. Without this, SIGBUS kills it. Programs call it before they map a file: the handler is process-wide.
pub fn exit_on_truncation() {
    #[cfg(unix)]
    {
        extern "C" fn handle(_: libc::c_int) {
            const MESSAGE: &[u8] =
                b"lmsc: a model file was cut short by another program while lmsc read it; \
                the output is not complete, or not written\nhelp: run the command again\n";
            // SAFETY: both functions may be called in a signal handler, and the message is a constant.
            unsafe {
                libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
                libc::_exit(2);
            }
        }
        let handle: extern "C" fn(libc::c_int) = handle;
        // SAFETY: the handler calls only functions that a signal handler may call, and does not return.
        unsafe { libc::signal(libc::SIGBUS, handle as libc::sighandler_t) };
    }
}

/// Writes `proto` as ONNX bytes, weights directly from their place in memory.
///
/// # Errors
/// The first error of `to`; nothing is written after it.
pub fn encode_to(proto: &ModelProto, to: impl Write) -> io::Result<()> {
    let mut stream = Stream { to, buffer: Vec::with_capacity(BUFFER), error: None };
    proto.encode_raw(&mut stream);
    stream.finish()
}

/// Writes `proto` to `path`: all of it, or, on an error, nothing.
///
/// The bytes go to a temporary file beside `path`, which is then renamed. So `path` may be the very file whose mapped bytes
/// `proto` refers to. A link is followed; a file that is not regular (a pipe, `/dev/stdout`) is written to directly. An existing
/// file's permissions are kept.
///
/// External data is not moved: see [`has_external_data`].
///
/// # Errors
/// [`FileError::Write`]
pub fn save(proto: &ModelProto, path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    write_whole(path, |file| encode_to(proto, file))
        .map_err(|source| FileError::Write { name: path.display().to_string(), source })
}

/// Writes the output of `content` to `path`: all of it, or, on an error, nothing. See [`save`].
///
/// On Linux the temporary file has no name until it is complete, if the file system supports that: if the process is killed
/// before, nothing is left.
///
/// # Errors
/// The error of the system or of `content`.
pub fn write_whole(path: &Path, content: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let existing = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => {
            return content(&mut File::options().write(true).open(path)?);
        }
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let folder = folder_of(&target);
    let fill = |file: &mut File| {
        content(file)?;
        existing.map_or(Ok(()), |metadata| file.set_permissions(metadata.permissions()))
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".lmsc-").suffix(".tmp");
    let named = match unnamed(folder) {
        Some(mut file) => {
            fill(&mut file)?;
            builder.make_in(folder, |path| give_name(&file, path))?.into_temp_path()
        }
        None => {
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            let mut file = builder.tempfile_in(folder).map_err(|error| not_created(folder, &error))?;
            fill(file.as_file_mut())?;
            file.into_temp_path()
        }
    };
    named.persist(&target)?;
    Ok(())
}

/// The error that no file can be created in a folder; it does not mention the temporary file's name.
fn not_created(folder: &Path, error: &io::Error) -> io::Error {
    let shown = folder.display();
    let reason = match error.kind() {
        io::ErrorKind::NotFound => return no_folder(folder),
        io::ErrorKind::PermissionDenied => format!("you may not create files in the folder {shown}"),
        kind => format!("in the folder {shown}: {kind}"),
    };
    io::Error::new(error.kind(), reason)
}

/// The folder of links by which an open file can be named.
#[cfg(target_os = "linux")]
const OPEN_FILES: &str = "/proc/self/fd";

/// A new file in the folder without a name, if the system supports it; none also on errors, which the named file then reports.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = open(folder, flags, Mode::from_raw_mode(0o666)).ok()?;
    Path::new(OPEN_FILES).is_dir().then(|| file.into())
}

/// Names the file for the first time.
#[cfg(target_os = "linux")]
fn give_name(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};
    let open = format!("{OPEN_FILES}/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_folder: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn give_name(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes a written file, including its entry in the folder, survive a loss of power.
///
/// # Errors
/// The system's error.
pub fn sync_entry(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() && cfg!(unix) {
        File::open(folder_of(&fs::canonicalize(path)?))?.sync_all()
    } else {
        Ok(())
    }
}

fn no_folder(folder: &Path) -> io::Error {
    let reason = format!("the folder {} does not exist; create it first", folder.display());
    io::Error::new(io::ErrorKind::NotFound, reason)
}

/// The folder of the file at this path.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The error of [`write_whole`] for a path that is a folder, or whose folder does not exist; checked before the work.
///
/// # Errors
/// The same as [`write_whole`].
pub fn check_target(path: &Path) -> io::Result<()> {
    let folder = folder_of(path);
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(no_folder(folder)),
        _ => Ok(()),
    }
}

const BUFFER: usize = 64 << 10;

/// Byte fields of at least this length are written directly from their place in memory.
const DIRECT: usize = 16 << 10;

/// A writer to which `prost` can encode. Errors are kept for [`Stream::finish`], because encoding cannot fail.
struct Stream<W> {
    to: W,
    /// Never grows: flushed when its capacity is used up.
    buffer: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> Stream<W> {
    fn write(&mut self, bytes: &[u8]) {
        if bytes.len() > self.buffer.capacity() - self.buffer.len() {
            self.flush();
        }
        if bytes.len() >= DIRECT {
            self.flush();
            if self.error.is_none() {
                self.error = self.to.write_all(bytes).err();
            }
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.to.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => self.to.flush(),
        }
    }
}

// SAFETY: `chunk_mut` and `advance_mut` are those of the `Vec`, so a chunk is spare capacity of the vector, and the promise of
// `advance_mut` holds for the vector. `chunk_mut` makes room first, so the chunk is never empty.
unsafe impl<W: Write> BufMut for Stream<W> {
    fn remaining_mut(&self) -> usize {
        usize::MAX
    }

    unsafe fn advance_mut(&mut self, count: usize) {
        // SAFETY: the caller has initialized `count` bytes of `chunk_mut`, which is the vector's.
        unsafe { self.buffer.advance_mut(count) }
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        if self.buffer.len() == self.buffer.capacity() {
            self.flush();
        }
        self.buffer.chunk_mut()
    }

    fn put<T: Buf>(&mut self, mut from: T) {
        while from.has_remaining() {
            let chunk = from.chunk();
            let length = chunk.len();
            self.write(chunk);
            from.advance(length);
        }
    }

    fn put_slice(&mut self, from: &[u8]) {
        self.write(from);
    }
}

/// The location of a tensor's elements in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// The file, relative to the model's folder; by its spelling it is inside that folder.
    pub location: String,
    /// Offset of the elements in the file.
    pub offset: u64,
    /// Size of the elements in bytes; `None`: to the end of the file.
    pub length: Option<u64>,
}

/// Every reference to external data that cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("the external data of {name} cannot be used:{}", References::of(errors))]
pub struct ExternalErrors {
    /// The model.
    pub name: String,
    /// At least one.
    pub errors: Vec<ExternalError>,
}

/// Each problem once, with the first tensor that has it.
struct References<'a> {
    /// The first tensor with the problem, and how many more have it.
    groups: Vec<(&'a ExternalError, usize)>,
    /// The number of tensors that are left out.
    rest: usize,
}

impl<'a> References<'a> {
    fn of(errors: &'a [ExternalError]) -> References<'a> {
        const SHOWN: usize = 8;
        let mut groups: Vec<(&ExternalError, usize)> = Vec::new();
        let mut rest = 0;
        for error in errors {
            match groups.iter().position(|(first, _)| first.problem == error.problem) {
                Some(group) => groups[group].1 += 1,
                None if groups.len() < SHOWN => groups.push((error, 0)),
                None => rest += 1,
            }
        }
        References { groups, rest }
    }
}

impl fmt::Display for References<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (first, more) in &self.groups {
            let also =
                if *more > 0 { format!(" and {}", count(*more, "more tensor")) } else { String::new() };
            write!(f, "\n  {}{also}: {}", Named(first), first.problem)?;
        }
        match self.rest {
            0 => Ok(()),
            rest => write!(f, "\n  and {}", count(rest, "more tensor")),
        }
    }
}

impl Advice for ExternalErrors {
    fn helps(&self) -> Vec<String> {
        let mut helps: Vec<String> = Vec::new();
        for (first, _) in References::of(&self.errors).groups {
            if !helps.iter().any(|help| help == first.problem.help()) {
                helps.push(first.problem.help().to_owned());
            }
        }
        helps
    }
}

/// A reference to external data that cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", Named(self))]
pub struct ExternalError {
    /// The tensor's name.
    pub tensor: String,
    /// Its place in the model, such as `graph.initializer[3]`; empty if only the tensor is known.
    pub place: String,
    /// The error.
    pub problem: ExternalProblem,
}

/// The tensor and its place.
struct Named<'a>(&'a ExternalError);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor `{}`", self.0.tensor)?;
        if !self.0.place.is_empty() {
            write!(f, " ({})", wire::brief(&self.0.place))?;
        }
        Ok(())
    }
}

/// An error in a reference to external data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ExternalProblem {
    #[error("its data is in another file, but no `location` says which")]
    NoLocation,
    #[error("its `{key}` is given twice")]
    Twice { key: &'static str },
    #[error("its `{key}` is `{value}`, which is not a number of bytes")]
    Number { key: &'static str, value: String },
    #[error("its data is in `{location}`, an absolute path")]
    Absolute { location: String },
    #[error("its data is in `{location}`, and `..` may leave the model's folder")]
    Parent { location: String },
    #[error("its data is in `{location}`, a link out of the model's folder")]
    Link { location: String },
    #[error("its data is in `{location}`, which does not exist")]
    Missing { location: String },
    #[error("its data is in `{location}`, which cannot be read: {reason}")]
    Unreadable { location: String, reason: String },
    #[error("its data is in `{location}`, which is no regular file")]
    NotAFile { location: String },
    #[error("its data is {} long, but its type and shape need {needed}", count(*length as usize, "byte"))]
    Length { length: u64, needed: u64 },
    #[error("its data ends at byte {end} of `{location}`, which has {}", count(*size as usize, "byte"))]
    Short { location: String, end: u128, size: u64 },
}

impl ExternalProblem {
    /// How to fix it.
    pub fn help(&self) -> &'static str {
        use ExternalProblem::*;
        match self {
            NoLocation | Twice { .. } | Number { .. } | Length { .. } => {
                "save the model again, for example with onnx.save_model"
            }
            Absolute { .. } | Parent { .. } | Link { .. } => {
                "put the file itself into the model's folder, and name it relative to that"
            }
            Missing { .. } => "external data is part of the model: copy the file to where the model is, too",
            Unreadable { .. } => "make the file readable",
            NotAFile { .. } => "put the data into a regular file",
            Short { .. } => "the file is cut short, or belongs to another model: copy it again",
        }
    }
}

/// The location of the elements of `tensor`, if they are in another file.
///
/// Checks only the reference, not the file: [`check_external_data`] does that.
///
/// # Errors
/// [`ExternalError`] if the reference is incomplete or leaves the model's folder, or if its length is not the tensor's.
pub fn external_location(tensor: &TensorProto) -> Result<Option<External>, ExternalError> {
    parse_external(tensor).map_err(|problem| ExternalError {
        tensor: tensor.name().to_owned(),
        place: String::new(),
        problem,
    })
}

fn parse_external(tensor: &TensorProto) -> Result<Option<External>, ExternalProblem> {
    if !tensor.is_external() {
        return Ok(None);
    }
    let entry = |key: &'static str| {
        let mut entries = tensor.external_data.iter().filter(|e| e.key() == key).map(|e| e.value());
        match (entries.next(), entries.next()) {
            (_, Some(_)) => Err(ExternalProblem::Twice { key }),
            (value, None) => Ok(value),
        }
    };
    let number = |key: &'static str| -> Result<Option<u64>, ExternalProblem> {
        let parse = |v: &str| v.parse().map_err(|_| ExternalProblem::Number { key, value: v.to_owned() });
        entry(key)?.map(parse).transpose()
    };
    let location =
        entry("location")?.filter(|l| !l.is_empty()).ok_or(ExternalProblem::NoLocation)?.to_owned();
    // Both separators on every system: a model that one system refuses is refused by all.
    let drive = location.as_bytes().get(1) == Some(&b':');
    if drive || location.starts_with(['/', '\\']) || Path::new(&location).is_absolute() {
        return Err(ExternalProblem::Absolute { location });
    }
    if location.split(['/', '\\']).any(|part| part == "..") {
        return Err(ExternalProblem::Parent { location });
    }
    let offset = number("offset")?.unwrap_or(0);
    let length = number("length")?;
    if let (Some(length), Some(needed)) = (length, tensor.payload_bytes())
        && length != needed
    {
        return Err(ExternalProblem::Length { length, needed });
    }
    Ok(Some(External { location, offset, length }))
}

/// `Ok` if every tensor whose data is external refers to bytes that exist inside the model's folder.
///
/// A model without a folder has its references checked by spelling only.
///
/// # Errors
/// [`ExternalErrors`] with all refused references.
pub fn check_external_data(model: &Model) -> Result<(), ExternalErrors> {
    let mut errors = Vec::new();
    let mut files = BTreeMap::new();
    visit_tensors(&model.proto, &mut |tensor, place| {
        let checked = parse_external(tensor).and_then(|external| {
            let (Some(external), Some(folder)) = (external, &model.folder) else { return Ok(()) };
            let size = files
                .entry(external.location.clone())
                .or_insert_with(|| size_inside(folder, &external.location))
                .clone()?;
            let bytes = external.length.or(tensor.payload_bytes()).unwrap_or(0);
            let end = u128::from(external.offset) + u128::from(bytes);
            if end > u128::from(size) {
                return Err(ExternalProblem::Short { location: external.location, end, size });
            }
            Ok(())
        });
        if let Err(problem) = checked {
            let tensor = tensor.name().to_owned();
            errors.push(ExternalError { tensor, place: place.to_string(), problem });
        }
    });
    if errors.is_empty() { Ok(()) } else { Err(ExternalErrors { name: model.name.clone(), errors }) }
}

/// The size of the file at `location`, if it is inside `folder` after all links are followed.
fn size_inside(folder: &Path, location: &str) -> Result<u64, ExternalProblem> {
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ExternalProblem::Missing { location: location.to_owned() },
        kind => ExternalProblem::Unreadable { location: location.to_owned(), reason: kind.to_string() },
    };
    let folder = fs::canonicalize(folder).map_err(missing)?;
    let file = fs::canonicalize(folder.join(location)).map_err(missing)?;
    if !file.starts_with(&folder) {
        return Err(ExternalProblem::Link { location: location.to_owned() });
    }
    let metadata = fs::metadata(&file).map_err(missing)?;
    if !metadata.is_file() {
        return Err(ExternalProblem::NotAFile { location: location.to_owned() });
    }
    Ok(metadata.len())
}

/// Whether any tensor's elements are in another file.
///
/// References are relative to the model's folder: if such a model is written to another folder, its data must be copied too.
pub fn has_external_data(model: &ModelProto) -> bool {
    let mut found = false;
    visit_tensors(model, &mut |tensor, _| found |= tensor.is_external());
    found
}

/// Calls `visit` with every tensor of the model and its place, such as `graph.node[2].attribute[0].t`.
///
/// Initializers, sparse ones, attributes, subgraphs, functions and training graphs, in the order of the file.
pub fn visit_tensors<'a>(model: &'a ModelProto, visit: &mut dyn FnMut(&'a TensorProto, fmt::Arguments<'_>)) {
    if let Some(graph) = &model.graph {
        visit_graph(graph, format_args!("graph"), visit);
    }
    for (i, training) in model.training_info.iter().enumerate() {
        if let Some(graph) = &training.initialization {
            visit_graph(graph, format_args!("training_info[{i}].initialization"), visit);
        }
        if let Some(graph) = &training.algorithm {
            visit_graph(graph, format_args!("training_info[{i}].algorithm"), visit);
        }
    }
    for (i, function) in model.functions.iter().enumerate() {
        visit_nodes(&function.node, format_args!("functions[{i}]"), visit);
        for (j, attribute) in function.attribute_proto.iter().enumerate() {
            visit_attribute(attribute, format_args!("functions[{i}].attribute_proto[{j}]"), visit);
        }
    }
}

/// Replaces the location of every tensor whose elements are in another file, if `new` returns a new one.
pub fn set_external_location(model: &mut ModelProto, new: &dyn Fn(&str) -> Option<String>) {
    let mut set = |tensor: &mut TensorProto| {
        if tensor.is_external() {
            for entry in tensor.external_data.iter_mut().filter(|entry| entry.key() == "location") {
                entry.value = new(entry.value()).or_else(|| entry.value.take());
            }
        }
    };
    model.graph.iter_mut().for_each(|graph| change_graph(graph, &mut set));
    for training in &mut model.training_info {
        let graphs = training.initialization.iter_mut().chain(&mut training.algorithm);
        graphs.for_each(|graph| change_graph(graph, &mut set));
    }
    for function in &mut model.functions {
        function.attribute_proto.iter_mut().for_each(|a| change_attribute(a, &mut set));
        function.node.iter_mut().flat_map(|n| &mut n.attribute).for_each(|a| change_attribute(a, &mut set));
    }
}

fn change_graph(graph: &mut GraphProto, change: &mut dyn FnMut(&mut TensorProto)) {
    graph.node.iter_mut().flat_map(|n| &mut n.attribute).for_each(|a| change_attribute(a, change));
    graph.initializer.iter_mut().for_each(&mut *change);
    graph.sparse_initializer.iter_mut().for_each(|sparse| change_sparse(sparse, change));
}

fn change_attribute(attribute: &mut AttributeProto, change: &mut dyn FnMut(&mut TensorProto)) {
    attribute.t.as_deref_mut().into_iter().chain(&mut attribute.tensors).for_each(&mut *change);
    let graphs = attribute.g.as_deref_mut().into_iter().chain(&mut attribute.graphs);
    graphs.for_each(|graph| change_graph(graph, change));
    let sparse = attribute.sparse_tensor.as_deref_mut().into_iter().chain(&mut attribute.sparse_tensors);
    sparse.for_each(|sparse| change_sparse(sparse, change));
}

fn change_sparse(sparse: &mut SparseTensorProto, change: &mut dyn FnMut(&mut TensorProto)) {
    sparse.values.iter_mut().chain(&mut sparse.indices).for_each(change);
}

type Visit<'v, 'a> = &'v mut dyn FnMut(&'a TensorProto, fmt::Arguments<'_>);

fn visit_graph<'a>(graph: &'a GraphProto, place: fmt::Arguments<'_>, visit: Visit<'_, 'a>) {
    visit_nodes(&graph.node, place, visit);
    for (i, tensor) in graph.initializer.iter().enumerate() {
        visit(tensor, format_args!("{place}.initializer[{i}]"));
    }
    for (i, tensor) in graph.sparse_initializer.iter().enumerate() {
        visit_sparse(tensor, format_args!("{place}.sparse_initializer[{i}]"), visit);
    }
}

fn visit_nodes<'a>(nodes: &'a [NodeProto], place: fmt::Arguments<'_>, visit: Visit<'_, 'a>) {
    for (i, node) in nodes.iter().enumerate() {
        for (j, attribute) in node.attribute.iter().enumerate() {
            visit_attribute(attribute, format_args!("{place}.node[{i}].attribute[{j}]"), visit);
        }
    }
}

fn visit_attribute<'a>(attribute: &'a AttributeProto, place: fmt::Arguments<'_>, visit: Visit<'_, 'a>) {
    if let Some(tensor) = &attribute.t {
        visit(tensor, format_args!("{place}.t"));
    }
    if let Some(graph) = &attribute.g {
        visit_graph(graph, format_args!("{place}.g"), visit);
    }
    for (i, tensor) in attribute.tensors.iter().enumerate() {
        visit(tensor, format_args!("{place}.tensors[{i}]"));
    }
    for (i, graph) in attribute.graphs.iter().enumerate() {
        visit_graph(graph, format_args!("{place}.graphs[{i}]"), visit);
    }
    if let Some(tensor) = &attribute.sparse_tensor {
        visit_sparse(tensor, format_args!("{place}.sparse_tensor"), visit);
    }
    for (i, tensor) in attribute.sparse_tensors.iter().enumerate() {
        visit_sparse(tensor, format_args!("{place}.sparse_tensors[{i}]"), visit);
    }
}

fn visit_sparse<'a>(tensor: &'a SparseTensorProto, place: fmt::Arguments<'_>, visit: Visit<'_, 'a>) {
    if let Some(values) = &tensor.values {
        visit(values, format_args!("{place}.values"));
    }
    if let Some(indices) = &tensor.indices {
        visit(indices, format_args!("{place}.indices"));
    }
}
