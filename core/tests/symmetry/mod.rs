//! The proof by one rank against the direct proof: equal verdicts, statements and certificates.

mod mutants;
mod one_rank;

use std::fmt::Write as _;

use expect_test::expect_file;

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::{OpId, SpanId};
use roundelay_core::layout::{Algorithm, Configured};
use roundelay_core::optimize::join;
use roundelay_core::schedule::Schedule;
use roundelay_core::schedule::demands::Demands;
use roundelay_core::symmetry::{self, NoProof, SymmetricProof};
use roundelay_core::syntax::Source;
use roundelay_core::uneven;
use roundelay_core::verify::{self, Reduction, verify};

use crate::proof::random;
use crate::proof::suite::{Score, sources};

/// Returns the algorithms of a source.
fn read(name: &str, text: &str) -> Vec<Configured> {
    let source = Source::from_text(name, text);
    let load = |_: &str| Err(String::new());
    let dependencies = Dependencies { prelude: roundelay_library::SOURCES, load: &load };
    match compile_with(&source, Frontend::File, &dependencies) {
        Ok(program) => {
            let all = program.algorithms.into_iter();
            all.map(|algorithm| Configured::new(algorithm, &source)).collect()
        }
        Err(_) => Vec::new(),
    }
}

/// A reduction with statements in place of ops.
fn told(reduction: &Reduction, schedule: &Schedule) -> String {
    let at = |op: &OpId| schedule.op(*op).at.0;
    let witnesses = reduction.witnesses.iter().map(|(class, witness)| {
        let (ranks, pieces, orders) = (&witness.ranks, &witness.pieces, &witness.orders);
        let at = at(&witness.at);
        format!("{class:?} {ranks:?} {pieces:?} {orders:?} {at} {}", witness.in_place)
    });
    let rounds: Vec<_> = reduction.rounding_ops.iter().map(at).collect();
    format!(
        "{:?} {:?} {:?} {rounds:?}\n{}",
        reduction.apart,
        reduction.in_place,
        reduction.modes,
        witnesses.collect::<Vec<_>>().join("\n")
    )
}

/// The statement that is right for equal counts alone, as text.
fn by_block(found: Option<Result<(), SpanId>>) -> String {
    match found {
        None => "no blocks".to_owned(),
        Some(Ok(())) => "every vector of counts".to_owned(),
        Some(Err(at)) => format!("equal counts alone {}", at.0),
    }
}

/// The facts of a certificate as text, by the direct proof.
fn direct(schedule: &Schedule) -> Result<String, Vec<Finding>> {
    let proof = verify(schedule)?;
    let (needs, messages) = (schedule.needs(), join(schedule).messages());
    let ports = |busiest: &verify::Busiest| (busiest.peers.len(), busiest.rank.0, busiest.step);
    Ok(format!(
        "ops {} messages {} pieces {}\nin place {} one mode {:?}\ndepth {} steps {} ports {:?} {:?}\n\
         needs {:?} {} {} {}\nfifo {:?}\nport {:.9}\n{}\n{}",
        schedule.ops.len(),
        messages.messages,
        messages.pieces,
        proof.in_place,
        proof.one_mode.as_ref().map(|found| (found.code, found.at)),
        proof.reduce_depth,
        proof.steps,
        ports(&proof.ports.send),
        ports(&proof.ports.receive),
        needs.scratch,
        needs.streams,
        needs.notifies,
        needs.joins,
        verify::depth(schedule),
        schedule.busiest_port(),
        by_block(
            (schedule.collective.blocks(schedule.nranks))
                .map(|_| uneven::blocks(schedule).map(|_| ()).map_err(|found| found[0].at))
        ),
        proof.reduction.as_ref().map_or_else(String::new, |r| told(r, schedule)),
    ))
}

/// The facts of a certificate as text, by the proof of one rank.
fn symmetric(proof: &SymmetricProof) -> String {
    let (needs, messages) = (proof.of.own.needs(), proof.messages());
    let ports = |busiest: &verify::Busiest| (busiest.peers.len(), busiest.rank.0, busiest.step);
    format!(
        "ops {} messages {} pieces {}\nin place {} one mode {:?}\ndepth {} steps {} ports {:?} {:?}\n\
         needs {:?} {} {} {}\nfifo {:?}\nport {:.9}\n{}\n{}",
        proof.ops(),
        messages.0,
        messages.1,
        proof.proof.in_place,
        proof.proof.one_mode.as_ref().map(|found| (found.code, found.at)),
        proof.proof.reduce_depth,
        proof.proof.steps,
        ports(&proof.proof.ports.send),
        ports(&proof.proof.ports.receive),
        needs.scratch,
        needs.streams,
        needs.notifies,
        needs.joins,
        proof.depth(),
        proof.busiest_port(),
        by_block(
            (proof.counts_by_block.as_ref())
                .map(|found| found.as_ref().copied().map_err(|found| found.at))
        ),
        proof.proof.reduction.as_ref().map_or_else(String::new, |r| told(r, &proof.of.own)),
    )
}

