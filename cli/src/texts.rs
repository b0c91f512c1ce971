//! The places where texts of `emit` go: to standard output, to the file of `-o`, or to files in its folder.

use std::fs;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use roundelay_core::diagnostics::Code;

use crate::output;
use crate::report::Failure;
use crate::streams::print;

/// The destination of one form of a source.
pub(crate) struct Texts<'a> {
    to: Option<&'a str>,
    source: &'a str,
    /// How the names of files in a folder end.
    extension: &'static str,
    /// Whether the form has more than one text, so that `-o` names a folder.
    several: bool,
}

impl<'a> Texts<'a> {
    /// Takes the path of `-o`, if any, and checks before the work that it can be written.
    pub(crate) fn new(
        to: Option<&'a str>,
        source: &'a str,
        extension: &'static str,
        several: bool,
    ) -> Result<Self, Failure> {
        let texts = Self { to: to.filter(|path| *path != "-"), source, extension, several };
        let Some(path) = texts.to else { return Ok(texts) };
        texts.keep_source(Path::new(path))?;
        if !texts.is_folder(path) {
            output::reserve(&[("-o", Some(path))], false)?;
        } else if several && Path::new(path).is_file() {
            let title = format!("-o {path} is a file, and these are several texts");
            return Err(Failure::usage(Code::BadCall, title).with_help("name a folder"));
        } else {
            fs::create_dir_all(path).map_err(|error| output::unwritable(path, &error))?;
        }
        Ok(texts)
    }

    /// Refuses to write over the source, whose text would be lost.
    fn keep_source(&self, file: &Path) -> Result<(), Failure> {
        let both = fs::canonicalize(file).ok().zip(fs::canonicalize(self.source).ok());
        if both.is_none_or(|(file, source)| file != source) {
            return Ok(());
        }
        let title =
            format!("-o {}: `{}` is the source itself", self.to.unwrap_or("-"), file.display());
        Err(Failure::usage(Code::BadCall, title)
            .with_help("name another file; `roundelay fmt` writes a source in canonical form"))
    }

    fn is_folder(&self, path: &str) -> bool {
        self.several || path.ends_with(['/', MAIN_SEPARATOR]) || Path::new(path).is_dir()
    }

    /// Prints a text, or writes it; in a folder its name is `name` with the form's extension.
    pub(crate) fn put(&self, name: &str, text: &str) -> Result<(), Failure> {
        let text = text.trim_end();
        let Some(path) = self.to else {
            print(text);
            return Ok(());
        };
        let file = if self.is_folder(path) {
            Path::new(path).join(format!("{name}.{}", self.extension))
        } else {
            PathBuf::from(path)
        };
        self.keep_source(&file)?;
        output::write(&file.to_string_lossy(), &format!("{text}\n"))
    }

    /// Writes a file beside the text, where that goes to a folder.
    pub(crate) fn put_beside(&self, file: &str, text: &str) -> Result<(), Failure> {
        match self.to {
            Some(path) if self.is_folder(path) => {
                let file = Path::new(path).join(file);
                self.keep_source(&file)?;
                output::write(&file.to_string_lossy(), text)
            }
            _ => Ok(()),
        }
    }

    /// Puts the text of an algorithm at a rank count.
    pub(crate) fn put_at(&self, name: &str, nranks: u32, text: &str) -> Result<(), Failure> {
        self.put(&format!("{name}_{nranks}"), text)
    }
}

/// Returns a source's name without its folder and extension, as the name of a file that is made of it.
pub(crate) fn stem(source: &str) -> &str {
    match Path::new(source).file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if source != "-" => stem,
        _ => "stdin",
    }
}
