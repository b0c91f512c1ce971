//! The worked tables in the library's doc comments: the traffic between four ranks, step by step, as the
//! schedules say.
//!
//! `UPDATE_EXPECT=1 cargo test -p roundelay-tests tables::` writes them into `stdlib/library/*.coll` anew.

use std::sync::Arc;

use expect_test::expect_file;
use roundelay::Algorithm as _;
use roundelay_core::check::Frontend;
use roundelay_core::layout::Configured;
use roundelay_core::program::Program;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::{parse, printer};
use roundelay_core::topology::Topology;
use roundelay_core::values::params::ParamTy;
use roundelay_export::steps::{Steps, steps};
use roundelay_tests::{compile, name, root, sources};

const RANKS: u32 = 4;

/// A table with more lines is not taken in at a glance; fewer parts show as much.
const MOST_LINES: usize = 8;

/// Parameters that give the number of consecutive parts in which data travels.
const PARTS: [&str; 3] = ["loops", "slices", "pieces"];

/// Characters of a line of the library.
const WIDTH: usize = 100;

/// The beginning of a line of a doc comment.
const DOC: &str = "/// ";

type Settings = Vec<(String, String)>;

fn table(algorithm: &Program, source: &Source, nranks: u32, settings: &Settings) -> Steps {
    try_table(algorithm, source, nranks, settings).unwrap_or_else(|reports| panic!("{reports}"))
}

fn try_table(
    algorithm: &Program,
    source: &Source,
    nranks: u32,
    settings: &Settings,
) -> Result<Steps, String> {
    let mut configured = Configured::new(algorithm.clone(), source);
    for (parameter, value) in settings {
        if parameter == "topology" {
            let topology: Topology = value.parse().expect("a topology");
            configured.place_on(Arc::new(topology));
        }
        configured.set_text(parameter, value).expect("a value that fits");
    }
    configured.schedule(nranks).and_then(|schedule| steps(&schedule)).map_err(|findings| {
        let all = findings.into_iter().map(|f| configured.diagnostic(f, nranks));
        all.map(|d| d.report(source)).collect::<Vec<_>>().join("\n")
    })
}

/// Machines of few links, of which the first that an algorithm admits is shown.
const SPARSE: [&str; 2] = ["ring(4)", "full_mesh(4) without (0, 1)"];

/// The table with default parameters; or, where that is long or wide, with fewer parts, and on a machine of
/// few links.
fn worked(algorithm: &Program, source: &Source) -> Vec<String> {
    let narrow = WIDTH - DOC.len();
    let lines = |steps: &Steps| steps.lines(usize::MAX);
    let long = |steps: &Steps| steps.lines(narrow).len() > MOST_LINES;
    let wide = |steps: &Steps| lines(steps).iter().any(|line| line.len() > narrow);
    let has = |name: &str, ty| {
        algorithm.params.iter().any(|p| algorithm.var(p.var).name == name && p.ty == ty)
    };
    let mut settings = Settings::new();
    if has("topology", ParamTy::Topology) && has("groups", ParamTy::Groups) {
        settings.push(("topology".to_owned(), "islands(2, 2)".to_owned()));
    }
    let mut shown = table(algorithm, source, RANKS, &settings);
    if wide(&shown) && settings.is_empty() && has("topology", ParamTy::Topology) {
        let on = |sparse: &&str| vec![("topology".to_owned(), (*sparse).to_owned())];
        let admits = |sparse: &&str| try_table(algorithm, source, RANKS, &on(sparse)).is_ok();
        settings = SPARSE.iter().find(|sparse| admits(sparse)).map(on).expect("one is admitted");
        shown = table(algorithm, source, RANKS, &settings);
    }
    for (parameter, value) in PARTS.iter().flat_map(|name| [(*name, "2"), (*name, "1")]) {
        if long(&shown) && has(parameter, ParamTy::Int) {
            let mut fewer = settings.clone();
            fewer.retain(|(name, _)| name != parameter);
            fewer.push((parameter.to_owned(), value.to_owned()));
            let shorter = table(algorithm, source, RANKS, &fewer);
            if shorter.steps.len() < shown.steps.len() {
                (settings, shown) = (fewer, shorter);
            }
        }
    }
    let mut block = vec!["```text".to_owned(), shown.heading(&settings)];
    block.extend(shown.lines(narrow));
    block.push("```".to_owned());
    block
}

