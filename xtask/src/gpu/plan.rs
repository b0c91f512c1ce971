//! The steps of a test: the programs of each, and its time. The first steps are the most important ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::PEERS;
use super::places::{self, Programs};
use super::steps::{GpuStep, Record};
use crate::command::{output, there};

/// The time of all steps in seconds: ten minutes less the time of a start and a stop.
const TOTAL: u64 = 570;
const QUICK_TOTAL: u64 = 295;
const REHEARSED_TOTAL: u64 = 172;
/// The time before its end at which a step is asked to end.
const GRACE: u64 = 12;
/// The size from which the host takes longer to check a result than the step has.
const UNCHECKED: u64 = 64 << 20;
/// The time that a wait may last below a sanitizer, which makes kernels a hundred times slower.
const PATIENCE: &str = "600";
const SANITIZER: &str = "compute-sanitizer";
/// The tools of the sanitizer that understand these kernels. Its `racecheck` knows barriers and not the releases and
/// acquires that order the only shared memory of a kernel, the ring of entries between the walker and the movers, so it
/// reports each of its entries.
const TOOLS: [&str; 3] = ["memcheck", "synccheck", "initcheck"];
/// Settings of NCCL for ranks that share a device. All blocks of all ranks must be on the device at once, because they
/// wait for each other, and each rank's stream needs a queue of its own. A kernel that is loaded late waits for the
/// whole device, and so for ranks that wait.
const SHARED_DEVICE: [(&str, &str); 6] = [
    ("NCCL_MULTI_RANK_GPU_ENABLE", "1"),
    ("NCCL_MAX_CTAS", "12"),
    ("NCCL_MAX_NCHANNELS", "12"),
    ("NCCL_MAX_P2P_NCHANNELS", "4"),
    ("CUDA_DEVICE_MAX_CONNECTIONS", "32"),
    ("CUDA_MODULE_LOADING", "EAGER"),
];
/// The kernels that are timed, and their largest size: the optimizer's table of a mesh, the author's loops, and slots
/// of lines.
const OURS: [(&[&str], u64); 3] = [
    (&["MeshAllReduce", "--form", "table"], u64::MAX),
    (&["RingAllReduce,MeshAllReduce"], u64::MAX),
    (&["PushedOneShotAllReduce,PushedMeshAllReduce", "--protocol", "ll"], 256 << 10),
];

/// Sizes of one call of `bench`, bytes a rank: from the first to the last by a factor of 4.
type Sizes = [u64; 2];
const FIRST: [Sizes; 3] = [[64 << 20; 2], [1 << 10; 2], [1 << 20; 2]];
const REST: [Sizes; 4] = [[4 << 10, 256 << 10], [4 << 20, 16 << 20], [256 << 20; 2], [1 << 30; 2]];
const QUICK_FIRST: [Sizes; 2] = [[1 << 10; 2], [16 << 20; 2]];
const QUICK_REST: [Sizes; 1] = [[4 << 10, 4 << 20]];
const REHEARSED: [Sizes; 2] = [[1 << 10; 2], [64 << 10; 2]];

/// The inputs of the steps.
pub(super) struct Setup {
    pub(super) programs: Programs,
    pub(super) device: u32,
    pub(super) quick: bool,
    /// Whether the steps run without a GPU.
    pub(super) rehearsal: bool,
    /// The number of virtual ranks whose times are taken.
    pub(super) nranks: u32,
    /// Environment variables of our own programs.
    pub(super) variables: Vec<(String, String)>,
    /// The sanitizer, or why it is missing.
    pub(super) sanitizer: Result<PathBuf, String>,
}

/// Seconds of each step; the correctness at the end gets the remaining time.
struct Times {
    instructions: u64,
    litmus: u64,
    first: u64,
    bench: u64,
    torch: u64,
    nccl: u64,
    over_nccl: u64,
    sanitizer: u64,
    rest: u64,
}

