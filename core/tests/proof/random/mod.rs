//! Random programs, nearly right ones among them: the proof and the oracles must agree on each, and where they do not,
//! the smallest such program is printed.

mod edit;
mod grammar;
mod tree;

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::{Algorithm as _, Configured, Limits};
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::ast::{Algorithm, File, StmtKind};
use roundelay_core::syntax::{parse, printer};

use crate::proof::suite::{Score, sources};
use grammar::Dice;

/// Programs tried in the tests; `ROUNDELAY_CASES` asks for another number.
const CASES: u64 = 1500;
/// Ops beyond which a random program says nothing that a shorter one does not.
const LIMITS: Limits = Limits { steps: 2000, ops: 400 };

/// Right out of place alone, and more so than most: every rank reads all inputs.
const ONE_SHOT: &str = "
#[out_of_place]
algorithm OneShot() -> AllReduce {
    for far in 1..nranks { peer((rank + far) % nranks).TxAck(); }
    for far in 1..nranks { peer((rank - far) % nranks).RxAck(); }
    copy(local.input, local.output);
    for far in 1..nranks { reduce(peer((rank - far) % nranks).input, local.output); }
    for far in 1..nranks { peer((rank - far) % nranks).TxDataSignal(); }
    for far in 1..nranks { peer((rank + far) % nranks).RxDataSignal(); }
}";

/// The text of one algorithm, and its schedule if it has one.
fn lay_out(algorithm: &Algorithm, nranks: u32) -> (String, Option<Schedule>) {
    let text = printer::print(&File { algorithms: vec![algorithm.clone()], ..File::default() });
    let source = Source::from_text("random.coll", &text);
    let schedule = compile(&source, Frontend::File).ok().and_then(|mut program| {
        let algorithm = Configured::new(program.algorithms.pop()?, &source);
        algorithm.schedule_within(nranks, LIMITS).ok()
    });
    (text, schedule)
}

/// A program of the suite with some changes, or one that is random from the start.
fn program(dice: &mut Dice, known: &[Algorithm]) -> Algorithm {
    let random = |dice: &mut Dice| {
        let (mut file, wrong) = parse(&Source::from_text("random", &grammar::program(dice)));
        assert_eq!(wrong, [], "random programs can be read");
        file.algorithms.remove(0)
    };
    if dice.once_in(3) {
        return random(dice);
    }
    // Scratch has checks of its own.
    let scratch = dice.once_in(3);
    let uses = |a: &&Algorithm| a.body.iter().any(|s| matches!(s.kind, StmtKind::Scratch { .. }));
    let known: Vec<_> = known.iter().filter(|a| !scratch || uses(a)).collect();
    let mut algorithm = known[dice.below(known.len())].clone();
    for _ in 0..dice.below(4) {
        edit::edit(&mut algorithm, dice);
    }
    algorithm
}

/// Returns the disagreement of the proof and the oracles.
fn disagreement(algorithm: &Algorithm, nranks: u32) -> Option<(String, String)> {
    let (text, schedule) = lay_out(algorithm, nranks);
    let mut score = Score::default();
    score.add("random", &schedule?);
    Some((text, score.disagreements().first()?.clone()))
}

/// The smallest program that shows a disagreement too.
fn shrink(mut algorithm: Algorithm, nranks: u32) -> (String, String) {
    'smaller: loop {
        for variant in edit::smaller(&algorithm) {
            if disagreement(&variant, nranks).is_some() {
                algorithm = variant;
                continue 'smaller;
            }
        }
        return disagreement(&algorithm, nranks).expect("it was one");
    }
}

/// How many to try.
fn cases(usual: u64) -> u64 {
    std::env::var("ROUNDELAY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Returns the programs with which random programs begin.
fn known() -> Vec<Algorithm> {
    let mut known = Vec::new();
    // The program is also added as if it were right in place, because chance seldom removes just that attribute. It is
    // as frequent as a family of the library, because one algorithm among many is seldom drawn.
    let extra = [ONE_SHOT.to_owned(), ONE_SHOT.replace("#[out_of_place]", "")];
    let extra = extra.map(|text| ("one shot".to_owned(), text));
    for (name, text) in sources().into_iter().chain(extra.into_iter().cycle().take(6)) {
        known.extend(parse(&Source::from_text(name, &text)).0.algorithms);
    }
    known
}

/// Random programs that can be laid out, right or wrong, with their schedules.
pub(crate) fn some(usual: u64, seed: u64) -> impl Iterator<Item = (String, Schedule)> {
    let known = known();
    (0..cases(usual)).filter_map(move |case| {
        let mut dice = Dice::new(seed + case);
        let algorithm = program(&mut dice, &known);
        let (text, schedule) = lay_out(&algorithm, 2 + dice.below(3) as u32);
        Some((text, schedule?))
    })
}

/// Random programs of more ranks than the oracles can search.
pub(crate) fn texts(usual: u64, seed: u64) -> impl Iterator<Item = (String, u32)> {
    let known = known();
    (0..cases(usual)).map(move |case| {
        let mut dice = Dice::new(seed + case);
        let algorithm = program(&mut dice, &known);
        let nranks = dice.pick(&[2, 3, 4, 5, 6, 8, 9, 16]);
        (printer::print(&File { algorithms: vec![algorithm], ..File::default() }), nranks)
    })
}

#[test]
fn programs() {
    let known = known();
    let mut score = Score::default();
    let mut refused = 0;
    for case in 0..cases(CASES) {
        let mut dice = Dice::new(case + 1);
        let algorithm = program(&mut dice, &known);
        let nranks = 2 + dice.below(3) as u32;
        let (_, Some(schedule)) = lay_out(&algorithm, nranks) else {
            refused += 1;
            continue;
        };
        score.add("random", &schedule);
        if !score.disagreements().is_empty() {
            let (text, what) = shrink(algorithm, nranks);
            panic!("case {case}, {nranks} ranks:\n{text}\n{what}");
        }
    }
    println!("{refused} refused before the proof\n{}", score.table());
    // A healthy mix, in which every check has something to do.
    let (wrong, right) = score.parts();
    let all = wrong + right;
    assert!(right * 10 > all && wrong * 10 > all, "{right} right, {wrong} wrong");
    let checks = [
        Code::Deadlock,
        Code::UnmatchedWait,
        Code::LeftOverSignal,
        Code::WrongResult,
        Code::Race,
        Code::RaceWithCaller,
        Code::UninitializedRead,
        Code::InPlaceOnly,
        Code::ScratchRace,
    ];
    for code in checks {
        assert!(score.kills(code) > 0, "{code} never found anything");
    }
}
