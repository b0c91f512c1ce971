//! `roundelay kernel judge`: kernels that are to do a collective, each in the same cases, with a score and a reason.

use std::fmt::Write as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::{self, available_parallelism};
use std::time::Duration;

use clap::{Args, ValueEnum};
use roundelay_core::diagnostics::Code;
use roundelay_core::render::render;
use roundelay_core::units::count;
use roundelay_kernel_check::harness::KernelModule;
use roundelay_kernel_check::{
    Assumption, Candidate, CheckOptions, Compiled, Judgement, MachineAssumption, Outcome,
};
use roundelay_topology::Problem;
use serde_json::{Value, json};

use super::{cases, compile, text_of};
use crate::interrupt;
use crate::progress;
use crate::report::{Failure, JsonDiagnostic, took, within_a_page};
use crate::streams::{is_verbose, print, print_json, put, say};
use crate::topo::aligned;
use crate::values::{RefusedValue, duration};

/// The end of a manifest's name.
const MANIFEST: &str = "candidate.toml";

#[derive(Args)]
pub(super) struct JudgeFlags {
    /// A folder of candidates, or a manifest: files whose names end in `candidate.toml`, and those of its folders
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// Judge in this case alone, or in the cases of this family, such as counts-3x7 or late
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Seeds of each case
    #[arg(long, value_name = "COUNT", default_value = "4")]
    seeds: NonZero<u16>,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    first: u64,
    /// The longest time for the runs of a candidate, and for each compilation, such as 10s or 300s
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    budget: Duration,
    /// The assumptions beyond PTX on which a candidate may rely if it declares them, such as polls-acquire,vec16
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = assumption)]
    assume: Vec<String>,
    /// Compile by this nvcc, and not by NVRTC
    #[arg(long, value_name = "FILE")]
    nvcc: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = JudgeFormat::Text)]
    format: JudgeFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum JudgeFormat {
    /// For people
    #[value(alias = "human")]
    Text,
    /// For programs
    Json,
}

/// The name of an assumption that one may declare.
fn assumption(name: &str) -> Result<String, RefusedValue> {
    let mut names: Vec<_> =
        Assumption::all().filter(Assumption::is_optional).map(|one| one.to_string()).collect();
    names.push("weak-as-relaxed".to_owned());
    if names.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let help = format!("assumptions are {}", names.join(", "));
    Err(RefusedValue::new("is no assumption beyond PTX").help(help))
}

/// A candidate with its judgement.
struct Judged {
    name: String,
    file: String,
    text: String,
    stated: Vec<String>,
    about: Option<(Candidate, Judgement)>,
    wrong: Vec<JsonDiagnostic>,
}

/// Runs the subcommand, and returns its exit code.
pub(super) fn main(flags: &JudgeFlags) -> u8 {
    let files = match manifests(&flags.path) {
        Ok(files) => files,
        Err(problem) => return refused(flags, problem),
    };
    let judged = progress::shown(|| {
        let left = files.into_iter().take_while(|_| !interrupt::happened());
        left.map(|(name, file)| judge(flags, name, &file)).collect::<Result<Vec<_>, _>>()
    });
    let mut all = match judged {
        Ok(all) => all,
        Err(problem) => return refused(flags, problem),
    };
    let is_none = |judged: &Judged| {
        judged.about.as_ref().is_some_and(|(_, judgement)| judgement.cases.is_empty())
    };
    if let Some(case) = flags.case.as_ref().filter(|_| all.iter().any(is_none)) {
        let families = roundelay_kernel_check::FAMILIES.map(|(family, _)| family).join(", ");
        let wrong = Problem::new(Code::BadFlag, format!("the judge has no case `{case}`"));
        return refused(flags, wrong.help(format!("families of cases are {families}")));
    }
    all.sort_by(|a, b| b.score().total_cmp(&a.score()).then_with(|| a.name.cmp(&b.name)));
    match flags.format {
        JudgeFormat::Text => told(&all),
        JudgeFormat::Json => print_json(&json!({
            "ok": all.iter().all(Judged::is_right), "tool": env!("CARGO_PKG_VERSION"),
            "seeds": flags.seeds, "first": flags.first, "budget": flags.budget.as_secs_f64(),
            "candidates": all.iter().map(Judged::json).collect::<Vec<_>>(), "diagnostics": [],
        })),
    }
    let worst = all.iter().map(Judged::exit_code).max().unwrap_or(0);
    if interrupt::happened() { interrupt::ENDED } else { worst }
}

