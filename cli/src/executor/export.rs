//! `emit hccl-cpp`: an executor in the contest's form.

use roundelay::library::SOURCES;
use roundelay_core::syntax::Source;
use roundelay_export::contest::{Export, contest};

use super::{Which, misfits};
use crate::report::{Failure, Format, refuse};
use crate::texts::Texts;

pub(crate) fn export(which: &Which, to: &Texts) -> Result<(), Failure> {
    let (source, executor) = which.load(Format::Human)?;
    // The files with the lines that the text's comments quote.
    let library = SOURCES.iter().map(|(name, text)| Source::from_text(*name, text));
    let files: Vec<Source> = std::iter::once(source.clone()).chain(library).collect();
    let export = Export::new(&executor, |name| files.iter().find(|file| file.name() == name));
    match contest(&export) {
        Ok(text) => to.put(&executor.name, &text),
        Err(all) => Err(refuse(Format::Human, &misfits(&executor, all), &source, |_| ())),
    }
}
