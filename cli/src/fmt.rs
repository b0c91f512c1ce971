//! `roundelay fmt`: the canonical form of a source.

use roundelay_core::syntax;

use crate::flags::{FmtFlags, Format};
use crate::output;
use crate::program::read;
use crate::report::{Failure, refuse};

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
                anstream::println!("{name} is not in canonical form");
                canonical = false;
            }
        } else if flags.write && name != "-" {
            if changed {
                output::write(name, &text)?;
            }
        } else {
            anstream::print!("{text}");
        }
    }
    Ok(canonical)
}
