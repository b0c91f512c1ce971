//! Algorithms as C files with a table of them, and the digests of the host engine's results for equal inputs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use roundelay::{Algorithm as _, Plan};
use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::messages::{RankForm, TwoSided};
use roundelay_core::prove_source;
use roundelay_core::symmetry;
use roundelay_core::verify::Proved;
use roundelay_export::mpi::{Export, File, mpi};

/// An algorithm at one number of ranks.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) proved: Proved,
    pub(crate) form: TwoSided,
    pub(crate) file: File,
    /// The texts of files for one rank each, which the function of `file` calls.
    ranks: Vec<String>,
}

/// Digests by algorithm, count and rank.
pub(crate) type Digests = BTreeMap<(String, u64, u32), u64>;

impl Case {
    /// The root of a rooted collective is the last rank if the number of ranks is odd, otherwise the first.
    pub(crate) fn new(algorithm: &Configured, nranks: u32) -> Option<Self> {
        let mut algorithm = algorithm.clone();
        if algorithm.collective().is_rooted() {
            let root = if nranks % 2 == 1 { nranks - 1 } else { 0 };
            algorithm.set_text("root", &root.to_string()).expect("it has a root");
        }
        let proved = prove_source(&algorithm, nranks).ok()?;
        let name = algorithm.name().to_owned();
        Some(Self::of(&name, &algorithm, proved))
    }

    pub(crate) fn of(name: &str, algorithm: &Configured, proved: Proved) -> Self {
        let what = || format!("{name} at {} ranks", proved.schedule().nranks);
        let form = TwoSided::new(&proved).unwrap_or_else(|found| panic!("{}: {found:?}", what()));
        let export = Export {
            form: &form.part(None),
            author: proved.proof(),
            command: "a test",
            docs: algorithm.docs(),
            source: None,
        };
        let file = mpi(&export).unwrap_or_else(|found| panic!("{}: {found:?}", what()));
        Self { name: name.to_owned(), form, file, proved, ranks: Vec::new() }
    }

    /// The algorithm as a file for each rank, each made from the rank that stands for all, if one does.
    pub(crate) fn of_single_ranks(algorithm: &Configured, nranks: u32) -> Option<Self> {
        let proof = symmetry::prove(algorithm, nranks).ok()?;
        let mut case = Self::new(algorithm, nranks)?;
        let name = case.file.function.clone();
        let (mut functions, mut cases) = (String::new(), String::new());
        for rank in 0..nranks {
            let form = RankForm::new(&proof, RankId(rank))
                .unwrap_or_else(|why| panic!("rank {rank} of {name}: {why:?}"));
            let export = Export {
                form: &form.part(),
                author: &proof.proof,
                command: "a test",
                docs: &[],
                source: None,
            };
            let file = mpi(&export).unwrap_or_else(|found| panic!("{name}: {found:?}"));
            let own = format!("{name}_{rank}");
            case.ranks.push(file.text.replace(&format!("int {name}("), &format!("int {own}(")));
            let _ = writeln!(functions, "collective_fn {own};");
            let _ =
                writeln!(cases, "    case {rank}: return {own}(in, out, count, type, op, comm);");
        }
        case.file.text = format!(
            "#include \"driver.h\"\n\n{functions}\nint {name}(const void *in, void *out, int count, MPI_Datatype \
             type, MPI_Op op, MPI_Comm comm) {{\n    int rank = 0;\n    if (comm != MPI_COMM_NULL) {{\n        \
             MPI_Comm_rank(comm, &rank);\n    }}\n    switch (rank) {{\n{cases}    default: return \
             MPI_ERR_COMM;\n    }}\n}}\n"
        );
        Some(case)
    }

    /// Adds the digests of the host engine's results for the driver's floats.
    fn host(&self, digests: &mut Digests) {
        let schedule = self.proved.schedule();
        let (collective, nranks, root) = (schedule.collective, schedule.nranks, schedule.root);
        let ranks = || (0..nranks).map(RankId);
        for count in counts() {
            let input = |rank: RankId| {
                let len = u64::from(collective.input_units(rank, nranks, root)) * count;
                (0..len as u32).flat_map(|at| float(rank.0, at).to_ne_bytes()).collect::<Vec<u8>>()
            };
            let output =
                |rank| 4 * (u64::from(collective.output_units(rank, nranks, root)) * count);
            let reads: Vec<Vec<u8>> = ranks().map(input).collect();
            let reads: Vec<&[u8]> = reads.iter().map(Vec::as_slice).collect();
            let mut writes: Vec<Vec<u8>> =
                ranks().map(|rank| vec![0; output(rank) as usize]).collect();
            let plan = Plan::new(&self.proved, count, DType::F32, ReduceOp::Sum).expect("a plan");
            let mut slices: Vec<_> = writes.iter_mut().map(Vec::as_mut_slice).collect();
            plan.run_bytes(&reads, &mut slices).expect("it runs");
            for (rank, bytes) in (0..).zip(&writes) {
                digests.insert((self.name.clone(), count, rank), digest(bytes));
            }
        }
    }
}

/// The driver's counts of floats.
fn counts() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1), |count| Some(3 * count + 4)).take_while(|count| *count < 200)
}

/// The driver's floats: sums of them are rounded.
fn float(of: u32, at: u32) -> f32 {
    let mut x =
        at.wrapping_mul(2_654_435_761).wrapping_add(of.wrapping_mul(40503)).wrapping_add(12345);
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^= x >> 16;
    (x >> 8) as f32 * (1 << (x & 7)) as f32
}

fn digest(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Writes the files of the cases and their table; the files to compile, and the digests to expect.
pub(crate) fn write(cases: &[Case], folder: &Path) -> (Vec<PathBuf>, Digests) {
    let mut files = vec![roundelay_tests::root().join("tests/mpi/driver.c")];
    let mut digests = Digests::new();
    let (mut functions, mut rows) = (String::new(), String::new());
    for case in cases {
        let File { function, text, longest } = &case.file;
        let path = folder.join(format!("{function}.c"));
        std::fs::write(&path, text).expect("a file of the tests");
        files.push(path);
        for (rank, text) in case.ranks.iter().enumerate() {
            let path = folder.join(format!("{function}_{rank}.c"));
            std::fs::write(&path, text).expect("a file of the tests");
            files.push(path);
        }
        let collective = match case.proved.schedule().collective {
            Collective::AllReduce => "ALL_REDUCE",
            Collective::ReduceScatter => "REDUCE_SCATTER",
            Collective::AllGather => "ALL_GATHER",
            Collective::Broadcast => "BROADCAST",
            Collective::Reduce => "REDUCE",
            Collective::Scatter => "SCATTER",
            Collective::Gather => "GATHER",
            Collective::AllToAll => "ALL_TO_ALL",
        };
        let proof = case.form.proof();
        let in_place = proof.in_place;
        let in_order = proof.reduction.as_ref().is_none_or(|r| r.in_every_mode().in_rank_order);
        let root = case.proved.schedule().root;
        let _ = writeln!(functions, "collective_fn {function};");
        let _ = writeln!(
            rows,
            "    {{\"{}\", {function}, {collective}, {root}, {}, {}, {longest}}},",
            case.name,
            u8::from(in_place),
            u8::from(in_order)
        );
        case.host(&mut digests);
    }
    let table = format!(
        "#include \"driver.h\"\n\n{functions}\nconst struct algorithm algorithms[] = {{\n{rows}}};\nconst int algorithm_count = {};\n",
        cases.len()
    );
    let path = folder.join("cases.c");
    std::fs::write(&path, table).expect("a file of the tests");
    files.push(path);
    (files, digests)
}
