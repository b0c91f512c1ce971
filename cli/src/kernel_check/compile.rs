//! The PTX of a harness's module: as given, by NVRTC, or by the user's nvcc.

use std::path::{Path, PathBuf};
use std::process::Command;

use roundelay::library::SOURCES;
use roundelay_core::diagnostics::Code;
use roundelay_kernel_check::Compiled;
use roundelay_kernel_check::harness::{KernelModule, ModuleText};
use roundelay_topology::Problem;

/// The texts that a harness may put before a module by their names.
#[cfg(feature = "cuda")]
const PRELUDES: [(&str, &str); 2] =
    [("std", include_str!("preludes/std.cuh")), ("pdl", include_str!("preludes/pdl.cuh"))];

/// The prelude with the headers of Roundelay's own kernels, which a text includes.
#[cfg(feature = "cuda")]
pub(crate) const OWN: &str = "roundelay";

/// Returns the PTX of a module for a number of ranks. `folder` is that of the harness.
pub(crate) fn module(
    module: &KernelModule,
    ranks: u32,
    folder: &Path,
) -> Result<Compiled, Problem> {
    let read = |name: &str| {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|why| {
            wrong(format!("`{}` of module `{}`: {why}", path.display(), module.name))
        })?;
        Ok::<_, Problem>((path, text))
    };
    match &module.origin {
        ModuleText::Ptx(name) => {
            let (path, ptx) = read(name)?;
            Ok(with_files(&ptx, (path.display().to_string(), None), folder))
        }
        ModuleText::PtxText(text) => Ok(with_files(text, (module.name.clone(), None), folder)),
        ModuleText::Text(text) => {
            let name = format!("{}.cu", module.name);
            cuda(module, (&folder.join(&name), text), ranks, folder)
        }
        ModuleText::File(name) => {
            let (path, text) = read(name)?;
            if module.compiler == "nvrtc" {
                return cuda(module, (&path, &sliced(module, &text)), ranks, folder);
            }
            nvcc(module, &path, ranks, folder)
        }
    }
}

fn wrong(title: String) -> Problem {
    Problem::new(Code::BadHarness, title)
}

/// The lines of the slices, at their numbers.
fn sliced(module: &KernelModule, text: &str) -> String {
    if module.slices.is_empty() {
        return text.to_owned();
    }
    let is_in =
        |number: u32| module.slices.iter().any(|(first, last)| (*first..=*last).contains(&number));
    let lines = (1..).zip(text.lines());
    lines.flat_map(|(number, line)| [if is_in(number) { line } else { "" }, "\n"]).collect()
}

/// Macros and folders of headers, as flags.
fn options(module: &KernelModule, ranks: u32, folder: &Path) -> Vec<String> {
    let mut options = vec![format!("-DRANKS={ranks}")];
    options.extend(module.defines.iter().map(|define| format!("-D{define}")));
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    options.push(format!("-I{}", here.display()));
    options
        .extend(module.includes.iter().map(|inner| format!("-I{}", folder.join(inner).display())));
    options.extend(module.options.iter().cloned());
    options
}

#[cfg(feature = "cuda")]
fn cuda(
    module: &KernelModule,
    (path, text): (&Path, &str),
    ranks: u32,
    folder: &Path,
) -> Result<Compiled, Problem> {
    use roundelay_kernels::cuda::{Error, ForeignText, HEADERS, compile_foreign};

    let mut whole = String::new();
    let mut headers: &[(&str, &str)] = &[];
    for name in &module.preludes {
        if name == OWN {
            headers = HEADERS;
            continue;
        }
        let Some((_, prelude)) = PRELUDES.iter().find(|(known, _)| known == name) else {
            let names = PRELUDES.map(|(name, _)| name).join(", ");
            let names = format!("{names}, {OWN}");
            return Err(wrong(format!("there is no prelude `{name}`; preludes are {names}")));
        };
        whole += prelude;
    }
    let shown = path.display().to_string();
    whole += "#line 1 \"";
    whole += &shown.replace('\\', "/");
    whole += "\"\n";
    whole += text;
    let options = options(module, ranks, folder);
    let ranks = ranks.to_string();
    let names: Vec<String> =
        module.instantiate.iter().map(|(_, name)| word_replaced(name, "RANKS", &ranks)).collect();
    let coded = |why: Error| {
        let text = why.to_string();
        // The advice is for texts of ours.
        let is_foreign = why.code() == Code::KernelRefused && headers.is_empty();
        let title = text.rsplit_once("\n  = help: ").filter(|_| is_foreign);
        crate::report::coded(why.code(), title.map_or(&*text, |(title, _)| title))
    };
    let arch = module.arch.parse().map_err(coded)?;
    let foreign =
        ForeignText { text: &whole, file: &shown, arch, headers, options: &options, names: &names };
    let built = compile_foreign(&foreign).map_err(coded)?;
    let names = module.instantiate.iter().map(|(name, _)| name.clone()).zip(built.names).collect();
    Ok(Compiled { names, ..with_files(&built.ptx, (shown.clone(), Some(text.to_owned())), folder) })
}

