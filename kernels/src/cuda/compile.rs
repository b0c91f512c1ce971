//! The way from a kernel's text to machine code, through the caches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::arch::Arch;
use super::cache::{self, Cache, Key};
use super::error::{Error, Missing, Part, Refused};
use super::log::{self, Message};
use super::nvrtc::{Built, Failure, Nvrtc};
use super::report::{self, Resources, Usage};

/// The device headers that every kernel includes, each with its name and its text.
pub const HEADERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// Threads of a block, unless given.
pub const THREADS: u32 = 256;
/// Threads of a block that walk the program, one warp; the others move data.
pub const WALKERS: u32 = 32;
/// Loads of 16 bytes that a multiprocessor has under way, 56 KiB: 132 of them fill the 4.8 TB/s of a copy, half of
/// which are loads, as long as memory takes less than 3 us (Little's law).
const UNDER_WAY: u32 = 3584;
/// The most loads that a thread has registers for.
const MOST_LOADS: u32 = 16;
/// The line of a text whose signals are in the lines that it sends.
const LINES: &str = "#define ROUNDELAY_PROTOCOL Ll";
/// Threads of the largest block of which a multiprocessor holds two, with 128 registers for each thread.
const TWICE: u32 = 256;

/// The target of a compilation: a generation of GPUs, a size of blocks, and macros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The GPU's generation.
    pub arch: Arch,
    /// The number of threads of a block, which the text sees as `ROUNDELAY_THREADS`.
    pub threads: u32,
    /// The number of blocks that a multiprocessor is to hold at once, which the text sees as `ROUNDELAY_CTAS`.
    pub ctas: u32,
    /// Other macros that are defined, with their values.
    pub defines: Vec<(String, String)>,
}

/// The result of compiling a kernel's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// Machine code, as the driver loads it.
    pub cubin: Vec<u8>,
    /// The PTX text from which the assembler made the machine code.
    pub ptx: String,
    /// NVRTC's whole log.
    pub log: String,
    /// NVRTC's warnings, with their places in the algorithm's source.
    pub warnings: Vec<Message>,
    /// The registers, stack and shared memory of each kernel of the text, and of each function that was not inlined.
    pub usage: Vec<Usage>,
    /// The error where the result was to be kept on disk and could not be.
    pub not_kept: Option<String>,
}

/// A text of CUDA C++ that others wrote.
#[derive(Clone, Copy, Debug)]
pub struct ForeignText<'a> {
    /// The text.
    pub text: &'a str,
    /// The name of its file, for messages.
    pub file: &'a str,
    /// The GPU's generation.
    pub arch: Arch,
    /// Texts that it may include, each with its name, beside those in the folders of the flags.
    pub headers: &'a [(&'a str, &'a str)],
    /// Flags of the compiler.
    pub options: &'a [String],
    /// C++ expressions that name kernels; their templates are instantiated.
    pub names: &'a [String],
}

/// The PTX of a text that others wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignPtx {
    /// The PTX.
    pub ptx: String,
    /// The names in it of the expressions, in their order.
    pub names: Vec<String>,
}

/// Compiles a text that others wrote with this process's compiler: see [`Compiler::compile_foreign`].
///
/// # Errors
/// E0415 if there is no NVRTC; otherwise the errors of [`Compiler::compile_foreign`].
pub fn compile_foreign(foreign: &ForeignText) -> Result<ForeignPtx, Error> {
    of_process()?.compile_foreign(foreign)
}

impl Compiled {
    /// The registers, stack and shared memory of the kernel of that name.
    pub fn resources(&self, kernel: &str) -> Option<Resources> {
        self.usage.iter().find(|usage| usage.name == kernel)?.kernel
    }

    /// Bytes that a thread stores because registers run out, summed over all kernels and functions.
    pub fn spills(&self) -> u32 {
        self.usage.iter().map(|usage| usage.spill_stores).sum()
    }
}

impl Target {
    /// A target of blocks of [`THREADS`] threads, of which a multiprocessor holds one, without macros.
    pub fn new(arch: Arch) -> Self {
        Self { arch, threads: THREADS, ctas: 1, defines: Vec::new() }
    }

    /// The number of loads of 16 bytes that each thread that moves data has under way at once: its share of the loads
    /// of a multiprocessor, limited by its registers.
    pub fn in_flight(&self) -> u32 {
        (UNDER_WAY / (self.movers() * self.ctas)).clamp(1, MOST_LOADS)
    }

    /// The number of bytes that the loads of a block have under way at once in long moves.
    pub fn block_in_flight(&self) -> u32 {
        self.in_flight() * self.movers() * 16
    }

    /// The number of bytes that a multiprocessor loads at once in long moves.
    pub fn bytes_in_flight(&self) -> u32 {
        self.block_in_flight() * self.ctas
    }

