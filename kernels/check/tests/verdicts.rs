//! The verdicts on kernels of each kind.

use roundelay_kernel_check::{State, Variation, names};

use crate::{cases, checked, harness, options};

/// A copy of the input to the output, with more keys of the memory, the argument of the count, and more tables.
fn copy(output: &str, count: &str, more: &str) -> String {
    format!(
        "[memory]\ninput = {{ type = \"u32\", len = \"elements\", fill = \"random\" }}\n\
         output = {{ type = \"u32\", len = \"elements\" {output} }}\n\
         [[call]]\nwrite = \"input\"\n\
         [[call]]\nkernel = \"m.copy\"\ngrid = 1\nblock = 64\n\
         args = [{{ ptr = \"input\" }}, {{ ptr = \"output\" }}, {{ u32 = \"{count}\" }}]\n{more}"
    )
}

const RESULT: &str =
    "[expect]\ncollective = \"AllReduce sum\"\n[run]\nranks = 1\nelements = 40\nseeds = 3\n";

#[test]
fn a_right_kernel_has_no_finding() {
    let verdict = checked(&copy("", "elements", RESULT));
    assert_eq!((verdict.word().as_str(), verdict.seeds()), ("clean", 3));
    assert!(verdict.whole && verdict.finding.is_none());
    let json = verdict.json("x.kernel.toml", "0.1.0");
    assert_eq!(json["verdict"], "clean");
    assert_eq!(json["findings"], serde_json::json!([]));
    let covered = &json["covered"][0];
    assert_eq!((&covered["instructions"], &covered["executed"]), (&12.into(), &12.into()));
    let none = checked(&copy("", "0", "[run]\nranks = 1\nelements = 4\nseeds = 1\n"));
    assert_eq!(none.json("x", "0")["covered"][0]["executed"], 7, "the threads skip the copy");
}

#[test]
fn a_result_is_compared_after_each_call() {
    let short = checked(&copy("", "elements - call", RESULT));
    let title = short.finding.expect("an error").title;
    assert!(
        title.starts_with("element 39 of rank 0's output was never written after call 1"),
        "{title}"
    );
    // The values of the call before are no right result, even where the output keeps them.
    let kept = checked(&copy(", fill = \"zero\"", "elements * (1 - call)", RESULT));
    let title = kept.finding.expect("an error").title;
    assert!(title.contains("after call 1") && title.contains("39 more"), "{title}");
    let graph = checked(&copy("", "elements - call", &format!("{RESULT}graph = true\n")));
    assert_eq!(graph.word(), "clean", "a graph has the arguments of call 0");
}

#[test]
fn sizes_change_between_calls() {
    let cycle = RESULT.replace("elements = 40", "elements = { cycle = [40, 8] }\ncalls = 4");
    assert_eq!(checked(&copy("", "elements", &cycle)).word(), "clean");
    assert_eq!(checked(&copy("", "8", &cycle)).word(), "wrong");
}

#[test]
fn a_place_behind_a_buffer_is_out_of_bounds() {
    let verdict = checked(&copy("", "elements + 1", RESULT));
    let found = verdict.finding.as_deref().expect("an error");
    assert_eq!(found.kind.name(), "bounds");
    assert_eq!(
        found.title,
        "an access of 4 bytes at byte 160 of input of rank 0, which has 160 bytes"
    );
    assert_eq!(found.memory.as_ref().map(|memory| memory.element), Some(40));
}

