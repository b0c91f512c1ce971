//! Unchanged GPU jobs whose calls of NCCL come through a library: the search for NCCL, and the reasons why a program's
//! calls cannot come through.

mod elf;
mod programs;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use roundelay_core::diagnostics::Code;
use roundelay_kernels::library_files::{ALONE, NCCL, NcclSearch, nccl_at, packages};

use crate::error::RunError;
use elf::Elf;
use programs::{Program, on_path};

/// The variables by which programs are told which library of NCCL to open.
pub const NAMED: [&str; 3] =
    ["VLLM_NCCL_SO_PATH", "SGLANG_NCCL_SO_PATH", "SGLANG_DIFFUSION_NCCL_SO_PATH"];
/// A text that is in NCCL and in no program that is linked to it.
const INSIDE: &[u8] = b" NCCL WARN ";
/// A function of the library alone.
const OWN: &str = "la_objsearch";
/// Functions that a line lists.
const LISTED: usize = 6;

/// A program whose calls can come through, with the NCCL behind it.
#[derive(Debug)]
pub struct GpuJob {
    /// The program's file.
    pub program: OsString,
    /// NCCL's own library.
    pub nccl: PathBuf,
    /// Lines for the user.
    pub notes: Vec<String>,
}

impl GpuJob {
    /// Looks at a command, at the library that it preloads, and at NCCL.
    ///
    /// # Errors
    /// Why the command's calls cannot come through the library.
    pub fn find(
        command: &[OsString],
        library: &Path,
        nccl: Option<&Path>,
    ) -> Result<Self, RunError> {
        let name = command.first().cloned().unwrap_or_default();
        let program = Program::find(&name)
            .map_err(|why| refused(why, "name a program that can be started"))?;
        comes_through(&program)?;
        // A launcher starts a program that is one of its arguments.
        for arg in command.iter().skip(1).filter_map(|arg| Program::of_file(Path::new(arg))) {
            has_own_nccl(&arg.binary, "the program")?;
        }
        let pythons = pythons(&program);
        for torch in pythons.iter().flat_map(|at| packages(at)).map(|at| torch(&at)) {
            has_own_nccl(&torch, "torch's libraries")?;
        }
        let alone = nccl.map_or_else(|| std::env::var_os(NCCL), |path| Some(path.into()));
        if alone.is_some_and(|named| named == ALONE) {
            let (nccl, notes) = (PathBuf::from(ALONE), Vec::new());
            return Ok(Self { program: program.file.into_os_string(), nccl, notes });
        }
        let nccl = found(library, nccl, &pythons)?;
        let notes = compared(library, &nccl)?;
        Ok(Self { program: program.file.into_os_string(), nccl, notes })
    }
}

fn refused(why: String, help: &str) -> RunError {
    RunError::usage(Code::BadCall, why).with_help(help)
}

/// Refuses a program that the loader starts without the library.
fn comes_through(program: &Program) -> Result<(), RunError> {
    let shown = program.binary.display();
    if let Some(rights) = program.rights() {
        let why = format!(
            "{shown} runs with other rights than yours ({rights}), and the loader preloads no library there"
        );
        return Err(refused(
            why,
            "start the program without it: `roundelay ncclrun` inside of `sudo`, and not around it",
        ));
    }
    let Some(elf) = Elf::read(&program.binary) else {
        return Err(refused(
            format!("{shown} is no program of this machine"),
            "name a program that can be started",
        ));
    };
    if !elf.has_loader {
        let why = format!("{shown} is linked statically, and no loader preloads a library there");
        return Err(refused(why, "link it to the system's libraries"));
    }
    has_own_nccl(&program.binary, "the program")
}

/// Refuses a file that has NCCL in itself.
fn has_own_nccl(file: &Path, what: &str) -> Result<(), RunError> {
    let Some(elf) = Elf::read(file) else { return Ok(()) };
    let asks = elf.needed.iter().any(|name| name.starts_with("libnccl.so"))
        || elf.undefined.iter().any(|name| name.starts_with("nccl"));
    if asks || !elf::contains(file, INSIDE) {
        return Ok(());
    }
    let why = format!("{} has NCCL in itself: it asks for no library of that name", file.display());
    Err(refused(why, &format!("build {what} with NCCL as a shared library (libnccl.so.2)")))
}

