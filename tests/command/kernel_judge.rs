//! `kernel judge`: the example candidates, right ones of each collective, one mistake for each family of cases, and hostile
//! ones.

use std::path::Path;

use expect_test::expect_file;
use roundelay_core::collective::Collective;
use roundelay_tests::root;

use super::call::{Call, TempFile, roundelay};

/// Instructions that the runs of all candidates of a call may take together: seconds on a machine without other work.
const MOST_INSTRUCTIONS: u64 = 2_000_000;

/// Every example has the verdict that it states. `UPDATE_EXPECT=1` writes the table of the book.
#[test]
fn the_examples_have_the_verdicts_that_they_state() {
    let call = roundelay(&[
        "kernel",
        "judge",
        "examples/kernels/judge",
        "--seeds",
        "2",
        "--budget",
        "600s",
    ])
    .ends(0);
    println!("{:?}", call.took);
    expect_file![root().join("book/src/listings/kernels/judge.table")].assert_eq(&call.out);
}

/// A candidate that does any collective, by a copy of all inputs to where peers reach them.
const ANY: &str = r#"
collective = "COLLECTIVE"
type = "f32"
[module.m]
define = ["KIND=NUMBER"]
text = '''
#include "FLAGS"
extern "C" __global__ void any(const float* input, float* const* shares, u32* const* pads,
                               u32* epochs, float* output, u32 rank, u32 ranks, u32 count,
                               u32 root, u32 call) {
    u32 epoch = epochs[0] + 1;
    const bool all = KIND == 1 || KIND == 7, at_root = rank == root;
    u32 in = KIND == 3 ? at_root : KIND == 5 ? at_root * ranks : all ? ranks : 1;
    u32 out = KIND == 4 ? at_root : KIND == 6 ? at_root * ranks : KIND == 2 || KIND == 7 ? ranks : 1;
    for (u32 i = threadIdx.x; i < in * count; i += blockDim.x) shares[rank][i] = input[i];
    meet(pads, 0, rank, ranks, epoch);
    for (u32 i = threadIdx.x; i < out * count; i += blockDim.x) {
        u32 unit = i / count, at = i % count;
        float value = 0;
        if (KIND == 0 || KIND == 4)
            for (u32 peer = 0; peer < ranks; peer++) value += shares[peer][at];
        if (KIND == 1)
            for (u32 peer = 0; peer < ranks; peer++) value += shares[peer][rank * count + at];
        if (KIND == 2 || KIND == 6) value = shares[unit][at];
        if (KIND == 3) value = shares[root][at];
        if (KIND == 5) value = shares[root][rank * count + at];
        if (KIND == 7) value = shares[unit][rank * count + at];
        output[i] = value;
    }
    meet(pads, 1, rank, ranks, epoch);
    if (threadIdx.x == 0) epochs[0] = epoch;
}
'''
[memory]
shares = { type = "f32", len = "ranks*elements", align = 16, peers = true }
pads = { bytes = "4*2*ranks", peers = true, init = "zero" }
epochs = { bytes = 4, init = "zero" }
inputs = { pointers = "input" }
all_shares = { pointers = "shares" }
all_pads = { pointers = "pads" }
[[call]]
kernel = "m.any"
grid = 1
block = 64
args = [
    { ptr = "input" }, { ptr = "all_shares" }, { ptr = "all_pads" }, { ptr = "epochs" },
    { ptr = "output" }, { u32 = "rank" }, { u32 = "ranks" }, { u32 = "elements" }, { u32 = "root" }, { u32 = "call" },
]
"#;

fn any(collective: Collective) -> String {
    let number = Collective::ALL.iter().position(|one| *one == collective).expect("one of all");
    let flags = root().join("examples/kernels/flags.cuh");
    let text = ANY.replace("COLLECTIVE", collective.name()).replace("NUMBER", &number.to_string());
    text.replace("FLAGS", flags.to_str().expect("a path is text"))
}

/// A folder of candidates, by their names.
fn folder<'a>(all: impl IntoIterator<Item = (&'a str, String)>) -> TempFile {
    let folder = TempFile::new("readme.txt", b"candidates");
    for (name, text) in all {
        let file = folder.folder().join(format!("{name}.candidate.toml"));
        std::fs::write(file, text).expect("a manifest");
    }
    folder
}

