//! Locates the libraries of CUDA, and their functions.
//!
//! A library that the process has loaded under its name is taken, such as the one that PyTorch uses: one process must not mix two
//! copies, since parts of them are found by name. Otherwise it is searched in the folders that the user names, in the loader's own
//! places, in the usual folders and among Python's packages. Its functions are looked up in the handle that was opened, never by
//! name in the process. A library stays open until the process ends.

use std::ffi::{CString, OsStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// The variable that names folders with libraries, separated as in `PATH`.
const VARIABLE: &str = "LMSC_CUDA_PATH";

/// Folders in which a driver or a toolkit puts libraries.
const USUAL: &[&str] = &[
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/compat",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/lib64-nvidia",
    "/opt/cuda/lib64",
];

/// A library that was not found, and the folders that were searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not there: neither the loader finds it, nor is it in {}", .names.join(" or "), folders(.searched))]
pub struct Missing {
    /// Its possible names.
    pub names: Vec<String>,
    /// The folders that were searched.
    pub searched: Vec<PathBuf>,
}

fn folders(list: &[PathBuf]) -> String {
    let list: Vec<String> = list.iter().map(|path| path.display().to_string()).collect();
    match &list[..] {
        [] => format!("a folder that {VARIABLE} names, or one of the usual ones"),
        list => list.join(", "),
    }
}

/// The entries of the folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(list) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<PathBuf> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
    all.sort_unstable();
    all
}

fn named_like(path: &Path, begins: &str) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(begins.as_bytes()))
}

/// The installations to which the first `python3` in `PATH` belongs: the one of its own path, such as a virtual environment, and
/// the one of the file behind links.
fn prefixes_of_python3() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    let Some(python) = all.find(|python| python.is_file()) else { return Vec::new() };
    let behind_links = python.canonicalize().ok();
    let both = [Some(python), behind_links].into_iter().flatten();
    // A program is in the folder `bin` of its installation.
    both.filter_map(|program| Some(program.parent()?.parent()?.to_owned())).collect()
}

/// The library folders among the packages of the Pythons that the environment names, of the first `python3` in `PATH`, and of the
/// user's and the system's.
fn python() -> Vec<PathBuf> {
    let named = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let system = ["/usr", "/usr/local"].map(PathBuf::from);
    let mut found = Vec::new();
    for root in named.chain(prefixes_of_python3()).chain(home).chain(system) {
        let libraries = ["lib", "lib64"].map(|folder| entries(&root.join(folder)));
        for version in libraries.concat().into_iter().filter(|path| named_like(path, "python3")) {
            for packages in ["site-packages", "dist-packages"] {
                let vendor = version.join(packages).join("nvidia");
                found.extend(entries(&vendor).into_iter().map(|package| package.join("lib")));
            }
        }
    }
    found
}

/// The folders that exist, each once.
fn existing(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        if !all.contains(&folder) {
            all.push(folder);
        }
    }
    all
}

/// The folders that are searched: those that the user names before the loader's places, the usual ones after them.
fn folders_searched() -> [Vec<PathBuf>; 2] {
    let given = std::env::var_os(VARIABLE).unwrap_or_default();
    let given = std::env::split_paths(&given).filter(|path| !path.as_os_str().is_empty());
    let usual = USUAL.iter().map(PathBuf::from).chain(python());
    [existing(given), existing(usual)]
}

/// A library that stays open for the rest of the process.
pub(super) struct Opened(ManuallyDrop<Library>);

impl Opened {
    fn open(path: &OsStr) -> Option<Opened> {
        Opened::open_with(path, 0)
    }

    fn open_with(path: &OsStr, flags: c_int) -> Option<Opened> {
        // SAFETY: opening runs the initializers of a library that is the vendor's, or is in a folder that the user named.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | flags) };
        library.ok().map(|library| Opened(ManuallyDrop::new(library)))
    }

    /// The library that the process has loaded under this name.
    fn loaded(name: &str) -> Option<Opened> {
        Opened::open_with(OsStr::new(name), libc::RTLD_NOLOAD)
    }

    /// The first library found under one of these names: a loaded one, if there is any.
    ///
    /// # Errors
    /// [`Missing`], with the folders that were searched.
    pub(super) fn find(names: &[&str]) -> Result<Opened, Missing> {
        if let Some(loaded) = names.iter().find_map(|name| Opened::loaded(name)) {
            return Ok(loaded);
        }
        let [given, usual] = folders_searched();
        let by_loader = || names.iter().find_map(|name| Opened::open(OsStr::new(name)));
        let opened = Opened::in_folders(names, &given).or_else(by_loader);
        opened.or_else(|| Opened::in_folders(names, &usual)).ok_or_else(|| Missing {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            searched: [given, usual].concat(),
        })
    }

