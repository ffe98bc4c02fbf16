//! LLVM's own parser and verifier. The only file that calls it.

use std::cell::RefCell;
use std::rc::Rc;

use lmsc_ir::ParseError;
use melior::Context;
use melior::diagnostic::{Diagnostic, DiagnosticSeverity};
use melior::dialect::DialectHandle;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use melior::utility::load_irdl_dialects;

use crate::DIALECT;

/// As [`crate::check`].
pub(crate) fn check(text: &str) -> Result<(), Vec<ParseError>> {
    let context = Context::new_with_threading(false);
    DialectHandle::func().load_dialect(&context);
    // SAFETY: the function takes nothing and returns a pointer to a constant of LLVM's, as those of the other handles do.
    let irdl = unsafe { DialectHandle::from_raw(mlir_sys::mlirGetDialectHandle__irdl__()) };
    irdl.load_dialect(&context);
    let dialect = Module::parse(&context, DIALECT).expect("the dialect does not depend on the text");
    // Once per context: LLVM crashes at a second time.
    assert!(load_irdl_dialects(&dialect), "the dialect does not depend on the text");
    // Operators of ONNX are of a dialect that is not registered in LLVM.
    context.set_allow_unregistered_dialects(true);

    let found = Rc::new(RefCell::new(Vec::new()));
    let handler = context.attach_diagnostic_handler({
        let found = Rc::clone(&found);
        move |diagnostic| {
            if matches!(diagnostic.severity(), DiagnosticSeverity::Error) {
                found.borrow_mut().push(error(&diagnostic));
            }
            true
        }
    });
    let accepted = Module::parse(&context, text).is_some_and(|module| module.as_operation().verify());
    context.detach_diagnostic_handler(handler);
    let found = found.take();
    match (accepted, found.is_empty()) {
        (true, true) => Ok(()),
        (false, true) => {
            Err(vec![ParseError { line: 0, column: 0, message: "LLVM refuses it without a word".to_owned() }])
        }
        _ => Err(found),
    }
}

fn error(diagnostic: &Diagnostic<'_>) -> ParseError {
    let location = diagnostic.location();
    let (line, column) = if location.is_file_line_col_range() {
        (location.file_line_col_range_start_line(), location.file_line_col_range_start_column())
    } else {
        (0, 0)
    };
    ParseError { line, column, message: diagnostic.to_string() }
}