/// Whether a finding, with the code of the worst, names a statement. Of the two ends of one mistake, the proofs may name
/// either first; the statement to blame for a wrong result is a choice, which the direct proof makes with more knowledge.
fn is_told(found: &[Finding], at: SpanId) -> bool {
    let worst = found.iter().filter(|finding| finding.code == found[0].code);
    worst
        .flat_map(|f| std::iter::once(f.at).chain(f.others.iter().map(|(at, _)| *at)))
        .any(|of| of == at)
}

/// The most ops of a schedule that the oracles judge, and the most ranks.
const JUDGED: (usize, u32) = (64, 4);

/// Compares both proofs of an algorithm; returns whether one rank stood for all. The two have one replay, so the oracles
/// judge a small schedule of which one rank stands for all too.
fn agrees(algorithm: &Configured, nranks: u32) -> Result<bool, String> {
    let name = algorithm.name();
    let by_one = match symmetry::prove(algorithm, nranks) {
        Err(NoProof::Asymmetric(_)) => return Ok(false),
        other => other,
    };
    let schedule = match (algorithm.schedule(nranks), &by_one) {
        (Ok(schedule), _) => schedule,
        (Err(found), Err(NoProof::Wrong(ours))) if found[0].code == ours[0].code => {
            return Ok(true);
        }
        (Err(found), _) => return Err(format!("{name} at {nranks}: laid out, but {found:?}")),
    };
    if schedule.ops.len() <= JUDGED.0 && nranks <= JUDGED.1 {
        // The oracles do not check an attribute's demands beyond being right.
        let plain = Schedule { demands: Demands::default(), ..schedule.clone() };
        let mut score = Score::default();
        score.add("symmetric", &plain);
        if let Some(why) = score.disagreements().first() {
            return Err(format!("{name} at {nranks}: {why}"));
        }
    }
    match (direct(&schedule), by_one) {
        (Ok(theirs), Ok(ours)) => {
            let ours = symmetric(&ours);
            let same = ours == theirs;
            same.then_some(true).ok_or(format!("{name} at {nranks}\n{ours}\n--- direct\n{theirs}"))
        }
        (Err(theirs), Err(NoProof::Wrong(ours))) => {
            let of_results = |found: &Finding| {
                let why = found.notes.iter().any(|note| note.contains(Code::WrongResult.as_str()));
                found.code == Code::WrongResult || found.code == Code::InPlaceOnly && why
            };
            // Beside a race, the order in which a replay meets accesses decides whether garbage or a piece of another
            // place is read, and at which statement the race is seen.
            let of_order =
                |code| matches!(code, Code::Race | Code::UninitializedRead | Code::SlotLength);
            let races = ours.iter().chain(&theirs).any(|found| found.code == Code::Race);
            let hidden = races && of_order(ours[0].code) && of_order(theirs[0].code);
            let same = ours.iter().any(|found| {
                found.code == theirs[0].code && (of_results(found) || is_told(&theirs, found.at))
            });
            let same = same || hidden;
            let told = || format!("{name} at {nranks}: {ours:#?}\n--- direct\n{theirs:#?}");
            same.then_some(true).ok_or_else(told)
        }
        (Ok(_), Err(NoProof::Wrong(ours))) => Err(format!("{name} at {nranks}: {ours:#?}")),
        (Err(theirs), Ok(_)) => Err(format!("{name} at {nranks}: proved, but {theirs:#?}")),
        (_, Err(NoProof::Asymmetric(_))) => unreachable!("told before"),
    }
}

/// `ROUNDELAY_CASES` asks for another number of programs.
#[test]
fn both_proofs_agree_on_random_programs() {
    let (mut stood, mut others) = (0, 0);
    for (text, nranks) in random::texts(1500, 7) {
        for algorithm in read("random.coll", &text) {
            match agrees(&algorithm, nranks) {
                Ok(true) => stood += 1,
                Ok(false) => others += 1,
                Err(why) => panic!("{text}\n{why}"),
            }
        }
    }
    println!("one rank stood for all in {stood} cases, and in {others} not");
    assert!(stood > 100 && others > 100, "{stood} and {others}");
}

#[test]
fn library_and_examples_have_equal_certificates() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        for algorithm in read(&name, &text) {
            for nranks in (2..=12).chain([16]) {
                wrong.extend(agrees(&algorithm, nranks).err());
            }
        }
    }
    let some: Vec<_> = wrong.iter().take(6).cloned().collect();
    assert!(wrong.is_empty(), "{}\n\n{}", wrong.len(), some.join("\n\n"));
}

/// The algorithms of the library that one rank proves, each with the turns and the way, at 16 ranks in groups of 4.
#[test]
fn ways() {
    let mut table = String::new();
    for (name, text) in roundelay_library::SOURCES {
        for algorithm in read(name, text) {
            let way = match symmetry::prove(&algorithm, 16) {
                Ok(proof) => format!("{} {:?}", proof.of.turns, proof.of.way),
                Err(NoProof::Asymmetric(why)) => format!("no: {}", why.why()),
                Err(NoProof::Wrong(found)) => format!("wrong: {}", found[0].title),
            };
            if !algorithm.collective().is_rooted() {
                writeln!(table, "{}: {way}", algorithm.name()).expect("a string takes text");
            }
        }
    }
    expect_file!["../data/symmetric.txt"].assert_eq(&table);
}

