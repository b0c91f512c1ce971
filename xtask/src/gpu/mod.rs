//! `cargo xtask gpu-test`: everything that only a GPU can show. Correctness of every algorithm, also below
//! compute-sanitizer and over NCCL's sends and receives, then speed beside torch and NCCL; the figures become a page of the book.

mod figures;
mod page;

use std::path::Path;
use std::process::Command;

use crate::command::{output, root, there};
use crate::peers;
use figures::Figures;

const USAGE: &str = "\
usage: cargo xtask gpu-test [--quick] [--device N] [--dry-run]
  --quick      few rank counts and types, sizes to 16 MiB
  --device N   the GPU to use, the first if not given
  --dry-run    no GPU: the same checks with kernels on CPU threads, and no figures";

/// Where the figures go.
const PAGE: &str = "book/src/results/gpu.md";
/// How `gpu-check` ends where something that it needs is not there.
const NOT_THERE: i32 = 3;
/// How long a wait may last below a sanitizer, which makes kernels a hundred times slower.
const PATIENCE: &str = "600";

struct Args {
    quick: bool,
    dry_run: bool,
    device: u32,
}

fn args(given: &[&str]) -> Result<Args, String> {
    let mut args = Args { quick: false, dry_run: false, device: 0 };
    let mut given = given.iter();
    while let Some(arg) = given.next() {
        match *arg {
            "--quick" => args.quick = true,
            "--dry-run" => args.dry_run = true,
            "--device" => {
                let number = given.next().and_then(|number| number.parse().ok());
                args.device = number.ok_or(USAGE)?;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(args)
}

pub(crate) fn run(given: &[&str]) -> Result<(), String> {
    let args = args(given)?;
    let root = root();
    crate::nvrtc::install(&root)?;
    let check = peers::build(&root, "roundelay-tests", "gpu-check")?;
    let quick = args.quick.then_some("--quick");
    if args.dry_run {
        println!("== dry run: no GPU takes part; kernels run on CPU threads, compiled by g++");
        show(Command::new(&check).arg("shim").args(quick))?;
        println!("== nothing ran on hardware, so there are no figures");
        return Ok(());
    }
    let device = args.device.to_string();
    let on_gpu = ["cuda", "--device", &device];
    println!("== every algorithm against the host's engine");
    show(Command::new(&check).args(on_gpu).args(quick))?;
    over_nccl(&check, &device, args.quick)?;
    let sanitized = sanitize(&check, &on_gpu)?;
    println!("== speed");
    let ours = peers::build(&root, "roundelay-cli", "roundelay")?;
    let figures = Figures::measure(&root, &ours, args.device, args.quick)?;
    let page = page::render(&figures, &sanitized);
    print!("{page}");
    let path = root.join(PAGE);
    std::fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("== {PAGE} is written");
    figures.verdict()
}

/// The same over NCCL's sends and receives, or why not: from 2.30 on it lets ranks share a device.
fn over_nccl(check: &Path, device: &str, quick: bool) -> Result<(), String> {
    println!("== every algorithm over NCCL's sends and receives");
    let mut command = Command::new(check);
    command.args(["nccl", "--device", device]).args(quick.then_some("--quick"));
    // What is loaded late waits for the whole device, and so for ranks that wait.
    command.env("NCCL_MULTI_RANK_GPU_ENABLE", "1").env("CUDA_MODULE_LOADING", "EAGER");
    if let (None, Some(wheel)) = (std::env::var_os("ROUNDELAY_NCCL"), wheel()) {
        command.env("ROUNDELAY_NCCL", wheel);
    }
    match command.status() {
        Ok(status) if status.code() == Some(NOT_THERE) => {
            println!("== skipped: no NCCL that can do it");
            Ok(())
        }
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?} did not start: {error}")),
    }
}

/// The folder of the NCCL that Python's packages bring, if they do.
fn wheel() -> Option<String> {
    let script = "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0] + '/lib')";
    let found = output(Command::new("python3").args(["-c", script])).ok()?;
    Some(found.trim().to_owned())
}

/// A few of the checks below NVIDIA's sanitizer: what each tool said, or why it was not asked.
fn sanitize(check: &Path, on_gpu: &[&str]) -> Result<Vec<String>, String> {
    const SANITIZER: &str = "compute-sanitizer";
    if !there(SANITIZER) {
        let why = format!("{SANITIZER} is not in the path; the CUDA toolkit has it");
        println!("== skipped: {why}");
        return Ok(vec![format!("not asked: {why}")]);
    }
    let mut said = Vec::new();
    for tool in ["memcheck", "racecheck"] {
        println!("== {SANITIZER} --tool {tool}");
        let mut command = Command::new(SANITIZER);
        command.args(["--tool", tool, "--error-exitcode", "9"]).arg(check).args(on_gpu);
        show(command.args(["--quick", "--patience", PATIENCE]))?;
        said.push(format!("{tool}: nothing found"));
    }
    Ok(said)
}

/// Runs a command in sight.
fn show(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} ended with {status}")),
        Err(error) => Err(format!("{shown} did not start: {error}")),
    }
}

/// The JSON documents of a command's lines.
fn lines(command: &mut Command) -> Result<Vec<serde_json::Value>, String> {
    let text = output(command)?;
    let document = |line: &str| serde_json::from_str(line).map_err(|e| format!("{e} in `{line}`"));
    text.lines().filter(|line| !line.trim().is_empty()).map(document).collect()
}