/// Where the table of an earlier day begins in a doc comment, with the empty line before it.
fn earlier(docs: &[String]) -> usize {
    let opening = docs.iter().rposition(|line| line.starts_with("/// ```text"));
    let is_table = |at: &usize| {
        let heading = docs.get(at + 1).is_some_and(|line| line.starts_with("/// 4 ranks"));
        heading && docs.last().is_some_and(|line| line == "/// ```")
    };
    let end = opening.filter(is_table).unwrap_or(docs.len());
    end - docs[..end].iter().rev().take_while(|line| *line == "///").count()
}

/// The file with the table of `algorithm` at the end of its doc comment.
fn with_table(text: &str, algorithm: &Program, block: &[String]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let head = format!("pub algorithm {}(", algorithm.name);
    let head = lines.iter().position(|line| line.starts_with(&head));
    let mut end = head.expect("the library's algorithms are public, and begin a line");
    while lines[end - 1].starts_with("#[") {
        end -= 1;
    }
    let docs = lines[..end].iter().rev().take_while(|line| line.starts_with("///")).count();
    assert!(docs > 0, "{} has no doc comment", algorithm.name);
    let from = end - docs + earlier(&lines[end - docs..end]);
    let empty = std::iter::once(DOC.trim_end().to_owned());
    lines.splice(from..end, empty.chain(block.iter().map(|line| format!("{DOC}{line}"))));
    lines.join("\n") + "\n"
}

#[test]
fn every_algorithm_of_the_library_shows_what_four_ranks_do() {
    let mut tables = 0;
    for (path, text) in sources("stdlib/library") {
        let source = Source::from_text(name(&path), &text);
        let program = compile(&source, Frontend::File).expect("the library is right");
        let mut fresh = text.clone();
        for algorithm in program.algorithms.iter().filter(|a| a.declaration.public) {
            fresh = with_table(&fresh, algorithm, &worked(algorithm, &source));
            tables += 1;
        }
        expect_file![&path].assert_eq(&fresh);
        let fresh = Source::from_text(name(&path), &fresh);
        let printed = printer::print_with_trivia(&parse(&fresh).0, &fresh);
        assert!(Some(&*printed) == fresh.text(), "{}: not in canonical form", path.display());
    }
    assert!(tables > 0);
}

/// From the definition of the trees, worked out by hand, and the places of slices from their reordering.
#[test]
fn nhr_is_what_the_literature_draws() {
    let down =
        ["0->3+[1,3] 1->0+[0,2] 2->1+[1,3] 3->2+[0,2]", "0->2+[2] 1->3+[3] 2->0+[0] 3->1+[1]"];
    let up = ["0->2[0] 1->3[1] 2->0[2] 3->1[3]", "0->1[0,2] 1->2[1,3] 2->3[0,2] 3->0[1,3]"];
    nhr("NhrReduceScatter", 4, &[], &down);
    nhr("NhrAllGather", 4, &[], &up);
    nhr("NhrAllReduce", 4, &[], &[down, up].concat());
    let reordered = [
        "0->3+[2,3] 1->0+[0,1] 2->1+[2,3] 3->2+[0,1]",
        "0->2+[1] 1->3+[3] 2->0+[0] 3->1+[2]",
        "0->2[0] 1->3[2] 2->0[1] 3->1[3]",
        "0->1[0,1] 1->2[2,3] 2->3[0,1] 3->0[2,3]",
    ];
    nhr("NhrAllReduce", 4, &[("reorder", "true")], &reordered);
    let reordered = [
        "0->4+[1,2] 1->0+[0,4] 2->1+[2,3] 3->2+[0,1] 4->3+[3,4]",
        "0->3+[4] 1->4+[2] 2->0+[0] 3->1+[3] 4->2+[1]",
        "0->1+[3] 1->2+[1] 2->3+[4] 3->4+[2] 4->0+[0]",
        "0->4[0] 1->0[3] 2->1[1] 3->2[4] 4->3[2]",
        "0->2[0] 1->3[3] 2->4[1] 3->0[4] 4->1[2]",
        "0->1[0,4] 1->2[2,3] 2->3[0,1] 3->4[3,4] 4->0[1,2]",
    ];
    nhr("NhrAllReduce", 5, &[("reorder", "true")], &reordered);
}

fn nhr(name: &str, nranks: u32, set: &[(&str, &str)], expected: &[&str]) {
    let text =
        std::fs::read_to_string(root().join("stdlib/library/nhr.coll")).expect("the source exists");
    let source = Source::from_text("nhr.coll", &text);
    let program = compile(&source, Frontend::File).expect("the library is right");
    let found = program.algorithms.iter().find(|a| a.name == name).expect("of the file");
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let shown = table(found, &source, nranks, &set.iter().map(owned).collect());
    let lines: Vec<_> = shown.steps.iter().map(|words| words.join(" ")).collect();
    assert_eq!(lines, expected, "{name} at {nranks}");
}