    fn in_folders(names: &[&str], folders: &[PathBuf]) -> Option<Opened> {
        let all = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        all.filter(|path| path.exists()).find_map(|path| {
            if named_like(&path, "libnvrtc") {
                // NVRTC opens its builtins by their name when it compiles: they are found if they are open.
                let folder = path.parent().unwrap_or(Path::new("."));
                let parts = entries(folder);
                for part in parts.iter().filter(|path| named_like(path, "libnvrtc-builtins.so")) {
                    _ = Opened::open(part.as_os_str());
                }
            }
            // cuDNN opens its parts from the folder of its own path, so a link is followed.
            Opened::open(path.canonicalize().unwrap_or(path).as_os_str())
        })
    }

    /// The function of this name.
    ///
    /// # Errors
    /// The name, if the library has no such function.
    ///
    /// # Safety
    /// `F` is the type of a pointer to the function.
    pub(super) unsafe fn function<F: Copy>(&self, name: &'static str) -> Result<F, &'static str> {
        let text = CString::new(name).map_err(|_| name)?;
        // SAFETY: as the caller promises. The library is never closed, so the pointer stays valid.
        unsafe { self.0.get::<F>(text.as_bytes_with_nul()) }.map(|symbol| *symbol).map_err(|_| name)
    }

    /// The file that has the function of this name.
    pub(super) fn path_of(&self, name: &'static str) -> PathBuf {
        // SAFETY: an address is of this type, and it is not called.
        let Ok(address) = (unsafe { self.function::<*const c_void>(name) }) else { return PathBuf::new() };
        let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: the structure may be written, and all its zeros are valid.
        let found = unsafe {
            _ = libc::dladdr(address, found.as_mut_ptr());
            found.assume_init()
        };
        if found.dli_fname.is_null() {
            return PathBuf::new();
        }
        // SAFETY: the loader's own text, which ends with null and stays while the library is open.
        let name = unsafe { std::ffi::CStr::from_ptr(found.dli_fname) };
        let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
        path.canonicalize().unwrap_or(path)
    }
}

/// Functions of an open library, with the names and the types of its bindings: the compiler compares the types.
///
/// `of` looks all of them up, and returns the name of the first that the library lacks.
macro_rules! functions {
    ($api:ident: $($name:ident($($arg:ident: $of:ty),*) -> $result:ty;)*) => {
        #[allow(non_snake_case, reason = "these are the vendor's names")]
        pub(super) struct $api {
            // SAFETY: a type; the calling code keeps the contract of the vendor's description.
            $($name: unsafe extern "C" fn($($of),*) -> $result,)*
        }

        #[allow(non_snake_case, clippy::too_many_arguments, reason = "these are the vendor's functions")]
        impl $api {
            pub(super) fn of(library: &$crate::library::Opened) -> Result<$api, &'static str> {
                $(const _: unsafe fn($($of),*) -> $result = sys::$name;)*
                // SAFETY: the bindings have a function of this name with this type, as the compiler has seen.
                unsafe { Ok($api { $($name: library.function(stringify!($name))?,)* }) }
            }

            $(pub(super) unsafe fn $name(&self, $($arg: $of),*) -> $result {
                // SAFETY: as the caller promises.
                unsafe { (self.$name)($($arg),*) }
            })*
        }

        impl std::fmt::Debug for $api {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($api))
            }
        }
    };
}
pub(super) use functions;

/// A library that a program uses on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFacts {
    /// The vendor's name.
    pub name: &'static str,
    /// Its version, such as `13.1.0`.
    pub version: String,
    /// The file that has its functions.
    pub path: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_the_process_has_loaded_is_taken() {
        let loaded = Opened::loaded("libc.so.6").expect("this process has a C library");
        let found = Opened::find(&["libc.so.6"]).unwrap();
        assert_eq!(loaded.path_of("malloc"), found.path_of("malloc"));
        // It is there, but nothing has loaded it.
        assert!(Opened::loaded("libresolv.so.2").is_none());
    }

    #[test]
    fn a_missing_library_is_named_with_the_places_searched() {
        let missing = Opened::find(&["liblmsc-is-no-library.so.1"]).err().expect("there is no such library");
        let message = missing.to_string();
        assert!(message.starts_with("liblmsc-is-no-library.so.1 is not there"), "{message}");
        assert!(
            missing.searched.iter().all(|folder| message.contains(folder.to_str().unwrap())),
            "{message}"
        );
        let none = Missing { searched: Vec::new(), ..missing }.to_string();
        assert!(none.contains("LMSC_CUDA_PATH"), "{none}");
    }
}
