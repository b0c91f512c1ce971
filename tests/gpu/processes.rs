//! Ranks with a process each, all of them on one GPU: results, the time of a call, and the time until ranks know of one
//! whose process ends, or of one that ends all calls.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use roundelay::{DType, Options, ReduceOp};
use roundelay_core::layout::Configured;
use roundelay_core::prove_source;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Form, Protocol};
use roundelay_kernels::cuda::cudarc::driver::{CudaSlice, CudaStream};
use roundelay_kernels::cuda::{CudaOptions, CudaRank, Error, ProcessPlan};
use roundelay_kernels::grid::Buffers;
use roundelay_kernels::shared_memory::{UniqueId, World};
use roundelay_tests::named;

use super::cases::{Case, Data, Way};

/// The variable that tells a rank which part of the checks it does.
const PART: &str = "ROUNDELAY_GPU_CHECK";

/// The parts, each with whether the last rank's process is killed.
const PARTS: [(&str, bool); 3] = [("calls", false), ("killed", true), ("aborted", false)];

/// The time for which the last rank waits before its process ends, or before it aborts: the others are in a call then.
const PAUSE: Duration = Duration::from_millis(300);

/// The choices of a check.
#[derive(Clone, Copy)]
pub(crate) struct RankChecks {
    pub(crate) device: usize,
    pub(crate) patience: Duration,
    pub(crate) quick: bool,
    pub(crate) end: Option<Instant>,
}

/// Runs all parts for several numbers of ranks, and prints what the ranks say; in a rank, runs its part. Returns the
/// number of ranks that fail.
pub(crate) fn check(checks: RankChecks) -> Result<usize, String> {
    if let Ok(part) = std::env::var(PART) {
        return run_part(checks, &part).map(|()| 0);
    }
    let mut failed = 0;
    let counts: &[u32] = if checks.quick { &[2] } else { &[2, 4, 8] };
    for nranks in counts {
        for (part, is_killed) in PARTS {
            if checks.end.is_some_and(|end| Instant::now() > end) {
                println!("# {nranks} ranks, {part}: no time is left");
                continue;
            }
            for (rank, ended) in ranks(*nranks, part)?.into_iter().enumerate() {
                let Output { status, stdout, stderr } = ended;
                print!("{}", String::from_utf8_lossy(&stdout));
                // A process that a signal ends has no code.
                let is_last = rank + 1 == *nranks as usize;
                let right = if is_killed && is_last { None } else { Some(0) };
                if status.code() != right {
                    failed += 1;
                    let said = String::from_utf8_lossy(&stderr);
                    println!("{nranks} ranks, {part}: rank {rank}: {status}: {said}");
                }
            }
        }
    }
    println!("# ranks with a process each: {failed} failed");
    Ok(failed)
}

/// Runs a part as `nranks` processes of this program.
fn ranks(nranks: u32, part: &str) -> Result<Vec<Output>, String> {
    let failed = |error: std::io::Error| format!("this program does not start again: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let id = UniqueId::new().map_err(|error| error.to_string())?.to_hex();
    let start = |rank: u32| {
        let mut command = Command::new(&program);
        command.args(std::env::args().skip(1)).env(PART, part).env("ROUNDELAY_ID", &id);
        command.env("ROUNDELAY_RANK", rank.to_string());
        command.env("ROUNDELAY_NRANKS", nranks.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)
    };
    let started = (0..nranks).map(start).collect::<Result<Vec<_>, _>>()?;
    Ok(super::variables::outputs(started))
}

fn run_part(
    RankChecks { device, patience, quick, .. }: RankChecks,
    part: &str,
) -> Result<(), String> {
    let world = World::from_env(Options::new().deadline(patience)).map_err(|e| e.to_string())?;
    let rank = CudaRank::join(&world, device).map_err(|error| error.to_string())?;
    let checked = Checked { rank, patience, part };
    match part {
        "calls" => checked.calls(if quick { 3 } else { 50 }),
        "killed" => checked.ends("E0428", |_| {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL)
                .map_err(|error| error.to_string())
        }),
        _ => checked.ends("E0413", |rank| {
            rank.abort("the check is over").map_err(|error| error.to_string())
        }),
    }
}

/// A rank that does a part.
struct Checked<'a> {
    rank: CudaRank,
    patience: Duration,
    part: &'a str,
}

