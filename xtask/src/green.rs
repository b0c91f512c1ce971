//! Steps that ended well, with the digest of their inputs: while no input of a step changes, the step need not run.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::command::{at, output, program, write};

/// The folder of the records, a file a step.
const FOLDER: &str = "target/green";

/// The inputs of a step, beside those that all steps have: this program, the compiler, the lock file, and the
/// variables of [`VARIABLES`].
#[derive(Clone, Copy)]
pub(crate) struct Inputs {
    /// The names of the built programs that the step runs. A program stands for the sources, the features and the profile
    /// of all crates in it.
    pub(crate) programs: &'static [&'static str],
    /// Whether the step reads a file of the repository, whose path this is.
    pub(crate) reads: fn(&str) -> bool,
}

/// The beginnings of variables on which a build or a test may depend.
const VARIABLES: [&str; 11] =
    ["CARGO", "RUST", "ROUNDELAY", "CC", "CXX", "LD_", "PATH", "PYTHON", "OMPI_", "I_MPI_", "FI_"];

/// Variables that a running cargo sets for its program.
const OWN: [&str; 5] =
    ["CARGO=", "CARGO_MANIFEST", "CARGO_PKG", "RUST_RECURSION_COUNT", "RUSTUP_TOOLCHAIN_SOURCE"];

/// The state on which steps depend, as it was when the run began.
pub(crate) struct GreenSteps {
    root: PathBuf,
    /// The digest of the inputs of all steps.
    common: Sha256,
    /// Every file of the repository that git does not ignore, in order.
    files: Vec<String>,
}

impl GreenSteps {
    pub(crate) fn new(root: &Path) -> Result<Self, String> {
        let mut common = Sha256::new();
        let own = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
        for path in [own, root.join("Cargo.lock")] {
            common.update(digest(&path)?);
        }
        common.update(output(program("rustc", &["-vV"]).current_dir(root))?);
        let mut variables: Vec<String> = std::env::vars_os()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .filter(|one| VARIABLES.iter().any(|begin| one.starts_with(begin)))
            .filter(|one| !OWN.iter().any(|begin| one.starts_with(begin)))
            .collect();
        variables.sort();
        common.update(variables.join("\n"));
        let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = output(program("git", &listed).current_dir(root))?;
        let mut files: Vec<String> =
            listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        files.sort();
        files.dedup();
        Ok(Self { root: root.to_owned(), common, files })
    }

    /// Returns the digest of everything on which a step depends.
    pub(crate) fn key(
        &self,
        programs: &[PathBuf],
        reads: fn(&str) -> bool,
    ) -> Result<String, String> {
        let mut all = self.common.clone();
        for program in programs {
            all.update(digest(program)?);
        }
        for file in self.files.iter().filter(|file| reads(file)) {
            all.update(file);
            let path = self.root.join(file);
            // A file that git knows may be gone.
            if path.is_file() {
                all.update(digest(&path)?);
            }
        }
        Ok(letters(&all.finalize()))
    }

    /// Returns how long ago the step ended well with these inputs, if it did.
    pub(crate) fn last(&self, step: &str, key: &str) -> Option<std::time::Duration> {
        let path = self.path(step);
        let found = fs::read_to_string(&path).ok()?;
        (found == key).then(|| fs::metadata(&path).ok()?.modified().ok()?.elapsed().ok())?
    }

    /// Keeps the key of a step that ended well.
    pub(crate) fn keep(&self, step: &str, key: &str) -> Result<(), String> {
        write(&self.path(step), key)
    }

    fn path(&self, step: &str) -> PathBuf {
        self.root.join(FOLDER).join(step.replace(' ', "_"))
    }
}

/// Returns the digest of a file's content.
fn digest(path: &Path) -> Result<[u8; 32], String> {
    Ok(Sha256::digest(fs::read(path).map_err(at(path))?).into())
}

/// Returns the digest of a file's content in hexadecimal digits.
pub(crate) fn hex(path: &Path) -> Result<String, String> {
    Ok(letters(&digest(path)?))
}

fn letters(digest: &[u8]) -> String {
    digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).expect("a digit is below 16")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with a program, a page and a table.
    fn repository() -> (tempfile::TempDir, impl Fn(&str, &str), impl Fn() -> String) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().to_owned();
        let at = root.clone();
        let write = move |name: &str, text: &str| fs::write(at.join(name), text).expect("written");
        for name in ["Cargo.lock", "page.md", "table.text", "program"] {
            write(name, name);
        }
        output(program("git", &["init", "--quiet"]).current_dir(&root)).expect("git");
        let key = move || {
            let green = GreenSteps::new(&root).expect("a repository");
            green.key(&[root.join("program")], |path| path == "table.text").expect("a key")
        };
        (folder, write, key)
    }

    #[test]
    fn a_key_changes_with_what_a_step_reads() {
        let (_folder, write, key) = repository();
        let first = key();
        write("page.md", "other");
        assert_eq!(key(), first, "the step reads no page");
        for name in ["Cargo.lock", "table.text", "program"] {
            write(name, "other");
            assert_ne!(key(), first, "{name}");
            write(name, name);
            assert_eq!(key(), first, "{name}");
        }
        let (_folder, _, elsewhere) = repository();
        assert_eq!(elsewhere(), first, "of the content alone");
    }

    #[test]
    fn a_step_is_known_by_its_last_key() {
        let (folder, _, _) = repository();
        let green = GreenSteps::new(folder.path()).expect("a repository");
        assert_eq!(green.last("a step", "1"), None);
        green.keep("a step", "1").expect("kept");
        assert!(green.last("a step", "1").is_some());
        assert_eq!(green.last("a step", "2"), None);
        assert_eq!(green.last("another", "1"), None);
    }
}
