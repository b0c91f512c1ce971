//! The repository's own tasks; `cargo xtask` without a job lists them.

use std::process::ExitCode;

mod book;
mod command;
mod editors;
mod gpu;
mod green;
mod install;
mod jobs;
mod kernels;
mod mpi;
mod nccl;
mod nvrtc;
mod packages;
mod pages;
mod parser;
mod playground;
mod python;
mod switches;
mod test;
mod test_times;
mod torch;
mod wheel;

use book::Wanted;
use test::Extent;

const USAGE: &str = "\
usage: cargo xtask test              every check that CI runs, after installing what they need
       cargo xtask test --all        the same, and what seldom finds more: before a release, and by hand
       cargo xtask book              the book into target/book, with its playground, and whether its links lead anywhere
       cargo xtask book --whole      the same, and every program of its pages in a browser
       cargo xtask test --from N     the same, from check N on; --all --from N too
       cargo xtask editors           the extension for VS Code: bundled, tested and packaged
       cargo xtask book --command    the same as without a flag, and an optimized command that has the book in it
       cargo xtask mutants           every mutant of every algorithm, against the exact oracles
       cargo xtask sweeps            every algorithm as messages, and every kernel, at every rank count
       cargo xtask failures          a failure of every rank at every place of a call, where ranks are processes
       cargo xtask aarch64           tests of the engines in the instructions of aarch64, by qemu-user
       cargo xtask calibrate         the model's constants of this machine, beside the library's
       cargo xtask calibrate --write the same, into core/simulate/src/cost/host.costs
       cargo xtask gpu-test          kernels on a GPU in ten minutes: right, below sanitizers, how fast; --rehearse without one
       cargo xtask install MPI       an MPI below target/: openmpi, mpich, impi; openmpi4 is Debian's
       cargo xtask mpi               the whole library as C files, by every MPI that can be installed
       cargo xtask mpi JOB           programs of MPI whose calls our library takes over: programs, mpi4py, imb, mpich, hosts, bench
       cargo xtask nccl              NCCL below target/, which tests of the library before it need
       cargo xtask nvrtc             CUDA's compiler below target/, which tests of kernels need
       cargo xtask kernels           communication kernels of other projects, from checkouts, by `kernel check`; into the book
       cargo xtask peers             our algorithms beside Open MPI's, which it installs, in one run
       cargo xtask peers --processes ranks as processes, beside Intel MPI and Open MPI of PyPI
       cargo xtask ptx               every kernel's PTX by an interpreter, beside the host's engine
       cargo xtask ptx --mutants     kernels with mistakes in the device headers, each of which must be found
       cargo xtask capi --prefix DIR the C library, optimized, with header and pkg-config file; NCCL's tuner plugin
       cargo xtask python            the Python package's tests, without torch
       cargo xtask torch             its backend of torch.distributed beside Gloo, with PyTorch, which it installs
       cargo xtask torch --suite     PyTorch's own tests of backends, by both
       cargo xtask torch --bench     times of collectives and of a training step, by both
       cargo xtask wheel             the Python package as a wheel in target/wheels, tried in fresh environments; --dev quickly
       cargo xtask reach             how many ranks each algorithm of the library is proved for, into the book
       cargo xtask synthesis         the trees that are found for known machines, into the book
       cargo xtask packages          what would be published, packed and compiled by itself
       cargo xtask parser            generate the parser and the lexer from the grammar
       cargo xtask parser --check    say whether the committed ones are fresh";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["test"] => test::from(1, Extent::Usual),
        ["test", "--all"] => test::from(1, Extent::All),
        ["test", all @ .., "--from", step] if matches!(all, [] | ["--all"]) => {
            step.parse().map_err(|_| format!("{step} is no number of a step")).and_then(|step| {
                test::from(step, if all.is_empty() { Extent::Usual } else { Extent::All })
            })
        }
        ["editors"] => editors::package(&command::root()),
        ["book"] => book::whole(&command::root(), Wanted::Pages),
        ["book", "--whole"] => book::whole(&command::root(), Wanted::Tests),
        ["book", "--command"] => book::whole(&command::root(), Wanted::Command),
        ["mutants"] => jobs::calls(jobs::MUTANTS),
        ["sweeps"] => jobs::sweeps(),
        ["failures"] => jobs::calls(jobs::FAILURES),
        ["aarch64"] => jobs::aarch64(),
        ["calibrate"] => jobs::calls(jobs::CALIBRATE),
        ["calibrate", "--write"] => jobs::calls(jobs::CALIBRATE_WRITE),
        ["gpu-test", rest @ ..] => gpu::run(rest),
        ["install", name] => mpi::named(name),
        ["mpi", rest @ ..] => mpi::run(rest),
        ["nccl"] => nccl::install(&command::root()),
        ["nvrtc"] => nvrtc::install(&command::root()),
        ["kernels", rest @ ..] => kernels::check(rest),
        ["peers", rest @ ..] => mpi::suites("peers", rest),
        ["capi", rest @ ..] => jobs::capi(rest),
        ["ptx", rest @ ..] => jobs::ptx(rest),
        ["python"] => python::check(&command::root()),
        ["torch", rest @ ..] => torch::all(rest),
        ["wheel", rest @ ..] => wheel::all(rest),
        ["reach", rest @ ..] => pages::reach(rest),
        ["synthesis", rest @ ..] => pages::synthesis(rest),
        ["packages"] => packages::check(&command::root()),
        ["parser", rest @ ..] => parser::generate(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