impl Checked<'_> {
    /// Prints a line, if this rank is the first one.
    fn tell(&self, what: &str) {
        if self.rank.rank().index() == 0 {
            println!("{} ranks, {}: {what}", self.rank.nranks(), self.part);
        }
    }

    /// Compares the results of calls with the host's, and takes their times: each rank waits for the end of a call before
    /// it issues the next one.
    fn calls(&self, count: u32) -> Result<(), String> {
        for (other, way, why) in self.rank.transports() {
            self.tell(&format!(
                "{way} to rank {other}{}",
                why.map_or(String::new(), |w| format!(", {w}"))
            ));
        }
        for (name, form) in [("RingAllReduce", Form::Loops), ("MeshAllReduce", Form::Table)] {
            for elements in [256, 1 << 18] {
                let of = proved(name, self.rank.nranks());
                let data = Data { count: elements, dtype: DType::F32, op: ReduceOp::Sum };
                let case = case(&of, data, form);
                let plan = self.plan(&case)?;
                let mut room = Room::new(&self.rank, &case);
                let mut call = |in_place| {
                    let launched = room.launch(&self.rank, &plan, in_place);
                    launched.and_then(|()| plan.wait()).map_err(|error| error.to_string())?;
                    Ok::<_, String>(room.result(&self.rank, in_place))
                };
                let at = self.rank.rank().index();
                for in_place in [false, true] {
                    let expected =
                        case.expected(in_place).ok_or("the collective has no such place")?;
                    for _ in 0..2 {
                        if call(in_place)? != expected[at] {
                            return Err(format!("{name} {}: another result", case.name(in_place)));
                        }
                    }
                }
                let begun = Instant::now();
                for _ in 0..count {
                    call(false)?;
                }
                let each = begun.elapsed().as_secs_f64() * 1e6 / f64::from(count);
                self.tell(&format!("{name}, {form}, {} bytes: {each:.1} us a call", 4 * elements));
            }
        }
        Ok(())
    }

    /// Has the last rank end all calls while the others are in one: they get an error with this code.
    fn ends(
        &self,
        code: &str,
        end: impl Fn(&CudaRank) -> Result<(), String>,
    ) -> Result<(), String> {
        let of = proved("RingAllReduce", self.rank.nranks());
        let data = Data { count: 1003, dtype: DType::F32, op: ReduceOp::Sum };
        let case = case(&of, data, Form::Loops);
        let plan = self.plan(&case)?;
        let mut room = Room::new(&self.rank, &case);
        let mut call = || room.launch(&self.rank, &plan, false).and_then(|()| plan.wait());
        call().map_err(|error| error.to_string())?;
        if self.rank.rank().index() + 1 == self.rank.nranks() as usize {
            std::thread::sleep(PAUSE);
            return end(&self.rank);
        }
        let begun = Instant::now();
        let Err(error) = call() else { return Err("the call ended well".to_owned()) };
        let after = begun.elapsed().saturating_sub(PAUSE);
        if error.code().as_str() != code {
            return Err(format!("not {code}, but {}: {error}", error.code()));
        }
        self.tell(&format!("known after {:.1} ms: {error}", after.as_secs_f64() * 1e3));
        Ok(())
    }

    fn plan(&self, case: &Case<'_>) -> Result<ProcessPlan, String> {
        let plan = plan_of(&self.rank, case, CudaOptions::new().deadline(self.patience));
        plan.map_err(|error| error.to_string())
    }
}

pub(crate) fn proved(name: &str, nranks: u32) -> (&'static Configured, Proved) {
    let algorithm = named(name);
    (algorithm, prove_source(algorithm, nranks).expect("a right algorithm"))
}

pub(crate) fn case<'a>(
    (algorithm, proved): &'a (&'static Configured, Proved),
    data: Data,
    form: Form,
) -> Case<'a> {
    let protocol = match form {
        Form::Loops => Protocol::for_algorithm(algorithm),
        Form::Table | Form::Switch => Protocol::Direct,
    };
    let (nranks, way) = (proved.schedule().nranks, Way::One);
    Case { algorithm, proved, nranks, data, form, protocol, way }
}

pub(crate) fn plan_of(
    rank: &CudaRank,
    case: &Case,
    options: CudaOptions,
) -> Result<ProcessPlan, Error> {
    let Data { count, dtype, op } = case.data;
    ProcessPlan::new(
        rank,
        case.algorithm,
        case.proved,
        count as u64,
        (dtype, op),
        options.form(case.form).protocol(case.protocol),
    )
}

/// The buffers of a rank: its input, and the output, in which there is room for a call in place.
pub(crate) struct Room {
    buffers: Buffers,
    bytes: Vec<u8>,
    pub(crate) input: CudaSlice<u8>,
    pub(crate) shared: CudaSlice<u8>,
}

impl Room {
    pub(crate) fn new(rank: &CudaRank, case: &Case) -> Self {
        let at = rank.rank().index();
        let (buffers, bytes) = (case.buffers()[at], case.inputs().swap_remove(at));
        let mut input = rank.buffer("input", buffers.input).expect("room");
        let shared = rank.buffer("output", buffers.shared).expect("room");
        let mut place = input.slice_mut(..bytes.len());
        rank.stream().memcpy_htod(&bytes, &mut place).expect("copied");
        Self { buffers, bytes, input, shared }
    }

    pub(crate) fn launch(
        &mut self,
        rank: &CudaRank,
        plan: &ProcessPlan,
        in_place: bool,
    ) -> Result<(), Error> {
        let (stream, b) = (rank.stream(), self.buffers);
        if in_place {
            let entered = Case::entered(&b, &self.bytes);
            let mut room = self.shared.slice_mut(..b.shared);
            stream.memcpy_htod(&entered, &mut room).expect("copied");
            return plan.launch_bytes_in_place(stream, &mut room);
        }
        self.launch_on(stream, plan)
    }

    /// Launches the plan out of place, on a stream of the rank's device.
    pub(crate) fn launch_on(
        &mut self,
        stream: &Arc<CudaStream>,
        plan: &ProcessPlan,
    ) -> Result<(), Error> {
        let mut output = self.shared.slice_mut(..self.buffers.output);
        plan.launch_bytes(stream, &self.input.slice(..self.buffers.input), &mut output)
    }

    pub(crate) fn result(&self, rank: &CudaRank, in_place: bool) -> Vec<u8> {
        let b = self.buffers;
        let at = if in_place { b.output_at } else { 0 };
        let mut bytes = vec![0; b.output];
        if !bytes.is_empty() {
            let place = self.shared.slice(at..at + b.output);
            rank.stream().memcpy_dtoh(&place, &mut bytes).expect("copied");
            rank.stream().synchronize().expect("it ends");
        }
        bytes
    }
}