impl Setup {
    /// Makes the setup for a GPU.
    pub(super) fn new(programs: Programs, out: &Path, device: u32, quick: bool) -> Self {
        let mut variables = Vec::new();
        let mut set = |name: &str, value: &Path| {
            variables.push((name.to_owned(), value.display().to_string()));
        };
        match places::nvrtc(&programs.check) {
            Ok(Some(place)) => set("ROUNDELAY_NVRTC", &place),
            Ok(None) => {}
            // The steps of the peers run without it.
            Err(why) => println!("== {why}"),
        }
        let is_set = |name: &str| std::env::var_os(name).is_some();
        if let (false, Some(place)) = (is_set("ROUNDELAY_NCCL"), places::nccl()) {
            set("ROUNDELAY_NCCL", &place);
        }
        // Steps share kernels, also for a user without a folder.
        if !["ROUNDELAY_CACHE", "XDG_CACHE_HOME", "HOME"].into_iter().any(is_set) {
            set("ROUNDELAY_CACHE", &out.join("kernels"));
        }
        let none = || format!("{SANITIZER} is not in the path; the CUDA toolkit has it");
        let inside = || {
            let places =
                places::toolkits().into_iter().map(|place| place.join("bin").join(SANITIZER));
            places.into_iter().find(|path| path.is_file()).ok_or_else(none)
        };
        let sanitizer = if there(SANITIZER) { Ok(SANITIZER.into()) } else { inside() };
        let (nranks, rehearsal) = (8, false);
        Self { programs, device, quick, rehearsal, nranks, variables, sanitizer }
    }

    /// Returns the seconds of all steps.
    pub(super) fn total(&self) -> u64 {
        match (self.rehearsal, self.quick) {
            (true, _) => REHEARSED_TOTAL,
            (_, true) => QUICK_TOTAL,
            _ => TOTAL,
        }
    }

    fn times(&self) -> Times {
        let [instructions, litmus, first, bench, torch, nccl, over_nccl, sanitizer, rest] =
            match (self.rehearsal, self.quick) {
                (true, _) => [0, 0, 32, 25, 2, 2, 55, 12, 8],
                (_, true) => [15, 16, 30, 65, 18, 18, 23, 20, 35],
                _ => [20, 25, 70, 65, 20, 20, 45, 40, 75],
            };
        Times { instructions, litmus, first, bench, torch, nccl, over_nccl, sanitizer, rest }
    }

