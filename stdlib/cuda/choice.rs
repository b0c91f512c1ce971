//! Choosing on a GPU: the predicted time of each kernel of the library, and so which one to launch.

use std::fmt;

use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::layout::Configured;
use roundelay_core::prove;
use roundelay_core::verify::{Callers, Proved};
use roundelay_export::cuda::{Form, Protocol};
use roundelay_kernels::cuda::{CudaOptions, CudaPlan, CudaWorld, Error, Outlook};
use roundelay_kernels::grid::{Estimate, Gpu};

use crate::select::{Refused, library, size, time};
use crate::{Algorithm as _, Collective, DType, ReduceOp};

/// The predicted times of all kernels of the library for one collective and size on one GPU, the fastest first, and the
/// algorithms without a kernel, with the reason.
///
/// [`select`] makes it; [`KernelChoice::plan`] makes a plan of the fastest. `Display` prints the table.
#[derive(Clone, Debug)]
pub struct KernelChoice {
    /// The collective that was asked about.
    pub collective: Collective,
    /// The number of ranks that was asked about, all on one GPU.
    pub nranks: u32,
    /// The size in bytes as nccl-tests counts it: the larger of a rank's two buffers.
    pub bytes: u64,
    /// The GPU of the model.
    pub gpu: Gpu,
    /// The kernels, the fastest first.
    pub ranked: Vec<KernelRow>,
    /// The algorithms without a kernel. The reason names form and protocol.
    pub refused: Vec<Refused>,
}

/// A kernel of an algorithm, with its predicted time.
#[derive(Clone, Debug)]
pub struct KernelRow {
    /// The name of the algorithm.
    pub algorithm: String,
    /// The form of the program in the kernel.
    pub form: Form,
    /// The protocol of its messages.
    pub protocol: Protocol,
    /// The number of CTAs that share a stream.
    pub parts: u32,
    /// The predicted time and its parts.
    pub estimate: Estimate,
}

/// Ranks the kernels of the library for `collective` by their predicted time for `bytes` bytes (nccl-tests' size: the
/// larger of input and output) on `nranks` ranks that share `gpu`: each algorithm as the author's loops, with every
/// protocol that it has, and as a table of the optimized operations. Parameters have their defaults. Nothing is
/// compiled, and no part of CUDA is needed. The book's page *On a GPU* compares the times of the model with measured ones;
/// see [`Estimate`].
///
/// ```
/// use roundelay::cuda::{Gpu, select};
/// use roundelay::{Collective, DType, ReduceOp};
///
/// let gpu = Gpu::find("H200").expect("the model knows it");
/// let choice = select(&gpu, Collective::AllReduce, 8, 1 << 10, DType::F32, ReduceOp::Sum);
/// let best = choice.best().expect("some algorithm takes 8 ranks");
/// println!("{}, {}: {:.1} us", best.algorithm, best.form, best.estimate.time * 1e6);
/// ```
pub fn select(
    gpu: &Gpu,
    collective: Collective,
    nranks: u32,
    bytes: u64,
    dtype: DType,
    op: ReduceOp,
) -> KernelChoice {
    let count = bytes / (collective.max_units(nranks) * dtype.size() as u64);
    let (mut ranked, mut refused) = (Vec::new(), Vec::new());
    for algorithm in library().iter().filter(|a| a.collective() == collective) {
        let refuse = |code, reason, help| Refused {
            algorithm: algorithm.name().to_owned(),
            code,
            reason,
            help,
        };
        let proved = match prove(algorithm, nranks) {
            Ok(proved) => proved,
            Err(findings) => {
                // The first is the worst.
                let first = findings.into_iter().next();
                refused.extend(
                    first.map(|Finding { code, title, help, .. }| refuse(code, title, help)),
                );
                continue;
            }
        };
        for (form, protocol) in candidates(algorithm) {
            match row(gpu, algorithm, &proved, (form, protocol), count, (dtype, op)) {
                Ok(row) => ranked.push(row),
                Err(why) => {
                    let (code, reason, help) = reason(why);
                    let name = protocol.name();
                    refused.push(refuse(code, format!("as {form}, {name}: {reason}"), help));
                }
            }
        }
    }
    // Kernels whose times are equal in the model are ordered as well.
    let picoseconds = |row: &KernelRow| (row.estimate.time * 1e12).round();
    ranked.sort_by(|a, b| {
        let by_time = picoseconds(a).total_cmp(&picoseconds(b));
        by_time.then_with(|| a.algorithm.cmp(&b.algorithm))
    });
    KernelChoice { collective, nranks, bytes, gpu: gpu.clone(), ranked, refused }
}