/// Returns the library of torch that calls NCCL.
fn torch(packages: &Path) -> PathBuf {
    packages.join("torch/lib/libtorch_cuda.so")
}

/// Returns the environments of Python that the program may have: its own, and that of the search path.
fn pythons(program: &Program) -> Vec<PathBuf> {
    let is_python = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"))
    };
    let interpreter = [&program.interpreter].into_iter().find(is_python).cloned();
    let all = interpreter.into_iter().chain(on_path("python3".as_ref()));
    all.filter_map(|python| prefix(&python)).collect()
}

/// Returns the folder of a Python: as Python says, which may be started by a script, or the folder above its own.
fn prefix(python: &Path) -> Option<PathBuf> {
    let mut asked = Command::new(python);
    // Without what lies in the working directory.
    let said = asked.args(["-I", "-c", "import sys; print(sys.prefix)"]).output().ok();
    let said = said.filter(|said| said.status.success()).map(|said| said.stdout);
    let prefix = said.and_then(|said| String::from_utf8(said).ok()).map(|said| said.trim().into());
    let above = || Some(python.parent()?.parent()?.to_owned());
    prefix.filter(|prefix: &PathBuf| prefix.is_absolute()).or_else(above)
}

/// Returns NCCL's own library.
fn found(library: &Path, given: Option<&Path>, pythons: &[PathBuf]) -> Result<PathBuf, RunError> {
    let none = |why: String| {
        refused(
            why,
            "install NCCL (`pip install nvidia-nccl-cu13`), or say by --nccl where its library is",
        )
    };
    let given = given.map(|place| place.as_os_str().to_owned());
    let variable = |name: &str| env::var_os(name);
    let search = NcclSearch { variable: &variable, own: library, pythons };
    let path = match (given, search.named_library()) {
        (Some(given), _) => nccl_at(Path::new(&given)).map_err(none)?,
        (None, Some(named)) => named.map_err(none)?,
        (None, None) => search.first_library().map_err(none)?,
    };
    path.canonicalize().map_err(|error| none(format!("{} cannot be read: {error}", path.display())))
}

/// Compares the functions of the library and of NCCL, and returns what a user is told.
fn compared(library: &Path, nccl: &Path) -> Result<Vec<String>, RunError> {
    let functions = |file: &Path| {
        let defined = Elf::read(file).unwrap_or_default().defined;
        defined.into_iter().filter(|name| name.starts_with("nccl")).collect::<BTreeSet<_>>()
    };
    let of_nccl = Elf::read(nccl).unwrap_or_default().defined;
    let shown = nccl.display();
    if of_nccl.contains(OWN) {
        let why = format!("{shown} is Roundelay's library itself");
        return Err(refused(why, "say by --nccl where NCCL's own library is"));
    }
    if !of_nccl.contains("ncclGetVersion") {
        let why = format!("{shown} is not NCCL: it has no ncclGetVersion");
        return Err(refused(why, "say by --nccl where NCCL's own library is"));
    }
    let (ours, theirs) = (functions(library), functions(nccl));
    let mut notes = Vec::new();
    for (names, what) in [
        (
            ours.difference(&theirs),
            "functions that this NCCL lacks, and which answer ncclInvalidUsage",
        ),
        (
            theirs.difference(&ours),
            "functions of this NCCL that the library does not know, and which end a program that calls them",
        ),
    ] {
        let names: Vec<_> = names.map(String::as_str).collect();
        if !names.is_empty() {
            let more = if names.len() > LISTED { ", ..." } else { "" };
            let listed = names[..names.len().min(LISTED)].join(", ");
            notes.push(format!("{} {what}: {listed}{more}", names.len()));
        }
    }
    Ok(notes)
}
