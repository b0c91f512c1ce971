//! The runs.

use roundelay::{Algorithm as _, select};
use roundelay_core::check::Frontend;
use roundelay_core::counts::Counts;
use roundelay_core::layout::Configured;
use roundelay_core::messages::TwoSided;
use roundelay_core::syntax::Source;
use roundelay_export::mpi::{self, Export, File};
use roundelay_tests::named;

use super::cases::{Case, Digests, write};
use super::installed::{Mpi, all};

/// Compiles and runs cases of one number of ranks; the error lists the wrong ones.
fn wrong(mpi: &Mpi, cases: &[Case], args: &[&str]) -> Result<(), String> {
    let nranks = cases[0].proved.schedule().nranks;
    let folder = tempfile::tempdir().expect("a folder for the tests");
    let (files, digests) = write(cases, folder.path());
    let program = folder.path().join("driver");
    mpi.compile(&files, &program);
    let (well, text) = mpi.run(&program, nranks, args);
    let (found, said): (Vec<_>, Vec<_>) =
        text.lines().partition(|line| line.starts_with("digest "));
    let said = said.join("\n");
    let last = format!("{} algorithms, 0 wrong", cases.len());
    if !well || !said.contains(&last) {
        return Err(format!("{} at {nranks} ranks:\n{said}", mpi.name));
    }
    let read = |line: &&str| {
        let words: Vec<_> = line.split(' ').collect();
        let [_, name, count, rank, hash] = words[..] else { return None };
        let hash = u64::from_str_radix(hash, 16).ok()?;
        Some(((name.to_owned(), count.parse().ok()?, rank.parse().ok()?), hash))
    };
    let found: Digests = found.iter().filter_map(read).collect();
    let differ = digests.iter().find(|(key, hash)| found.get(*key) != Some(*hash));
    match differ {
        Some(((name, count, rank), _)) => Err(format!(
            "{}: {name} at {nranks} ranks, {count} floats: rank {rank} has other bits than on the host",
            mpi.name
        )),
        None => Ok(()),
    }
}

/// The MPIs that the tests run: there must be one.
fn installed() -> Vec<Mpi> {
    let found = all();
    assert!(!found.is_empty(), "no MPI: `cargo xtask test` installs one below target/mpi");
    println!("{}", found.iter().map(|mpi| &mpi.name[..]).collect::<Vec<_>>().join(", "));
    found
}

