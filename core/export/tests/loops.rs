//! The loop form: of every program of the library, of schedules, and as a text that is read back.

use expect_test::expect;
use roundelay_core::layout::Algorithm as _;
use roundelay_export::loops::Loops;
use roundelay_export::loops::text::{parse, print};

use crate::sources::{algorithms, library};

/// Returns the form of the first algorithm, which is read back.
fn form(text: &str, nranks: u32) -> Loops {
    let algorithm = &algorithms("test.coll", text)[0];
    let schedule = algorithm.schedule(nranks).expect("it is laid out");
    let form = Loops::from_schedule(algorithm, &schedule).expect("it has a form");
    assert_eq!(parse(&print(&form)).as_ref(), Ok(&form));
    form
}

/// Each form was run at every rank, and compared with the schedule.
#[test]
fn forms_of_the_library_are_read_back() {
    let (mut of_program, mut found) = (0, Vec::new());
    for algorithm in library() {
        for nranks in [2, 3, 4, 8] {
            let Ok(schedule) = algorithm.schedule(nranks) else { continue };
            let name = format!("{} {nranks}", algorithm.name());
            let form = Loops::from_schedule(&algorithm, &schedule);
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
    // A move of a list of peers, and one that a switch is left, has other
    // operands at each rank.
    let flat = [
        "NcclTreeAllReduce",
        "NcclDoubleBinaryTreeAllReduce",
        "SwitchAllReduce",
        "OneShotSwitchAllReduce",
        "SwitchReduceScatter",
        "SwitchAllGather",
        "SwitchIslandsAllReduce",
        "CollNetAllReduce",
    ];
    assert_eq!((of_program, found), (267, flat.map(str::to_owned).to_vec()), "of programs");
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
        file test.coll
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

/// A list without ranks takes no part, also before the first move of a program.
#[test]
fn a_pass_of_nobody_has_no_loops() {
    let text = "algorithm Nobody() -> AllReduce {
        fifo like output;
        let nobody = [];
        nobody.send(local.input);
        copy(local.input, local.output);
    }";
    let form = form(text, 1);
    assert!(!form.of_program());
    assert!(print(&form).contains("copy input[0, 1] -> output[0, 1]"), "{}", print(&form));
}

/// The slots and the waits of a fifo are arithmetic on the steps of its links.
#[test]
fn passes_are_moves_and_signals() {
    let text = "algorithm Passed() -> AllGather {
        view all = output.split(nranks);
        fifo like all[0], credits = 3, slices = 2;
        let left = peer((rank - 1) % nranks);
        let right = peer((rank + 1) % nranks);
        copy(local.input, local.all[rank]);
        right.send(local.all[rank]);
        for j in 1..nranks - 1 {
            left.recv_copy_send(local.all[(rank - j) % nranks], right);
        }
        left.recv(local.all[(rank + 1) % nranks]);
    }";
    expect![[r#"
        loops Passed AllGather nranks 4 root 0 pieces 2 of program
        file test.coll
        scratch fifo#0
        body {
          let %left = ((me - 1) % nranks)
          let %right = ((me + 1) % nranks)
          copy input[0, 2] -> output[(me * 2), 2] @6
          for %slice#2 in 0 .. 2 {
            let %begin#3 = ((me * 2) + %slice#2)
            copy output[%begin#3, 1] -> fifo#0[(%begin#3 % 2), 1, %slice#2, (%begin#3 % 2)] of %right step %slice#2 @7
            post tail %right @7
          }
          for %j in 1 .. (nranks - 1) {
            for %slice#5 in 0 .. 2 {
              let %begin#6 = ((((me - %j) % nranks) * 2) + %slice#5)
              wait tail %left @9
              if ((((2 * (%j - 1)) + 2) + %slice#5) >= 3) {
                wait head %right @9
              }
              copy fifo#0[(%begin#6 % 2), 1, (((2 * (%j - 1)) + %slice#5) % 3), (%begin#6 % 2)] step ((2 * (%j - 1)) + %slice#5) -> output[%begin#6, 1], fifo#0[(%begin#6 % 2), 1, ((((2 * (%j - 1)) + 2) + %slice#5) % 3), (%begin#6 % 2)] of %right step (((2 * (%j - 1)) + 2) + %slice#5) @9
              post tail %right @9
              post head %left @9
            }
          }
          for %slice#7 in 0 .. 2 {
            let %begin#8 = ((((me + 1) % nranks) * 2) + %slice#7)
            wait tail %left @11
            copy fifo#0[(%begin#8 % 2), 1, (1 + %slice#7), (%begin#8 % 2)] step (4 + %slice#7) -> output[%begin#8, 1] @11
            post head %left @11
          }
          for %credit in 0 .. 3 {
            wait head ((me + 1) % nranks) @3
          }
        }
    "#]].assert_eq(&print(&form(text, 4)));
}

/// Streams with scratch of their own, and a fifo that the last rank only receives from.
#[test]
fn calls_with_fifos_keep_their_loops() {
    let text = "algorithm Halves() -> AllReduce {
        view half = input.split(2);
        view done = output.split(2);
        parallel t in 0..2 {
            Chain(pieces: t + 1) on (half[t], done[t]);
        }
    }
    algorithm Chain(pieces: int = 1) -> AllReduce {
        scratch kept: 2 like input.split(1);
        view piece = input.split(pieces);
        view result = output.split(pieces);
        fifo like piece, credits = 2, slices = 2;
        for p in 0..pieces {
            if rank == 0 {
                peer(1).send(local.piece[p]);
            } else if rank == 1 {
                peer(0).recv_reduce_copy(local.piece[p], local.kept[1]);
                peer(2).send(local.kept[1]);
            } else if rank == 2 {
                peer(1).recv(local.result[p]);
            }
        }
    }";
    expect![[r#"
        loops Halves AllReduce nranks 3 root 0 pieces 8 of program
        file test.coll
        scratch kept#0
        scratch fifo#1
        scratch kept_2#2
        scratch fifo_2#3
        t0 2 = 0 2 1 0, 2 4 1 0
        t1 2 = 0 2 0 0, 2 4 1 2
        t2 2 2 = 4 5 1 4, 5 6 1 4, 6 7 1 6, 7 8 1 6
        t3 2 2 = 4 5 0 4, 5 6 1 5, 6 7 0 6, 7 8 1 7
        t4 by rank = 1, 1, 0
        body {
          streams %t in 0 .. 2 { @4
            if (%t == 0) {
              block {
                let %pieces#1 = 1
                block { @5
                  for %p#2 in 0 .. %pieces#1 {
                    if (me == 0) {
                      for %slice#3 in 0 .. 2 {
                        let %begin#4 = ((%p#2 * 4) + (%slice#3 * 2))
                        copy input[%begin#4, 2] -> fifo#1[%begin#4, 2, %slice#3, %begin#4] of 1 step %slice#3 @15
                        post tail 1 @15
                      }
                    } else if (me == 1) {
                      for %slice#5 in 0 .. 2 {
                        let %begin#6 = ((%p#2 * 4) + (%slice#5 * 2))
                        wait tail 0 @17
                        fold input[%begin#6, 2], fifo#1[%begin#6, 2, %slice#5, %begin#6] step %slice#5 -> kept#0[%begin#6, 2, 1, (%p#2 * 4)] @17
                        post head 0 @17
                      }
                      for %slice#7 in 0 .. 2 {
                        copy kept#0[t0[%slice#7]] -> fifo#1[t1[%slice#7]] of 2 step %slice#7 @18
                        post tail 2 @18
                      }
                    } else {
                      for %slice#8 in 0 .. 2 {
                        let %begin#9 = ((%p#2 * 4) + (%slice#8 * 2))
                        wait tail 1 @20
                        copy fifo#1[%begin#9, 2, %slice#8, %begin#9] step %slice#8 -> output[%begin#9, 2] @20
                        post head 1 @20
                      }
                    }
                  }
                  for %link#10 in 0 .. t4[] {
                    for %credit#11 in 0 .. 2 {
                      wait head (me + 1) @12
                    }
                  }
                }
              }
            } else {
              block {
                let %pieces#12 = 2
                block { @5
                  for %p#13 in 0 .. %pieces#12 {
                    if (me == 0) {
                      for %slice#14 in 0 .. 2 {
                        let %begin#15 = ((4 + (%p#13 * 2)) + %slice#14)
                        if (((2 * %p#13) + %slice#14) >= 2) {
                          wait head 1 @15
                        }
                        copy input[%begin#15, 1] -> fifo_2#3[%begin#15, 1, %slice#14, %begin#15] of 1 step ((2 * %p#13) + %slice#14) @15
                        post tail 1 @15
                      }
                    } else if (me == 1) {
                      for %slice#16 in 0 .. 2 {
                        let %begin#17 = ((4 + (%p#13 * 2)) + %slice#16)
                        wait tail 0 @17
                        fold input[%begin#17, 1], fifo_2#3[%begin#17, 1, %slice#16, %begin#17] step ((2 * %p#13) + %slice#16) -> kept_2#2[%begin#17, 1, 1, (4 + (%p#13 * 2))] @17
                        post head 0 @17
                      }
                      for %slice#18 in 0 .. 2 {
                        if (((2 * %p#13) + %slice#18) >= 2) {
                          wait head 2 @18
                        }
                        copy kept_2#2[t2[%p#13, %slice#18]] -> fifo_2#3[t3[%p#13, %slice#18]] of 2 step ((2 * %p#13) + %slice#18) @18
                        post tail 2 @18
                      }
                    } else {
                      for %slice#19 in 0 .. 2 {
                        let %begin#20 = ((4 + (%p#13 * 2)) + %slice#19)
                        wait tail 1 @20
                        copy fifo_2#3[%begin#20, 1, %slice#19, %begin#20] step ((2 * %p#13) + %slice#19) -> output[%begin#20, 1] @20
                        post head 1 @20
                      }
                    }
                  }
                  for %link#21 in 0 .. t4[] {
                    for %credit#22 in 0 .. 2 {
                      wait head (me + 1) @12
                    }
                  }
                }
              }
            }
          }
        }
    "#]].assert_eq(&print(&form(text, 3)));
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
        file test.coll
        scratch parts#0
        step once(%to) {
          copy output[0, 1] -> parts#0[0, 1, %to, 0] @5
          copy parts#0[0, 1, %to, 0] -> parts#0[0, 1, (1 - %to), 0] @6
          for %k in 0 .. 2 {
            copy parts#0[0, 1, (1 - %to), 0] -> parts#0[0, 1, %to, 0] @8
          }
        }
        step twice_0() {
          do 0 (0) @12
          do 0 (1) @13
        }
        step twice_1() {
          do 1 () @15
          do 1 () @15
        }
        step twice_2() {
          do 2 () @16
          do 2 () @16
        }
        step twice_3() {
          do 3 () @17
          do 3 () @17
        }
        step twice_4() {
          do 4 () @18
          do 4 () @18
        }
        step twice_5() {
          do 5 () @19
          do 5 () @19
        }
        step twice_6() {
          do 6 () @20
          do 6 () @20
        }
        step twice_7() {
          do 7 () @21
          do 7 () @21
        }
        step twice_8() {
          do 8 () @22
          do 8 () @22
        }
        body {
          copy input[0, 1] -> output[0, 1] @3
          block { @24
            do 9 () @23
            do 9 () @23
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
