//! Ranks on threads, each with memory of its own, over the test library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::messages::{Groups, TwoSided};
use roundelay_core::verify::Proved;
use roundelay_export::cuda::check_width;

use super::super::comm::{NcclId, NcclLink};
use super::super::issue::{FoldMemory, issue};
use super::super::library::Nccl;
use super::super::nccl_steps::{Bases, Steps};
use crate::buffers::Buffers;
use crate::cuda::error::Error;
use crate::reduce::{Kernel, MoveForm, Stores};
use crate::reference::fill;
use crate::threads::Plan;

pub(super) const DEADLINE: Duration = Duration::from_secs(30);

/// Compiles the library into a new folder.
fn compiled() -> PathBuf {
    let folder = tempfile::tempdir().expect("a folder for the test").keep();
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nccl/nccl.c");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    let mut command = Command::new(compiler);
    command
        .args(["-std=c11", "-shared", "-fPIC", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror"]);
    command.arg("-o").arg(folder.join("libnccl.so.2")).arg(text).arg("-ldl");
    let status = command.status().expect("a C compiler, as CC or cc");
    assert!(status.success(), "{command:?}: {status}");
    folder
}

/// The test library, found by its folder as NCCL is.
pub(super) fn nccl() -> &'static Nccl {
    static FOUND: OnceLock<Nccl> = OnceLock::new();
    FOUND.get_or_init(|| {
        let folder = compiled();
        let found =
            Nccl::find(Some(folder.clone().into())).unwrap_or_else(|error| panic!("{error}"));
        // A loaded library stays loaded.
        std::fs::remove_dir_all(folder).expect("a folder of the test");
        found
    })
}

/// A call of all ranks, brought to groups.
pub(super) struct Case {
    pub(super) proved: Proved,
    pub(super) form: TwoSided,
    groups: Groups,
    pub(super) count: u64,
    pub(super) kind: (DType, ReduceOp),
}

/// A rank's memory on the host.
struct OnHost {
    kernel: Kernel,
    /// Whether folds round after each source.
    chain: bool,
}

impl FoldMemory for OnHost {
    fn fold(&mut self, from: &[u64], to: u64, len: u64, divisor: i64) -> Result<(), Error> {
        let sources: Vec<*const u8> =
            from.iter().map(|at| ptr::with_exposed_provenance(*at as usize)).collect();
        let to: *mut u8 = ptr::with_exposed_provenance_mut(to as usize);
        let divide = (divisor != 0).then_some(divisor as u32);
        if sources == [to.cast_const()] && divide.is_none() {
            return Ok(());
        }
        // SAFETY: the addresses are within buffers of this rank's thread, equal or apart because the schedule was
        // proved, and the library uses none of them: its groups have ended.
        unsafe {
            let form = MoveForm { chain: self.chain, ..MoveForm::CHAIN };
            self.kernel.run(&sources, &[to], len as usize, form, divide, Stores::Cached);
        };
        Ok(())
    }
}

/// The function by which a test changes the steps of a rank before they are issued.
pub(super) type Breaks<'a> = &'a (dyn Fn(RankId, &mut Steps) + Sync);

impl Case {
    /// A call of these elements, or of f32 where the plan of the algorithm refuses narrower ones.
    pub(super) fn new(proved: Proved, count: u64, (dtype, op): (DType, ReduceOp)) -> Self {
        let kind = match check_width(proved.schedule(), dtype) {
            Ok(()) => (dtype, op),
            Err(_) => (DType::F32, op),
        };
        let what = &proved.schedule().algorithm;
        let form = TwoSided::new(&proved).unwrap_or_else(|found| panic!("{what}: {found:?}"));
        let groups = Groups::new(&form).unwrap_or_else(|found| panic!("{what}: {found:?}"));
        Self { proved, form, groups, count, kind }
    }

    pub(super) fn steps(&self, rank: RankId) -> Steps {
        Steps::new(&self.form, &self.groups, rank, self.count, self.kind).expect("steps")
    }

    fn buffers(&self, rank: RankId) -> Buffers {
        Buffers::new(self.form.schedule(), rank, self.count, self.kind.0.size())
    }

    fn ranks(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.form.schedule().nranks).map(RankId)
    }

    fn input(&self, rank: RankId) -> Vec<u8> {
        let (dtype, op) = self.kind;
        fill(dtype, op, self.count, rank.0, self.buffers(rank).input / dtype.size())
    }

    /// Returns the outputs of the host's engine for the same inputs.
    pub(super) fn expected(&self) -> Vec<Vec<u8>> {
        let (dtype, op) = self.kind;
        let plan = Plan::new(&self.proved, self.count, dtype, op).expect("a plan");
        let inputs: Vec<Vec<u8>> = self.ranks().map(|rank| self.input(rank)).collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<Vec<u8>> =
            self.ranks().map(|rank| vec![0; self.buffers(rank).output]).collect();
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        plan.run_bytes(&inputs, &mut slices).expect("it runs");
        outputs
    }

    /// Returns the output or the error of each rank.
    pub(super) fn run(&self, in_place: bool) -> Vec<Result<Vec<u8>, Error>> {
        self.run_with(in_place, DEADLINE, &|_, _| ())
    }

    pub(super) fn run_with(
        &self,
        in_place: bool,
        deadline: Duration,
        breaks: Breaks<'_>,
    ) -> Vec<Result<Vec<u8>, Error>> {
        let id = NcclId::of(nccl()).expect("a name");
        std::thread::scope(|scope| {
            let of_rank = |rank| {
                let id = &id;
                scope.spawn(move || {
                    let nranks = self.form.schedule().nranks;
                    let mut link = NcclLink::join(nccl(), id, (rank, nranks), deadline)?;
                    self.issue(rank, in_place, &mut link, breaks)
                })
            };
            let threads: Vec<_> = self.ranks().map(of_rank).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }

    fn issue(
        &self,
        rank: RankId,
        in_place: bool,
        link: &mut NcclLink,
        breaks: Breaks<'_>,
    ) -> Result<Vec<u8>, Error> {
        let mut steps = self.steps(rank);
        breaks(rank, &mut steps);
        let of_rank = self.buffers(rank);
        // Words align the buffers for every type; a buffer has at least one word, so that it has an address.
        let words = |bytes: usize| vec![0xA5A5_A5A5_A5A5_A5A5_u64; bytes / 8 + 1];
        let (mut input, mut output) = (words(of_rank.input), words(of_rank.output));
        let (mut both, mut scratch) = (words(of_rank.shared), words(steps.scratch as usize));
        let start = |memory: &mut Vec<u64>| memory.as_mut_ptr().expose_provenance() as u64;
        let scratch = start(&mut scratch);
        let bases = if in_place {
            let whole = start(&mut both);
            let (input, output) = (of_rank.input_at as u64, of_rank.output_at as u64);
            Bases { input: whole + input, output: whole + output, scratch }
        } else {
            Bases { input: start(&mut input), output: start(&mut output), scratch }
        };
        let data = self.input(rank);
        let to = ptr::with_exposed_provenance_mut(bases.input as usize);
        // SAFETY: the input has that length, and is in memory of this thread.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
        let (dtype, op) = self.kind;
        let mut memory = OnHost {
            kernel: Kernel::new(dtype, op).expect("a kernel"),
            chain: self.form.schedule().has_chains(),
        };
        // Each rank has a stream of its own; the test library does not use it.
        let stream = ptr::without_provenance_mut(rank.index() + 1);
        // SAFETY: the buffers have the lengths that the steps were made for; broken steps stay within them. When a call
        // has ended, or its communicator was given up, the library uses none of them.
        let issued = unsafe { issue(&steps, link, bases, stream, &mut memory) };
        issued.map(|()| {
            let from: *const u8 = ptr::with_exposed_provenance(bases.output as usize);
            let mut result = vec![0; of_rank.output];
            // SAFETY: the output has that length.
            unsafe { ptr::copy_nonoverlapping(from, result.as_mut_ptr(), result.len()) };
            result
        })
    }

    /// Asserts that the ranks' outputs equal those of the host's engine.
    pub(super) fn is_right(&self, in_place: bool) {
        let name = &self.proved.schedule().algorithm;
        let nranks = self.proved.schedule().nranks;
        let what =
            || format!("{name}, {nranks} ranks, {} x {:?}, {in_place}", self.count, self.kind);
        let expected = self.expected();
        for (rank, (result, expected)) in self.run(in_place).into_iter().zip(expected).enumerate() {
            let result = result.unwrap_or_else(|error| panic!("{}: rank {rank}: {error}", what()));
            assert!(result == expected, "{}: rank {rank} has other bits", what());
        }
    }
}
