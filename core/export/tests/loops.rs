//! The loop form: of every program of the library, of schedules, and as a text that is read back.

use expect_test::expect;
use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::syntax::Source;
use roundelay_export::loops::Loops;
use roundelay_export::loops::text::{parse, print};
use roundelay_library::SOURCES;

/// Returns the algorithms of a source.
fn algorithms(name: &str, text: &str) -> Vec<Configured> {
    let source = Source::from_text(name, text);
    let checked = compile_with(&source, Frontend::File, &Dependencies::library(SOURCES));
    let checked = checked.unwrap_or_else(|errors| panic!("{errors:#?}"));
    checked.algorithms.into_iter().map(|found| Configured::new(found, &source)).collect()
}

/// Returns the form of the first algorithm, which is read back.
fn form(text: &str, nranks: u32) -> Loops {
    let algorithm = &algorithms("test.coll", text)[0];
    let schedule = algorithm.schedule(nranks).expect("it is laid out");
    let form = Loops::of(algorithm, &schedule).expect("it has a form");
    assert_eq!(parse(&print(&form)).as_ref(), Ok(&form));
    form
}

/// Each form was run at every rank, and compared with the schedule.
#[test]
fn forms_of_the_library_are_read_back() {
    let (mut of_program, mut found) = (0, Vec::new());
    for (name, text) in SOURCES {
        for algorithm in algorithms(name, text) {
            for nranks in [2, 3, 4, 8] {
                let Ok(schedule) = algorithm.schedule(nranks) else { continue };
                let name = format!("{} {nranks}", algorithm.name());
                let form = Loops::of(&algorithm, &schedule);
                let form = form.unwrap_or_else(|why| panic!("{name}: {why:?}"));
                if form.of_program() {
                    of_program += 1;
                } else if found.last().is_none_or(|last| last != algorithm.name()) {
                    found.push(algorithm.name().to_owned());
                }
                let flat = Loops::of_schedule(&schedule);
                let flat = flat.unwrap_or_else(|why| panic!("{name}: {why:?}"));
                for form in [form, flat] {
                    let text = print(&form);
                    match parse(&text) {
                        Ok(read) => assert!(read == form, "{name}: {text}"),
                        Err(why) => panic!("{name}: {why}: {text}"),
                    }
                }
            }
        }
    }
    expect!["235 of programs; NcclRingAllReduce, NcclRingReduceScatter, NcclRingAllGather, NcclRingBroadcast, NcclRingReduce, TreesReduce, PushedOneShotAllReduce, PushedMeshAllReduce"].assert_eq(&format!("{of_program} of programs; {}", found.join(", ")));
}