#[cfg(not(feature = "cuda"))]
fn cuda(module: &KernelModule, _: (&Path, &str), _: u32, _: &Path) -> Result<Compiled, Problem> {
    Err(wrong(format!(
        "module `{}` is CUDA C++, and this `roundelay` was built without CUDA",
        module.name
    )))
}

/// Replaces a whole word.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "NVRTC alone instantiates by names"))]
fn word_replaced(text: &str, word: &str, with: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let end = at + word.len();
        let alone = !rest[..at].ends_with(is_part) && !rest[end..].starts_with(is_part);
        out += &rest[..at];
        out += if alone { with } else { word };
        rest = &rest[end..];
    }
    out + rest
}

/// Compiles a file, unmodified, by the user's nvcc.
fn nvcc(
    module: &KernelModule,
    path: &Path,
    ranks: u32,
    folder: &Path,
) -> Result<Compiled, Problem> {
    if !module.slices.is_empty() || !module.preludes.is_empty() {
        return Err(wrong(format!(
            "`slices` and `prelude` of module `{}` are for NVRTC",
            module.name
        )));
    }
    let failed = |why: std::io::Error| {
        wrong(format!("the compiler `{}` of module `{}`: {why}", module.compiler, module.name))
    };
    // nvcc reads what it wrote, so that a pipe does not do.
    let written = Written::new().map_err(failed)?;
    let into = written.0.join("module.ptx");
    let mut command = Command::new(&module.compiler);
    command.args(["--ptx", "-lineinfo", "-std=c++17", "-o"]).arg(&into);
    command.arg(format!("-arch={}", module.arch)).args(options(module, ranks, folder)).arg(path);
    let done = command.output().map_err(failed)?;
    if !done.status.success() {
        let log = String::from_utf8_lossy(&done.stderr);
        let title = format!("{} refuses {}: {}", module.compiler, path.display(), log.trim());
        return Err(Problem::new(Code::KernelRefused, title));
    }
    let ptx = std::fs::read_to_string(&into).map_err(failed)?;
    Ok(with_files(&ptx, (path.display().to_string(), None), folder))
}

/// A folder for what a compiler writes, which goes with it.
struct Written(PathBuf);

impl Written {
    fn new() -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("roundelay-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Adds the texts of the files that the PTX names, where they can be read, by names as short as those of the call.
fn with_files(ptx: &str, (name, text): (String, Option<String>), folder: &Path) -> Compiled {
    let mut sources = vec![(name, text.unwrap_or_else(|| ptx.to_owned()))];
    let here = std::env::current_dir().unwrap_or_default();
    let mut named = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        let Some(file) = line.split('"').nth(1).filter(|_| line.trim_start().starts_with(".file"))
        else {
            named += line;
            continue;
        };
        let short = Path::new(file)
            .strip_prefix(&here)
            .map_or(file, |short| short.to_str().unwrap_or(file));
        let known = sources.iter().position(|(known, _)| same(known, short));
        let short = known.map_or(short.to_owned(), |at| sources[at].0.clone());
        if known.is_none() {
            let text = std::fs::read_to_string(file)
                .or_else(|_| std::fs::read_to_string(folder.join(file)));
            let text = text.ok().or_else(|| own(file));
            sources.extend(text.map(|text| (short.clone(), text)));
        }
        named += &line.replacen(file, &short, 1);
    }
    Compiled { ptx: named, names: Vec::new(), sources }
}

/// Returns the text of a page of the library, or of a header of its kernels.
fn own(file: &str) -> Option<String> {
    let name = Path::new(file).file_name()?.to_str()?;
    #[cfg(feature = "cuda")]
    let headers = roundelay_kernels::cuda::HEADERS.iter();
    #[cfg(not(feature = "cuda"))]
    let headers = [].iter();
    let (_, text) = SOURCES.iter().chain(headers).find(|(known, _)| *known == name)?;
    Some((*text).to_owned())
}

/// Whether two names are of one file.
fn same(one: &str, other: &str) -> bool {
    let whole = |name: &str| std::path::absolute(name).unwrap_or(PathBuf::from(name));
    one == other || whole(one) == whole(other)
}