fn report(all: Vec<Result<(), String>>) {
    let wrong: Vec<_> = all.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Each collective, rooted ones with both kinds of root, and a program that reduces in the order of the ranks out of
/// place alone; the MPIs take turns at the numbers of ranks.
#[test]
fn a_few_algorithms_do_what_mpi_does() {
    let names = [
        "RingAllReduce",
        "HalvingDoublingAllReduce",
        "OneShotMeshAllReduce",
        "TreeAllReduce",
        "RingReduceScatter",
        "RingAllGather",
        "TreeBroadcast",
        "RingReduce",
        "MeshScatter",
        "MeshGather",
        "MeshAllToAll",
    ];
    let source = Source::from_text("turned.coll", include_str!("../data/turned.coll"));
    let turned = roundelay_core::compile(&source, Frontend::File).expect("it makes sense");
    let turned = Configured::new(turned.algorithms[0].clone(), &source);
    let mpis = installed();
    let runs = (0..).zip([1, 2, 3, 4, 8]).map(|(at, nranks)| {
        let algorithms = names.iter().map(|name| named(name)).chain([&turned]);
        let cases: Vec<_> = algorithms.filter_map(|a| Case::new(a, nranks)).collect();
        let mut able = mpis.iter().filter(|mpi| mpi.is_able(nranks)).cycle().skip(at);
        able.next().map_or(Ok(()), |mpi| wrong(mpi, &cases, &[]))
    });
    report(runs.collect());
}

/// Files for one rank each, made from the rank that stands for all, do together what MPI does, with the bits of the host.
#[test]
fn files_of_single_ranks_do_what_mpi_does() {
    let names = [
        "RingAllReduce",
        "NcclRingAllReduce",
        "NhrReduceScatter",
        "HalvingDoublingAllReduce",
        "BruckAllGather",
        "BruckAllToAll",
        "HierarchicalAllReduce",
    ];
    let mpis = installed();
    let runs = [3, 4].map(|nranks| {
        let cases: Vec<_> =
            names.iter().filter_map(|name| Case::of_single_ranks(named(name), nranks)).collect();
        assert!(cases.len() > 4, "{} algorithms at {nranks} ranks", cases.len());
        let mpi = mpis.iter().find(|mpi| mpi.is_able(nranks)).expect("an MPI");
        wrong(mpi, &cases, &[])
    });
    report(runs.into());
}

/// Functions with a count for each block do what MPI's own calls do, for multiples of the counts: every algorithm of the
/// library with blocks at three ranks, and one of each collective at four.
#[test]
fn blocks_with_a_count_each_are_those_of_mpi() {
    let mpis = installed();
    let few = ["RingAllGather", "RingReduceScatter", "MeshGather", "MeshScatter", "MeshAllToAll"];
    let report_of = |nranks: u32, counts: &[u64], matrix: &[u64]| {
        let mpi = mpis.iter().find(|mpi| mpi.is_able(nranks)).expect("an MPI");
        let folder = tempfile::tempdir().expect("a folder for the tests");
        let driver = folder.path().join("blocks.c");
        let source = roundelay_tests::root().join("tests/mpi/blocks.c");
        std::fs::copy(source, &driver).expect("a file of the tests");
        let (mut files, mut externs, mut rows) = (vec![driver], Vec::new(), Vec::new());
        for algorithm in select::library() {
            let taken = nranks == 3 || few.contains(&algorithm.name());
            let Some(blocks) = algorithm.collective().blocks(nranks).filter(|_| taken) else {
                continue;
            };
            let Ok(proved) = roundelay_core::prove(algorithm, nranks) else { continue };
            let of = if blocks == u64::from(nranks) { counts } else { matrix };
            let of = Counts::new(algorithm.collective(), nranks, of).expect("counts");
            let form = TwoSided::new(&proved).and_then(|form| form.for_counts(&of));
            let form = form.unwrap_or_else(|found| panic!("{}: {found:?}", algorithm.name()));
            let author = proved.proof();
            let export = Export {
                form: &form.part(None),
                author,
                command: "a test",
                docs: &[],
                source: None,
            };
            let File { function, text, .. } =
                mpi::mpi(&export).unwrap_or_else(|found| panic!("{}: {found:?}", algorithm.name()));
            let path = folder.path().join(format!("{function}.c"));
            std::fs::write(&path, text).expect("a file of the tests");
            files.push(path);
            externs.push(format!(
                "int {function}(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);\n"
            ));
            let (name, collective) = (algorithm.name(), algorithm.collective().name());
            rows.push(format!("    {{\"{name}\", \"{collective}\", {function}}},\n"));
        }
        let all =
            |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let table = format!(
            "enum {{ RANKS = {nranks}, FUNCTIONS = {} }};\n\nstatic const int counts[] = {{{}}}, matrix[] = {{{}}};\n\n{}\ntypedef struct {{\n    const char *name, *collective;\n    int (*run)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);\n}} row;\n\nstatic const row functions[] = {{\n{}}};\n",
            rows.len(),
            all(counts),
            all(matrix),
            externs.concat(),
            rows.concat()
        );
        std::fs::write(folder.path().join("counts.h"), table).expect("a file of the tests");
        let program = folder.path().join("blocks");
        mpi.compile(&files, &program);
        let (well, text) = mpi.run(&program, nranks, &[]);
        let wanted = format!("{} functions, 0 wrong", rows.len());
        if well && text.contains(&wanted) { Ok(()) } else { Err(format!("{}: {text}", mpi.name)) }
    };
    let matrix: Vec<u64> = (0..16).map(|at| (at * 7) % 5).collect();
    report(vec![report_of(3, &[5, 0, 1000], &matrix[..9]), report_of(4, &[0, 3, 1, 2], &matrix)]);
}

/// Communicators that are freed leave nothing behind.
#[test]
fn freed_communicators_leave_nothing_behind() {
    let cases = [Case::new(named("RingAllReduce"), 2).expect("a ring of two")];
    let mpis = installed();
    report(vec![wrong(&mpis[0], &cases, &["leaks"])]);
}

/// The whole library at every number of ranks, by every MPI: `cargo xtask mpi`.
#[test]
#[ignore = "takes minutes: `cargo xtask mpi` runs it"]
fn the_library_does_what_mpi_does() {
    let mpis = installed();
    let mut all = Vec::new();
    for nranks in 1..=17 {
        let cases: Vec<_> = select::library().iter().filter_map(|a| Case::new(a, nranks)).collect();
        let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
        let left_out = select::library().iter().filter(|a| !names.contains(&a.name()));
        let left_out: Vec<_> = left_out.map(roundelay::Algorithm::name).collect();
        for mpi in mpis.iter().filter(|mpi| mpi.is_able(nranks)) {
            let begun = std::time::Instant::now();
            all.push(wrong(mpi, &cases, &[]));
            let state = if all.last().is_some_and(Result::is_ok) { "right" } else { "WRONG" };
            println!(
                "{}, {nranks} ranks: {} algorithms {state} in {:.1} s; not of so many ranks: {left_out:?}",
                mpi.name,
                cases.len(),
                begun.elapsed().as_secs_f64(),
            );
        }
    }
    report(all);
}
