//! The steps of a test: the programs of each, and its time. The first steps are the most important ones.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::places::{self, Programs};
use super::timed_steps::{GpuStep, StepRecord};
use crate::command::{at, output, program, root, there, write};

/// The kinds of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Quick,
    /// The steps run without a GPU.
    Rehearsal,
}

/// The steps with their seconds in each kind; the correctness at the end gets the remaining time.
const STEPS: [(&str, [u64; 3]); 14] = [
    ("instructions", [20, 15, 0]),
    ("litmus", [25, 16, 0]),
    ("correctness", [60, 25, 32]),
    // A launch for each rank, as ranks in processes have it.
    ("ranks", [30, 15, 30]),
    // Ranks with a process each, whose kernels the GPU runs in turns.
    ("processes", [44, 19, 20]),
    ("bench", [65, 65, 25]),
    ("torch", [20, 18, 2]),
    ("NCCL", [20, 18, 2]),
    ("over NCCL", [35, 18, 55]),
    // The tools of the sanitizer that understand these kernels. Its `racecheck` knows barriers and not the releases and
    // acquires that order the only shared memory of a kernel, the ring of entries between the walker and the movers, so
    // it reports each of its entries.
    ("memcheck", [32, 17, 12]),
    ("synccheck", [32, 17, 12]),
    ("initcheck", [32, 17, 12]),
    ("more bench", [45, 20, 8]),
    (REST, [0; 3]),
];
/// The step that goes on where the first correctness ended.
const REST: &str = "more correctness";
/// The time of all steps in seconds: ten minutes less the time of a start and a stop.
const TOTAL: [u64; 3] = [570, 295, 222];
/// The time before its end at which a step is asked to end.
const GRACE: u64 = 12;

/// Sizes of one call of `bench`, bytes a rank: from the first to the last by a factor of 4.
type Sizes = [u64; 2];
/// The sizes of the first and of the second bench in each kind.
const SIZES: [[&[Sizes]; 2]; 3] = [
    [
        &[[64 << 20; 2], [1 << 10; 2], [1 << 20; 2]],
        &[[4 << 10, 256 << 10], [4 << 20, 16 << 20], [256 << 20; 2], [1 << 30; 2]],
    ],
    [&[[1 << 10; 2], [16 << 20; 2]], &[[4 << 10, 4 << 20]]],
    [&[[1 << 10; 2]], &[[64 << 10; 2]]],
];
/// The size from which the host takes longer to check a result than the step has.
const UNCHECKED: u64 = 64 << 20;
/// The kernels that are timed, and their largest size: the optimizer's table of a mesh, the author's loops, and slots
/// of lines.
const OURS: [(&[&str], u64); 3] = [
    (&["MeshAllReduce", "--form", "table"], u64::MAX),
    (&["RingAllReduce,MeshAllReduce"], u64::MAX),
    (&["PushedOneShotAllReduce,PushedMeshAllReduce", "--protocol", "ll"], 256 << 10),
];

