//! Candidates of the judge: manifests, claims, and mutants.

use std::time::Duration;

use roundelay_core::render::render;
use roundelay_kernel_check::{Candidate, CheckOptions, Judgement};

use crate::reading::mutants;
use crate::{cases, options};

/// A candidate that copies its own input, which is no reduction.
const COPY: &str = r#"title = "a copy"
collective = "AllReduce sum"
type = "u32"
verdict = ["once: wrong", "clean"]
[claims]
ranks = [2, 3]
multiple = 1
align = 4
in_place = true
[module.m]
ptx = "kernels.ptx"
[memory]
pad = { bytes = "4*ranks", align = 8, peers = true, init = "zero" }
table = { pointers = ["pad", "input"] }
[[call]]
memset = { to = "pad", bytes = 4 }
[[call]]
kernel = "m.copy"
grid = 1
block = 64
args = [{ ptr = "input" }, { ptr = "output", offset = 0 }, { u32 = "elements" }]
[assume]
polls-acquire = "x"
"#;

fn judged(text: &str, chosen: &str, budget: u64) -> Judgement {
    let candidate =
        Candidate::from_toml(text).unwrap_or_else(|wrong| panic!("{wrong:?} in\n{text}"));
    let options = CheckOptions { budget: Duration::from_secs(budget), ..options() };
    let judged = candidate.judge(
        1,
        |family, _| chosen.is_empty() || family == chosen,
        |harness| Ok::<_, ()>(cases(harness)),
        &options,
    );
    judged.expect("the kernels are compiled")
}

#[test]
fn a_mistake_of_a_manifest_stands_at_its_place() {
    for (from, to, place, why) in [
        ("in_place", "inplace", "9:1", "did you mean `in_place`?"),
        ("type = \"u32\"\n", "", "1:1", "the manifest has no `type`"),
        ("AllReduce sum", "AllReduce", "", ""),
        ("AllReduce sum", "AllRedce", "2:14", "is no collective"),
        ("\"u32\"", "\"f32\"", "", ""),
        ("AllReduce sum\"\ntype = \"u32\"", "AllReduce band\"\ntype = \"f32\"", "2:14", "floats"),
        ("pad = {", "input = {", "13:1", "is memory that the judge gives"),
        ("memset = { to = \"pad\"", "memset = { to = \"input\"", "15:1", "overwrites the input"),
        ("memset = { to = \"pad\", bytes = 4 }", "write = \"input\"", "16:9", "the judge alone"),
        ("ptx = \"k", "compiler = \"x\"\nptx = \"k", "11:1", "has no say in `compiler`"),
        ("kernels.ptx", "../kernels.ptx", "11:7", "in its folder"),
        ("kernels.ptx", "/kernels.ptx", "11:7", "in its folder"),
        ("once: wrong", "once wrong", "4:12", "is no verdict of a candidate"),
        ("[assume]", "[run]", "22:2", "is no key of this table"),
        ("ranks = [2, 3]", "ranks = [1]", "6:10", "a whole number from 2 to 64"),
    ] {
        assert!(COPY.contains(from), "{from}");
        let text = COPY.replacen(from, to, 1);
        let Err(mistake) = Candidate::from_toml(&text) else {
            assert_eq!(why, "", "{to} is taken");
            continue;
        };
        let (diagnostic, source) = mistake.diagnostic("x.candidate.toml", &text);
        let told = render(&diagnostic, &source, false);
        assert!(
            told.contains(&format!("x.candidate.toml:{place}")) && told.contains(why),
            "{told}"
        );
    }
}

#[test]
fn a_case_that_is_not_claimed_counts_and_is_no_error() {
    let all = judged(COPY, "", 60);
    assert_eq!((all.word().as_str(), all.pass_count(), all.cases.len()), ("once: wrong", 0, 26));
    let words = |family| {
        let of = all.cases.iter().filter(move |case| case.family == family);
        of.map(|case| case.outcome.word()).collect::<Vec<_>>()
    };
    assert_eq!(
        words("ranks"),
        ["wrong", "unclaimed", "unclaimed", "unclaimed", "unclaimed", "unclaimed"]
    );
    assert_eq!(words("once"), ["wrong", "unclaimed"]);
    let none = COPY.replace("[2, 3]", "[64]");
    let none = judged(&none, "", 60);
    assert_eq!((none.word().as_str(), none.score()), ("once: unclaimed", 0.0));
    let few = COPY.replace("multiple = 1", "multiple = 13").replace("align = 4", "align = 16");
    let few = judged(&few.replace("in_place = true", "in_place = false"), "", 60);
    let why: Vec<_> = few.cases.iter().filter_map(|case| case.outcome.reason()).collect();
    assert!(
        why.iter().all(|why| why.contains("multiple of 13") || why.contains("not for")),
        "{why:?}"
    );
}

/// The book lists the families.
#[test]
fn the_page_has_all_families() {
    let page = include_str!("../../../book/src/guide/kernel_judge.md");
    for (family, what) in roundelay_kernel_check::FAMILIES {
        assert!(page.contains(&format!("| `{family}` | {what} |")), "{family}");
    }
}

#[test]
fn a_budget_that_is_up_leaves_cases_out() {
    let all = judged(COPY, "", 0);
    assert_eq!((all.word().as_str(), all.is_whole()), ("once: unrun", false));
}

/// No change of a manifest ends in a panic, neither when it is read nor when it is judged.
#[test]
fn no_mutant_of_a_manifest_panics() {
    let (mut read, mut ran) = (0, 0);
    mutants(COPY, |text| match Candidate::from_toml(text) {
        Ok(candidate) => {
            read += 1;
            let modules = &candidate.harness.modules;
            if read % 4 == 0 && modules.iter().all(|module| module.name == "m") {
                ran += judged(text, ["once", "in-place", "sizes"][read / 4 % 3], 5).seeds();
            }
        }
        Err(mistake) => _ = mistake.diagnostic("x", text),
    });
    assert!(read > 20 && ran > 5, "{read} were read, {ran} ran");
}
