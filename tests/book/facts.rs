//! Facts in sentences and tables of the pages: `<!-- fact NAME -->…<!-- /fact -->` holds words that a test takes from the
//! library, the language, the command or a page of results, so that no sentence outlives them.

use std::fmt::Write as _;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_tests::{root, sources};

use crate::book::{console, read};

const BEGIN: &str = "<!-- fact ";
const END: &str = "<!-- /fact -->";

/// The page with fresh facts.
pub(crate) fn with_facts(page: &str) -> String {
    let mut parts = page.split(BEGIN);
    let mut fresh = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->").expect("a fact has a name");
        let (_, rest) = rest.split_once(END).unwrap_or_else(|| panic!("fact {name} has no end"));
        let _ = write!(fresh, "{BEGIN}{name} -->{}{END}{rest}", fact(name));
    }
    fresh
}

/// The words of a fact.
fn fact(name: &str) -> String {
    let results = |page: &str| read(&root().join("book/src/results").join(page));
    match name {
        "algorithms" => algorithms().to_string(),
        "dtypes" => in_words(DType::ALL.len()),
        "ops" => in_words(ReduceOp::ALL.len()),
        "version" => setting("version"),
        "rust" => setting("rust-version"),
        "gpus" => gpus(&results("gpu.md")),
        "several" => several(&results("gpu.md")),
        "synthesis" => synthesis(&results("synthesis.md")),
        "host" => host(&results("host.md")),
        "statement.line" => statement_line().to_string(),
        "statement.schedule" => {
            emitted("schedule RingAllReduce --nranks 4", "fold 1.output[0..1/4], 0.")
        }
        "statement.program" => emitted("program RingAllReduce", "10: "),
        "statement.kernel" => emitted("cuda RingAllReduce --nranks 4", "lane.reduce("),
        "statement.contest" => {
            let executor = read(&root().join("tests/contest/small_ring.cpp"));
            line(&executor.replace("CHK_RET(lane", "lane").replace("));", ")"), "lane.Reduce(")
        }
        _ => panic!("nothing is known of the fact {name}"),
    }
}

/// The number of algorithms of the library.
fn algorithms() -> usize {
    let all = sources("stdlib/library");
    all.iter()
        .map(|(_, text)| text.lines().filter(|l| l.starts_with("pub algorithm ")).count())
        .sum()
}

fn in_words(number: usize) -> String {
    let words = ["eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen"];
    number.checked_sub(8).and_then(|at| words.get(at)).expect("a word").to_string()
}

/// A setting of all packages.
fn setting(name: &str) -> String {
    let manifest = read(&root().join("Cargo.toml"));
    let line = manifest.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('='));
    line.expect("the workspace sets it").trim().trim_matches('"').to_owned()
}

/// The GPUs that the results name as those on which kernels ran.
fn gpus(results: &str) -> String {
    let ran = ["V100", "A100", "H100", "H200", "B200", "GB200", "MI300X"];
    let named = |gpu: &&str| {
        results.contains(&format!("an {gpu}")) || results.contains(&format!(" {gpu} "))
    };
    let ran: Vec<_> = ran.iter().filter(|gpu| named(gpu)).map(|gpu| format!("an {gpu}")).collect();
    assert!(!ran.is_empty(), "the results name no GPU");
    ran.join(" and ")
}

/// The words for runs on several GPUs, as long as the results have none.
fn several(results: &str) -> String {
    assert!(
        results.contains("Kernels have not run on several GPUs yet."),
        "kernels have run on several GPUs: the README's first line must not deny it"
    );
    "runs".to_owned()
}

/// The first cells of the rows of a page's tables that begin with a program or a topology, with the other cells.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").map(str::trim).collect())
}

/// The cell about synthesis: the topologies of the table of trees, and the longest of their searches.
fn synthesis(results: &str) -> String {
    let seconds = |row: &[&str]| row.get(3)?.strip_suffix(" s")?.parse::<f64>().ok();
    let times: Vec<f64> = rows(results).filter_map(|row| seconds(&row)).collect();
    let longest = times.iter().copied().fold(0.0, f64::max).ceil();
    assert!(times.len() > 10, "{} searches", times.len());
    format!(
        "`roundelay synthesize` packs trees at the exact bound of the links; {} searches, up to 128 ranks, took at \
         most {longest} s each",
        times.len()
    )
}

/// The sentence about the cells `a / b = ratio` of the first table.
fn host(results: &str) -> String {
    let ratio =
        |cell: &str| cell.split_once(" = ").and_then(|(_, ratio)| ratio.parse::<f64>().ok());
    let ratios: Vec<f64> = rows(results)
        .skip_while(|row| row[0] != "AllReduce")
        .take_while(|row| row.len() == 6)
        .flat_map(|row| row.into_iter().filter_map(ratio).collect::<Vec<_>>())
        .collect();
    assert!(ratios.len() > 40, "{} ratios", ratios.len());
    let within = |most: f64| ratios.iter().filter(|ratio| **ratio <= most).count();
    let (all, near, far) = (ratios.len(), within(1.03), within(1.25));
    format!(
        "{near} of {all} measured cases take at most 1.03 times as long, and {far} at most 1.25 times"
    )
}

/// The statement whose forms the page on the architecture follows.
const STATEMENT: &str = "reduce(left.block[b], local.block[b]);";

fn statement_line() -> usize {
    let ring = read(&root().join("stdlib/library/ring.coll"));
    1 + ring.lines().position(|line| line.trim().starts_with(STATEMENT)).expect("the statement")
}

/// The line of a form of the library's ring that begins as given.
fn emitted(form: &str, beginning: &str) -> String {
    line(&console::transcript(&format!("$ roundelay emit {form}"), &root()), beginning)
}

/// The first line of a text that begins as given, as code, with single blanks and without the places behind it.
fn line(text: &str, beginning: &str) -> String {
    let found = text.lines().map(str::trim).find(|line| line.starts_with(beginning));
    let found = found.unwrap_or_else(|| panic!("no line begins with `{beginning}`:\n{text}"));
    let code = found.split(" // ").next().and_then(|code| code.split(" @").next()).expect("a part");
    format!("`{}`", code.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A newcomer sees a program, its verdict and what is not there without turning a page.
#[test]
fn the_first_screen_has_a_program_its_verdict_and_what_is_not_there() {
    let readme = read(&root().join("README.md"));
    let screen: Vec<&str> = readme.lines().take(20).collect();
    let at = |beginning: &str| screen.iter().position(|line| line.trim().starts_with(beginning));
    let [denied, program, asked, verdict] =
        ["**Not there yet:**", "algorithm ", "$ roundelay check ", "proved "].map(at);
    assert!(
        denied < program && program < asked && asked < verdict && denied.is_some(),
        "{screen:#?}"
    );
}
