//! Files on disk: external data stays inside the model's folder, and saving is all or nothing.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use lmsc_ir::Advice;
use lmsc_onnx::file::{
    External, FileError, Model, check_external_data, encode_to, external_location, has_external_data, save,
    visit_tensors,
};
use lmsc_onnx::proto::*;

/// A `[4]` float tensor whose 16 bytes are elsewhere.
fn external(entries: &[(&str, &str)]) -> TensorProto {
    TensorProto {
        name: Some("w".into()),
        dims: vec![4],
        data_type: Some(DataType::Float as i32),
        data_location: Some(DataLocation::External as i32),
        external_data: entries
            .iter()
            .map(|(k, v)| StringStringEntryProto { key: Some((*k).into()), value: Some((*v).into()) })
            .collect(),
        ..TensorProto::default()
    }
}

fn model_of(tensor: TensorProto) -> ModelProto {
    let graph = GraphProto { initializer: vec![TensorProto::default(), tensor], ..GraphProto::default() };
    ModelProto { graph: Some(graph), ..ModelProto::default() }
}

/// The messages about a model in `folder` with such a tensor; empty if there are none.
fn said(folder: &Path, entries: &[(&str, &str)]) -> String {
    let path = folder.join("m.onnx");
    save(&model_of(external(entries)), &path).unwrap();
    let model = Model::open(&path).unwrap();
    match check_external_data(&model) {
        Ok(()) => String::new(),
        Err(errors) => {
            let text = errors.message().to_string();
            let (head, line) = text.split_once('\n').unwrap();
            assert_eq!(head, format!("the external data of {} cannot be used:", path.display()));
            line.strip_prefix("  tensor `w` (graph.initializer[1]): ").unwrap().to_owned()
        }
    }
}

#[test]
fn references_inside_the_folder_pass() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("sub")).unwrap();
    fs::write(root.path().join("w.bin"), [0; 32]).unwrap();
    fs::write(root.path().join("sub/w.bin"), [0; 16]).unwrap();
    fs::write(root.path().join("..w.bin"), [0; 16]).unwrap();
    for entries in [
        &[("location", "w.bin")][..],
        &[("location", "./w.bin"), ("offset", "16")],
        &[("location", "w.bin"), ("offset", "16"), ("length", "16"), ("checksum", "x"), ("prepacked_0", "y")],
        &[("location", "sub/w.bin"), ("length", "16")],
        &[("location", "..w.bin")],
    ] {
        assert_eq!(said(root.path(), entries), "", "{entries:?}");
    }
    let found = external_location(&external(&[("location", "w.bin"), ("offset", "16")])).unwrap();
    assert_eq!(found, Some(External { location: "w.bin".into(), offset: 16, length: None }));
    assert_eq!(external_location(&TensorProto::default()).unwrap(), None);
}

