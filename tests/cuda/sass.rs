//! The work of a kernel's machine code: instructions from the end of a wait to the first load behind it, on the
//! shortest way, and those of the loops that move data. The code is not run; the test counts instructions in the output
//! of NVIDIA's disassembler.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use expect_test::expect_file;
use roundelay::DType;
use roundelay_export::cuda::Spec;
use roundelay_kernels::cuda::{Target, fit};
use roundelay_tests::root;

use super::runs::{code, loops, named, proved, spec};

/// An instruction, and where control goes after it.
#[derive(Debug, Default)]
struct Instruction {
    text: String,
    /// The labels that it names.
    targets: Vec<String>,
    /// Whether the next one may follow.
    goes_on: bool,
}

/// The instructions of a disassembly, and which of them has each label.
struct Code {
    instructions: Vec<Instruction>,
    labels: BTreeMap<String, usize>,
}

impl Code {
    fn read(listing: &str) -> Self {
        let (mut instructions, mut labels) = (Vec::new(), BTreeMap::new());
        for line in listing.lines().map(str::trim) {
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label.to_owned(), instructions.len());
            } else if let Some((_, text)) = line.strip_prefix("/*").and_then(|l| l.split_once("*/"))
            {
                instructions.extend(instruction(text.trim()));
            }
        }
        Self { instructions, labels }
    }

    fn at(&self, label: &str) -> Option<usize> {
        self.labels.get(label).copied()
    }

    fn is(&self, at: usize, name: &str, part: &str) -> bool {
        let mut words = self.instructions[at].text.split_whitespace();
        let op = words.find(|word| !word.starts_with('@')).unwrap_or_default();
        op.starts_with(name) && op.contains(part)
    }

    /// Instructions on the shortest way from the end of a wait to a load of a vector, that load among them. Calls are gone
    /// into.
    fn steps_to_load(&self) -> Option<usize> {
        let waits = (0..self.instructions.len()).filter(|at| self.is(*at, "BAR.RED", ""));
        let mut next: VecDeque<(usize, Vec<usize>, usize)> =
            waits.map(|at| (at + 1, Vec::new(), 1)).collect();
        let mut seen = BTreeSet::new();
        while let Some((at, calls, steps)) = next.pop_front() {
            if at >= self.instructions.len() || !seen.insert((at, calls.clone())) {
                continue;
            }
            if self.is(at, "LDG", "128") {
                return Some(steps);
            }
            let instruction = &self.instructions[at];
            let targets = instruction.targets.iter().filter_map(|label| self.at(label));
            if self.is(at, "CALL", "") {
                let inner: Vec<usize> = calls.iter().copied().chain([at + 1]).collect();
                next.extend(targets.map(|target| (target, inner.clone(), steps + 1)));
                continue;
            }
            if self.is(at, "RET", "") {
                match calls.split_last() {
                    Some((back, outer)) => next.push_back((*back, outer.to_vec(), steps + 1)),
                    None => next.extend(self.callers(at).map(|back| (back, Vec::new(), steps + 1))),
                }
            }
            next.extend(targets.map(|target| (target, calls.clone(), steps + 1)));
            if instruction.goes_on {
                next.push_back((at + 1, calls, steps + 1));
            }
        }
        None
    }

    /// Where the function of an instruction may return to.
    fn callers(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let called = move |call: usize| {
            let targets = &self.instructions[call].targets;
            targets.iter().find_map(|label| self.at(label))
        };
        let calls = (0..self.instructions.len()).filter(|call| self.is(*call, "CALL", ""));
        let calls: Vec<_> = calls.filter_map(|call| Some((call, called(call)?))).collect();
        let function = calls.iter().map(|(_, begin)| *begin).filter(|begin| *begin <= at).max();
        calls
            .into_iter()
            .filter(move |(_, begin)| Some(*begin) == function)
            .map(|(call, _)| call + 1)
    }

    /// The innermost loops that load vectors: loads, stores and instructions of each.
    fn loops(&self) -> BTreeSet<(usize, usize, usize)> {
        let back = |at: usize| {
            let targets = self.instructions[at].targets.iter().filter_map(|label| self.at(label));
            targets
                .filter(|target| *target <= at && self.is(at, "BRA", ""))
                .min()
                .map(|to| (to, at))
        };
        let all: Vec<_> = (0..self.instructions.len()).filter_map(back).collect();
        let count = |(from, to): (usize, usize), name: &str| {
            (from..=to).filter(|at| self.is(*at, name, "128")).count()
        };
        let moving =
            all.iter().filter(|range| count(**range, "LDG") > 0 && count(**range, "STG") > 0);
        let innermost = |(from, to): (usize, usize)| {
            all.iter().all(|&(a, b)| (a, b) == (from, to) || a < from || b > to)
        };
        moving
            .filter(|range| innermost(**range))
            .map(|&range| (count(range, "LDG"), count(range, "STG"), range.1 - range.0 + 1))
            .collect()
    }
}