/// What a rank is compared with, and what is beyond the numbers of ranks.
#[test]
fn limits() {
    let ring = &read("ring.coll", include_str!("../../../stdlib/library/ring.coll"))[0];
    let proof = symmetry::prove(ring, 4096).expect("a ring of any size");
    assert_eq!((proof.ops(), proof.proof.steps), (4096 * 40_951, 8190));
    let many = symmetry::prove(ring, (1 << 16) + 1).expect_err("more ranks than there are");
    assert!(matches!(&many, NoProof::Wrong(found) if found[0].code == Code::NoRanks), "{many:?}");
    let one = symmetry::prove(ring, 1).expect_err("nothing is turned");
    assert!(matches!(one, NoProof::Asymmetric(_)));
    // Forty million steps of one rank are beyond the budget of a walk.
    let text = "algorithm Long() -> AllReduce {
        copy(local.input, local.output);
        for a in 0..10000 { for b in 0..10000 { if rank == nranks { copy(local.input, local.output); } } }
    }";
    let long = symmetry::prove(&read("long.coll", text)[0], 300).expect_err("too long");
    assert!(matches!(&long, NoProof::Wrong(found) if found[0].code == Code::StepLimit), "{long:?}");
}

/// A copy of all blocks is the same set of moves at every rank. It is so only where no move between them reads one of
/// the blocks, as in the second program, which reads a block that other ranks have not kept yet.
#[test]
fn a_loop_over_all_blocks() {
    let program = |inside: &str, behind: &str| {
        format!(
            "#[out_of_place] algorithm Kept() -> AllToAll {{
                scratch s: like input;
                view sent = input.split(nranks);
                view kept = s.split(nranks);
                view got = output.split(nranks);
                for b in 0..nranks {{
                    copy(local.sent[b], local.kept[b]);
                    if b == 0 {{ {inside} }}
                }}
                {behind}
                for d in 1..nranks {{ peer((rank - d) % nranks).TxAck(); }}
                for d in 1..nranks {{
                    let from = peer((rank + d) % nranks);
                    from.RxAck();
                    copy(from.sent[rank], local.got[from.rank]);
                    from.TxDataSignal();
                }}
                for d in 1..nranks {{ peer((rank - d) % nranks).RxDataSignal(); }}
            }}"
        )
    };
    let own = "copy(local.kept[rank], local.got[rank]);";
    let right = &read("kept.coll", &program("", own))[0];
    assert_eq!(agrees(right, 5), Ok(true));
    let hostile = &read("kept.coll", &program(own, ""))[0];
    assert_eq!(agrees(hostile, 5), Ok(false), "some ranks read a block before they keep it");
}

/// The findings of one rank, of a ring with one mistake each: the words are those of the direct proof, with the note
/// that all ranks have the mistake.
#[test]
fn findings_of_one_rank() {
    let ring = include_str!("../../../stdlib/library/ring.coll");
    let first = ring.find("pub algorithm RingAllReduce").expect("the ring");
    let ring = &ring[first..][..ring[first..].find("\n}\n").expect("its end") + 3];
    let from_input = ("reduce(left.block[b]", "reduce(left.input.split(nranks)[b]");
    let [ready, heard] = ["right.TxAck(); //", "left.RxAck(); //"].map(|word| (word, "//"));
    let last = [
        ("left.TxDataSignal();", "if round + 2 < nranks { left.TxDataSignal(); }"),
        ("right.RxDataSignal();", "if round + 2 < nranks { right.RxDataSignal(); }"),
    ];
    let again = "reduce(left.block[b], local.block[b]); reduce(left.block[b], local.block[b]);";
    let wrong: [(&str, &[(&str, &str)]); 7] = [
        ("a wait is left out", &[heard]),
        ("a round too few", &[("0..nranks - 1 { // reduce", "0..nranks - 2 { // reduce")]),
        ("no copy at first", &[("copy(local.input, local.output);", "")]),
        ("a contribution comes twice", &[("reduce(left.block[b], local.block[b]);", again)]),
        ("blocks are pulled too early", &[ready, heard]),
        ("inputs are pulled too early", &[ready, heard, from_input]),
        ("the last pull is not waited for", &last),
    ];
    let mut table = String::new();
    for (name, changes) in wrong {
        let change = |text: String, (word, other): &(&str, &str)| {
            assert!(text.contains(word), "{name}: {word}");
            text.replace(word, other)
        };
        let text = changes.iter().fold(ring.to_owned(), change);
        let source = Source::from_text("ring.coll", &text);
        let algorithm = &read("ring.coll", &text)[0];
        writeln!(table, "== {name}").expect("a string takes text");
        let Err(NoProof::Wrong(found)) = symmetry::prove(algorithm, 4) else {
            panic!("{name}: no finding");
        };
        for finding in found {
            table.push_str(&algorithm.diagnostic(finding, 4).report(&source));
            table.push('\n');
        }
    }
    expect_file!["../data/one_rank_wrong.txt"].assert_eq(&table);
}
