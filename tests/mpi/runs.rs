//! The runs.

use roundelay::{Algorithm as _, select};
use roundelay_core::check::Frontend;
use roundelay_core::layout::Configured;
use roundelay_core::syntax::Source;

use super::cases::{Case, Digests, named, write};
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