/// Two ranks that push a value to each other.
fn push(flag: &str, more: &str) -> String {
    format!(
        "[memory]\ninput = {{ type = \"u32\", len = 1, fill = {{ value = \"100*rank + call\" }} }}\n\
         mail = {{ type = \"u32\", len = \"calls\", peers = true }}\n\
         flag = {{ bytes = 4, peers = true, init = \"zero\" }}\noutput = {{ type = \"u32\", len = 1 }}\n\
         [[call]]\nwrite = \"input\"\n\
         [[call]]\nkernel = \"m.push\"\ngrid = 1\nblock = 1\nargs = [\n\
         {{ ptr = \"input\" }}, {{ ptr = \"mail\", rank = \"1-rank\", offset = \"4*call\" }},\n\
         {{ ptr = \"mail\", offset = \"4*call\" }}, {{ ptr = \"flag\", rank = \"1-rank\" }},\n\
         {{ ptr = \"flag\" }}, {{ ptr = \"output\" }}, {{ u32 = \"{flag}\" }},\n]\n\
         [[expect]]\nvalues = \"100*(1-rank) + call\"\n[run]\nranks = 2\nseeds = 8\n{more}"
    )
}

#[test]
fn a_race_has_both_places_and_its_cure() {
    let text = push("call + 1", "");
    let verdict = checked(&text);
    assert_eq!((verdict.state, verdict.word().as_str()), (State::Error, "race"));
    let found = verdict.finding.as_deref().expect("an error");
    let (at, other) = (found.at.as_ref().unwrap(), found.other.as_ref().unwrap());
    assert_ne!(at.rank, other.rank);
    assert_eq!((at.step.as_str(), at.function.as_str()), ("push", "push"));
    assert_eq!(found.memory.as_ref().unwrap().name, "mail");
    assert_eq!(found.cured_by.as_ref().map(names).as_deref(), Some("flags-release, polls-acquire"));
    assert!(found.story.is_some());

    let assume = |all: &str| format!("{text}[assume]\n{all}\n");
    let one = checked(&assume("polls-acquire = \"x\""));
    assert_eq!(one.word(), "race", "one of two does not cure it");
    let both = checked(&assume("polls-acquire = \"x\"\nflags-release = \"y\"\nvec16 = \"z\""));
    assert_eq!(both.word(), "relies(flags-release, polls-acquire)");
    let json = both.json("x", "0");
    assert_eq!(json["assumptions"]["unused"], serde_json::json!(["vec16"]));
    assert_eq!(json["findings"][0]["severity"], "relies");
}

#[test]
fn a_flag_that_never_comes_is_a_hang() {
    let verdict = checked(&push("call + 1 + 5*rank", ""));
    let found = verdict.finding.as_deref().expect("an error");
    let behind = || found.behind.iter().any(|title| title == "no thread can go on");
    assert!(found.kind.name() == "hang" || behind(), "{found:?}");
    let assume = "[assume]\npolls-acquire = \"x\"\nflags-release = \"y\"\n";
    let absent = checked(&push("call + 1", &format!("absent = [1]\n{assume}")));
    let found = absent.finding.expect("an error");
    assert_eq!((found.kind.name(), found.variation), ("hang", Variation::Absent(1)));
    assert!(found.waiting.iter().all(|(at, what)| at.rank == 0 && what == "polls"), "{found:?}");
}

#[test]
fn a_trap_is_right_where_a_rank_is_absent_alone() {
    let stop = "[[call]]\nkernel = \"m.stop\"\ngrid = 1\nblock = 1\n[run]\nseeds = 4\n";
    assert_eq!(checked(stop).word(), "trap");
    // Every second run of these seeds has an absent rank.
    let absent = harness(&format!("{stop}absent = [0]\nranks = 1\n"));
    let seed = |first| {
        let options = roundelay_kernel_check::CheckOptions { seeds: Some(1), first, ..options() };
        absent.check(&cases(&absent), &options).unwrap().word()
    };
    assert_eq!([seed(0), seed(1)], ["trap", "clean"]);
}

