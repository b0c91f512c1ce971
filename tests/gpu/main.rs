//! Every algorithm of the library as a kernel, on a GPU or on CPU threads, bit for bit against the host's engine; see
//! `USAGE`. `cargo xtask gpu-test` calls it, also below compute-sanitizer. Where there is no NCCL for it, `gpu-check nccl`
//! says so and ends with 3.

mod cases;
mod cuda;
mod engine;
mod forms;
mod instructions;
mod litmus;
mod machines;
mod mutants;
mod operands;
mod order;
mod processes;
#[path = "../../kernels/ptx/tests/programs.rs"]
mod programs;
mod ptx;
mod ranks;
mod runner;
mod shim;
#[path = "../driver/variables.rs"]
#[allow(dead_code, reason = "tests below the driver use the rest")]
mod variables;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use cuda::Kernels;
use engine::Engine;
use mutants::{Choice, Extent};
use order::Order;
use roundelay::{Algorithm as _, DType, select};
use roundelay_kernels::cuda::{Arch, Cache, Compiler, Target};
use runner::Limits;

const USAGE: &str = "\
usage: gpu-check cuda|ranks|processes|shim|ptx|ptx-mutants|instructions|litmus|nccl|compile|nvrtc [OPTION]...
  cuda              kernels on a GPU, all ranks on it
  processes         ranks with a process each on a GPU: results, times, and news of a rank that ends
  shim              kernels on CPU threads, compiled by g++
  ptx               the PTX that NVRTC makes of kernels for --arch, by an interpreter
  ptx-mutants       the same of kernels with mistakes in the device headers, each of which must be found
  instructions      every form of an instruction on a GPU beside the interpreter of PTX
  litmus            the small programs of the memory model on a GPU
  nccl              sends and receives of NCCL on a GPU
  compile           kernels by NVRTC for --arch, and none of them run
  nvrtc             one kernel by NVRTC, with CUDA's headers, and where that NVRTC lies
  --quick           few rank counts and types, and three launches in a row; of `ptx-mutants` kernels on several devices
  --small           no large counts, for a device with little memory
  --only NAME,...   these algorithms; mistakes, forms or programs with one of these words in their names
  --device N        the GPU, the first if not given
  --patience SECS   how long a wait of a kernel may last
  --budget SECS     when to end, whether all is done or not
  --from N          the first case that is run, 0 if not given
  --arch sm_N       what `compile` and `ptx` compile for, sm_90 if not given
  --define NAME,... macros ROUNDELAY_NAME for `ptx-mutants`, which choose variants of the headers
  --texts DIR       write the PTX of `instructions` or `litmus`, and run none of it";

/// The arguments of the command line.
struct Args {
    kind: String,
    quick: bool,
    small: bool,
    only: Vec<String>,
    device: usize,
    patience: Duration,
    budget: Option<Duration>,
    from: usize,
    arch: Arch,
    defines: Vec<String>,
    texts: Option<PathBuf>,
}

/// Why nothing is checked.
enum Refused {
    Usage(String),
    /// Something that this machine does not have.
    NotThere(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Usage(why)
    }
}

fn number(flag: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{flag} takes a number, not `{value}`; {USAGE}"))
}