/// Returns the forms and protocols that an algorithm has.
fn candidates(algorithm: &Configured) -> Vec<(Form, Protocol)> {
    let loops = Protocol::of_loops(algorithm).iter().map(|protocol| (Form::Loops, *protocol));
    loops.chain([(Form::Table, Protocol::Direct)]).collect()
}

fn row(
    gpu: &Gpu,
    algorithm: &Configured,
    proved: &Proved,
    (form, protocol): (Form, Protocol),
    count: u64,
    (dtype, op): (DType, ReduceOp),
) -> Result<KernelRow, Error> {
    let options = CudaOptions::new().form(form).protocol(protocol);
    let kernel = options.kernel(algorithm, proved, (dtype, op), Callers::One)?;
    let shape = Outlook::expected_shape(&kernel, count, gpu, options)?;
    let estimate = Estimate::for_launch(&kernel, count, gpu, shape);
    let (algorithm, protocol) = (algorithm.name().to_owned(), kernel.spec.protocol);
    let parts = shape.parts;
    Ok(KernelRow { algorithm, form, protocol, parts, estimate })
}

/// Returns why there is no kernel.
fn reason(error: Error) -> (Code, String, Option<String>) {
    match error {
        Error::NoKernel(why) if !why.is_empty() => {
            let Diagnostic { code, title, help, .. } =
                why.into_iter().next().expect("the reasons are not empty");
            (code, title, help)
        }
        other => (other.code(), other.to_string(), None),
    }
}

impl KernelChoice {
    /// Returns the fastest kernel; `None` where there is none.
    pub fn best(&self) -> Option<&KernelRow> {
        self.ranked.first()
    }

    /// Makes a plan of the fastest kernel for the ranks of `world`, for `count` elements a unit (NCCL's count). The
    /// size of the choice does not set the count.
    ///
    /// # Errors
    /// [`Error::NoneFits`](crate::Error::NoneFits) where there is no kernel, with the first reason; else the errors of
    /// [`OnDevice`](super::OnDevice).
    pub fn plan(
        &self,
        world: &CudaWorld,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<CudaPlan, crate::Error> {
        let Some(best) = self.best() else {
            let why = self.refused.first().map(|refused| (refused.code, refused.reason.clone()));
            let (collective, nranks) = (self.collective, self.nranks);
            return Err(crate::Error::NoneFits { collective, nranks, why });
        };
        let algorithm = library().iter().find(|known| known.name() == best.algorithm);
        let algorithm = algorithm.expect("these algorithms were ranked");
        let proved = crate::plans::proved(algorithm, world.nranks())?;
        let options = CudaOptions::new().form(best.form).protocol(best.protocol);
        Ok(CudaPlan::new(world, algorithm, &proved, count, (dtype, op), options)?)
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collective, nranks, bytes, gpu, ranked, refused } = self;
        writeln!(f, "{collective} of {} on {nranks} ranks of one GPU\n", size(*bytes))?;
        let width = ranked.iter().map(|row| row.algorithm.len()).max().unwrap_or(0).max(9);
        if !ranked.is_empty() {
            writeln!(f, "{:width$}  form   protocol  predicted  signals  CTAs", "algorithm")?;
        }
        for KernelRow { algorithm, form, protocol, parts, estimate } in ranked {
            let (form, protocol, time) = (form.to_string(), protocol.name(), time(estimate.time));
            let waits = estimate.waits;
            writeln!(
                f,
                "{algorithm:width$}  {form:5}  {protocol:8} {time:>10} {waits:>8} {parts:>5}"
            )?;
        }
        if !refused.is_empty() {
            writeln!(f, "\nrefused")?;
        }
        for Refused { algorithm, code, reason, .. } in refused {
            writeln!(f, "{algorithm} [{code}]: {reason}")?;
        }
        writeln!(f, "\nby a model of the GPU:")?;
        let lines = gpu.assumptions();
        for line in &lines[..lines.len() - 1] {
            writeln!(f, "{line}")?;
        }
        write!(f, "{}", lines[lines.len() - 1])
    }
}
