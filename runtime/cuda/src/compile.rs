//! Compiles kernels for a device with NVRTC, once: the images are cached on disk.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr::null;
use std::sync::Arc;

use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};

use super::library::{LibraryFacts, Missing, Opened, functions};
use super::{KernelSource, PRELUDE, SOURCES};

/// Possible names of NVRTC's library, the newest first.
const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];

functions! { Nvrtc:
    nvrtcCompileProgram(program: nvrtcProgram, count: c_int, options: *const *const c_char) -> nvrtcResult;
    nvrtcCreateProgram(program: *mut nvrtcProgram, text: *const c_char, name: *const c_char, count: c_int,
        headers: *const *const c_char, names: *const *const c_char) -> nvrtcResult;
    nvrtcDestroyProgram(program: *mut nvrtcProgram) -> nvrtcResult;
    nvrtcGetCUBIN(program: nvrtcProgram, image: *mut c_char) -> nvrtcResult;
    nvrtcGetCUBINSize(program: nvrtcProgram, bytes: *mut usize) -> nvrtcResult;
    nvrtcGetErrorString(result: nvrtcResult) -> *const c_char;
    nvrtcGetProgramLog(program: nvrtcProgram, log: *mut c_char) -> nvrtcResult;
    nvrtcGetProgramLogSize(program: nvrtcProgram, bytes: *mut usize) -> nvrtcResult;
    nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> nvrtcResult;
}

/// Disables the contraction of a product and a sum: the value of an expression then does not depend on its context.
const NOT_CONTRACTED: &str = "--fmad=false";

/// Why a source was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// There is no NVRTC.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// It lacks a function.
    #[error("the NVRTC in {} has no {lacks}; install one of CUDA 12 or later", .path.display())]
    Lacks {
        /// The library.
        path: PathBuf,
        /// The function's name.
        lacks: &'static str,
    },
    /// It rejects the source.
    #[error("NVRTC does not compile `{name}.cu` for {architecture}: {log}")]
    Refused {
        /// The source's name.
        name: String,
        /// The architecture that it was compiled for.
        architecture: String,
        /// NVRTC's log.
        log: String,
    },
}

/// NVRTC, and the folder in which images are cached.
#[derive(Clone, Debug)]
pub struct KernelCompiler {
    api: Arc<Nvrtc>,
    facts: LibraryFacts,
    cache: Option<PathBuf>,
}

/// A hash of the bytes; other bytes have the same one only by chance.
pub(super) fn fingerprint(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for part in parts {
        for &byte in (part.len() as u64).to_le_bytes().iter().chain(*part) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// The folder of the user's caches.
fn user_cache() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    Some(named.or_else(home)?.join("lmsc").join("kernels"))
}

impl KernelCompiler {
    /// NVRTC, with the user's cache folder.
    ///
    /// # Errors
    /// [`CompileError::Missing`] if it is not found; [`CompileError::Lacks`] if it is too old.
    pub fn new() -> Result<KernelCompiler, CompileError> {
        let library = Opened::find(&NAMES)?;
        let path = library.path_of("nvrtcVersion");
        let api = Nvrtc::of(&library).map_err(|lacks| CompileError::Lacks { path: path.clone(), lacks })?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both numbers may be written.
        _ = unsafe { api.nvrtcVersion(&mut major, &mut minor) };
        let facts = LibraryFacts { name: "NVRTC", version: format!("{major}.{minor}"), path };
        Ok(KernelCompiler { api: Arc::new(api), facts, cache: user_cache() })
    }

    /// Its version and path.
    pub fn facts(&self) -> &LibraryFacts {
        &self.facts
    }

    /// The same with another cache folder, or none.
    pub fn with_cache(self, cache: Option<PathBuf>) -> KernelCompiler {
        KernelCompiler { cache, ..self }
    }

    /// The image for a device of this architecture (`sm_90`): the source's common kernels, or its rare ones.
    ///
    /// # Errors
    /// [`CompileError::Refused`], with NVRTC's log.
    pub fn image(
        &self,
        source: &KernelSource,
        rare: bool,
        architecture: &str,
    ) -> Result<Vec<u8>, CompileError> {
        let text = format!("{PRELUDE}\n#line 1 \"{}.cu\"\n{}", source.name, source.text);
        let part = if rare { "-rare" } else { "" };
        let mut options = Vec::new();
        options.extend(rare.then_some("--define-macro=RARE"));
        options.extend((!source.contracts).then_some(NOT_CONTRACTED));
        self.image_of(&text, source.name, part, &options, architecture)
    }

    /// The image for such a device of the fused kernels that [`fused`](super::fused) has written.
    ///
    /// # Errors
    /// [`CompileError::Refused`], with NVRTC's log.
    pub fn fused_image(&self, kernels: &str, architecture: &str) -> Result<Vec<u8>, CompileError> {
        let parts = SOURCES.iter().filter(|source| !source.contracts).map(|source| source.text);
        let text = [PRELUDE].into_iter().chain(parts).chain([kernels]).collect::<Vec<_>>().join("\n");
        let options = ["--define-macro=EVERYTHING", "--define-macro=FUSED", NOT_CONTRACTED];
        self.image_of(&text, "fused", "", &options, architecture)
    }

    fn image_of(
        &self,
        text: &str,
        name: &str,
        part: &str,
        more: &[&str],
        architecture: &str,
    ) -> Result<Vec<u8>, CompileError> {
        let mut options = vec![format!("--gpu-architecture={architecture}"), "--std=c++17".to_owned()];
        options.extend(more.iter().map(|&option| option.to_owned()));
        let key = format!("{} {}", options.join(" "), self.facts.version);
        let key = fingerprint(&[key.as_bytes(), text.as_bytes()]);
        let file = format!("{name}{part}-{architecture}-{key:016x}.cubin");
        let file = self.cache.as_ref().map(|folder| folder.join(file));
        if let Some(image) = file.as_deref().and_then(kept) {
            return Ok(image);
        }
        let image = compile(&self.api, text, name, &options).map_err(|log| CompileError::Refused {
            name: name.to_owned(),
            architecture: architecture.to_owned(),
            log,
        })?;
        // A cache that cannot be written only costs another compilation.
        if let Some(file) = file {
            _ = keep(&file, &image);
        }
        Ok(image)
    }
}

/// The image in the file, if it is complete.
fn kept(file: &Path) -> Option<Vec<u8>> {
    let bytes = std::fs::read(file).ok()?;
    let (sum, image) = bytes.split_first_chunk()?;
    (u64::from_le_bytes(*sum) == fingerprint(&[image])).then(|| image.to_vec())
}

fn keep(file: &Path, image: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    let room = file.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&room, [&fingerprint(&[image]).to_le_bytes()[..], image].concat())?;
    std::fs::rename(room, file)
}

