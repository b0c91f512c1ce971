//! `roundelay emit cuda` and `emit ptx`: a program as a GPU gets it. Apart from the rest of `emit`, because only
//! this needs a compiler that may not be there.

use clap::{Args, ValueEnum};
use roundelay::{DType, Level, ReduceOp};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::layout::Configured;
use roundelay_core::optimize::Goal;
use roundelay_core::prove_source;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Form, Kernel, Protocol, Spec};

use crate::flags::Callers;
#[cfg(feature = "cuda")]
use crate::output;
use crate::progress;
use crate::report::Failure;
use crate::values::{RefusedValue, count, dtype, level, reduce_op};

/// Bytes of the widest load that GPUs have.
pub(crate) const VECTOR: u32 = 16;

/// The count, dtype and op that a kernel is made for.
#[derive(Args)]
pub(crate) struct KernelFlags {
    #[command(flatten)]
    element: ElementFlag,
    /// Reduce op: sum prod min max avg band bor bxor land lor lxor; those from band on are for integers
    #[arg(long, default_value = "sum", value_parser = reduce_op)]
    op: ReduceOp,
    /// How data travels: direct, simple, ll or ll128 [default: simple for a program that sends and receives, else direct]
    #[arg(long, value_parser = protocol)]
    protocol: Option<Protocol>,
    /// How the kernel holds the algorithm
    #[arg(long, value_enum, default_value_t = FormFlag::Loops)]
    form: FormFlag,
    /// How the ranks are called: each begins and ends by itself, or one launch begins and ends all of them
    #[arg(long, value_enum, default_value_t = Callers::Each)]
    callers: Callers,
    /// With --form table: how much the optimizer may change: 0 nothing, 1 drops signals and joins moves, 2 fuses moves
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = Level::O2, value_parser = level)]
    level: Level,
}

/// The type of elements.
#[derive(Args)]
pub(crate) struct ElementFlag {
    /// Element type: i8 u8 i32 u32 i64 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2
    #[arg(long, default_value = "f32", value_parser = dtype)]
    pub(crate) dtype: DType,
}

/// The GPU that a kernel is compiled for.
#[derive(Args)]
pub(crate) struct TargetFlags {
    /// The GPU's architecture, such as `sm_80` or `sm_100`
    #[arg(long, default_value = "sm_90")]
    arch: String,
    /// Threads of a thread block (CTA), in whole warps of 32, from 64 to 1024; one warp walks the program, the others move
    #[arg(long, default_value_t = 256, value_parser = threads)]
    threads: u32,
}

/// The files of a program in C++ that runs a kernel.
#[derive(Args)]
pub(crate) struct HostFlags {
    /// Write the kernel, the headers that it includes, and a C++ program that runs it into this folder
    #[arg(long, value_name = "FOLDER")]
    headers: Option<String>,
    /// With --headers: elements of a unit in the program, as NCCL counts [default: 1048576]
    #[arg(long, value_name = "ELEMENTS", value_parser = count)]
    count: Option<u64>,
}

impl HostFlags {
    /// Returns the folder where files are asked for.
    pub(crate) fn folder(&self) -> Result<Option<&str>, Failure> {
        match (&self.headers, self.count) {
            (None, Some(_)) => Err(Failure::usage(
                Code::BadCall,
                "`--count` is of the program that `--headers` writes",
            )
            .with_help("a kernel alone is for every count")),
            (folder, _) => Ok(folder.as_deref()),
        }
    }

    /// Returns the elements of a unit.
    pub(crate) fn elements(&self) -> u64 {
        self.count.unwrap_or(1 << 20)
    }

    /// Writes the files, and says how they are built.
    #[cfg(feature = "cuda")]
    pub(crate) fn write(kernel: &Kernel, folder: &str, count: u64) -> Result<(), Failure> {
        let files = roundelay_kernels::cuda::host_program(kernel, count)?;
        std::fs::create_dir_all(folder).map_err(|error| output::unwritable(folder, &error))?;
        for (name, text) in &files {
            let path = format!("{folder}/{name}");
            std::fs::write(&path, text).map_err(|error| output::unwritable(&path, &error))?;
        }
        let name = &kernel.name;
        output::wrote(&format!(
            "{folder}/{name}.cu, {name}_host.cpp, roundelay_host.hpp and {} headers of the device; the first lines of \
             {name}_host.cpp have the commands that build and run it",
            files.len() - 3
        ));
        Ok(())
    }

    #[cfg(not(feature = "cuda"))]
    pub(crate) fn write(_: &Kernel, _: &str, _: u64) -> Result<(), Failure> {
        Err(without_cuda("no headers are here"))
    }
}

