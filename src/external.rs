//! The data files of a model, when the model is written to another folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use lmsc_onnx::Model;
use lmsc_onnx::file::{external_location, set_external_location, visit_tensors, write_whole};
use lmsc_onnx::proto::ModelProto;

use crate::files::same_file;
use crate::{Code, Error};

/// A file to copy.
pub(crate) struct FileCopy {
    from: PathBuf,
    to: PathBuf,
}

/// Rewrites the model's references, which are relative to `folder`, for the folder of `output`. With `copy_data`
/// the references stay, and the files to copy are returned.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) if the data is outside the output's folder and not copied, or if a copy would
/// replace another file.
pub(crate) fn relocate(
    proto: &mut ModelProto,
    folder: Option<&Path>,
    output: &Path,
    copy_data: bool,
) -> Result<Vec<FileCopy>, Error> {
    let Some(folder) = folder.filter(|_| output != Path::new("-")) else { return Ok(Vec::new()) };
    let mut locations: BTreeMap<String, String> =
        locations(proto).into_iter().map(|location| (location.clone(), location)).collect();
    if locations.is_empty() {
        return Ok(Vec::new());
    }
    let target = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let real = |path: &Path| path.canonicalize().map_err(|e| Error::reading(path, &e));
    let (from, to) = (real(folder)?, real(target)?);
    if from == to {
        return Ok(Vec::new());
    }
    let mut copies = Vec::new();
    for (location, new) in &mut locations {
        let data = real(&folder.join(location.as_str()))?;
        if copy_data {
            copies.extend(copy_of(data, &to, location)?);
            continue;
        }
        let within = data.strip_prefix(&to).ok().and_then(as_location);
        let Some(within) = within else {
            let (output, folder) = (output.display(), folder.display());
            let message = format!(
                "cannot write {output}: the model's weights are in files in {folder}, outside its folder"
            );
            return Err(Error::new(Code::File, message).with_help(format!(
                "add --copy-data, which copies them, or write the result into {folder}"
            )));
        };
        *new = within;
    }
    set_external_location(proto, &|location| locations.get(location).cloned());
    Ok(copies)
}

/// Refuses to overwrite a data file of the model.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) with the file's name.
pub(crate) fn check_not_data(model: &Model, output: &Path) -> Result<(), Error> {
    let Some(folder) = &model.folder else { return Ok(()) };
    if locations(&model.proto).iter().any(|location| same_file(&folder.join(location), output)) {
        let message = format!("cannot write {}: it holds the model's weights", output.display());
        Err(Error::new(Code::File, message).with_help("write to another file"))
    } else {
        Ok(())
    }
}

/// The locations of data in other files, as the model writes them.
fn locations(proto: &ModelProto) -> BTreeSet<String> {
    let mut locations = BTreeSet::new();
    visit_tensors(proto, &mut |tensor, _| {
        if let Ok(Some(external)) = external_location(tensor) {
            locations.insert(external.location);
        }
    });
    locations
}

/// The copy of a file to a location in a folder; `None` if the file is already there.
fn copy_of(from: PathBuf, folder: &Path, location: &str) -> Result<Option<FileCopy>, Error> {
    let to = folder.join(location);
    let refuse = |why: &str| {
        let message = format!("--copy-data cannot write {}: {why}", to.display());
        Err(Error::new(Code::File, message).with_help("write the result to another folder"))
    };
    // Links in the folder may point outside it.
    let existing = to.ancestors().find_map(|path| path.canonicalize().ok());
    if !existing.is_some_and(|path| path.starts_with(folder)) {
        return refuse("a link leads to it out of the folder of the result");
    }
    match fs::metadata(&to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(FileCopy { from, to })),
        Err(error) => Err(Error::reading(&to, &error)),
        Ok(_) if same_file(&from, &to) => Ok(None),
        Ok(_) => match alike(&from, &to) {
            Ok(true) => Ok(None),
            Ok(false) => refuse("a file with other bytes is there"),
            Err(error) => Err(Error::reading(&to, &error)),
        },
    }
}

/// Whether two files hold the same bytes.
fn alike(a: &Path, b: &Path) -> io::Result<bool> {
    if fs::metadata(a)?.len() != fs::metadata(b)?.len() {
        return Ok(false);
    }
    let mut files = [fs::File::open(a)?, fs::File::open(b)?];
    let mut buffers = [vec![0; 1 << 20], vec![0; 1 << 20]];
    loop {
        let [a, b] = &mut files;
        let [left, right] = &mut buffers;
        let read = a.read(left)?;
        if read == 0 {
            return Ok(true);
        }
        b.read_exact(&mut right[..read])?;
        if left[..read] != right[..read] {
            return Ok(false);
        }
    }
}

/// The path in the form of ONNX files, with `/` between its parts.
fn as_location(path: &Path) -> Option<String> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().map(str::to_owned),
        _ => None,
    };
    Some(path.components().map(part).collect::<Option<Vec<_>>>()?.join("/"))
}

impl FileCopy {
    /// Copies the file, completely or not at all.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) with the file's name.
    pub(crate) fn write(&self) -> Result<(), Error> {
        if let Some(folder) = self.to.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::writing(folder, &e))?;
        }
        let mut from = fs::File::open(&self.from).map_err(|e| Error::reading(&self.from, &e))?;
        write_whole(&self.to, |file| {
            io::copy(&mut from, file)?;
            file.flush()
        })
        .map_err(|e| Error::writing(&self.to, &e))
    }
}