fn args() -> Result<Args, String> {
    let mut given = std::env::args().skip(1);
    let mut args = Args {
        kind: given.next().ok_or(USAGE)?,
        quick: false,
        small: false,
        only: Vec::new(),
        device: 0,
        patience: Duration::from_secs(10),
        budget: None,
        from: 0,
        arch: "sm_90".parse().expect("an architecture"),
        defines: Vec::new(),
        texts: None,
    };
    while let Some(flag) = given.next() {
        let mut value = || given.next().ok_or(format!("{flag} takes a value; {USAGE}"));
        match flag.as_str() {
            "--quick" => args.quick = true,
            "--small" => args.small = true,
            "--only" => args.only.extend(value()?.split(',').map(str::to_owned)),
            "--device" => args.device = number(&flag, &value()?)? as usize,
            "--patience" => args.patience = Duration::from_secs(number(&flag, &value()?)?),
            "--budget" => args.budget = Some(Duration::from_secs(number(&flag, &value()?)?)),
            "--from" => args.from = number(&flag, &value()?)? as usize,
            "--define" => {
                args.defines.extend(value()?.split(',').map(str::to_owned));
            }
            "--texts" => args.texts = Some(value()?.into()),
            "--arch" => args.arch = value()?.parse().map_err(|error| format!("{error}"))?,
            other => return Err(format!("no flag {other}; {USAGE}")),
        }
    }
    let known = |name: &String| select::library().iter().any(|a| a.name() == *name);
    let of_algorithms = !["ptx-mutants", "instructions", "litmus"].contains(&args.kind.as_str());
    if let Some(name) = args.only.iter().find(|name| of_algorithms && !known(name)) {
        return Err(format!("the library has no algorithm {name}; `roundelay list` shows all"));
    }
    Ok(args)
}

fn main() -> ExitCode {
    let begun = Instant::now();
    match args().map_err(Refused::Usage).and_then(|args| check(&args, begun)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(Refused::Usage(why)) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
        Err(Refused::NotThere(why)) => {
            println!("# not checked: {why}");
            ExitCode::from(3)
        }
    }
}

/// How many checks failed.
fn check(args: &Args, begun: Instant) -> Result<usize, Refused> {
    let Args { device, patience, small, quick, only, .. } = args;
    let limits =
        Limits { from: args.from, end: args.budget.map(|budget| begun + budget), quick: *quick };
    let engine: Box<dyn Engine> = match args.kind.as_str() {
        "cuda" => Box::new(cuda::Cuda::new(*device, *patience, *small)?),
        "shim" => Box::new(shim::Threads),
        "ptx" => Box::new(ptx::Instructions::new(args.arch)),
        "ptx-mutants" => {
            let choice = Choice { arch: args.arch, defines: args.defines.clone() };
            let extent = if *quick { Extent::SeveralDevices } else { Extent::Whole };
            return Ok(mutants::all(&choice, extent, only, args.from));
        }
        "instructions" => return instructions(args, limits.end).map_err(Refused::from),
        "litmus" => return litmus(args).map_err(Refused::from),
        "processes" => {
            let end = limits.end;
            let checks =
                processes::RankChecks { device: *device, patience: *patience, quick: *quick, end };
            return processes::check(checks).map_err(Refused::Usage);
        }
        "ranks" => Box::new(ranks::Ranks::as_processes(*device, *patience)?),
        "nccl" => match ranks::Ranks::over_nccl(*device, *patience) {
            Ok(nccl) => Box::new(nccl),
            Err(why) => return Err(Refused::NotThere(why)),
        },
        "compile" => {
            let kernels = Kernels::new(args.arch);
            println!("# {}", kernels.about());
            let order = Order::new(&kernels, only, *quick);
            return Ok(runner::compile(&kernels, &order, &limits));
        }
        "nvrtc" => {
            println!("{}", nvrtc(args.arch)?);
            return Ok(0);
        }
        other => return Err(format!("no engine {other}; {USAGE}").into()),
    };
    println!("# {}", engine.about());
    for dtype in DType::ALL {
        if let Some(why) = engine.lacks(*dtype) {
            println!("# no cases of {dtype}: {why}");
        }
    }
    let order = Order::new(engine.as_ref(), only, *quick);
    if limits.from > order.len() {
        return Err(format!("there are {} cases, so none from {}", order.len(), limits.from).into());
    }
    let outcome = runner::run(engine.as_ref(), &order, &limits);
    if !outcome.lost {
        return Ok(outcome.failed);
    }
    let left = limits.end.map(|end| end.saturating_duration_since(Instant::now()));
    println!("# this process has lost the device at case {}", outcome.reached);
    if outcome.reached == order.len() || left.is_some_and(|left| left.as_secs() == 0) {
        return Ok(outcome.failed);
    }
    // Another process begins after the case that did it, and goes on.
    let again = again(outcome.reached, left);
    Ok(outcome.failed + usize::from(!again?))
}