fn judged(folder: &Path, args: &[&str]) -> Call {
    let path = folder.to_str().expect("a path is text");
    roundelay(&[&["kernel", "judge", path, "--format", "json"], args].concat())
}

/// The verdict of each candidate, with its instructions in all.
fn verdicts(call: &Call) -> Vec<(String, String)> {
    let told = call.json();
    let all = told["candidates"].as_array().expect("a list of candidates");
    let cases = all.iter().flat_map(|one| one["cases"].as_array().expect("cases"));
    let instructions: u64 = cases.filter_map(|case| case["instructions"].as_u64()).sum();
    println!("{instructions} instructions, {:?}", call.took);
    assert!(instructions < MOST_INSTRUCTIONS, "{instructions} instructions");
    let text = |one: &serde_json::Value, key: &str| one[key].as_str().expect("a text").to_owned();
    let mut all: Vec<_> = all.iter().map(|one| (text(one, "name"), text(one, "verdict"))).collect();
    all.sort();
    all
}

#[test]
fn right_candidates_of_all_collectives_are_clean() {
    let folder = folder(Collective::ALL.map(|one| (one.name(), any(one))));
    let call = judged(folder.folder(), &["--seeds", "1", "--budget", "600s"]).ends(0);
    for (name, verdict) in verdicts(&call) {
        assert_eq!(verdict, "clean", "{name}");
    }
    let told = call.json();
    let best = &told["candidates"][0];
    assert_eq!((&best["score"], &best["whole"]), (&1.0.into(), &true.into()));
    let families = best["families"].as_array().expect("a list of families");
    assert!(families.iter().all(|family| family["passed"] == family["cases"]), "{families:?}");
}

/// Each family finds a mistake that the families before it do not.
#[test]
fn every_family_has_a_mistake_of_its_own() {
    let vectors = "for (u32 i = threadIdx.x; i < count / 4; i += blockDim.x) \
                   ((float4*)shares[rank])[i] = ((const float4*)input)[i];\n\
                   for (u32 i = count / 4 * 4 + threadIdx.x; i < count; i += blockDim.x)";
    let changes = [
        ("once", Collective::AllReduce, "peer = 0; peer < ranks", "peer = 1; peer < ranks"),
        (
            "ranks",
            Collective::AllGather,
            "value = shares[unit][at]",
            "value = shares[unit & 3][at]",
        ),
        ("counts", Collective::AllReduce, "i < out * count", "i < out * count / 2 * 2"),
        (
            "unaligned",
            Collective::AllReduce,
            "for (u32 i = threadIdx.x; i < in * count; i += blockDim.x)",
            vectors,
        ),
        (
            "in-place",
            Collective::AllReduce,
            "all_shares = { pointers = \"shares\" }",
            "all_shares = { pointers = \"input\" }",
        ),
        ("calls", Collective::Broadcast, "epochs[0] + 1", "1"),
        ("graph", Collective::AllToAll, "epochs[0] + 1", "call + 1"),
        (
            "sizes",
            Collective::AllReduce,
            "{ u32 = \"elements\" }",
            "{ u32 = \"elements * (call == 0) + 64 * (call > 0)\" }",
        ),
        (
            "special",
            Collective::AllGather,
            "value = shares[unit][at]",
            "value = shares[unit][at] + 0.0f",
        ),
        ("roots", Collective::Scatter, "shares[root][", "shares[0]["),
    ];
    let mut all = Vec::new();
    for (family, collective, from, to) in changes {
        let text = any(collective);
        assert!(text.contains(from), "{family}");
        let mut text = text.replace(from, to);
        if family == "in-place" {
            // The peers' inputs are read, and nothing is copied.
            text = text.replace("i < in * count; i +=", "i < 0; i +=");
        }
        all.push((family, text));
    }
    let folder = folder(all);
    let found = verdicts(&judged(folder.folder(), &["--seeds", "2", "--budget", "600s"]).ends(1));
    assert_eq!(found.len(), changes.len());
    for (name, verdict) in found {
        assert!(verdict.starts_with(&format!("{name}: ")), "{name}: {verdict}");
    }
}