/// Prints why a call is wrong, and returns the exit code.
fn refused(flags: &JudgeFlags, problem: Problem) -> u8 {
    if flags.format == JudgeFormat::Json {
        let wrong = [JsonDiagnostic::placeless(&problem)];
        print_json(&json!({ "ok": false, "candidates": [], "diagnostics": wrong }));
        return 2;
    }
    Failure::from(problem).print()
}

/// The manifests of a folder and of the folders in it, with the names of the candidates.
fn manifests(path: &Path) -> Result<Vec<(String, String)>, Problem> {
    let unreadable = |why: std::io::Error| {
        Problem::new(Code::UnreadableSource, format!("`{}` cannot be read: {why}", path.display()))
            .help("give a folder of candidates, or a manifest")
    };
    let is_manifest = |path: &Path| path.to_string_lossy().ends_with(MANIFEST) && path.is_file();
    let mut files = Vec::new();
    if path.is_file() {
        files.push(path.to_owned());
    } else {
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            // A folder that cannot be read has no candidate of this caller's.
            let inner = std::fs::read_dir(&entry).into_iter().flatten().flatten();
            let inner = inner.map(|inner| inner.path()).filter(|inner| is_manifest(inner));
            files.extend(inner.chain(is_manifest(&entry).then(|| entry.clone())));
        }
    }
    if files.is_empty() {
        let title = format!("`{}` has no candidate", path.display());
        let help = format!("a candidate is a manifest whose name ends in `{MANIFEST}`");
        return Err(Problem::new(Code::UnreadableSource, title).help(help));
    }
    files.sort();
    let base = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    let named = |file: PathBuf| {
        let inner = file.strip_prefix(base).unwrap_or(&file).display().to_string();
        let name =
            inner.strip_suffix(MANIFEST).unwrap_or(&inner).trim_end_matches(['.', '/', '\\']);
        let name = if name.is_empty() { "candidate" } else { name };
        (name.to_owned(), file.display().to_string())
    };
    Ok(files.into_iter().map(named).collect())
}

/// Judges a candidate.
///
/// # Errors
/// A compiler that is not there, which is no candidate's fault.
fn judge(flags: &JudgeFlags, name: String, file: &str) -> Result<Judged, Problem> {
    let (file, text) = (file.to_owned(), String::new());
    let mut judged =
        Judged { name, file, text, stated: Vec::new(), about: None, wrong: Vec::new() };
    match text_of(&judged.file) {
        Ok(text) => judged.text = text,
        Err(problem) => return Ok(judged.refused(flags, problem)),
    }
    let mut candidate = match Candidate::from_toml(&judged.text) {
        Ok(candidate) => candidate,
        Err(mistake) => {
            let (diagnostic, source) = mistake.diagnostic(&judged.file, &judged.text);
            judged.wrong.push(JsonDiagnostic::new(&diagnostic, &source));
            if flags.format == JudgeFormat::Text {
                say(format!("{}\n", render(&diagnostic, &source, true)));
            }
            return Ok(judged);
        }
    };
    judged.stated.clone_from(&candidate.harness.verdict);
    candidate.harness.assume.retain(|one, _| {
        let name = match one {
            Assumption::Machine(MachineAssumption::WeakAsRelaxed(_)) => {
                "weak-as-relaxed".to_owned()
            }
            one => one.to_string(),
        };
        flags.assume.contains(&name)
    });
    if let Some(nvcc) = &flags.nvcc {
        candidate.harness.modules.iter_mut().for_each(|module| module.compiler.clone_from(nvcc));
    }
    let stop = interrupt::stop();
    let options = CheckOptions {
        seeds: None,
        first: flags.first,
        budget: flags.budget,
        threads: available_parallelism().map_or(1, NonZero::get),
        explain: true,
        stop: &|| stop.is_some_and(|stop| stop()),
        progress: &|text| progress::about(format!("{}: {text}", judged.name)),
    };
    let chosen = |family: &str, name: &str| {
        flags.case.as_ref().is_none_or(|case| case == family || case == name)
    };
    let folder = Path::new(&judged.file).parent().unwrap_or(Path::new(""));
    let compile = |harness: &_| {
        progress::about(format!("{}: compiles", judged.name));
        cases(harness, |module, ranks| compiled(module, ranks, (folder, flags.budget)))
    };
    match candidate.judge(flags.seeds.get().into(), chosen, compile, &options) {
        Ok(judgement) => judged.about = Some((candidate, judgement)),
        Err(problem) if problem.code == Code::NoCuda => return Err(problem),
        Err(problem) => return Ok(judged.refused(flags, problem)),
    }
    if flags.format == JudgeFormat::Text {
        judged.explain();
    }
    Ok(judged)
}