    /// Returns all steps.
    pub(super) fn steps(&self) -> Vec<GpuStep<'_>> {
        let times = self.times();
        let rest: &[Sizes] = match (self.rehearsal, self.quick) {
            (true, _) => &REHEARSED[1..],
            (_, true) => &QUICK_REST,
            _ => &REST,
        };
        let first: &[Sizes] = match (self.rehearsal, self.quick) {
            (true, _) => &REHEARSED[..1],
            (_, true) => &QUICK_FIRST,
            _ => &FIRST,
        };
        let mut steps = vec![
            Self::step("instructions", times.instructions, move |_| {
                self.of_hardware("instructions", times.instructions)
            }),
            Self::step("litmus", times.litmus, move |_| self.of_hardware("litmus", times.litmus)),
            Self::step("correctness", times.first, move |_| {
                Ok(vec![self.check("cuda", times.first, 0)])
            }),
            Self::step("bench", times.bench, move |_| Ok(self.bench(first))),
            Self::step("torch", times.torch, |_| self.peer(0, first, rest)),
            Self::step("NCCL", times.nccl, |_| self.peer(1, first, rest)),
            Self::step("over NCCL", times.over_nccl, move |_| {
                // Each rank compiles the reductions, which on two cores outlasts the grace of the other steps.
                let cold = if self.rehearsal { 20 } else { 0 };
                Ok(vec![self.check("nccl", times.over_nccl - cold, 0)])
            }),
        ];
        for tool in TOOLS {
            steps.push(Self::step(tool, times.sanitizer, move |_| {
                Ok(vec![self.sanitized(tool, times.sanitizer)?])
            }));
        }
        steps.push(Self::step("more bench", times.rest, |_| Ok(self.bench(rest))));
        let deep = Self::step("more correctness", 0, |records| {
            let first = records.iter().find(|record| record.name == "correctness");
            match first.and_then(Record::summary).and_then(reached) {
                Some((reached, all)) if reached == all => Err("all cases have been run".to_owned()),
                // If the first run does not say how far it came, all cases are run again.
                reached => {
                    let from = reached.map_or(0, |(reached, _)| reached);
                    let left: f64 = records.iter().map(|record| record.took.as_secs_f64()).sum();
                    let left = (self.total() as f64 - left).max(0.0) as u64;
                    Ok(vec![self.check("cuda", left, from)])
                }
            }
        });
        steps.push(GpuStep { seconds: None, ..deep });
        steps
    }

    fn step<'a>(
        name: &'static str,
        seconds: u64,
        commands: impl Fn(&[Record]) -> Result<Vec<Command>, String> + 'a,
    ) -> GpuStep<'a> {
        GpuStep { name, seconds: Some(seconds), commands: Box::new(commands) }
    }

    /// Returns the command of a program of ours.
    fn ours(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns the arguments of `gpu-check` in a step of `seconds` seconds.
    fn check_args(&self, kind: &str, seconds: u64, from: u64) -> Vec<String> {
        let budget = seconds.saturating_sub(GRACE).max(1).to_string();
        let mut args: Vec<String> =
            [kind, "--device", &self.device.to_string()].map(String::from).into();
        args.extend(["--budget", &budget, "--from", &from.to_string()].map(String::from));
        let flags = [("--quick", self.quick || self.rehearsal), ("--small", self.rehearsal)];
        args.extend(flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag.to_owned()));
        args
    }

    fn check(&self, kind: &str, seconds: u64, from: u64) -> Command {
        let mut command = self.ours(&self.programs.check);
        command.args(self.check_args(kind, seconds, from));
        command.envs(SHARED_DEVICE);
        command
    }

    /// Returns the command that compares the GPU with the interpreter of PTX.
    fn of_hardware(&self, kind: &str, seconds: u64) -> Result<Vec<Command>, String> {
        if self.rehearsal {
            return Err("the driver for tests does not assemble PTX".to_owned());
        }
        Ok(vec![self.check(kind, seconds, 0)])
    }

    /// Returns the command of a few checks below NVIDIA's sanitizer.
    fn sanitized(&self, tool: &str, seconds: u64) -> Result<Command, String> {
        let mut command = self.ours(self.sanitizer.as_ref().map_err(Clone::clone)?);
        command.args(["--tool", tool, "--error-exitcode", "9"]).arg(&self.programs.check);
        command.args(self.check_args("cuda", seconds, 0)).args(["--quick", "--small"]);
        command.args(["--patience", PATIENCE]);
        Ok(command)
    }

    /// Returns the commands that time ours, by launches and by graphs, with the schedules that the host drives and the
    /// floor; a process for each row of sizes and each kind of kernel, as one tells its figures when it ends.
    fn bench(&self, sizes: &[Sizes]) -> Vec<Command> {
        let row = |[first, last]: &Sizes, kernels: &[&str]| {
            let mut command = self.ours(&self.programs.bench);
            command.arg("bench").args(kernels).args(["--graph", "--format", "json"]);
            command.args(["--device", &format!("cuda:{}", self.device)]);
            command.args(["--nranks", &self.nranks.to_string(), "-f", "4"]);
            command.args(["-b", &first.to_string(), "-e", &last.to_string()]);
            if *last >= UNCHECKED {
                command.args(["--check", "0"]);
            }
            if self.rehearsal {
                command.args(["--iters", "2"]);
            }
            command
        };
        let kinds = |sizes: &Sizes| {
            let sizes = *sizes;
            OURS.iter().filter(move |(_, most)| sizes[1] <= *most).map(move |(k, _)| (sizes, *k))
        };
        sizes.iter().flat_map(kinds).map(|(sizes, kernels)| row(&sizes, kernels)).collect()
    }

    /// Returns the command that times a peer at all these sizes, the first rows first: it prints each figure as soon as
    /// it has it.
    fn peer(&self, peer: usize, first: &[Sizes], rest: &[Sizes]) -> Result<Vec<Command>, String> {
        if self.rehearsal {
            return Err("it needs a GPU of its own".to_owned());
        }
        output(Command::new("python3").args(["-c", "import torch"]))
            .map_err(|_| "python3 cannot import torch".to_owned())?;
        let mut command = Command::new("python3");
        command.arg(self.programs.peers.join(PEERS[peer].1)).arg(self.nranks.to_string());
        command.env("CUDA_VISIBLE_DEVICES", self.device.to_string());
        command.envs(SHARED_DEVICE);
        let up = |[first, last]: &Sizes| {
            let (first, last) = (*first, *last);
            std::iter::successors(Some(first), |size| Some(size * 4))
                .take_while(move |s| *s <= last)
        };
        command.args(first.iter().chain(rest).flat_map(up).map(|size| size.to_string()));
        Ok(vec![command])
    }
}