#[test]
fn a_ring_keeps_its_loops() {
    let text = "algorithm Ring() -> AllGather {
        view all = output.split(nranks);
        copy(local.input, local.all[rank]);
        let left = peer((rank - 1) % nranks);
        let right = peer((rank + 1) % nranks);
        for s in 0..nranks - 1 {
            let block = (rank - s - 1) % nranks;
            right.TxDataSignal();
            left.RxDataSignal();
            copy(left.all[block], local.all[block]);
        }
    }";
    expect![[r#"
        loops Ring AllGather nranks 4 root 0 pieces 1 of program
        body {
          copy input[0, 1] -> output[me, 1] @3
          let %left = ((me - 1) % nranks)
          let %right = ((me + 1) % nranks)
          for %s in 0 .. (nranks - 1) {
            let %block = (((me - %s) - 1) % nranks)
            post data %right @8
            wait data %left @9
            copy output[%block, 1] of %left -> output[%block, 1] @10
          }
        }
    "#]]
    .assert_eq(&print(&form(text, 4)));
}

/// A step that is called at several places is one function, and a page of steps that double is short.
#[test]
fn steps_are_functions() {
    let mut text = "algorithm Doubled() -> AllReduce {
        scratch parts: 2 like output;
        copy(local.input, local.output);
        step once(to: int) {
            copy(local.output, local.parts[to]);
            copy(local.parts[to], local.parts[1 - to]);
            for k in 0..2 {
                copy(local.parts[1 - to], local.parts[to]);
            }
        }
        step twice_0() {
            once(0);
            once(1);
        }
"
    .to_owned();
    let doubled = |level| {
        let last = level - 1;
        format!("step twice_{level}() {{ twice_{last}(); twice_{last}(); }}\n")
    };
    text.extend((1..10).map(doubled));
    text += "twice_9();\n}";
    let form = form(&text, 1);
    assert!(form.of_program());
    expect![[r#"
        loops Doubled AllReduce nranks 1 root 0 pieces 1 of program
        scratch parts#0
        step once(%to) {
          copy output[0, 1] -> parts#0[0, 1, %to, 0] @5
          copy parts#0[0, 1, %to, 0] -> parts#0[0, 1, (1 - %to), 0] @6
          for %k in 0 .. 2 {
            copy parts#0[0, 1, (1 - %to), 0] -> parts#0[0, 1, %to, 0] @8
          }
        }
        step twice_0() {
          do 0 (0)
          do 0 (1)
        }
        step twice_1() {
          do 1 ()
          do 1 ()
        }
        step twice_2() {
          do 2 ()
          do 2 ()
        }
        step twice_3() {
          do 3 ()
          do 3 ()
        }
        step twice_4() {
          do 4 ()
          do 4 ()
        }
        step twice_5() {
          do 5 ()
          do 5 ()
        }
        step twice_6() {
          do 6 ()
          do 6 ()
        }
        step twice_7() {
          do 7 ()
          do 7 ()
        }
        step twice_8() {
          do 8 ()
          do 8 ()
        }
        body {
          copy input[0, 1] -> output[0, 1] @3
          block {
            do 9 ()
            do 9 ()
          }
        }
    "#]]
    .assert_eq(&print(&form));
}

#[test]
fn a_text_that_is_no_form_is_refused() {
    let head = "loops A AllReduce nranks 2 root 0 pieces 1 of program\n";
    let table = "t0 2 by rank = 1, 2, 3, 4\n";
    let refused = |text: &str| match parse(&format!("{head}{table}{text}")) {
        Ok(form) => panic!("{form:?}"),
        Err(error) => error.to_string(),
    };
    let body = |line: &str| refused(&format!("body {{\n{line}\n}}\n"));
    let all = [
        parse("schedule A").expect_err("it is none").to_string(),
        refused("t1 2 = 1\n"),
        refused("t1 2 by rank = 1, 2, 3, 4\n"),
        refused("body {\n"),
        refused("body {\n}\n}\n"),
        body("post ack %x"),
        body("post ack t0"),
        body("post ack t0[]"),
        body("post ack t1[0]"),
        body("post ack (1 ? 2)"),
        body("post ack max(1)"),
        body("post ack 1 1"),
        body("do 0 ()"),
        body("copy output[0, 1], output[1, 1] -> output[0, 1]"),
        body("copy output[0] -> output[0, 1]"),
        body("copy sum#0[0, 1] -> output[0, 1]"),
        body("jump"),
        body(&format!("let %x = {}1", "(".repeat(300))),
    ];
    expect![[r#"
        line 1: expected `loops`, found `schedule`
        line 3: the table has other sizes than its entries
        line 3: another table has these entries
        line 3: expected another line
        line 4: expected the end of the text
        line 4: no variable is called `%x`
        line 4: expected `[`, found ``
        line 4: table 0 has other indices
        line 4: no table has that number
        line 4: expected an operator
        line 4: max takes other arguments
        line 4: expected the end of the line, found `1`
        line 4: no step before has that number
        line 4: a `copy` of 2 sources
        line 4: a place has a piece, two numbers or four
        line 4: no scratch is called `sum#0`
        line 4: no statement begins with `jump`
        line 4: a number nests deeper than 256"#]]
    .assert_eq(&all.join("\n"));
}
