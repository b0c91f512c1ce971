//! A fault that the runtime refuses is an error at its exact place, and a fault that it ignores is a warning.

use roundelay_core::diagnostics::Diagnostic;
use roundelay_export::exchange::msccl::{self, Connections, Runtime, Text};

use super::generate::{pairs, ring};
use super::{codes, read, verdict, verdict_of};

/// `code line:column title` of the first error.
fn first(text: &Text, all: &[Diagnostic]) -> String {
    all.first().map_or_else(
        || "nothing".to_owned(),
        |error| {
            let place = text.source.location(error.primary);
            format!("{} {}:{} {}", error.code, place.line, place.column, error.title)
        },
    )
}

fn refused(from: &str, to: &str) -> String {
    let changed = ring(3, 1, 1, "LL").replacen(from, to, 1);
    let text = read(&changed);
    assert!(text.program.is_none(), "{from} -> {to}");
    first(&text, &text.errors)
}

#[test]
fn what_the_parser_refuses() {
    let mut differ = Vec::new();
    for (from, to, expected) in [
        ("proto=\"LL\"", "proto=\"ll\"", "E0801 1:26 no protocol is called `ll`"),
        (" coll=\"allreduce\"", "", "E0801 1:1 a <algo> without `coll`"),
        ("ngpus=\"3\"", "ngpus=\"0\"", "E0801 1:70 `ngpus` is 0, and the least is 1"),
        ("ngpus=\"3\"", "ngpus=\"x\"", "E0801 1:70 `ngpus` is \"x\", which is no decimal number"),
        (
            "ngpus=\"3\"",
            "ngpus=\"010\"",
            "E0801 1:70 `ngpus` is \"010\", which is no decimal number",
        ),
        ("send=\"1\"", "send=\"0\"", "E0801 3:22 rank 0 is no peer of itself"),
        ("send=\"1\"", "send=\"3\"", "E0801 3:22 `send` is 3, and the most is 2"),
        ("chan=\"0\"", "chan=\"1\"", "E0801 3:40 channel 1, and `nchannels` is 1"),
        ("<tb id=\"0\"", "<tb id=\"1\"", "E0801 3:5 block 1 of rank 0, which has 1 blocks"),
        ("<gpu id=\"1\"", "<gpu id=\"0\"", "E0801 11:3 a second <gpu> of rank 0"),
        ("type=\"rrs\"", "type=\"sr\"", "E0801 5:25 no step is of the type `sr`"),
        ("srcbuf=\"i\"", "srcbuf=\"x\"", "E0801 4:36 no buffer is called `x`"),
        ("srcoff=\"0\"", "srcoff=\"3\"", "E0801 4:47 chunk 3 of `i`, which has 3 here"),
        ("srcoff=\"0\"", "srcoff=\"-2\"", "E0801 4:47 chunk -2 of `i`, which has 3 here"),
        ("cnt=\"1\"", "cnt=\"72\"", "E0801 4:77 `cnt` is 72, and the most is 71"),
        ("hasdep=\"0\"", "hasdep=\"2\"", "E0801 4:109 `hasdep` is 2, and the most is 1"),
        ("depid=\"-1\"", "depid=\"128\"", "E0801 4:87 `depid` is 128, and the most is 127"),
        (" hasdep=\"0\"", "", "E0801 4:7 a <step> without `hasdep`"),
        ("send=\"1\"", "send=\"-1\"", "E0801 4:7 `s` in a block whose `send` is -1"),
        (
            "<algo ",
            "<?xml version=\"1.0\"?>\n<algo ",
            "E0801 1:1 the runtime's reader takes elements and comments alone",
        ),
        (
            "<step s=\"0\"",
            "<step\ts=\"0\"",
            "E0801 4:12 the runtime's reader wants one blank before each attribute",
        ),
        (
            "  <gpu",
            "\t<gpu",
            "E0801 2:1 a tab, where the runtime's reader takes blanks and line ends alone",
        ),
        (
            "<step s=\"0\"",
            "<step s='0'",
            "E0801 4:13 this is no attribute as the runtime's reader takes them: NAME=\"VALUE\"",
        ),
        ("</algo>", "", "E0606 30:1 the file ends inside of an element"),
        ("type=\"s\"", "type=\"s\" type=\"s\"", "E0606 4:28 <step> has `type` twice"),
    ] {
        let told = refused(from, to);
        if told != expected {
            differ.push(format!("{from} -> {to}: {told}, not {expected}"));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    let system = read("<system version=\"1\"></system>");
    assert!(first(&system, &system.errors).starts_with("E0801 1:1 the file begins with <system>"));
    let bytes = msccl::read("test.xml", b"<algo \xff", None);
    assert_eq!(first(&bytes, &bytes.errors), "E0606 1:7 the file is not UTF-8 text");
}

fn wrong(text: &str) -> String {
    let text = read(text);
    assert_eq!(first(&text, &text.errors), "nothing");
    let (_, verdict) = verdict_of(&text, &Connections::default());
    first(&text, &verdict.errors().cloned().collect::<Vec<_>>())
}

#[test]
fn what_no_run_survives() {
    let right = ring(3, 1, 1, "LL");
    let twice = right.replacen("</tb>", "</tb>\n    <tb id=\"1\" send=\"1\" recv=\"-1\" chan=\"0\"><step s=\"0\" \
        type=\"s\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/></tb>", 1);
    assert_eq!(wrong(&twice), "E0310 10:5 tb 0 and tb 1 of gpu 0 both send to gpu 1 on channel 0");
    let longer = right.replacen("i_chunks=\"3\"", "i_chunks=\"9\"", 1).replacen(
        "srcoff=\"0\"",
        "srcoff=\"5\"",
        1,
    );
    assert_eq!(wrong(&longer), "E0312 4:7 chunks 5..6 of `i`, of which gpu 0 has 3");
    let uneven = right.replacen("cnt=\"1\"", "cnt=\"2\"", 1);
    assert_eq!(wrong(&uneven), "E0208 14:7 2 chunks are sent, and 1 received");
    let pairs = pairs(3, 1, "LL");
    let never = pairs.replacen("depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"2\"", 1);
    assert!(
        wrong(&never).contains("E0302") && wrong(&never).contains("a wait for step 2 of tb 0"),
        "{}",
        wrong(&never)
    );
    let absent = pairs.replacen("depid=\"0\" deps=\"1\"", "depid=\"9\" deps=\"1\"", 1);
    assert!(wrong(&absent).starts_with("E0302"), "{}", wrong(&absent));
}

fn warnings(text: &str) -> Vec<String> {
    let text = read(text);
    text.warnings.iter().map(|warning| first(&text, std::slice::from_ref(warning))).collect()
}

#[test]
fn what_the_parser_passes_over() {
    let right = pairs(3, 1, "LL");
    assert_eq!(warnings(&right), [] as [&str; 0]);
    let told = |from: &str, to: &str, expected: &str| {
        let all = warnings(&right.replacen(from, to, 1));
        assert!(all.iter().any(|warning| warning.contains(expected)), "{expected}: {all:?}");
    };
    told(
        "<algo ",
        "<algo redop=\"sum\" ",
        "W0007 1:7 the runtime does not read this attribute: `redop` of <algo>",
    );
    told("</tb>", "</tb><copy a=\"1\"/>", "the runtime passes over this element: <copy>");
}

#[test]
fn nops_that_nobody_hears() {
    let right = pairs(3, 1, "LL");
    let nop = right.lines().find(|line| line.contains("nop")).unwrap();
    let posts = right.replacen(nop, &nop.replace("hasdep=\"0\"", "hasdep=\"1\""), 1);
    assert!(warnings(&posts)[0].contains("a `nop` with `hasdep`, which is never posted"));
    let last = right.replacen("    </tb>", &format!("{nop}\n    </tb>"), 1);
    assert!(warnings(&last).iter().any(|w| w.contains("is dropped")), "{:?}", warnings(&last));
}

#[test]
fn limits_of_runtimes() {
    // 35 ranks: 69 steps of a block.
    let long = ring(35, 1, 1, "LL");
    let any = read(&long);
    assert!(any.program.is_some());
    assert!(first(&any, &any.warnings).contains("has 69 steps"), "{:?}", any.warnings);
    let taken = |runtime| msccl::read("test.xml", long.as_bytes(), Some(runtime)).program.is_some();
    assert_eq!(Runtime::ALL.map(taken), [false, false, true]);
    // Attributes that only the later runtimes demand.
    let silent = ring(3, 1, 1, "LL").replace(" minBytes=\"0\" maxBytes=\"0\"", "");
    let taken =
        |runtime| msccl::read("test.xml", silent.as_bytes(), Some(runtime)).program.is_some();
    assert_eq!(Runtime::ALL.map(taken), [false, false, true]);
    assert_eq!(codes(&verdict(&silent)), []);
}

/// Each runtime reads names of collectives of its own; a name that one of them does not read is refused for that one.
#[test]
fn names_of_collectives() {
    let told = |name: &str, runtime| {
        let changed = ring(3, 1, 1, "LL").replacen("\"allreduce\"", &format!("\"{name}\""), 1);
        let text = msccl::read("test.xml", changed.as_bytes(), runtime);
        assert!(text.program.is_some(), "{name}: the blocks are read nevertheless");
        let help = text.errors.first().and_then(|error| error.help.clone());
        (text.errors.len(), text.warnings.len(), help.unwrap_or_default())
    };
    let mut differ = Vec::new();
    for (name, [rccl, azure, microsoft], warnings) in [
        ("allreduce", [true, true, true], 0),
        ("allgather", [true, true, true], 0),
        ("alltoall", [true, true, true], 0),
        ("reducescatter", [true, true, false], 1),
        ("reduce_scatter", [false, false, true], 1),
        ("broadcast", [true, true, true], 1),
        ("reduce", [true, true, true], 1),
        ("gather", [true, true, false], 2),
        ("scatter", [true, true, false], 2),
        ("alltoallv", [true, true, false], 2),
        ("send", [true, true, false], 2),
        ("recv", [true, true, false], 2),
        ("custom", [false, false, true], 2),
        ("AllReduce", [false; 3], 0),
    ] {
        let taken = Runtime::ALL.map(|runtime| told(name, Some(runtime)).0 == 0);
        let any = told(name, None);
        if taken != [rccl, azure, microsoft]
            || any.0 != usize::from(taken == [false; 3])
            || any.1 != warnings
        {
            differ.push(format!("{name}: {taken:?} {any:?}"));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    assert_eq!(told("reduce_scatter", Some(Runtime::Rccl)).2, "write `reducescatter`");
    assert_eq!(told("reducescatter", Some(Runtime::Microsoft)).2, "write `reduce_scatter`");
    assert_eq!(told("allreduces", None).2, "write `allreduce`");
}