#[cfg(not(feature = "cuda"))]
fn without_cuda(what: &str) -> Failure {
    let title = format!("{what}: this `roundelay` was built without CUDA");
    Failure::usage(Code::NoCuda, title)
        .with_help("build it with the feature `cuda`, which is on by default")
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormFlag {
    /// The author's loops
    Loops,
    /// A table of ops that a fixed loop walks
    Table,
    /// A table of ops, of which a switch makes the moves of all ranks, by `multimem`; each rank has a device of its own
    Switch,
}

impl From<FormFlag> for Form {
    fn from(flag: FormFlag) -> Self {
        match flag {
            FormFlag::Loops => Self::Loops,
            FormFlag::Table => Self::Table,
            FormFlag::Switch => Self::Switch,
        }
    }
}

pub(crate) fn protocol(text: &str) -> Result<Protocol, RefusedValue> {
    Protocol::from_name(text).ok_or_else(|| {
        let names = Protocol::ALL.map(Protocol::name).join(", ");
        RefusedValue::new("is not a protocol").help(format!("the protocols are {names}"))
    })
}

pub(crate) fn threads(text: &str) -> Result<u32, RefusedValue> {
    let threads =
        text.parse().ok().filter(|n: &u32| (64..=1024).contains(n) && n.is_multiple_of(32));
    threads.ok_or_else(|| {
        RefusedValue::new("is not a number of whole warps").help("threads are 64, 96, … or 1024")
    })
}

impl KernelFlags {
    /// Refuses flags that are wrong for every program.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.op.check(self.element.dtype)?;
        has_protocol(self.form, self.protocol)
    }

    /// Returns the program as a kernel for `nranks` ranks.
    pub(crate) fn kernel(
        &self,
        algorithm: &Configured,
        nranks: u32,
    ) -> Result<Kernel, Vec<Diagnostic>> {
        let proved = progress::shown(|| prove_source(algorithm, nranks))?;
        let spec = Spec {
            element: self.element.dtype,
            op: self.op,
            protocol: self.protocol.unwrap_or_else(|| Protocol::for_algorithm(algorithm)),
            vector: VECTOR,
            callers: self.callers.into(),
        };
        let goal = Goal { level: self.level, callers: spec.callers, reassociate: false };
        kernel_of(algorithm, &proved, (self.form, spec), goal)
    }
}

/// Refuses a protocol that a form does not have.
pub(crate) fn has_protocol(form: FormFlag, protocol: Option<Protocol>) -> Result<(), Failure> {
    match protocol {
        Some(protocol) if form != FormFlag::Loops && protocol != Protocol::Direct => Err(Failure::usage(
            Code::NoSuchKernel,
            format!("the {} form has no protocol {}", Form::from(form), protocol.name()),
        )
        .with_help("leave --protocol out: a table holds the moves and signals of a fifo, too; or take --form loops")),
        _ => Ok(()),
    }
}

/// Returns a proved program as a kernel; `goal` is that of the schedule in a table.
pub(crate) fn kernel_of(
    algorithm: &Configured,
    proved: &Proved,
    (form, spec): (FormFlag, Spec),
    goal: Goal,
) -> Result<Kernel, Vec<Diagnostic>> {
    let at = algorithm.program().header();
    let place = |refused: Box<Diagnostic>| vec![Diagnostic { primary: at, ..*refused }];
    match form.into() {
        Form::Loops => Kernel::of_loops(algorithm, proved, spec),
        Form::Switch => Kernel::of_switch(proved, spec).map_err(place),
        Form::Table => {
            let made = proved.optimize(goal).map_err(|unproved| {
                vec![Diagnostic::new(Code::Unproved, at, unproved.to_string())]
            })?;
            Kernel::of_table(&made, spec).map_err(place)
        }
    }
}

impl TargetFlags {
    /// Refuses an architecture that does not exist.
    #[cfg_attr(not(feature = "cuda"), allow(clippy::unused_self, clippy::unnecessary_wraps))]
    pub(crate) fn check(&self) -> Result<(), Failure> {
        #[cfg(feature = "cuda")]
        compiled::arch(&self.arch)?;
        Ok(())
    }

    /// Returns the kernel for the assembler, under the assembler's report.
    #[cfg(feature = "cuda")]
    pub(crate) fn ptx(&self, kernel: &Kernel) -> Result<String, Failure> {
        compiled::ptx(kernel, compiled::arch(&self.arch)?, self.threads)
    }

    #[cfg(not(feature = "cuda"))]
    pub(crate) fn ptx(&self, _: &Kernel) -> Result<String, Failure> {
        Err(without_cuda(&format!("nothing is compiled for {}", self.arch)))
    }
}

#[cfg(feature = "cuda")]
mod compiled {
    use std::fmt::Write as _;

    use roundelay_export::cuda::Kernel;
    use roundelay_kernels::cuda::{Arch, Fitted, Target, fit};

    use crate::report::Failure;

    pub(super) fn arch(text: &str) -> Result<Arch, Failure> {
        Ok(text.parse()?)
    }

    pub(super) fn ptx(kernel: &Kernel, arch: Arch, threads: u32) -> Result<String, Failure> {
        let target = Target { threads, ..Target::new(arch) };
        let Fitted { compiled, target } = fit(&kernel.text, &kernel.name, &target)?;
        let ctas = target.ctas;
        let blocks = if ctas == 1 { "block" } else { "blocks" };
        let mut lines = vec![format!(
            "for {arch}, {threads} threads a block, {ctas} {blocks} a multiprocessor"
        )];
        lines.extend(compiled.usage.iter().map(ToString::to_string));
        lines.extend(compiled.warnings.iter().map(ToString::to_string));
        lines.extend(
            compiled.not_kept.iter().map(|why| format!("not kept for the next time: {why}")),
        );
        let mut shown = String::new();
        for line in lines.iter().flat_map(|line| line.lines()) {
            writeln!(shown, "// {line}").expect("a string grows");
        }
        Ok(shown + &compiled.ptx)
    }
}
