//! Programs: the lowered form of a page, their text form, and one rank of very many.

use expect_test::expect;
use proptest::prelude::*;
use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::ids::RankId;
use roundelay_core::layout::{Algorithm as _, Configured, one_rank};
use roundelay_core::program::Program;
use roundelay_core::program::text::{parse, print};
use roundelay_core::schedule::{Schedule, Stream, text};
use roundelay_core::syntax::Source;
use roundelay_core::{compile, compile_with};

/// Every statement and built-in once.
const CONSTRUCTS: &str = include_str!("../../../tests/data/constructs.coll");
const RING: &str = include_str!("../data/ring.coll");

fn program(text: &str) -> Program {
    let source = Source::from_text("page.coll", text);
    let load = |_: &str| Err("there is no other file".to_owned());
    let dependencies = Dependencies { prelude: roundelay_library::SOURCES, load: &load };
    let compiled = compile_with(&source, Frontend::File, &dependencies).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|e| e.report(&source)).collect::<Vec<_>>().join("\n"))
    });
    let first = compiled.algorithms.into_iter().next().expect("an algorithm");
    (**Configured::new(first, &source).program()).clone()
}

/// The programs of a source of the library.
fn programs(file: &str, text: &str) -> Vec<Program> {
    let source = Source::from_text(file, text);
    let load = |_: &str| Err("there is no other file".to_owned());
    let dependencies = Dependencies { prelude: roundelay_library::SOURCES, load: &load };
    let compiled =
        compile_with(&source, Frontend::File, &dependencies).expect("the library is right");
    let all = compiled.algorithms.into_iter();
    all.map(|algorithm| (**Configured::new(algorithm, &source).program()).clone()).collect()
}

#[test]
fn it_reads_back_exactly() {
    let library = roundelay_library::SOURCES.iter().flat_map(|(file, text)| programs(file, text));
    for program in library.chain([program(CONSTRUCTS), program(RING)]) {
        let text = print(&program);
        let again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(again == program, "{} is not read back", program.name);
        assert_eq!(print(&again), text);
        // The program that is read back does the same work.
        for nranks in 1..=5 {
            assert!(
                again.algorithm().schedule(nranks) == program.algorithm().schedule(nranks),
                "{}",
                program.name
            );
        }
    }
}

/// The ops of each stream of a rank.
fn ops(schedule: &Schedule, rank: u32) -> Vec<Vec<String>> {
    let own = schedule.streams.iter().filter(|stream| stream.rank == RankId(rank));
    let ops = |stream: &Stream| &schedule.ops[stream.first.index()..][..stream.len as usize];
    own.map(|stream| ops(stream).iter().map(|op| text::op(schedule, op)).collect()).collect()
}