/// Compiles a module, if that ends in time.
fn compiled(
    module: &KernelModule,
    ranks: u32,
    (folder, budget): (&Path, Duration),
) -> Result<Compiled, Problem> {
    let (done, result) = channel();
    let (own, folder) = (module.clone(), folder.to_owned());
    // A compiler cannot be ended: a thread that is late is left behind.
    thread::spawn(move || _ = done.send(compile::module(&own, ranks, &folder)));
    result.recv_timeout(budget).unwrap_or_else(|_| {
        let title =
            format!("module `{}` was not compiled in {}", module.name, took(budget.as_secs_f64()));
        Err(Problem::new(Code::KernelRefused, title))
    })
}

impl Judged {
    fn refused(mut self, flags: &JudgeFlags, problem: Problem) -> Self {
        let problem = problem.note(format!("the manifest is {}", self.file));
        self.wrong.push(JsonDiagnostic::placeless(&problem));
        if flags.format == JudgeFormat::Text {
            Failure::from(problem).print();
        }
        self
    }

    fn score(&self) -> f64 {
        self.about.as_ref().map_or(0.0, |(_, judgement)| judgement.score())
    }

    fn word(&self) -> String {
        self.about.as_ref().map_or("refused".to_owned(), |(_, judgement)| judgement.word())
    }

    /// Whether the verdict is one that the manifest states, or, where it states none, the candidate passes all cases.
    fn is_right(&self) -> bool {
        match self.stated[..] {
            [] => self.about.as_ref().is_some_and(|(_, judgement)| judgement.first().is_none()),
            _ => self.stated.contains(&self.word()),
        }
    }

    fn exit_code(&self) -> u8 {
        match (self.is_right(), &self.about) {
            (true, _) => 0,
            (false, Some(_)) => 1,
            (false, None) => 2,
        }
    }

    /// Prints the first finding at its line. One that the manifest states is no news.
    fn explain(&self) {
        let Some((_, judgement)) = self.about.as_ref().filter(|_| is_verbose() || !self.is_right())
        else {
            return;
        };
        let Some(first) = judgement.first() else { return };
        let Outcome::Checked(verdict) = &first.outcome else { return };
        let file = (self.file.as_str(), self.text.as_str());
        if let Some((diagnostic, source)) = verdict.diagnostic(file, &first.harness, &first.cases) {
            say(format!("{}\n", render(&diagnostic, &source, true)));
        }
    }