/// Returns the case that a run of `gpu-check` reached, and the number of cases, from its last line.
fn reached(summary: &str) -> Option<(u64, u64)> {
    let (_, rest) = summary.strip_prefix("cases ")?.split_once(" to ")?;
    let (reached, rest) = rest.split_once(" of ")?;
    Some((reached.parse().ok()?, rest.split(':').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(quick: bool, rehearsal: bool) -> Setup {
        let programs =
            Programs { check: "check".into(), bench: "bench".into(), peers: "peers".into() };
        let sanitizer = Err("none".to_owned());
        let (device, nranks, variables) = (1, 8, Vec::new());
        Setup { programs, device, quick, rehearsal, nranks, variables, sanitizer }
    }

    #[test]
    fn the_last_step_has_time_left_whatever_the_others_take() {
        for (quick, rehearsal, least) in [(false, false, 110), (true, false, 10), (false, true, 10)]
        {
            let setup = setup(quick, rehearsal);
            let steps = setup.steps();
            let taken: u64 = steps.iter().filter_map(|step| step.seconds).sum();
            assert!(setup.total() >= taken + least, "{taken} of {}", setup.total());
            assert!(setup.total() < 600 - GRACE);
            assert_eq!(steps.last().map(|step| step.seconds), Some(None));
        }
    }

    #[test]
    fn what_the_first_check_has_done_is_not_done_again() {
        assert_eq!(reached("cases 7 to 312 of 5120: 604 runs, 0 wrong, 50 s"), Some((312, 5120)));
        assert_eq!(reached("not checked: no NCCL"), None);
        let setup = setup(false, false);
        let steps = setup.steps();
        let rest = |summary: &str| {
            let record = Record {
                name: "correctness".to_owned(),
                verdict: super::super::steps::GpuVerdict::Ok,
                took: std::time::Duration::from_secs(70),
                printed: vec![format!("RingAllReduce ok\n# {summary}\n")],
            };
            let commands = (steps.last().expect("a step").commands)(&[record]);
            commands.map(|all| format!("{all:?}"))
        };
        let cut = rest("cases 0 to 312 of 5120: 604 runs, 0 wrong, 50 s").expect("a command");
        assert!(cut.contains(r#""--budget" "488" "--from" "312""#), "{cut}");
        assert!(rest("cases 0 to 9 of 9: 18 runs, 0 wrong, 50 s").is_err());
        assert!(rest("a device").expect("a command").contains(r#""--from" "0""#));
    }

    #[test]
    fn a_quick_test_has_the_sizes_to_16_mib() {
        let of = |quick| {
            let setup = setup(quick, false);
            let all = setup.bench(if quick { &QUICK_REST } else { &REST });
            format!("{all:?}")
        };
        assert!(of(true).contains(r#""-b" "4096" "-e" "4194304""#), "{}", of(true));
        // A result of 2 GiB in all takes the host longer to check than the step has.
        assert_eq!(of(false).matches(r#""--check" "0""#).count(), 4, "{}", of(false));
    }
}