fn instruction(text: &str) -> Option<Instruction> {
    let text = text.split(';').next()?.trim();
    // The second half of an instruction's bits.
    if text.is_empty() {
        return None;
    }
    let whole = text.to_owned();
    let labels = text.split(['`', '(', ')', ',', ' ', '"', '*']);
    let targets: Vec<String> = labels
        .filter(|part| part.starts_with(".L_") || part.starts_with('$'))
        .map(str::to_owned)
        .collect();
    let conditional = text.starts_with('@');
    let op = text.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or_default();
    let ends = ["BRA", "BRX", "RET", "EXIT", "BPT"].iter().any(|name| op.starts_with(name));
    // Instructions that synchronize name a place, and do not jump there.
    let jumps = ["BRA", "BRX", "CALL"].iter().any(|name| op.starts_with(name));
    let goes_on = !ends || conditional || op.starts_with("BRA.DIV");
    Some(Instruction { text: whole, targets: if jumps { targets } else { Vec::new() }, goes_on })
}

/// Disassembles machine code with the disassembler that `cargo xtask nvrtc` installs.
fn disassembled(cubin: &[u8]) -> Code {
    let program = root().join("target/nvrtc/nvidia/cu13/bin/nvdisasm");
    assert!(program.is_file(), "{} is not there: run `cargo xtask nvrtc`", program.display());
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kernel.cubin");
    std::fs::write(&file, cubin).expect("a file");
    Code::read(&listing(&program, &file))
}

fn listing(program: &Path, file: &Path) -> String {
    let ran = Command::new(program).arg("-c").arg(file).output().expect("it starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    // Comments behind indirect jumps name their targets.
    String::from_utf8(ran.stdout)
        .expect("text")
        .replace(" ;", ";")
        .replace("(*\"BRANCH_TARGETS ", "")
}

#[test]
fn what_a_step_costs_is_known() {
    let mut rows = String::from(
        "kernel for sm_90 | instructions from the end of a wait to the first load behind it | loops: loads + stores of 16 bytes in instructions\n",
    );
    for (name, dtype) in [
        ("RingAllReduce", DType::F32),
        ("RingAllReduce", DType::Bf16),
        ("OneShotMeshAllReduce", DType::F32),
        ("MeshAllGather", DType::U8),
        ("HierarchicalAllReduce", DType::F32),
        ("NcclRingAllReduce", DType::F32),
    ] {
        let algorithm = named(name);
        let proved = proved(algorithm, 8).expect("any rank count will do");
        let spec = Spec { element: dtype, ..spec(algorithm) };
        let kernel = loops(algorithm, &proved, spec);
        let target = Target::new("sm_90".parse().expect("an architecture"));
        let fitted = fit(&code(&kernel.text), &kernel.name, &target).expect("it compiles");
        let code = disassembled(&fitted.compiled.cubin);
        let way = code.steps_to_load().expect("it waits and loads");
        let loops: Vec<String> = code
            .loops()
            .iter()
            .map(|(loads, stores, all)| format!("{loads} + {stores} in {all}"))
            .collect();
        let _ = writeln!(rows, "{name} {} | {way} | {}", dtype.name(), loops.join(", "));
    }
    expect_file![root().join("tests/golden/sass.txt")].assert_eq(&rows);
}

#[test]
fn the_shortest_way_goes_through_calls_and_jumps() {
    let code = Code::read(
        "
.text.K:
        /*0000*/              BAR.RED.OR.DEFER_BLOCKING 0x1, 0xe0, P0 ;
        /*0010*/          @P0 BRA `(.L_x_1) ;
        /*0020*/              CALL.REL.NOINC `($K$f) ;
        /*0030*/              LDG.E.128 R4, [R2] ;
.L_x_1:
        /*0040*/              IADD R1, R1, R1 ;
        /*0050*/              IADD R1, R1, R1 ;
        /*0060*/              IADD R1, R1, R1 ;
        /*0070*/              LDG.E.NA.128 R4, [R2] ;
        /*0080*/              STG.E.128 [R2], R4 ;
        /*0090*/          @P1 BRA `(.L_x_1) ;
        /*00a0*/              EXIT ;
$K$f:
        /*00b0*/              RET.REL.NODEC R2 `(.text.K) ;
",
    );
    // The jump and the call, the callee's instruction, and the load.
    assert_eq!(code.steps_to_load(), Some(4));
    assert_eq!(code.loops().into_iter().collect::<Vec<_>>(), [(1, 1, 6)]);
}
