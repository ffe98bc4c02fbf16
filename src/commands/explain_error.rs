//! `lmsc explain-error`, and the page of all codes.

use lmsc_ir::words;

use crate::codes::{CODES, Explained};
use crate::{Code, Error, ErrorKind};

/// The text of `lmsc explain-error`: half a page about the code of this number; without a number, a line for each
/// code.
///
/// # Errors
/// [`Code::Option`] for an unknown number.
pub fn explain_error(number: Option<&str>) -> Result<String, Error> {
    let Some(asked) = number else {
        return Ok(CODES.iter().map(|e| format!("{}  {}\n", e.number, e.title)).collect());
    };
    let spelled = asked.trim().to_ascii_uppercase();
    match CODES.iter().find(|explained| explained.number == spelled) {
        Some(explained) => Ok(page(explained)),
        None => {
            let instead = words::instead(&spelled, CODES.iter().map(|e| e.number), "codes");
            let help = "`lmsc explain-error` lists the codes";
            Err(Error::new(Code::Option, format!("there is no error code `{asked}`; {instead}"))
                .with_help(help))
        }
    }
}

fn page(explained: &Explained) -> String {
    let answer = match explained.code.kind() {
        ErrorKind::Refusal => "The answer is no: exit code 1.",
        _ if explained.number.starts_with("LMS04") => {
            "The command goes on; with --deny warnings: exit code 2."
        }
        ErrorKind::Input => "The input or the call is at fault: exit code 2.",
        ErrorKind::Interrupted => "A signal ended it: exit code 130.",
        ErrorKind::Internal => "lmsc is at fault: exit code 101.",
    };
    format!("{}: {}\n\n{answer}\n\n{}", explained.number, explained.title, explained.text)
}

/// `docs/errors.md`, from the table.
pub fn documented_errors() -> String {
    let mut text = "\
# Errors

Made from the table of codes (`src/codes.rs`) by `INSTA_UPDATE=always cargo test --test all cli::`. A test fails where this page is of
before.

Every error has a code that stays the same from version to version. `lmsc explain-error CODE` prints its part of this page,
`lmsc explain-error` the list. With `--json`, the error is an object on standard output (docs/formats.md).
"
    .to_owned();
    for explained in CODES {
        let Explained { number, title, text: body, .. } = explained;
        text += &format!("\n## {number}: {title}\n\n");
        let mut is_code = false;
        for line in body.lines() {
            let indented = line.strip_prefix("    ");
            match (is_code, indented) {
                (false, Some(_)) => text += "<!-- not run: an example of the message -->\n```console\n",
                (true, None) => text += "```\n",
                _ => {}
            }
            is_code = indented.is_some();
            text += indented.unwrap_or(line);
            text += "\n";
        }
    }
    text
}