    /// Threads of a block that move data.
    fn movers(&self) -> u32 {
        self.threads.saturating_sub(WALKERS).max(1)
    }

    fn options(&self, headers: Option<&std::path::Path>) -> Vec<String> {
        let mut options = vec![
            format!("--gpu-architecture={}", self.arch),
            "--std=c++17".to_owned(),
            "--ptxas-options=-v".to_owned(),
            // Sanitizers and profilers name the lines of the program.
            "--generate-line-info".to_owned(),
            // The cache of this crate is searched first.
            "--no-cache".to_owned(),
        ];
        options.extend(self.settings());
        options.extend(headers.map(|path| format!("--include-path={}", path.display())));
        options
    }

    /// The options that our texts have for every output of the compiler.
    fn settings(&self) -> Vec<String> {
        let own = [
            ("ROUNDELAY_THREADS", self.threads),
            ("ROUNDELAY_CTAS", self.ctas),
            ("ROUNDELAY_IN_FLIGHT", self.in_flight()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_string()));
        let macros = own.iter().chain(&self.defines);
        // The host rounds each product; a fused multiply-add would differ.
        let rounds = "--fmad=false".to_owned();
        let defined = macros.map(|(name, value)| format!("--define-macro={name}={value}"));
        [rounds].into_iter().chain(defined).collect()
    }
}

/// The result of compiling a kernel's text for as many blocks as a multiprocessor holds.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The machine code.
    pub compiled: Arc<Compiled>,
    /// The target of the compilation.
    pub target: Target,
}

/// NVRTC with a cache in memory and a cache on disk.
pub struct Compiler {
    nvrtc: &'static Nvrtc,
    disk: Cache,
    memory: Mutex<HashMap<Key, Once>>,
}

/// Returns a text without the comment above it.
fn code(text: &str) -> &str {
    let comment = text.split_inclusive('\n').take_while(|line| line.starts_with("//"));
    &text[comment.map(str::len).sum()..]
}

/// The result of a compilation, set by the first thread that asks for it; the other threads wait.
type Once = Arc<Mutex<Option<Arc<Compiled>>>>;

/// Compiles the text of the kernel `name` with this process's compiler: see [`Compiler::compile`].
///
/// # Errors
/// E0415 if there is no NVRTC; otherwise the errors of [`Compiler::compile`].
pub fn compile(text: &str, name: &str, target: &Target) -> Result<Arc<Compiled>, Error> {
    of_process()?.compile(text, name, target)
}

/// Returns the PTX that [`compile`] has for the same text and target. No assembler runs, which takes most of the time of
/// a compilation.
///
/// # Errors
/// The errors of [`compile`].
pub fn ptx(text: &str, name: &str, target: &Target) -> Result<String, Error> {
    let (file, options) = (format!("{name}.cu"), target.settings());
    let (text, arch) = (code(text), target.arch);
    let (file, options) = (&*file, &*options);
    let own = ForeignText { text, file, arch, headers: HEADERS, options, names: &[] };
    Ok(compile_foreign(&own)?.ptx)
}

/// Compiles the text of the kernel `name` with this process's compiler for as many blocks as a multiprocessor holds,
/// and ignores the blocks of `target`: two blocks if NVRTC then spills no register, otherwise one block, in which each
/// thread has as many loads under way as the threads of two blocks have. Two blocks of lines have too few registers for
/// any type, and are not tried, for the assembler takes longest for them.
///
/// # Errors
/// The errors of [`compile`].
pub fn fit(text: &str, name: &str, target: &Target) -> Result<Fitted, Error> {
    let compiler = of_process()?;
    let fitted = |ctas| {
        let target = Target { ctas, ..target.clone() };
        compiler.compile(text, name, &target).map(|compiled| Fitted { compiled, target })
    };
    if target.threads <= TWICE && !text.contains(LINES) {
        let twice = fitted(2)?;
        if twice.compiled.spills() == 0 {
            return Ok(twice);
        }
    }
    fitted(1)
}

fn of_process() -> Result<&'static Compiler, Error> {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    let compiler = match COMPILER.get() {
        Some(compiler) => compiler,
        None => {
            let found = Compiler::new(Cache::of_process())?;
            COMPILER.get_or_init(|| found)
        }
    };
    Ok(compiler)
}

impl Compiler {
    /// A compiler that keeps its results in `disk`.
    ///
    /// # Errors
    /// E0415 if there is no NVRTC.
    pub fn new(disk: Cache) -> Result<Self, Error> {
        Ok(Self { nvrtc: Nvrtc::of_process()?, disk, memory: Mutex::default() })
    }

