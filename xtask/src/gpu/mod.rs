//! `cargo xtask gpu-test`: all checks that need a GPU, in one command of ten minutes at most. The interpreter of PTX
//! beside the GPU; correctness of every algorithm, also below compute-sanitizer and over NCCL's sends and receives; and
//! speed beside torch and NCCL. A step that fails does not stop the next ones, and after each of them the figures become
//! a page.

mod figures;
mod pack;
mod page;
mod places;
mod plan;
mod rehearse;
mod steps;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::command::{root, run as show};
use places::Programs;
use plan::Setup;
use steps::Record;

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
/// The folder of the output by default.
const OUT: &str = "target/gpu-test";
/// The peers that are measured beside ours, each by a script in `xtask/peers`.
const PEERS: [(&str, &str); 2] = [("torch", "torch_sum.py"), ("NCCL", "nccl_one_gpu.py")];

#[derive(Default)]
struct Args {
    quick: bool,
    dry_run: bool,
    rehearse: bool,
    device: u32,
    out: Option<PathBuf>,
    built: Option<PathBuf>,
    pack: Option<PathBuf>,
}

fn args(given: &[&str]) -> Result<Args, String> {
    let mut args = Args::default();
    let mut given = given.iter();
    while let Some(arg) = given.next() {
        let mut folder = || given.next().map(PathBuf::from).ok_or(USAGE);
        match *arg {
            "--quick" => args.quick = true,
            "--dry-run" => args.dry_run = true,
            "--rehearse" => args.rehearse = true,
            "--out" => args.out = Some(folder()?),
            "--built" => args.built = Some(folder()?),
            "--pack" => args.pack = Some(folder()?),
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
    if let Some(folder) = &args.pack {
        return pack::pack(folder);
    }
    if args.dry_run {
        return dry_run(args.quick);
    }
    // Builds are no part of the ten minutes.
    let programs = match &args.built {
        Some(folder) => Programs::packed(folder)?,
        None => Programs::built(if args.rehearse { "dev" } else { "release" })?,
    };
    let out = args.out.unwrap_or_else(|| match args.built {
        Some(_) => OUT.into(),
        None => root().join(OUT),
    });
    std::fs::create_dir_all(&out).map_err(|why| format!("{}: {why}", out.display()))?;
    let out = out.canonicalize().map_err(|why| format!("{}: {why}", out.display()))?;
    if args.built.is_none() {
        crate::nvrtc::install(&root())?;
    }
    let setup = if args.rehearse {
        rehearse::setup(programs, &out)?
    } else {
        Setup::new(programs, &out, args.device, args.quick)
    };
    let pages = pages(&setup, &out, args.built.is_some());
    let total = Duration::from_secs(setup.total());
    let write = |records: &[Record]| write(&setup, records, &pages);
    let records = steps::all(&setup.steps(), total, &out, write);
    println!(
        "== {}",
        pages.iter().map(|page| page.display().to_string()).collect::<Vec<_>>().join(" and ")
    );
    steps::verdict(&records)
}

/// Returns the files of the page: beside the output, and in the book of the clone, or of a clone that this runs in. The
/// page of a rehearsal is not written into the book.
fn pages(setup: &Setup, out: &Path, built: bool) -> Vec<PathBuf> {
    let clone = if built { PathBuf::from(".") } else { root() };
    let book = clone.join(PAGE);
    let wanted = !setup.rehearsal && book.exists();
    std::iter::once(out.join("gpu.md")).chain(wanted.then_some(book)).collect()
}

/// Writes the page as far as the steps have come; an error where a result is wrong, too.
fn write(setup: &Setup, records: &[Record], pages: &[PathBuf]) -> Result<(), String> {
    let figures = figures::Figures::of(setup.nranks, records);
    let page = page::render(&figures, records, setup.rehearsal);
    // Without a figure the book's page is left as it is.
    let many = if figures.device.is_some() { pages.len() } else { 1 };
    for path in &pages[..many] {
        std::fs::write(path, &page).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    figures.verdict()
}

fn dry_run(quick: bool) -> Result<(), String> {
    let programs = Programs::built("release")?;
    println!("== dry run: no GPU takes part; kernels run on CPU threads, compiled by g++");
    show(Command::new(&programs.check).arg("shim").args(quick.then_some("--quick")))?;
    println!("== nothing ran on hardware, so there are no figures");
    Ok(())
}
