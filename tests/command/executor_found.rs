//! `executor synthesize`: executors that all other commands take, and their times.

use std::collections::BTreeSet;

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_kernels::reference::Reference;
use serde_json::Value;

use super::call::{TempFile, roundelay};
use crate::contest::executable::{Call, Executable};

const CUT: &str = "full_mesh(8) without (0, 1)";

fn found(topology: &str, more: &[&str]) -> Value {
    let call = ["executor", "synthesize", "--topology", topology, "--format", "json"];
    roundelay(&[&call[..], more].concat()).ends(0).json()
}

fn page(found: &Value) -> TempFile {
    TempFile::new("found.coll", found["page"].as_str().unwrap().as_bytes())
}

fn times(found: &Value, of: &str) -> Vec<f64> {
    let times = found["score"][of].as_array().unwrap();
    times.iter().map(|time| time.as_f64().unwrap()).collect()
}

/// The contest's machine: no slower than the library's executor at any size, and faster for the largest.
#[test]
fn the_machine_of_the_contest() {
    let found = found(CUT, &[]);
    let [synthesized, library, ring, bound] =
        ["synthesized", "library", "ring", "bound"].map(|of| times(&found, of));
    for at in 0..3 {
        assert!(bound[at] < synthesized[at], "{found}");
        assert!(synthesized[at] <= library[at] && library[at] < ring[at], "{found}");
    }
    assert!(synthesized[2] < 0.98 * library[2], "{found}");
    let classes = found["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 3, "{found}");
    let file = page(&found);
    for line in [
        "// AllReduce of 8 ranks on full_mesh(8) without (0, 1).\n",
        "// Written by `roundelay executor synthesize --topology \"full_mesh(8) without (0, 1)\"`.\n",
        "// Simulated times in us, as of `executor score` with links of 25 GB/s and 2 us:\n",
        "pub executor Synthesized for AllReduce {\n    topology: full_mesh(8) without (0, 1);\n",
    ] {
        assert!(found["page"].as_str().unwrap().contains(line), "{line}: {found}");
    }
    roundelay(&["executor", "check", file.path(), "--signals", "binary,link-shared"]).ends(0);
    let score = ["executor", "score", file.path(), "--simulate-only", "--format", "json"];
    let score = roundelay(&score).ends(0).json();
    let scored = score["rows"].as_array().unwrap().iter().map(|row| row["simulated_us"].as_f64());
    assert_eq!(scored.map(Option::unwrap).collect::<Vec<_>>(), synthesized);
    // With bounds of a thousandth, each class has a size that is soon run: an odd count, and several loops.
    let text = found["page"].as_str().unwrap();
    let small = text.replace(" KiB => ", " B => ").replace(" MiB => ", " KiB => ");
    let small = TempFile::new("small.coll", small.as_bytes());
    let sizes = "4,1004,20004,100004,300004";
    let run = ["executor", "run", small.path(), "--ccl-buffer", "64KiB", "--sizes", sizes];
    let json = roundelay(&[&run[..], &["--format", "json"]].concat()).ends(0).json();
    let ran = json["rows"].as_array().unwrap().iter().map(|row| row["algorithm"].to_string());
    assert_eq!(ran.collect::<BTreeSet<_>>().len(), 3, "{json}");
    let text = roundelay(&["emit", "hccl-cpp", file.path()]).ends(0).out;
    assert!(text.contains("REGISTER_EXEC(\"Synthesized\""));
}

/// The C++ of a found executor, on a runtime with one-shot flags that ends a run at the use of a dead link.
#[test]
fn it_runs_as_the_contest_runs_it() {
    // Slow links: large classes begin at small sizes.
    let links = ["--bandwidth", "25MB/s", "--sizes", "16,1K,1M"];
    let found = found("full_mesh(4) without (0, 1)", &links);
    let text = roundelay(&["emit", "hccl-cpp", page(&found).path()]).ends(0).out;
    let program = Executable::compile(&text, "Synthesized").unwrap_or_else(|log| panic!("{log}"));
    let classes = found["classes"].as_array().unwrap();
    assert!(classes.len() > 1, "{found}");
    // A count of each class, whose pieces are uneven, and one of several loops.
    let bounds = classes.iter().map(|of| of["below"].as_u64().unwrap_or(1 << 20));
    let counts: Vec<u64> = bounds.map(|below| below / 4 - 3).chain([300_001]).collect();
    let (dtype, op) = (DType::I32, ReduceOp::Sum);
    for seed in [None, Some(1), Some(2)] {
        for count in counts.iter().copied() {
            let (collective, root) = (Collective::AllReduce, RankId(0));
            let reference =
                Reference { collective, nranks: 4, root, count: count as usize, dtype, op };
            let inputs = reference.inputs(count);
            let call = Call {
                nranks: 4,
                counts: &[count],
                dtype,
                op,
                dead: &[(0, 1)],
                seed,
                ..Call::default()
            };
            let (outputs, _) = program.run(&call, &inputs).unwrap();
            assert!(outputs == reference.outputs(&inputs), "{count} {seed:?}");
        }
    }
}

/// Machines of few ranks, without any rank in the middle, with a network, or as the first ranks of a larger one.
#[test]
fn other_machines() {
    let list = TempFile::new(
        "mesh.links",
        b"ranks 4\n0 -- 1 25GB/s 2us\n1 -- 2 25GB/s 2us\n2 -- 3 25GB/s 2us\n",
    );
    let machines: [(&str, &[&str], &str); 7] = [
        ("full_mesh(2)", &[], "full_mesh(2)"),
        ("full_mesh(3) without (0, 1)", &[], "full_mesh(3) without (0, 1)"),
        ("ring(5)", &[], "ring(5)"),
        ("groups([2, 2]) without (0, 1)", &[], "groups([2, 2]) without (0, 1)"),
        (CUT, &["-n", "3"], "full_mesh(3) without (0, 1)"),
        ("full_mesh(8, 25GB/s, 2us)", &["-n", "2"], "full_mesh(2, 25GB/s, 2us)"),
        (
            list.path(),
            &[],
            "full_mesh(4, 25GB/s, 2us) without (0, 2) without (0, 3) without (1, 3)",
        ),
    ];
    for (topology, more, named) in machines {
        let found = found(topology, &[more, &["--sizes", "1K,1M"]].concat());
        assert_eq!(found["topology"], named);
        let file = page(&found);
        roundelay(&["executor", "check", file.path()]).ends(0);
        roundelay(&["executor", "run", file.path(), "--sizes", "1004,100000"]).ends(0);
        roundelay(&["emit", "hccl-cpp", file.path()]).ends(0);
    }
}
