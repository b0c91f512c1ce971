//! `cargo xtask gpu-test`: all checks that need a GPU, in one command of ten minutes at most. The interpreter of PTX
//! beside the GPU; correctness of every algorithm, also below compute-sanitizer and over NCCL's sends and receives; and
//! speed beside torch and NCCL. A step that fails does not stop the next ones, and after each of them the figures become
//! a page.

mod places;
mod results_page;
mod test_plan;
mod timed_steps;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::command::{at, folder, program, root, run as show, write};
use crate::nvrtc;
use crate::switches::JobOptions;
use places::{Programs, pack};
use results_page::GpuTimes;
use test_plan::Setup;

const USAGE: &str = "\
usage: cargo xtask gpu-test [--quick] [--device N] [--out DIR] [--built DIR]
       cargo xtask gpu-test --rehearse [--out DIR] [--built DIR]
       cargo xtask gpu-test --dry-run [--quick]
       cargo xtask gpu-test --pack DIR
  --quick      less than five minutes: few rank counts and types, sizes to 16 MiB
  --device N   the GPU to use, the first if not given
  --out DIR    where the page and all output of the steps go, target/gpu-test if not given
  --built DIR  the programs that --pack made, for a machine without Rust: DIR/xtask gpu-test --built DIR
  --rehearse   the same steps without a GPU, on the driver for tests
  --dry-run    no GPU: kernels on CPU threads against the host's engine, and nothing else
  --pack DIR   build and strip what --built needs";

/// The file of the figures in a clone.
const PAGE: &str = "book/src/results/gpu.md";

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let options = JobOptions::read(USAGE, args)?;
    let device = options.value("--device", |text| text.parse().ok())?.unwrap_or(0);
    let (quick, rehearsal) = (options.has("--quick"), options.has("--rehearse"));
    if let Some(folder) = options.path("--pack") {
        return pack(&folder);
    }
    if options.has("--dry-run") {
        let check = Programs::built("release")?.check;
        println!("== dry run: no GPU takes part; kernels run on CPU threads, compiled by g++");
        let shim = &mut program(&check.to_string_lossy(), &["shim"]);
        show(shim.args(quick.then_some("--quick")))?;
        println!("== nothing ran on hardware, so there are no figures");
        return Ok(());
    }
    // A machine without Rust has no clone, or one that this runs in.
    let built = options.path("--built");
    let clone = if built.is_some() { PathBuf::from(".") } else { root() };
    let out = options.path("--out").unwrap_or_else(|| clone.join("target/gpu-test"));
    folder(&out)?;
    let out = fs::canonicalize(&out).map_err(at(&out))?;
    // Builds are no part of the ten minutes.
    let programs = match &built {
        Some(folder) => Programs::packed(folder)?,
        None => {
            nvrtc::install(&root())?;
            Programs::built(if rehearsal { "dev" } else { "release" })?
        }
    };
    let setup = if rehearsal {
        Setup::rehearsed(programs, &out)?
    } else {
        Setup::new(programs, &out, device, quick)
    };
    // The page of a rehearsal is not written into the book.
    let book = clone.join(PAGE);
    let mut pages = vec![out.join("gpu.md")];
    pages.extend((!rehearsal && book.exists()).then_some(book));
    let total = Duration::from_secs(setup.total());
    let commands = |step: &str, seconds, records: &_| setup.commands(step, seconds, records);
    let records = timed_steps::all(&setup.steps(), total, &out, commands, |records| {
        let times = GpuTimes::of(setup.nranks, records);
        let page = results_page::render(&times, records, rehearsal);
        // Without a figure the book's page is left as it is.
        let many = if times.device.is_some() { pages.len() } else { 1 };
        pages[..many].iter().try_for_each(|path| write(path, &page))?;
        times.verdict()
    });
    let shown: Vec<String> = pages.iter().map(|page| page.display().to_string()).collect();
    println!("== {}", shown.join(" and "));
    timed_steps::verdict(&records)
}
