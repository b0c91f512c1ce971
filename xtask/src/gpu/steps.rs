//! Steps that do not stop each other: each in a time of its own, as processes of its own, with all of its output in
//! files. A step that fails or hangs is recorded, and the next step begins.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The exit code of a program that needs something that is missing.
const NOT_THERE: i32 = 3;
/// The time that a process may take to end after it was told to.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The name of the record with an error in the page or its figures.
const FIGURES: &str = "figures";
/// Lines of its output that say why a step failed.
const WHY: usize = 4;

/// The commands of a step, one after another, made from the earlier records; or why it runs none.
type Commands<'a> = Box<dyn Fn(&[Record]) -> Result<Vec<Command>, String> + 'a>;

pub(super) struct GpuStep<'a> {
    pub(super) name: &'static str,
    /// The seconds that it may take; `None` for all that are left.
    pub(super) seconds: Option<u64>,
    pub(super) commands: Commands<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GpuVerdict {
    Ok,
    Skipped(String),
    Failed(String),
}

/// The result of a step that has ended.
pub(super) struct Record {
    pub(super) name: String,
    pub(super) verdict: GpuVerdict,
    pub(super) took: Duration,
    /// The output of each of its commands.
    pub(super) printed: Vec<String>,
}

impl Record {
    /// Returns the last line about its progress, which begins with `#`.
    pub(super) fn summary(&self) -> Option<&str> {
        let lines = self.printed.iter().rev().flat_map(|printed| printed.lines().rev());
        lines.map(str::trim).find_map(|line| line.strip_prefix("# "))
    }
}

/// Runs the steps in their order, and passes the records to `show` after each of them.
pub(super) fn all(
    steps: &[GpuStep],
    total: Duration,
    out: &Path,
    mut show: impl FnMut(&[Record]) -> Result<(), String>,
) -> Vec<Record> {
    let begun = Instant::now();
    let mut records = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let left = total.saturating_sub(begun.elapsed());
        let limit = step.seconds.map_or(left, |seconds| left.min(Duration::from_secs(seconds)));
        println!("== {} of {}: {}, {} s at most", at + 1, steps.len(), step.name, limit.as_secs());
        let (stem, start) =
            (format!("{:02}-{}", at + 1, step.name.replace([' ', ','], "_")), Instant::now());
        let (verdict, printed) = match (step.commands)(&records) {
            Err(why) => (GpuVerdict::Skipped(why), Vec::new()),
            Ok(_) if limit.is_zero() => {
                (GpuVerdict::Failed("no time was left".to_owned()), Vec::new())
            }
            Ok(commands) => one(commands, limit, &out.join(stem)),
        };
        let took = start.elapsed();
        let record = Record { name: step.name.to_owned(), verdict, took, printed };
        println!("   {}", line(&record));
        records.push(record);
        if let Err(why) = show(&records) {
            // Once is enough.
            if records.iter().all(|record| record.name != FIGURES) {
                println!("   {FIGURES}: {why}");
                let (name, verdict) = (FIGURES.to_owned(), GpuVerdict::Failed(why));
                records.push(Record { name, verdict, took: Duration::ZERO, printed: Vec::new() });
            }
        }
    }
    records
}

/// Returns a step as a line.
fn line(Record { verdict, took, .. }: &Record) -> String {
    let seconds = took.as_secs_f64();
    match verdict {
        GpuVerdict::Ok => format!("ok, {seconds:.1} s"),
        GpuVerdict::Skipped(why) => format!("skipped: {why}"),
        GpuVerdict::Failed(why) => format!("FAILED after {seconds:.1} s: {why}"),
    }
}

/// Runs the commands of a step until one takes too long. A command that fails does not keep the next from running.
fn one(commands: Vec<Command>, limit: Duration, stem: &Path) -> (GpuVerdict, Vec<String>) {
    let end = Instant::now() + limit;
    let (mut verdict, mut printed) = (GpuVerdict::Ok, Vec::new());
    let count = commands.len();
    for (at, mut command) in commands.into_iter().enumerate() {
        let stem =
            if count == 1 { stem.to_owned() } else { stem.with_extension((at + 1).to_string()) };
        let (ended, text) = until(&mut command, end, &stem);
        printed.push(text);
        // The first failure is the verdict of the step.
        if !matches!(verdict, GpuVerdict::Failed(_)) && ended != GpuVerdict::Ok {
            verdict = ended;
        }
        if Instant::now() >= end && at + 1 < count {
            let (done, why) = (at + 1, "the time of the step was over");
            if verdict == GpuVerdict::Ok {
                verdict = GpuVerdict::Failed(format!("{why} after {done} of {count} commands"));
            }
            break;
        }
    }
    (verdict, printed)
}

/// Runs a command until it ends, or is ended at `end`. Its output goes into files whose names begin with `stem`; it is
/// also returned.
fn until(command: &mut Command, end: Instant, stem: &Path) -> (GpuVerdict, String) {
    let file = |kind: &str| {
        let mut name = stem.as_os_str().to_owned();
        name.push(kind);
        name
    };
    let (out, err) = (file(".out"), file(".err"));
    let shown = format!("{command:?}");
    let ran = (|| {
        command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        wait(&mut command.spawn()?, end)
    })();
    let text = |path| {
        fs::read(path).map_or(String::new(), |all| String::from_utf8_lossy(&all).into_owned())
    };
    let (printed, errors) = (text(&out), text(&err));
    let last = || {
        let said = if errors.trim().is_empty() { &printed } else { &errors };
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        match &lines[lines.len().saturating_sub(WHY)..] {
            [] => format!("{shown} printed nothing"),
            last => last.join(" / "),
        }
    };
    let verdict = match ran {
        Err(error) => GpuVerdict::Failed(format!("{shown} did not start: {error}")),
        Ok(None) => GpuVerdict::Failed(format!("out of time: {}", last())),
        Ok(Some(status)) if status.success() => GpuVerdict::Ok,
        Ok(Some(status)) if status.code() == Some(NOT_THERE) => GpuVerdict::Skipped(last()),
        Ok(Some(status)) => GpuVerdict::Failed(format!("{status}: {}", last())),
    };
    (verdict, printed)
}