    /// The reason of the verdict, which stands behind the candidate's name below the table.
    fn reason(&self) -> String {
        let Some((_, judgement)) = &self.about else { return "nothing was run".to_owned() };
        let lost = judgement.families().into_iter().filter(|(_, passed, all)| passed < all);
        let lost: Vec<_> =
            lost.map(|(family, passed, all)| format!("{family} {passed}/{all}")).collect();
        let runs = count(usize::try_from(judgement.seeds()).unwrap_or(usize::MAX), "run");
        let mut text = match judgement.first() {
            Some(first) => {
                let why = first.outcome.reason().unwrap_or_default();
                let lost = if judgement.pass_count() == 0 {
                    "no case".to_owned()
                } else {
                    lost.join(", ")
                };
                format!("{}: {why}; passes {lost}", first.name())
            }
            None => format!("no finding in {runs}"),
        };
        if !judgement.is_whole() {
            text += "; the time was up before all seeds were run";
        }
        if !self.stated.is_empty() && !self.is_right() {
            _ = write!(text, "; the manifest states {}", self.stated.join(" or "));
        }
        if is_verbose() {
            _ = write!(text, "; {}", took(judgement.seconds));
        }
        text
    }

    fn json(&self) -> Value {
        let mut all = json!({
            "name": self.name, "file": self.file, "verdict": self.word(), "score": self.score(),
            "expected": self.stated, "as_expected": (!self.stated.is_empty()).then(|| self.is_right()),
            "diagnostics": self.wrong, "cases": [], "findings": [],
        });
        let Some((candidate, judgement)) = &self.about else { return all };
        let names = judgement.assumptions().iter().map(ToString::to_string).collect::<Vec<_>>();
        let families = judgement.families().into_iter();
        let families = families
            .map(|(name, passed, all)| json!({ "name": name, "passed": passed, "cases": all }));
        let mut findings = Value::Array(Vec::new());
        let cases = judgement.cases.iter().map(|case| {
            let (seeds, whole, instructions) = match &case.outcome {
                Outcome::Checked(verdict) => {
                    let instructions = verdict.cases.iter().map(|runs| runs.counters.instructions);
                    (verdict.seeds(), verdict.whole, instructions.sum::<u64>())
                }
                _ => (0, false, 0),
            };
            let run = &case.harness.run;
            json!({
                "name": case.name(), "family": case.family, "ranks": run.ranks[0], "elements": run.elements[0],
                "calls": run.calls, "passed": case.outcome.passes(), "verdict": case.outcome.word(),
                "reason": case.outcome.reason(), "seeds": seeds, "whole": whole, "instructions": instructions,
            })
        });
        all["cases"] = cases.collect();
        if let Some(Outcome::Checked(verdict)) = judgement.first().map(|first| &first.outcome) {
            findings = verdict.json(&self.file, env!("CARGO_PKG_VERSION"))["findings"].take();
        }
        all["findings"] = findings;
        all["families"] = families.collect();
        all["collective"] = candidate.collective.name().into();
        all["op"] = candidate.collective.reduces().then(|| candidate.op.name()).into();
        all["type"] = candidate.dtype.name().into();
        all["first"] = judgement.first().map(|first| first.name().to_owned()).into();
        all["passed"] = judgement.pass_count().into();
        all["assumptions"] = names.into();
        all["whole"] = judgement.is_whole().into();
        all["seconds"] = judgement.seconds.into();
        all
    }
}

/// Prints the table of all candidates, the best one first, and the reason of each.
fn told(all: &[Judged]) {
    let head = ["candidate", "score", "cases", "verdict"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for judged in all {
        let cases = judged.about.as_ref().map_or("-".to_owned(), |(_, judgement)| {
            format!("{} of {}", judgement.pass_count(), judgement.cases.len())
        });
        let score = format!("{:.0} %", (judged.score() * 100.0).floor());
        rows.push(vec![judged.name.clone(), score, cases, judged.word()]);
    }
    let mut text = String::new();
    aligned(&rows, &mut text);
    put(&format!("{text}\n"));
    for judged in all {
        print(&within_a_page(&format!("{}: {}", judged.name, judged.reason()), 4));
        if let Some((_, judgement)) = judged.about.as_ref().filter(|_| is_verbose()) {
            for case in &judgement.cases {
                let why = case.outcome.reason().map_or(String::new(), |why| format!(": {why}"));
                print(&within_a_page(
                    &format!("  {} {}{why}", case.name(), case.outcome.word()),
                    6,
                ));
            }
        }
    }
}