/// A program of NVRTC, destroyed on drop.
struct Program<'a>(&'a Nvrtc, nvrtcProgram);

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the program exists, and nothing uses it any more.
        _ = unsafe { self.0.nvrtcDestroyProgram(&mut self.1) };
    }
}

/// Calls a function that returns a size, and then one that writes that many bytes.
fn written(
    size: impl FnOnce(&mut usize) -> nvrtcResult,
    write: impl FnOnce(*mut c_char) -> nvrtcResult,
) -> Option<Vec<u8>> {
    let mut bytes = 0;
    if size(&mut bytes) != nvrtcResult::NVRTC_SUCCESS {
        return None;
    }
    let mut text = vec![0u8; bytes];
    (write(text.as_mut_ptr().cast()) == nvrtcResult::NVRTC_SUCCESS).then_some(text)
}

/// The image of a source, or why there is none.
fn compile(api: &Nvrtc, text: &str, name: &str, options: &[String]) -> Result<Vec<u8>, String> {
    let owned = |text: &str| CString::new(text).map_err(|_| "it holds a null".to_owned());
    let (text, name) = (owned(text)?, owned(&format!("{name}.cu"))?);
    let options = options.iter().map(|option| owned(option)).collect::<Result<Vec<_>, _>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let mut program = Program(api, std::ptr::null_mut());
    // SAFETY: text and name end with null and live longer than the call; there are no headers.
    let made =
        unsafe { api.nvrtcCreateProgram(&mut program.1, text.as_ptr(), name.as_ptr(), 0, null(), null()) };
    let said = |result: nvrtcResult| {
        // SAFETY: NVRTC's names of results are constants that end with null.
        unsafe { CStr::from_ptr(api.nvrtcGetErrorString(result)) }.to_string_lossy().into_owned()
    };
    if made != nvrtcResult::NVRTC_SUCCESS {
        return Err(said(made));
    }
    // SAFETY: the options end with null and live longer than the call, and their number is right.
    let compiled = unsafe { api.nvrtcCompileProgram(program.1, pointers.len() as i32, pointers.as_ptr()) };
    if compiled != nvrtcResult::NVRTC_SUCCESS {
        let log = written(
            // SAFETY: the program exists, and the number may be written.
            |size| unsafe { api.nvrtcGetProgramLogSize(program.1, size) },
            // SAFETY: the buffer has the size that it returned.
            |room| unsafe { api.nvrtcGetProgramLog(program.1, room) },
        );
        let log = log.map(|log| String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned());
        return Err(format!("{}\n{}", said(compiled), log.unwrap_or_default()));
    }
    let image = written(
        // SAFETY: the program is compiled, and the number may be written.
        |size| unsafe { api.nvrtcGetCUBINSize(program.1, size) },
        // SAFETY: the buffer has the size that it returned.
        |room| unsafe { api.nvrtcGetCUBIN(program.1, room) },
    );
    image.ok_or_else(|| "there is no image".to_owned())
}