const SANITIZER: &str = "compute-sanitizer";
/// In place of the sanitizer in a rehearsal: takes its flags, each with its value, and runs the program without checks.
const NO_SANITIZER: &str = "\
#!/bin/sh
while [ \"${1#--}\" != \"$1\" ]; do shift 2; done
echo '# no sanitizer took part'
exec \"$@\"
";
/// The time that a wait may last below a sanitizer, which makes kernels a hundred times slower.
const PATIENCE: &str = "600";
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

/// The inputs of the steps.
pub(super) struct Setup {
    programs: Programs,
    device: u32,
    extent: Extent,
    /// The number of virtual ranks whose times are taken.
    pub(super) nranks: u32,
    /// Environment variables of our own programs.
    variables: Vec<(String, String)>,
    /// The sanitizer, or why it is missing.
    sanitizer: Result<PathBuf, String>,
}

impl Setup {
    /// Makes the setup for a GPU.
    pub(super) fn new(programs: Programs, out: &Path, device: u32, quick: bool) -> Self {
        let mut variables = Vec::new();
        let mut set = |name: &str, value: &Path| {
            variables.push((name.to_owned(), value.display().to_string()));
        };
        match places::nvrtc(&programs.check) {
            Ok(place) => place.iter().for_each(|place| set("ROUNDELAY_NVRTC", place)),
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
        let inside = places::toolkits().into_iter().map(|place| place.join("bin").join(SANITIZER));
        let of_path = there(SANITIZER).then(|| SANITIZER.into());
        let sanitizer = of_path.or_else(|| inside.into_iter().find(|path| path.is_file()));
        let none = format!("{SANITIZER} is not in the path; the CUDA toolkit has it");
        let extent = if quick { Extent::Quick } else { Extent::Whole };
        let sanitizer = sanitizer.ok_or(none);
        Self { programs, device, extent, nranks: 8, variables, sanitizer }
    }

    /// Makes the setup of the same steps without a GPU. Our programs find the test driver in place of libcuda, and its
    /// compiler in place of NVRTC, which makes each kernel for that driver, too (`tests/driver`).
    pub(super) fn rehearsed(programs: Programs, out: &Path) -> Result<Self, String> {
        println!(
            "== rehearsal: no GPU takes part; kernels run on CPU threads, below a driver of our own"
        );
        let mut make = program("sh", &[]);
        make.arg(root().join("tests/driver/make.sh")).arg("all").arg(root().join("target/driver"));
        let said = output(&mut make)?;
        let variable = |line: &str| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
        let variables = said.lines().filter_map(variable).collect();
        let sanitizer = out.join(SANITIZER);
        write(&sanitizer, NO_SANITIZER)?;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&sanitizer, mode).map_err(at(&sanitizer))?;
        // The driver has room for four ranks.
        let (device, extent, nranks) = (0, Extent::Rehearsal, 4);
        Ok(Self { programs, device, extent, nranks, variables, sanitizer: Ok(sanitizer) })
    }

    /// Returns the seconds of all steps.
    pub(super) fn total(&self) -> u64 {
        TOTAL[self.extent as usize]
    }

    /// Returns all steps.
    pub(super) fn steps(&self) -> Vec<GpuStep> {
        let seconds = |all: [u64; 3]| all[self.extent as usize];
        STEPS.map(|(name, all)| (name, (name != REST).then_some(seconds(all)))).to_vec()
    }

    fn rehearsal(&self) -> bool {
        self.extent == Extent::Rehearsal
    }

    /// Returns the commands of a step that may take `seconds`, after the steps of the records; or why it has none.
    pub(super) fn commands(
        &self,
        step: &str,
        seconds: u64,
        records: &[StepRecord],
    ) -> Result<Vec<Command>, String> {
        let [first, rest] = SIZES[self.extent as usize];
        Ok(match step {
            // The GPU beside the interpreter of PTX.
            "instructions" | "litmus" if self.rehearsal() => {
                return Err("the driver for tests does not assemble PTX".to_owned());
            }
            "instructions" | "litmus" | "ranks" | "processes" => {
                vec![self.check(step, seconds, 0)]
            }
            "correctness" => vec![self.check("cuda", seconds, 0)],
            "bench" => self.bench(first),
            "more bench" => self.bench(rest),
            "torch" | "NCCL" => vec![self.peer(step, &[first, rest].concat())?],
            "over NCCL" => {
                // Each rank compiles the reductions, which on two cores outlasts the grace of the other steps.
                let cold = if self.rehearsal() { 20 } else { 0 };
                vec![self.check("nccl", seconds - cold, 0)]
            }
            REST => {
                let first = records.iter().find(|record| record.name == "correctness");
                match first.and_then(StepRecord::summary).and_then(reached) {
                    Some((reached, all)) if reached == all => {
                        return Err("all cases have been run".to_owned());
                    }
                    // If the first run does not say how far it came, all cases are run again.
                    reached => vec![self.check("cuda", seconds, reached.map_or(0, |(at, _)| at))],
                }
            }
            tool => vec![self.sanitized(tool, seconds)?],
        })
    }

    /// Returns the command of a program of ours.
    fn ours(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns the arguments of `gpu-check` in a step of `seconds` seconds.
    fn check_args(&self, kind: &str, seconds: u64, from: u64) -> Vec<String> {
        let numbers = [u64::from(self.device), seconds.saturating_sub(GRACE).max(1), from];
        let flags = ["--device", "--budget", "--from"].into_iter().zip(numbers);
        let mut args = vec![kind.to_owned()];
        args.extend(flags.flat_map(|(flag, number)| [flag.to_owned(), number.to_string()]));
        args.extend((self.extent != Extent::Whole).then(|| "--quick".to_owned()));
        args.extend(self.rehearsal().then(|| "--small".to_owned()));
        args
    }

    fn check(&self, kind: &str, seconds: u64, from: u64) -> Command {
        let mut command = self.ours(&self.programs.check);
        command.args(self.check_args(kind, seconds, from)).envs(SHARED_DEVICE);
        command
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
        let row = |[first, last]: Sizes, kernels: &[&str]| {
            let mut command = self.ours(&self.programs.bench);
            command.arg("bench").args(kernels).args(["--graph", "--format", "json"]);
            command.args(["--device", &format!("cuda:{}", self.device), "-f", "4"]);
            let numbers = [u64::from(self.nranks), first, last].map(|number| number.to_string());
            command.args(["--nranks", &numbers[0], "-b", &numbers[1], "-e", &numbers[2]]);
            let unchecked: &[&str] = if last >= UNCHECKED { &["--check", "0"] } else { &[] };
            let few: &[&str] = if self.rehearsal() { &["--iters", "2"] } else { &[] };
            command.args(unchecked).args(few);
            command
        };
        let all =
            sizes.iter().flat_map(|sizes| OURS.map(|(kernels, most)| (*sizes, kernels, most)));
        let fitting = all.filter(|(sizes, _, most)| sizes[1] <= *most);
        fitting.map(|(sizes, kernels, _)| row(sizes, kernels)).collect()
    }

    /// Returns the command that times a peer at all these sizes, the first rows first: it prints each figure as soon as
    /// it has it.
    fn peer(&self, peer: &str, sizes: &[Sizes]) -> Result<Command, String> {
        if self.rehearsal() {
            return Err("it needs a GPU of its own".to_owned());
        }
        output(&mut program("python3", &["-c", "import torch"]))
            .map_err(|_| "python3 cannot import torch".to_owned())?;
        let mut command = program("python3", &[]);
        command.arg(&self.programs.peers).args([peer, &self.nranks.to_string()]);
        command.env("CUDA_VISIBLE_DEVICES", self.device.to_string()).envs(SHARED_DEVICE);
        let up = |[first, last]: &Sizes| {
            let (mut sizes, mut size) = (Vec::new(), *first);
            while size <= *last {
                sizes.push(size.to_string());
                size *= 4;
            }
            sizes
        };
        command.args(sizes.iter().flat_map(up));
        Ok(command)
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
    use super::super::timed_steps::tests::record;
    use super::*;

    fn setup(extent: Extent) -> Setup {
        let [check, bench, peers] = ["check", "bench", "peers"].map(PathBuf::from);
        let programs = Programs { check, bench, peers };
        let (variables, sanitizer) = (Vec::new(), Err("none".to_owned()));
        Setup { programs, device: 1, extent, nranks: 8, variables, sanitizer }
    }

    #[test]
    fn the_last_step_has_time_left_whatever_the_others_take() {
        let kinds = [(Extent::Whole, 110), (Extent::Quick, 10), (Extent::Rehearsal, 10)];
        for (extent, least) in kinds {
            let setup = setup(extent);
            let taken: u64 = setup.steps().iter().filter_map(|step| step.1).sum();
            assert!(setup.total() >= taken + least, "{taken} of {}", setup.total());
            assert!(setup.total() < 600 - GRACE);
            assert_eq!(setup.steps().last(), Some(&(REST, None)));
        }
    }

    #[test]
    fn what_the_first_check_has_done_is_not_done_again() {
        let setup = setup(Extent::Whole);
        let rest = |summary: &str| {
            let printed = format!("RingAllReduce ok\n# {summary}\n");
            let commands = setup.commands(REST, 500, &[record("correctness", &[&printed])]);
            commands.map(|all| format!("{all:?}"))
        };
        let cut = rest("cases 0 to 312 of 5120: 604 runs, 0 wrong, 50 s").expect("a command");
        assert!(cut.contains(r#""--budget" "488" "--from" "312""#), "{cut}");
        assert!(rest("cases 0 to 9 of 9: 18 runs, 0 wrong, 50 s").is_err());
        assert!(rest("not checked: no NCCL").expect("a command").contains(r#""--from" "0""#));
    }

    #[test]
    fn a_quick_test_has_the_sizes_to_16_mib() {
        let of = |extent| format!("{:?}", setup(extent).commands("more bench", 35, &[]));
        assert!(of(Extent::Quick).contains(r#""-b" "4096" "-e" "4194304""#));
        // A result of 2 GiB in all takes the host longer to check than the step has.
        assert_eq!(of(Extent::Whole).matches(r#""--check" "0""#).count(), 4);
    }
}
