//! `roundelay fmt`: brings sources into canonical form, or says how they differ from it.

use std::fs;

use clap::Args;
use roundelay_core::diagnostics::Code;
use roundelay_core::syntax;

use crate::diff;
use crate::output;
use crate::program::{in_library, read};
use crate::report::{Failure, Format, exit_code, refuse};
use crate::streams::{is_verbose, note, print, put};

#[derive(Args)]
pub(crate) struct FmtFlags {
    /// .coll files, which are written in canonical form; - is standard input, whose canonical form is printed
    #[arg(required = true, value_name = "FILE")]
    pub(crate) sources: Vec<String>,
    /// Write nothing: print the difference between each file and its canonical form, and exit with 1 if there is any
    #[arg(long)]
    pub(crate) check: bool,
}

/// Takes one source after the other, whatever the errors of earlier ones; the exit code is the worst of all.
pub(crate) fn main(flags: &FmtFlags) -> u8 {
    let codes = flags.sources.iter().map(|name| exit_code(format(name, flags.check)));
    codes.fold(0, u8::max)
}

/// Returns whether the source may stay as it is: it always may where it is written.
fn format(name: &str, check: bool) -> Result<bool, Failure> {
    let typed = name == "-";
    if !typed && in_library(name).is_some() {
        let title = format!("`{name}` is an algorithm of the library, and no file");
        return Err(Failure::usage(Code::BadCall, title)
            .with_help(format!("`roundelay emit coll {name}` prints it in canonical form")));
    }
    let source = read(name)?;
    let (file, errors) = syntax::parse(&source);
    if !errors.is_empty() {
        return Err(refuse(Format::Human, &errors, &source, |_| ()));
    }
    let text = syntax::printer::print_with_trivia(&file, &source);
    let before = source.text().unwrap_or_default();
    if typed && !check {
        put(&text);
    } else if before == text {
        if is_verbose() {
            note(format!("\x1b[1;92munchanged\x1b[0m {name}"));
        }
    } else if check {
        for line in diff::lines(source.name(), before, &text) {
            print(&line);
        }
        return Ok(false);
    } else if fs::metadata(name).is_ok_and(|found| !found.is_file()) {
        // Such as a pipe, of which a shell makes a name.
        let title = format!("`{name}` is no file that can be written anew");
        return Err(Failure::usage(Code::Unwritable, title)
            .with_help("`-` reads standard input, and prints its canonical form"));
    } else {
        output::replace(name, &text)?;
    }
    Ok(true)
}
