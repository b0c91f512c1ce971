//! `roundelay fmt`: the canonical form of a source.

use clap::Args;
use roundelay_core::syntax;

use crate::output;
use crate::program::read;
use crate::report::{Failure, Format, refuse};
use crate::streams::{print, put};

#[derive(Args)]
pub(crate) struct FmtFlags {
    /// .coll files, or - for standard input
    #[arg(required = true)]
    pub(crate) sources: Vec<String>,
    /// Write the files instead of printing
    #[arg(long, conflicts_with = "check")]
    pub(crate) write: bool,
    /// Say which files are not in canonical form, and exit with 1 if there are any
    #[arg(long)]
    pub(crate) check: bool,
}

pub(crate) fn main(flags: &FmtFlags) -> Result<bool, Failure> {
    let mut canonical = true;
    for name in &flags.sources {
        let source = read(name)?;
        let (file, errors) = syntax::parse(&source);
        if !errors.is_empty() {
            return Err(refuse(Format::Human, &errors, &source, |_| ()));
        }
        let text = syntax::printer::print_with_trivia(&file, &source);
        let changed = source.text() != Some(text.as_str());
        if flags.check {
            if changed {
                print(&format!("{name} is not in canonical form"));
                canonical = false;
            }
        } else if flags.write && name != "-" {
            if changed {
                output::write(name, &text)?;
            }
        } else {
            put(&text);
        }
    }
    Ok(canonical)
}