/// Whether one of the words of `--only` is in a name, or there are none.
fn wanted(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|word| name.contains(word.as_str()))
}

/// Writes texts of PTX, each into a file of its own.
fn write(folder: &Path, texts: impl Iterator<Item = (String, String)>) -> Result<usize, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (name, text) in texts {
        std::fs::write(folder.join(name + ".ptx"), text).map_err(failed)?;
    }
    Ok(0)
}

/// How many forms of instructions have other results on the GPU than by the interpreter.
fn instructions(args: &Args, end: Option<Instant>) -> Result<usize, String> {
    let mut forms = forms::all();
    forms.retain(|form| wanted(&args.only, &form.text));
    if let Some(folder) = &args.texts {
        return write(folder, instructions::texts(&forms));
    }
    let (gpu, begun) = (machines::Gpu::new(args.device)?, Instant::now());
    println!("# every form of an instruction on {} beside the interpreter", gpu.name());
    let found = instructions::compare(&gpu, &forms, end);
    print!("{}", found.told);
    println!(
        "# {} forms, {} inputs: {} alike, {} other, {} without time, {} s",
        forms.len(),
        found.rows,
        found.same,
        found.other,
        found.left,
        begun.elapsed().as_secs()
    );
    Ok(found.other)
}

/// How many programs of the memory model have outcomes on the GPU that the model forbids.
fn litmus(args: &Args) -> Result<usize, String> {
    let mut programs = programs::all();
    programs.retain(|program| wanted(&args.only, &program.name));
    if let Some(folder) = &args.texts {
        return write(folder, programs.iter().filter_map(litmus::text));
    }
    let (gpu, begun) = (machines::Gpu::new(args.device)?, Instant::now());
    println!("# small programs of the memory model on {}", gpu.name());
    let budget = args.budget.unwrap_or(Duration::from_secs(20));
    let (mut failed, mut ran) = (0, 0);
    for (at, program) in programs.iter().enumerate() {
        // The programs that are left have the remaining time, in equal parts.
        let left = budget.saturating_sub(begun.elapsed()) / (programs.len() - at) as u32;
        let (line, wrong) = litmus::check(&gpu, program, litmus::WHOLE, left);
        println!("{line}");
        failed += usize::from(wrong);
        ran += usize::from(!line.contains(": skipped: "));
    }
    let seconds = begun.elapsed().as_secs();
    println!("# {} programs: {ran} run, {failed} wrong, {seconds} s", programs.len());
    Ok(failed)
}

/// Compiles a kernel that includes CUDA's headers; which NVRTC has done so.
fn nvrtc(arch: Arch) -> Result<String, String> {
    let text = "#include <cuda_bf16.h>\nextern \"C\" __global__ void one(__nv_bfloat16* at) { *at = 1; }\n";
    // Not one that was kept.
    let compiler = Compiler::new(Cache::off()).map_err(|error| error.to_string())?;
    compiler.compile(text, "one", &Target::new(arch)).map_err(|error| error.to_string())?;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let path =
        paths.find(|path| path.contains("/libnvrtc.so")).unwrap_or("a library of the loader");
    Ok(format!("{path} compiles for {arch}"))
}

/// Goes on in a process of its own; whether nothing was wrong there.
fn again(from: usize, left: Option<Duration>) -> Result<bool, String> {
    let failed = |error: std::io::Error| format!("this program does not start again: {error}");
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(std::env::args().skip(1)).args(["--from", &from.to_string()]);
    if let Some(left) = left {
        command.args(["--budget", &left.as_secs().to_string()]);
    }
    Ok(command.status().map_err(failed)?.success())
}