/// Candidates that harm, or that make no sense, are told, and the others are judged.
#[test]
fn hostile_candidates_end_with_a_reason() {
    let kernel = |body: &str| {
        format!(
            "collective = \"AllReduce sum\"\ntype = \"u32\"\n[module.m]\ntext = \"\"\"\n\
             extern \"C\" __global__ void k(unsigned* input, unsigned* output, unsigned count) {{ {body} }}\n\"\"\"\n\
             [[call]]\nkernel = \"m.k\"\ngrid = 1\nblock = 32\n\
             args = [{{ ptr = \"input\" }}, {{ ptr = \"output\" }}, {{ u32 = \"elements\" }}]\n"
        )
    };
    let spins = kernel("for (;;) *(volatile unsigned*)output = 1;");
    let all = [
        ("endless", spins.clone()),
        ("waits", kernel("while (*(volatile unsigned*)input != 1) {}")),
        ("far", kernel("output[1u << 30] = 1;")),
        ("behind", kernel("output[count] = 1;")),
        ("input", kernel("input[threadIdx.x] = 1;")),
        ("huge_grid", spins.replace("grid = 1", "grid = [65535, 65535, 65535]")),
        (
            "huge_memory",
            spins
                .replace("[[call]]", "[memory]\nm = { bytes = \"1 << 40\" }\n[[call]]")
                .replace("1 << 40", "1099511627775"),
        ),
        ("no_grid", spins.replace("grid = 1", "grid = \"elements - 64\"")),
        ("no_text", kernel("this is no C++")),
        ("no_key", spins.replace("grid = 1", "gird = 1")),
        ("empty", String::new()),
        ("program", spins.replace("text = ", "compiler = \"/bin/true\"\ntext = ")),
        ("outside", spins.replace("[module.m]", "[module.n]\nfile = \"../other.cu\"\n[module.m]")),
    ];
    let folder = folder(all);
    let call = judged(folder.folder(), &["--seeds", "1", "--budget", "8s"]).ends(2);
    let told = call.json();
    let word = |name: &str| {
        let all = told["candidates"].as_array().expect("a list");
        let one = all.iter().find(|one| one["name"] == name).expect(name);
        let wrong = one["diagnostics"][0]["code"].as_str().unwrap_or_default();
        format!("{} {wrong}", one["verdict"].as_str().expect("a verdict"))
    };
    for (name, verdict) in [
        ("endless", "once: limit "),
        ("waits", "once: hang "),
        ("far", "once: bounds "),
        ("behind", "once: bounds "),
        ("input", "once: wrong "),
        ("huge_grid", "once: refused "),
        ("huge_memory", "once: refused "),
        ("no_grid", "once: refused "),
        ("no_text", "refused E0417"),
        ("no_key", "refused E0435"),
        ("empty", "refused E0435"),
        ("program", "refused E0435"),
        ("outside", "refused E0435"),
    ] {
        assert_eq!(word(name), verdict, "{name}");
    }
    // What cannot be judged at all.
    let nothing = TempFile::new("readme.txt", b"");
    let path = nothing.folder().to_str().expect("a path is text");
    roundelay(&["kernel", "judge", path]).refused(2, "E0001");
    roundelay(&["kernel", "judge", &format!("{path}/none")]).refused(2, "E0001");
    roundelay(&["kernel", "judge", nothing.path()]).ends(2);
    roundelay(&["kernel", "judge", "examples/kernels/judge", "--case", "cuonts"]).ends(2);
}

#[test]
fn an_assumption_counts_where_the_caller_grants_it() {
    let examples = root().join("examples/kernels");
    let read = |name: &str| std::fs::read_to_string(examples.join(name)).expect("an example");
    let flags = examples.join("flags.cuh");
    let text = read("judge/all_reduce.cu").replace("../flags.cuh", &flags.to_string_lossy());
    let manifest = read("judge/relaxed.candidate.toml").replace("verdict = \"once: race\"\n", "");
    let assumed = "[assume]\npolls-acquire = \"x\"\nflags-release = \"y\"\n";
    let folder = folder([("relaxed", manifest + assumed)]);
    std::fs::write(folder.folder().join("all_reduce.cu"), text).expect("a text");
    let word = |args: &[&str], code| {
        let args = [&["--case", "once", "--seeds", "1", "--budget", "600s"], args].concat();
        verdicts(&judged(folder.folder(), &args).ends(code)).remove(0).1
    };
    assert_eq!(word(&[], 1), "once: race");
    let granted = word(&["--assume", "polls-acquire,flags-release"], 0);
    assert_eq!(granted, "relies(flags-release, polls-acquire)");
}
