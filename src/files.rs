//! Files that are written: whole or not at all, and never in place of one that is read.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::job::Input;
use crate::{Code, Error};

/// Writes a file through a temporary file beside it, so that it is complete or absent.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) with the path.
pub fn write_atomically(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    lmsc_onnx::file::write_whole(path, |file| {
        let mut writer = BufWriter::new(file);
        content(&mut writer)?;
        writer.flush()
    })
    .map_err(|e| Error::writing(path, &e))
}

/// Whether both paths refer to one file, also through links.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    if matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b) {
        return true;
    }
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) {
        use std::os::unix::fs::MetadataExt;
        return a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    false
}

/// The error of a file that would be replaced though it is read.
pub(crate) fn replaces(written: &Path, read: &Path, can_force: bool) -> Error {
    let message = format!("writing {} would replace {}, which is read", written.display(), read.display());
    let help = if can_force {
        "write to another file, or add --force to replace it"
    } else {
        "write to another file"
    };
    Error::new(Code::File, message).with_help(help)
}

/// Refuses to overwrite a file that is an input, for outputs that no argument of a call names.
pub(crate) fn check_not_read(output: &Path, input: &Input) -> Result<(), Error> {
    let mut read = [Some(&*input.path), input.binding.optimizer.as_deref()].into_iter().flatten();
    match read.find(|path| output != Path::new("-") && same_file(path, output)) {
        None => Ok(()),
        Some(path) => Err(replaces(output, path, false)),
    }
}

/// The endings of a report's name: an HTML page, or the data of the page as JSON.
pub(crate) const PAGES: [&str; 2] = ["html", "json"];

/// Refuses a report that is neither a page nor JSON, or that cannot be written, before the long work starts.
pub(crate) fn check_report(report: &Path, known: &[&str]) -> Result<(), Error> {
    let extension = report.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !known.contains(&extension) {
        let message = format!("{}: its name does not say what the report is to be", report.display());
        let known: Vec<String> = known.iter().map(|extension| format!(".{extension}")).collect();
        return Err(Error::new(Code::Option, message).with_help(format!("end it in {}", known.join(" or "))));
    }
    check_target(report)
}

/// Refuses a path that cannot be written, before the long work starts.
pub(crate) fn check_target(path: &Path) -> Result<(), Error> {
    if path == Path::new("-") {
        Ok(())
    } else {
        lmsc_onnx::file::check_target(path).map_err(|e| Error::writing(path, &e))
    }
}

/// Whether the report at this path is an HTML page.
pub(crate) fn is_page(report: &Path) -> bool {
    report.extension().is_some_and(|extension| extension == "html")
}