#[test]
fn a_rank_alone_does_what_it_does_among_all() {
    let library = roundelay_library::SOURCES.iter().flat_map(|(file, text)| programs(file, text));
    let mut compared = 0;
    for program in library.chain([program(CONSTRUCTS)]) {
        for nranks in 1..=9 {
            let Ok(all) = program.algorithm().schedule(nranks) else { continue };
            for rank in 0..nranks {
                let one = one_rank(&program.algorithm(), nranks, RankId(rank))
                    .expect("it can be laid out");
                assert!(ops(&one, rank) == ops(&all, rank), "{} {nranks} {rank}", program.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "most are laid out, not {compared}");
}

#[test]
fn a_rank_of_very_many() {
    let ring = program(RING);
    let one = one_rank(&ring.algorithm(), 65_536, RankId(40_000)).expect("it fits");
    // Five ops a round but for the first copy, in two loops of n - 1 rounds.
    assert_eq!(one.ops.len(), 1 + 10 * 65_535);
    assert_eq!(text::op(&one, &one.ops[1]), "post ack 40000->40001");
    let refused = |nranks, rank| {
        one_rank(&ring.algorithm(), nranks, RankId(rank)).unwrap_err().remove(0).title
    };
    assert_eq!(refused(4, 4), "rank 4 is not in 0..4");
    assert_eq!(refused(0, 0), "nranks is 0, and must be in 1..=65536");
    assert_eq!(refused(65_537, 0), "nranks is 65537, and must be in 1..=65536");
}

#[test]
fn a_statement_a_line() {
    let text = print(&program(RING));
    let lines = text.lines().filter(|line| !line.starts_with("at "));
    expect![[r#"
        program 0 RingAllReduce AllReduce
        file "page.coll"
        var ring ring 5..6
        var left number 13..14
        var right number 20..21
        var me number 27..28
        var block pieces 34..35
        var round number 55..56
        var b number 64..65
        var round number 119..120
        var b number 128..129
        param %ring: Ring
        body {
           1:  let %left = ring.left(%ring) // 15..18 15..16
           2:  let %right = ring.right(%ring) // 22..25 22..23
           3:  let %me = ring.position(%ring) // 29..32 29..30
           4:  let %block = split(output, nranks) // 36..42 36..37 40..41
           5:  copy on(local, input) to (on(local, output)) // 45..48 45..46 47..48 49..52 49..50 51..52
           6:  for %round#5 in 0 .. (nranks - 1) { // 57..58 59..62 59..60 61..62
           7:    let %b#6 = (((%me - %round#5) - 1) % nranks) // 66..75 67..72 67..70 67..68 69..70 71..72 74..75
           8:    post ack %right // 76..77
           9:    wait ack %left // 82..83
          10:    reduce (on(%left, piece(%block, %b#6))) into on(local, piece(%block, %b#6)) // 90..96 90..91 90..96 92..93 94..95 97..103 97..98 97..103 99..100 101..102
          11:    post data %left // 105..106
          12:    wait data %right // 111..112
           6:  }
          13:  for %round#7 in 0 .. (nranks - 1) { // 121..122 123..126 123..124 125..126
          14:    let %b#8 = ((%me - %round#7) % nranks) // 130..137 131..134 131..132 133..134 136..137
          15:    post ack %right // 138..139
          16:    wait ack %left // 144..145
          17:    copy on(%left, piece(%block, %b#8)) to (on(local, piece(%block, %b#8))) // 152..158 152..153 152..158 154..155 156..157 159..165 159..160 159..165 161..162 163..164
          18:    post data %left // 167..168
          19:    wait data %right // 173..174
          13:  }
        }
    "#]].assert_eq(&(lines.collect::<Vec<_>>().join("\n") + "\n"));
}

#[test]
fn what_is_wrong_is_said() {
    let head = "program 0 A AllReduce\nfile \"a.coll\"\nat 0 = 1:1..1:2 // 0..3\nvar x number 0..1\nvar l list 0..1\n";
    let wrong = |text: &str| parse(&format!("{head}{text}")).expect_err(text).to_string();
    let found = [
        "body {",
        "body {\n0: let %y = 1 // 0..1\n}",
        "body {\n0: let %x = input // 0..1\n}",
        "body {\n0: let %x = 1\n}",
        "body {\n0: let %x = 1 // 0..1 0..1\n}",
        "body {\n1: let %x = 1 // 0..1\n}",
        "body {\n0: let %x = (1 + input) // 0..1 0..1 0..1\n}",
        "body {\n0: let %x = (1 ? 2) // 0..1 0..1 0..1\n}",
        "body {\n0: let %x = rank(1) // 0..1 0..1\n}",
        "body {\n0: let %x = round // 0..1\n}",
        "body {\n0: copy input to (output) // 0..1 0..1\n}",
        "body {\n0: post bell 1 // 0..1\n}",
        "body {\n0: do 0 ()\n}",
        "body {\n0: call 0 on input to output // 0..1 0..1\n}",
        "body {\n0: for %l in 0 .. 1 { // 0..1 0..1\n0: }\n}",
        "body {\n0: demand nothing 1 // 0..1\n}",
        "body {\n0: leave\n}",
        "body {\n0: require \"why 1 // 0..1\n}",
    ];
    let found: Vec<_> = found.into_iter().map(wrong).collect();
    expect![[r#"
        line 6: expected `}` before the end
        line 7: no variable is called `%y`
        line 7: expected a number, found a region
        line 7: the line has fewer places than expressions
        line 7: the line has more places than expressions
        line 7: the program has no statement 1
        line 7: this operator does not take such operands
        line 7: `?` is no operator
        line 7: rank does not take such operands
        line 7: no operator is called `round`
        line 7: expected a place, found a region
        line 7: no signal is called `bell`
        line 7: no step has that number
        line 7: no program before this one has that number
        line 7: this variable is no number
        line 7: no such resource
        line 7: no statement begins with `leave`
        line 7: a text in quotes does not end
    "#]]
    .assert_eq(&(found.join("\n") + "\n"));
    assert_eq!(parse("").unwrap_err().to_string(), "line 1: expected `program 0 NAME COLLECTIVE`");
}

#[test]
fn deep_text_is_refused() {
    let head = "program 0 A AllReduce\nfile \"a.coll\"\nat 0 = 1:1..1:2 // 0..3\nbody {\n";
    let brackets = format!("{head}0: within {}", "(".repeat(100_000));
    assert!(parse(&brackets).is_err());
    let calls =
        format!("{head}0: within {} // {}", "rev(".repeat(100_000), "0..1 ".repeat(100_000));
    assert!(parse(&calls).unwrap_err().to_string().contains("nests deeper"));
    let blocks = "0: if 1 { // 0..1\n".repeat(100_000);
    assert!(parse(&format!("{head}{blocks}")).unwrap_err().to_string().contains("nest deeper"));
}

/// Returns steps that call each other, each call in `blocks` nested blocks.
fn nested(steps: usize, blocks: usize) -> String {
    let (open, close) = ("if rank >= 0 { ".repeat(blocks), "}".repeat(blocks));
    let call = |step: usize| match step {
        0 => "copy(local.input, local.output);".to_owned(),
        _ => format!("s{}();", step - 1),
    };
    let declared = |step| format!("step s{step}() {{ {open}{}{close} }}", call(step));
    let declared: Vec<_> = (0..steps).map(declared).collect();
    format!("algorithm Nested() -> AllReduce {{ {} {} }}", declared.concat(), call(steps))
}

#[test]
fn the_deepest_statements_fit_a_stack() {
    // The stack of a thread that a test starts is smaller than the stack of a process.
    assert!(program(&nested(3, 52)).algorithm().schedule(2).is_ok());
    let source = Source::from_text("page.coll", &nested(40, 120));
    let errors = compile(&source, Frontend::File).expect_err("they nest too deep");
    assert_eq!(errors[0].title, "statements nest at most 160 deep");
}

#[test]
fn what_only_a_walk_can_tell_of_a_text_is_said() {
    let head = "program 0 A AllReduce\nfile \"a.coll\"\nat 0 = 1:1..1:2 // 0..3\nvar x number 0..1\n\
                var l list 0..1\nvar r region 0..1\nvar q quantity 0..1\nvar v pieces 0..1\nbody {\n";
    let said = |text: &str| match parse(&format!("{head}{text}\n}}")) {
        Err(error) => error.to_string(),
        Ok(program) => program.algorithm().schedule(3).expect_err(text).remove(0).title,
    };
    let found = [
        "0: require \"w\" %x // 0..1",
        "0: let %x = len(%l) // 0..1 0..1",
        "0: copy on(0, %r) to (on(local, output)) // 0..1 0..1 0..1 0..1 0..1 0..1",
        "0: let %q = 5B/s // 0..1",
        "0: let %x = topology.linked(topology.full_mesh.0(4, if(1, 5B/s, 6B/s)), 0, 1) \
         // 0..1 0..1 0..1 0..1 0..1 0..1 0..1 0..1 0..1",
        "0: post data 7 // 0..1",
        "0: copy on(70000, output) to (on(-1, output)) // 0..1 0..1 0..1 0..1 0..1 0..1",
        "0: copy on(local, output) to () // 0..1 0..1 0..1",
        "0: scratch %r count 2 like input // 0..1 0..1",
        "0: scratch %v like input // 0..1",
        "0: post fork 1 // 0..1",
        "0: pass",
        "0: pass from 1 // 0..1",
        "0: pass own on(local, input) // 0..1 0..1 0..1",
    ];
    let found: Vec<_> = found.into_iter().map(said).collect();
    expect![[r#"
        there is no such value here
        there is no such value here
        there is no such value here
        there is no such value here
        there is no such value here
        rank 7 is not in 0..3
        rank 70000 is not in 0..3
        `copy` has no destinations
        line 10: this variable holds no such scratch
        line 10: expected a pieces, found a region
        line 10: no statement gives the signal `fork`
        line 10: no primitive passes data so
        line 10: no primitive passes data so
        line 10: no primitive passes data so
    "#]]
    .assert_eq(&(found.join("\n") + "\n"));
}

proptest! {
    #[test]
    fn damaged_text_never_panics(at in 0..8000_usize, with in "[ -~]{0,3}") {
        let mut text = print(&program(CONSTRUCTS));
        let at = at.min(text.len() - 1);
        if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
            text.replace_range(at..=at, &with);
        }
        if let Ok(program) = parse(&text) {
            let _ = program.algorithm().schedule(3);
        }
    }
}