#[test]
fn references_that_cannot_be_followed_are_refused_with_a_remedy() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("sub")).unwrap();
    fs::write(root.path().join("w.bin"), [0; 20]).unwrap();
    let absolute = root.path().join("w.bin").display().to_string();
    for (entries, expected) in [
        (&[][..], "its data is in another file, but no `location` says which\nhelp: save the model again"),
        (
            &[("location", "")],
            "its data is in another file, but no `location` says which\nhelp: save the model again",
        ),
        (&[("location", &*absolute)], "its data is in `/"),
        (&[("location", "C:\\w.bin")], "its data is in `C:\\w.bin`, an absolute path\nhelp: put the file"),
        (&[("location", "\\\\host\\w.bin")], "its data is in `\\\\host\\w.bin`, an absolute path"),
        (
            &[("location", "../w.bin")],
            "its data is in `../w.bin`, and `..` may leave the model's folder\nhelp: put the",
        ),
        (&[("location", "sub/../w.bin")], "its data is in `sub/../w.bin`, and `..` may leave"),
        (&[("location", "sub\\..\\w.bin")], "its data is in `sub\\..\\w.bin`, and `..` may leave"),
        (
            &[("location", "none.bin")],
            "its data is in `none.bin`, which does not exist\nhelp: external data is part",
        ),
        (&[("location", "sub")], "its data is in `sub`, which is no regular file"),
        (&[("location", "w.bin"), ("location", "w.bin")], "its `location` is given twice"),
        (&[("location", "w.bin"), ("offset", "-1")], "its `offset` is `-1`, which is not a number of bytes"),
        (
            &[("location", "w.bin"), ("length", "1e3")],
            "its `length` is `1e3`, which is not a number of bytes",
        ),
        (
            &[("location", "w.bin"), ("length", "20")],
            "its data is 20 bytes long, but its type and shape need 16",
        ),
        (
            &[("location", "w.bin"), ("offset", "8")],
            "its data ends at byte 24 of `w.bin`, which has 20 bytes\nhelp: the file is cut short",
        ),
        (
            &[("location", "w.bin"), ("offset", "18446744073709551615")],
            "its data ends at byte 18446744073709551631 of `w.bin`, which has 20 bytes",
        ),
    ] {
        let found = said(root.path(), entries);
        assert!(found.starts_with(expected), "{entries:?}: {found}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_folder_is_refused_and_one_inside_is_not() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("model");
    fs::create_dir(&folder).unwrap();
    fs::write(root.path().join("out.bin"), [0; 16]).unwrap();
    fs::write(folder.join("in.bin"), [0; 16]).unwrap();
    symlink("../out.bin", folder.join("leaves.bin")).unwrap();
    symlink("..", folder.join("up")).unwrap();
    symlink("in.bin", folder.join("stays.bin")).unwrap();
    for location in ["leaves.bin", "up/out.bin"] {
        let found = said(&folder, &[("location", location)]);
        assert_eq!(
            found,
            format!(
                "its data is in `{location}`, a link out of the model's folder\nhelp: put the file itself into the \
                 model's folder, and name it relative to that"
            )
        );
    }
    assert_eq!(said(&folder, &[("location", "stays.bin")]), "");
}

#[test]
fn without_a_folder_references_are_checked_by_spelling() {
    let with = |location| Model {
        proto: model_of(external(&[("location", location)])),
        name: "standard input".into(),
        folder: None,
        mapped: Vec::new(),
    };
    check_external_data(&with("w.bin")).unwrap();
    assert_eq!(check_external_data(&with("../w.bin")).unwrap_err().errors.len(), 1);
}

#[test]
fn many_refused_references_are_counted() {
    let graph = GraphProto { initializer: vec![external(&[]); 20], ..GraphProto::default() };
    let proto = ModelProto { graph: Some(graph), ..ModelProto::default() };
    let errors = check_external_data(&Model { proto, name: "m".into(), folder: None, mapped: Vec::new() })
        .unwrap_err();
    assert_eq!(errors.errors.len(), 20);
    let one = "the external data of m cannot be used:\n  tensor `w` (graph.initializer[0]) and 19 more tensors: its data";
    assert!(errors.message().to_string().starts_with(one), "{errors}");
    // Different problems are told apart, as long as there are few.
    let at = |i: u32| external(&[("location", &*format!("../{i}"))]);
    let graph = GraphProto { initializer: (0..20).map(at).collect(), ..GraphProto::default() };
    let proto = ModelProto { graph: Some(graph), ..ModelProto::default() };
    let errors = check_external_data(&Model { proto, name: "m".into(), folder: None, mapped: Vec::new() })
        .unwrap_err();
    assert_eq!(errors.message().to_string().lines().count(), 1 + 8 + 1 + 1);
    assert!(errors.message().to_string().contains("\n  and 12 more tensors\nhelp: "), "{errors}");
}

#[test]
fn references_are_written_back_as_they_were() {
    let entries = [("location", "w.bin"), ("offset", "0"), ("checksum", "abc"), ("vendor", "")];
    let proto = model_of(external(&entries));
    let mut bytes = Vec::new();
    encode_to(&proto, &mut bytes).unwrap();
    assert_eq!(Model::from_bytes(bytes.into(), "m").unwrap().proto, proto);
    assert!(has_external_data(&proto));
    assert!(!has_external_data(&ModelProto::default()));
}

#[test]
fn tensors_are_found_wherever_they_are() {
    let tensor = || TensorProto { name: Some("t".into()), ..TensorProto::default() };
    let sparse = || SparseTensorProto { values: Some(tensor()), indices: Some(tensor()), dims: vec![] };
    let leaf = || GraphProto {
        initializer: vec![tensor()],
        sparse_initializer: vec![sparse()],
        ..GraphProto::default()
    };
    let attribute = || AttributeProto {
        t: Some(Box::new(tensor())),
        g: Some(Box::new(leaf())),
        tensors: vec![tensor()],
        graphs: vec![leaf()],
        sparse_tensor: Some(Box::new(sparse())),
        sparse_tensors: vec![sparse()],
        ..AttributeProto::default()
    };
    let node = || NodeProto { attribute: vec![attribute()], ..NodeProto::default() };
    let graph = || GraphProto { node: vec![node()], ..leaf() };
    let model = ModelProto {
        graph: Some(graph()),
        training_info: vec![TrainingInfoProto {
            initialization: Some(graph()),
            algorithm: Some(leaf()),
            ..TrainingInfoProto::default()
        }],
        functions: vec![FunctionProto {
            node: vec![node()],
            attribute_proto: vec![attribute()],
            ..FunctionProto::default()
        }],
        ..ModelProto::default()
    };
    let mut places = Vec::new();
    visit_tensors(&model, &mut |_, place| places.push(place.to_string()));
    let total = format!("{model:?}").matches("TensorProto {").count()
        - format!("{model:?}").matches("SparseTensorProto {").count();
    assert_eq!(places.len(), total);
    let distinct: std::collections::BTreeSet<_> = places.iter().collect();
    assert_eq!(distinct.len(), total);
    for place in [
        "graph.initializer[0]",
        "graph.node[0].attribute[0].g.sparse_initializer[0].indices",
        "graph.node[0].attribute[0].sparse_tensors[0].values",
        "training_info[0].algorithm.initializer[0]",
        "functions[0].attribute_proto[0].graphs[0].initializer[0]",
        "functions[0].node[0].attribute[0].t",
    ] {
        assert!(places.iter().any(|p| p == place), "{place} is not among {places:#?}");
    }
}

fn large(fill: u8) -> ModelProto {
    model_of(TensorProto { raw_data: Some(vec![fill; 1 << 20].into()), ..TensorProto::default() })
}

#[test]
fn a_model_may_be_written_over_the_file_it_is_mapped_from() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.onnx");
    save(&large(7), &path).unwrap();
    let mut model = Model::open(&path).unwrap();
    model.proto.doc_string = Some("a longer header, so that every weight moves".into());
    save(&model.proto, &path).unwrap();
    assert_eq!(model.proto.graph, large(7).graph);
    assert_eq!(Model::open(&path).unwrap().proto, model.proto);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

/// The test runs itself in a process of its own, which reads bytes that are gone.
#[cfg(unix)]
#[test]
fn a_file_that_is_cut_short_while_it_is_mapped_ends_the_program_with_an_error() {
    const FILE: &str = "LMSC_TEST_FILE";
    if let Some(path) = std::env::var_os(FILE) {
        lmsc_onnx::file::exit_on_truncation();
        let model = Model::open(&path).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        encode_to(&model.proto, &mut Vec::new()).unwrap();
        unreachable!("the bytes were read");
    }
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.onnx");
    save(&large(7), &path).unwrap();
    let name = "external::a_file_that_is_cut_short_while_it_is_mapped_ends_the_program_with_an_error";
    let mut test = std::process::Command::new(std::env::current_exe().unwrap());
    let output = test.args([name, "--exact", "--nocapture"]).env(FILE, &path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("was cut short by another program"), "{said}");
}

struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_of_the_writer_is_returned() {
    let bytes = {
        let mut out = Vec::new();
        encode_to(&large(1), &mut out).unwrap();
        out.len()
    };
    encode_to(&large(1), Full(bytes)).unwrap();
    for room in [0, 1, 100, bytes / 2, bytes - 1] {
        assert_eq!(encode_to(&large(1), Full(room)).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_failed_save_leaves_nothing_behind() {
    let root = tempfile::tempdir().unwrap();
    let missing = root.path().join("none/m.onnx");
    let error = save(&large(1), &missing).unwrap_err();
    assert!(matches!(error, FileError::Write { .. }));
    assert!(error.to_string().starts_with(&format!("cannot write {}: ", missing.display())), "{error}");
    assert!(save(&large(1), root.path()).is_err());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_survive_a_save_and_devices_are_written_to() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let root = tempfile::tempdir().unwrap();
    let (file, link) = (root.path().join("m.onnx"), root.path().join("link.onnx"));
    save(&large(1), &file).unwrap();
    assert_ne!(fs::metadata(&file).unwrap().permissions().mode() & 0o044, 0, "readable as the umask allows");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    symlink("m.onnx", &link).unwrap();
    save(&large(2), &link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Model::open(&file).unwrap().proto, large(2));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let null = root.path().join("null.onnx");
    symlink("/dev/null", &null).unwrap();
    save(&large(1), &null).unwrap();
    assert!(!fs::metadata(&null).unwrap().is_file());
}

#[test]
fn a_file_that_is_missing_or_empty_is_named() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.onnx");
    assert!(
        Model::open(&path).unwrap_err().to_string().starts_with(&format!("cannot read {}: ", path.display()))
    );
    fs::write(&path, b"").unwrap();
    assert!(matches!(Model::open(&path).unwrap_err(), FileError::Empty { .. }));
    assert!(Model::open(root.path()).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_read_and_has_no_folder() {
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = io::pipe().unwrap();
    encode_to(&model_of(TensorProto::default()), &mut writer).unwrap();
    drop(writer);
    let model = Model::open(format!("/proc/self/fd/{}", reader.as_raw_fd())).unwrap();
    assert_eq!(model.proto, model_of(TensorProto::default()));
    assert_eq!(model.folder, None);
}
