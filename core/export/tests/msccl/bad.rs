//! A fault that the runtime refuses is an error at its exact place, and a fault that it ignores is a warning.

use roundelay_exchange::msccl::{self, Runtime};

use super::generate::{pairs, ring};
use super::{codes, says, verdict};
use crate::cases;

#[test]
fn what_is_refused_and_what_is_passed_over() {
    let head = "<algo name=\"x\" proto=\"LL\" nchannels=\"1\" nchunksperloop=\"1\" ngpus=\"1\" \
                coll=\"allreduce\" inplace=\"1\">GPUS";
    let texts = [
        ("ring", ring(3, 1, 1, "LL")),
        ("pairs", pairs(3, 1, "LL")),
        ("head", head.to_owned()),
        ("deep", "<algo>".repeat(100_000)),
        ("many", head.replace("GPUS", &"<gpu/>".repeat(600_000)) + "</algo>"),
        ("wide", format!("<algo {}/>", "a=\"1\" ".repeat(100_000))),
        ("long", format!("<algo name=\"{}\"/>", "x".repeat(1 << 20))),
    ];
    cases::check("msccl/bad.txt", &texts, |text| says(text.as_bytes()).1);
    assert_eq!(says(b"<algo \xff").1, "E0606 1:7 the file is not UTF-8 text");
}

#[test]
fn limits_of_runtimes() {
    // 35 ranks: 69 steps of a block; and attributes that only the later runtimes demand.
    let long = ring(35, 1, 1, "LL");
    let silent = ring(3, 1, 1, "LL").replace(" minBytes=\"0\" maxBytes=\"0\"", "");
    for text in [&long, &silent] {
        let taken =
            |runtime| msccl::read("test.xml", text.as_bytes(), Some(runtime)).program.is_some();
        assert_eq!(Runtime::ALL.map(taken), [false, false, true]);
    }
    let (taken, told) = says(long.as_bytes());
    assert!(taken && told.contains("has 69 steps"), "{told}");
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
