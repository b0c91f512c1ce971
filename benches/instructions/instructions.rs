//! Instructions that the compiler takes, stage by stage: the same on a busy machine as on an idle one.
//! `cargo bench -p roundelay-instructions`; it needs valgrind, and gungraun's runner of the library's version.

use std::process::{Command, ExitCode, Stdio};

/// As the library finds it: by a variable at build time, or in the path.
const RUNNER: &str = match option_env!("GUNGRAUN_RUNNER") {
    Some(path) => path,
    None => "gungraun-runner",
};

/// What must be there, and how to get it.
const TOOLS: [(&str, &str); 2] = [
    ("valgrind", "install it (Debian and Ubuntu: `apt-get install valgrind`)"),
    (RUNNER, "`cargo install gungraun-runner --version 0.20.0`"),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    // The runner calls this binary again, under valgrind and without an environment.
    if args.get(1).is_some_and(|arg| arg == "--gungraun-run") {
        counted::main_of_gungraun();
        return ExitCode::SUCCESS;
    }
    // `cargo test --benches`.
    if !args.iter().any(|arg| arg == "--bench") {
        println!("instructions are counted by `cargo bench -p roundelay-instructions`");
        return ExitCode::SUCCESS;
    }
    let mut missing = TOOLS.iter().filter(|(tool, _)| !starts(tool)).peekable();
    if missing.peek().is_some() {
        for (tool, how) in missing {
            eprintln!("no instructions counted: `{tool}` does not start; {how}");
        }
        return ExitCode::FAILURE;
    }
    counted::main_of_gungraun();
    ExitCode::SUCCESS
}

/// Whether there is such a program; what it says of its arguments does not matter.
fn starts(tool: &str) -> bool {
    let mut command = Command::new(tool);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

mod counted {
    use std::hint::black_box;

    use gungraun::prelude::*;
    use roundelay::Algorithm as _;
    use roundelay::library::{self, RingAllReduce};
    use roundelay_core::check::Frontend;
    use roundelay_core::diagnostics::{Diagnostic, Finding};
    use roundelay_core::optimize::elide::{Elided, elide};
    use roundelay_core::optimize::{Unfit, fuse};
    use roundelay_core::program::CompiledSource;
    use roundelay_core::schedule::Schedule;
    use roundelay_core::syntax::Source;
    use roundelay_core::verify::Callers;
    use roundelay_core::verify::{Proof, verify};

    fn source() -> Source {
        let (file, text) = library::SOURCES[0];
        Source::from_text(file, text)
    }

    fn ring() -> Schedule {
        RingAllReduce::new().schedule(64).expect("it can be laid out")
    }

    #[library_benchmark]
    #[bench::ring(source())]
    fn compile(source: Source) -> Result<CompiledSource, Vec<Diagnostic>> {
        black_box(roundelay_core::compile(black_box(&source), Frontend::File))
    }

    #[library_benchmark]
    #[bench::ring_64(64)]
    fn lay_out(nranks: u32) -> Result<Schedule, Vec<Finding>> {
        black_box(RingAllReduce::new().schedule(black_box(nranks)))
    }

    #[library_benchmark]
    #[bench::ring_64(ring())]
    fn prove(ring: Schedule) -> Result<Proof, Vec<Finding>> {
        black_box(verify(black_box(&ring)))
    }

    #[library_benchmark]
    #[bench::ring_64_one_caller(ring(), Callers::One)]
    #[bench::ring_64_each_rank(ring(), Callers::Each)]
    fn fusion(ring: Schedule, callers: Callers) -> Result<Schedule, Unfit> {
        black_box(fuse(black_box(&ring), callers, false))
    }

    #[library_benchmark]
    #[bench::ring_64_one_caller(ring(), Callers::One)]
    #[bench::ring_64_each_rank(ring(), Callers::Each)]
    fn elision(ring: Schedule, callers: Callers) -> Result<Elided, Vec<Finding>> {
        black_box(elide(black_box(&ring), callers))
    }

    library_benchmark_group!(
        name = compiler,
        benchmarks = [compile, lay_out, prove, fusion, elision]
    );
    main!(library_benchmark_groups = compiler);

    pub(super) fn main_of_gungraun() {
        main();
    }
}