/// Returns the exit status of a child; `None` where it had to be ended.
fn wait(child: &mut Child, end: Instant) -> std::io::Result<Option<std::process::ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(child, "TERM")?;
    let told = Instant::now();
    while told.elapsed() < LAST_WORDS && child.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Processes that the child started may still run when it has ended.
    signal(child, "KILL")?;
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Sends a signal to the child and to all processes that it started. A process that has ended ignores it.
fn signal(child: &Child, signal: &str) -> std::io::Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("kill -{signal} -{}", child.id())]);
    shell.stdout(Stdio::null()).stderr(Stdio::null()).status().map(drop)
}

/// Prints the table of the steps, and returns an error if one of them failed.
pub(super) fn verdict(records: &[Record]) -> Result<(), String> {
    for record in records {
        println!("{:<20} {}", record.name, line(record));
    }
    let failed = records.iter().filter(|record| matches!(record.verdict, GpuVerdict::Failed(_)));
    let names: Vec<&str> = failed.map(|record| record.name.as_str()).collect();
    if names.is_empty() { Ok(()) } else { Err(format!("failed: {}", names.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, seconds: u64, scripts: &'static [&str]) -> GpuStep<'static> {
        let shell = |script: &&str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let commands = move |_: &[Record]| Ok(scripts.iter().map(shell).collect());
        GpuStep { name, seconds: Some(seconds), commands: Box::new(commands) }
    }

    #[test]
    fn a_step_that_fails_or_hangs_keeps_no_other_from_running() {
        let folder = tempfile::tempdir().unwrap();
        let alive = folder.path().join("alive");
        let hang: &'static str =
            Box::leak(format!("sleep 3 && touch {} & echo hangs; wait", alive.display()).into());
        let skipped = GpuStep {
            name: "skipped",
            seconds: Some(1),
            commands: Box::new(|_| Err("nothing to run".to_owned())),
        };
        let steps = [
            step(
                "fails",
                5,
                &["echo part one", "echo no such thing >&2; exit 7", "echo part three"],
            ),
            step("hangs", 1, Box::leak(Box::new([hang]))),
            step("crashes", 5, &["kill -SEGV $$"]),
            skipped,
            step("lacks", 5, &["echo '# not checked: no library'; exit 3"]),
            step("is fine", 5, &["echo '# cases 0 to 3 of 3'"]),
        ];
        let mut pages = Vec::new();
        let begun = Instant::now();
        let records = all(&steps, Duration::from_secs(20), folder.path(), |records| {
            pages.push(records.len());
            Ok(())
        });
        assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
        assert_eq!(pages, [1, 2, 3, 4, 5, 6], "a page after every step");
        let why = |at: usize| match &records[at].verdict {
            GpuVerdict::Failed(why) => why.as_str(),
            other => panic!("{other:?}"),
        };
        assert!(why(0).contains('7') && why(0).contains("no such thing"), "{}", why(0));
        assert_eq!(records[0].printed.concat(), "part one\npart three\n");
        assert!(why(1).starts_with("out of time: hangs"), "{}", why(1));
        assert!(why(2).contains("signal"), "{}", why(2));
        assert_eq!(records[3].verdict, GpuVerdict::Skipped("nothing to run".to_owned()));
        assert_eq!(records[4].verdict, GpuVerdict::Skipped("# not checked: no library".to_owned()));
        assert_eq!(records[5].verdict, GpuVerdict::Ok);
        assert_eq!(records[5].summary(), Some("cases 0 to 3 of 3"));
        assert_eq!(verdict(&records), Err("failed: fails, hangs, crashes".to_owned()));
        assert_eq!(verdict(&records[3..]), Ok(()));
        let file = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(file("01-fails.2.err"), "no such thing\n");
        assert_eq!(file("06-is_fine.out"), "# cases 0 to 3 of 3\n");
        // A process that a step started ends with the step.
        std::thread::sleep(Duration::from_secs(4).saturating_sub(begun.elapsed()));
        assert!(!alive.exists());
    }

    #[test]
    fn all_of_it_ends_in_time_and_a_page_that_cannot_be_written_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let mut last = step("last", 0, &["sleep 10"]);
        last.seconds = None;
        let steps = [step("one", 5, &["sleep 10", "echo never"]), step("two", 5, &["true"]), last];
        let begun = Instant::now();
        let records =
            all(&steps, Duration::from_secs(1), folder.path(), |_| Err("no room".to_owned()));
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
        assert_eq!(verdict(&records), Err("failed: one, figures, two, last".to_owned()));
        assert_eq!(records[0].printed.len(), 1, "the step has no time for its second command");
        let quiet = r#"out of time: "sh" "-c" "sleep 10" printed nothing"#;
        assert_eq!(records[0].verdict, GpuVerdict::Failed(quiet.to_owned()));
    }
}