    /// Compiles the text of the kernel `name`. The same text for the same target is compiled once, whatever the comment
    /// above it says: loops are the same code for every rank count.
    ///
    /// # Errors
    /// E0416 for an architecture that this NVRTC does not know, E0417 for a text that NVRTC refuses.
    pub fn compile(&self, text: &str, name: &str, target: &Target) -> Result<Arc<Compiled>, Error> {
        let Nvrtc { archs, version, size, headers, .. } = self.nvrtc;
        if !archs.contains(&target.arch.number()) {
            let known: Vec<_> = archs.iter().map(|arch| format!("sm_{arch}")).collect();
            return Err(Error::BadArchitecture {
                given: target.arch.to_string(),
                why: format!("NVRTC {version} knows {}", known.join(", ")),
            });
        }
        let options = target.options(headers.as_deref());
        let build = format!("{version} {size}");
        let parts = [build.as_str(), name, code(text)].into_iter();
        let parts = parts.chain(HEADERS.iter().flat_map(|(name, text)| [*name, *text]));
        let key = cache::key(parts.chain(options.iter().map(String::as_str)));
        let once = lock(&self.memory).entry(key).or_default().clone();
        let mut once = lock(&once);
        if let Some(compiled) = &*once {
            return Ok(compiled.clone());
        }
        let build = || Nvrtc::build(text, &format!("{name}.cu"), HEADERS, &options, &[]);
        let built = self.disk.load_or_build(&key, build);
        let (built, not_kept) =
            built.map_err(|failure| self.refusal(failure, name, &target.arch.to_string()))?;
        let Built { cubin, ptx, log, .. } = built;
        let (warnings, usage) = (log::messages(&log), report::report(&log));
        let compiled = Arc::new(Compiled { cubin, ptx, log, warnings, usage, not_kept });
        *once = Some(compiled.clone());
        Ok(compiled)
    }

    /// Compiles a text that others wrote to PTX.
    ///
    /// # Errors
    /// E0416 for an architecture that this NVRTC does not know, E0417 for a text that NVRTC refuses.
    pub fn compile_foreign(&self, foreign: &ForeignText) -> Result<ForeignPtx, Error> {
        let ForeignText { text, file, arch, headers, options, names } = foreign;
        let arch = arch.to_string();
        // A virtual architecture: no assembler runs.
        let mut all = vec![
            format!("--gpu-architecture={}", arch.replace("sm_", "compute_")),
            "--std=c++17".to_owned(),
            "--generate-line-info".to_owned(),
            "--no-cache".to_owned(),
        ];
        all.extend(options.iter().cloned());
        all.extend(self.nvrtc.headers.iter().map(|folder| format!("-I{}", folder.display())));
        let build = || Nvrtc::build(text, file, headers, &all, names);
        // Of other headers the texts are not known here, so only a text without these is kept.
        let given = |name: &&(&str, &str)| text.contains(&format!("#include \"{}\"", name.0));
        let built = if text.matches("#include").count() > headers.iter().filter(given).count() {
            build()
        } else {
            let version = format!("{} {}", self.nvrtc.version, self.nvrtc.size);
            // NVRTC writes the file's name into the text as one that begins with this process's folder.
            let folder = std::env::current_dir().unwrap_or_default().display().to_string();
            let parts = [version.as_str(), folder.as_str(), *file, *text].into_iter();
            let parts = parts.chain(headers.iter().flat_map(|(name, text)| [*name, *text]));
            let parts = parts.chain(all.iter().map(String::as_str));
            let key = cache::key(parts.chain(names.iter().map(String::as_str)));
            // A cache that cannot be written costs time alone.
            self.disk.load_or_build(&key, build).map(|(built, _)| built)
        };
        let Built { ptx, names, .. } = built.map_err(|why| self.refusal(why, file, &arch))?;
        Ok(ForeignPtx { ptx, names })
    }

    fn refusal(&self, failure: Failure, name: &str, arch: &str) -> Error {
        let Failure { word, log } = failure;
        // NVRTC loads its builtins when it compiles.
        if log.contains("failed to open libnvrtc-builtins") {
            return Error::missing(Part::Nvrtc, [log.trim_end().replace('\n', " ")]);
        }
        // The variant letter does not exist for this generation.
        if log.contains("--nv_arch flag") || log.contains("--gpu-architecture") {
            return Error::BadArchitecture {
                given: arch.to_owned(),
                why: format!("NVRTC {} says: {}", self.nvrtc.version, first_line(&log)),
            };
        }
        let messages = log::messages(&log);
        if let Some(header) = log::missing_header(&messages) {
            let folders = self.nvrtc.header_folders.iter();
            let tried = folders.map(|folder| format!("not in {}", folder.display())).collect();
            return Error::NoCuda(Box::new(Missing { part: Part::Header(header), tried }));
        }
        let log = if log.trim().is_empty() { word } else { log };
        let (kernel, arch) = (name.to_owned(), arch.to_owned());
        Error::KernelRefused(Box::new(Refused { kernel, arch, messages, log }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn first_line(log: &str) -> &str {
    log.trim().lines().next().unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests;