#[test]
fn what_the_machine_lacks_is_named() {
    let verdict = checked("[[call]]\nkernel = \"m.unknown\"\ngrid = 1\nblock = 1\n");
    assert_eq!(verdict.word(), "unsupported");
    assert!(verdict.finding.unwrap().title.contains("`cp.async.wait_all` (1 x)"));
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let refused = |from: &str, to: &str| {
        let text = copy("", "elements", RESULT);
        assert!(text.contains(from), "{from}");
        let harness = harness(&text.replace(from, to));
        harness.check(&cases(&harness), &options()).expect_err(to)
    };
    for (from, to, why) in [
        ("m.copy", "m.cpy", "no kernel `cpy`; it has copy, push"),
        (", { u32 = \"elements\" }]", "]", "takes 3 arguments, and `args` has 2"),
        ("{ u32 = \"elements\" }", "{ u64 = \"elements\" }", "has 8 bytes, and the kernel takes 4"),
        ("{ u32 = \"elements\" }", "{ u32 = \"1/(rank-rank)\" }", "divides by zero"),
        ("{ ptr = \"input\" }", "{ ptr = \"input\", rank = 1 }", "a rank that is not there"),
        ("grid = 1", "grid = \"elements - 40\"", "its grid would have 0"),
        ("block = 64", "block = 2048", "cannot run"),
        ("len = \"elements\", fill", "len = \"elements - 41\", fill", "has -1 elements at rank 0"),
    ] {
        let said = refused(from, to);
        assert!(said.contains(why), "{said} has no {why}");
    }
}

/// A table of addresses has its entries in the order that it names, each with its offset, and the values of a buffer stand
/// one by one: a kernel copies what the first entry of a table names.
#[test]
fn tables_and_values_are_as_they_are_written() {
    let run = |table: &str, expected: &str| {
        let text = format!(
            "[memory]\na = {{ type = \"u32\", len = 4, peers = true, init = {{ values = [11, 12, -1] }} }}\n\
             b = {{ type = \"u32\", len = 4, peers = true, init = {{ value = \"20 + element\" }} }}\n\
             table = {{ {table} }}\noutput = {{ type = \"u64\", len = 4 }}\n\
             [[call]]\nkernel = \"m.copy\"\ngrid = 1\nblock = 32\n\
             args = [{{ ptr = \"table\" }}, {{ ptr = \"output\" }}, {{ u32 = 8 }}]\n\
             [[expect]]\nvalues = \"{expected}\"\n[run]\nranks = 2\ncalls = 1\nseeds = 1\n"
        );
        checked(&text)
    };
    // Every other one of the buffers begins an element behind an aligned address.
    let at =
        |buffer: u32, rank: u32| (1 << 20) + 512 * (2 * buffer + rank) + 4 * ((buffer + rank) % 2);
    let of = |all: [u32; 4]| {
        let each = all.iter().zip(0..).map(|(at, entry)| format!("(element == {entry})*{at}"));
        each.collect::<Vec<_>>().join(" + ")
    };
    let [a, b] = [0, 1].map(|buffer| [at(buffer, 0), at(buffer, 1)]);
    let by_buffer = run("pointers = [\"a\", \"b\"]", &of([a[0], a[1], b[0], b[1]]));
    assert_eq!(by_buffer.word(), "clean", "{:?}", by_buffer.finding);
    let by_rank = "pointers = [\"a\", { ptr = \"b\", offset = \"4 + 4*rank\" }], by = \"rank\"";
    let by_rank = run(by_rank, &of([a[0], b[0] + 4, a[1], b[1] + 8]));
    assert_eq!(by_rank.word(), "clean", "{:?}", by_rank.finding);
    let values = |init: &str, values: &str| {
        let text = copy(
            "",
            "elements",
            "[expect]\nvalues = \"VALUES\"\n[run]\nranks = 1\nelements = 4\nseeds = 1\n",
        );
        let text =
            text.replace("fill = \"random\"", init).replace("[[call]]\nwrite = \"input\"\n", "");
        let harness = harness(&text.replace("VALUES", values));
        harness.check(&cases(&harness), &options()).map(|verdict| verdict.word())
    };
    let own = values("init = { values = [5, 6, 7] }", "(element < 3)*(5 + element)");
    assert_eq!(own.as_deref(), Ok("clean"));
    let many = values("init = { values = [5, 6, 7, 8, 9] }", "element").expect_err("too many");
    assert!(many.contains("`input` of rank 0: 5 values for 4 elements"), "{many}");
}
