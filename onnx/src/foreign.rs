//! Identifies a file that is not an ONNX model by its first bytes.

/// A kind of file that is used in place of a model by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// A noun phrase.
    pub what: &'static str,
    /// The advice.
    pub help: &'static str,
}

const GIVE: &str = "give the .onnx file that the exporter wrote";
const EXPORT: &str = "export the model to ONNX, for example with torch.onnx.export, and give that file";
const UNPACK: &str = "unpack it first";

/// The offset and the bytes that identify a kind of file, its name, and the advice.
#[rustfmt::skip]
const MAGIC: &[(usize, &[u8], &str, &str)] = &[
    (0, b"version https://git-lfs", "a pointer of Git LFS in place of the file", "fetch the file with `git lfs pull`"),
    (0, b"PK\x03\x04", "a ZIP archive, such as a PyTorch checkpoint (.pt)", EXPORT),
    (8, b"{\"", "weights in the safetensors format", EXPORT),
    (0, b"\x80\x02", "a Python pickle, such as an old PyTorch checkpoint", EXPORT),
    (0, b"\x80\x04", "a Python pickle", EXPORT),
    (0, b"\x80\x05", "a Python pickle", EXPORT),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5 data, such as a Keras model (.h5)", "export the model to ONNX, for example with tf2onnx"),
    (4, b"TFL3", "a TensorFlow Lite model", "give the model that it was made from, exported to ONNX"),
    (4, b"ORTM", "a model in ONNX Runtime's own format (.ort)", "give the .onnx file that it was made from"),
    (0, b"GGUF", "a GGUF model", "give the model that it was made from, exported to ONNX"),
    (0, b"ML\xefR", "MLIR bytecode", "write it as text, in JAX by str(exported.mlir_module()), and give it a name that ends in .mlir"),
    (0, b"\x93NUMPY", "a NumPy array", GIVE),
    (0, b"\x1f\x8b", "data compressed by gzip", UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "data compressed by zstd", UNPACK),
    (0, b"\xfd7zXZ\0", "data compressed by xz", UNPACK),
    (0, b"BZh", "data compressed by bzip2", UNPACK),
    (0, b"\x89PNG", "a PNG picture", GIVE),
    (0, b"\xff\xd8\xff", "a JPEG picture", GIVE),
    (0, b"GIF8", "a GIF picture", GIVE),
    (0, b"%PDF", "a PDF document", GIVE),
    (0, b"\x7fELF", "a program (ELF)", GIVE),
    (0, b"MZ", "a program (Windows)", GIVE),
    (0, b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (0, b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (0, &[0; 32], "a file of zeros, as a copy that broke off leaves it", "copy the file again"),
];

/// The kind of file, if the bytes identify one.
pub fn looks_like(bytes: &[u8]) -> Option<Foreign> {
    let known = MAGIC.iter().find(|(at, magic, ..)| bytes.get(*at..).is_some_and(|b| b.starts_with(magic)));
    known.map(|&(_, _, what, help)| Foreign { what, help }).or_else(|| text(bytes))
}

fn text(bytes: &[u8]) -> Option<Foreign> {
    let begin = &bytes[..bytes.len().min(256)];
    let begin = match std::str::from_utf8(begin) {
        Ok(begin) => begin,
        // A character may be cut off.
        Err(e) if begin.len() - e.valid_up_to() < 4 => std::str::from_utf8(&begin[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    if begin.is_empty() || begin.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let start = begin.trim_start().to_ascii_lowercase();
    let (what, help) = match () {
        () if start.starts_with("<!doctype html") || start.starts_with("<html") => {
            ("a web page", "download the file itself, not the page about it")
        }
        () if start.starts_with(['{', '[']) => ("JSON", GIVE),
        () => ("text", "give a text in lmsc's own form a name that ends in .lms"),
    };
    Some(Foreign { what, help })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let what = |bytes: &[u8]| looks_like(bytes).map(|f| f.what);
        assert_eq!(what(b"\x89PNG\r\n\x1a\n"), Some("a PNG picture"));
        assert_eq!(what(b"\x20\0\0\0\0\0\0\0{\"__metadata__\""), Some("weights in the safetensors format"));
        assert_eq!(what(b"\n <!DOCTYPE HTML><title>"), Some("a web page"));
        assert_eq!(what(b"{\"a\": 1}"), Some("JSON"));
        assert_eq!(what(b"g (float[4] x) => () {}"), Some("text"));
        assert_eq!(what("ä".repeat(200).as_bytes()), Some("text"));
        assert_eq!(what("aä".repeat(200).as_bytes()), Some("text"));
        assert_eq!((what(b""), what(b"\x08\x08\x12\x07pytorch"), what(&[0; 31])), (None, None, None));
    }
}
