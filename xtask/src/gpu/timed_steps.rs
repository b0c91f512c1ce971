//! Steps that do not stop each other: each in a time of its own, as processes of its own, with all of its output in
//! files. A step that fails or hangs is recorded, and the next step begins.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::program;

/// The exit code of a program that needs something that is missing.
const NOT_THERE: i32 = 3;
/// The exit codes of `timeout` after a command that took too long: one that it asked to end, and one that it killed.
const OUT_OF_TIME: i32 = 124;
const KILLED: i32 = 137;
/// The name of the record with an error in the page or its figures.
const FIGURES: &str = "figures";
/// Lines of its output that say why a step failed.
const WHY: usize = 4;

/// A step, and the seconds that it may take; `None` for all that are left.
pub(super) type GpuStep = (&'static str, Option<u64>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GpuVerdict {
    Ok,
    Skipped(String),
    Failed(String),
}

/// The result of a step that has ended.
#[derive(Clone)]
pub(super) struct StepRecord {
    pub(super) name: String,
    pub(super) verdict: GpuVerdict,
    pub(super) took: Duration,
    /// The output of each of its commands.
    pub(super) printed: Vec<String>,
}

impl StepRecord {
    /// Returns the last line about its progress, which begins with `#`.
    pub(super) fn summary(&self) -> Option<&str> {
        let lines = self.printed.iter().rev().flat_map(|printed| printed.lines().rev());
        lines.map(str::trim).find_map(|line| line.strip_prefix("# "))
    }

    fn line(&self) -> String {
        let seconds = self.took.as_secs_f64();
        match &self.verdict {
            GpuVerdict::Ok => format!("ok, {seconds:.1} s"),
            GpuVerdict::Skipped(why) => format!("skipped: {why}"),
            GpuVerdict::Failed(why) => format!("FAILED after {seconds:.1} s: {why}"),
        }
    }
}

/// Runs the commands of the steps, which `commands` makes from the earlier records, or says why there is none; and passes
/// the records to `show` after each step.
pub(super) fn all(
    steps: &[GpuStep],
    total: Duration,
    out: &Path,
    commands: impl Fn(&str, u64, &[StepRecord]) -> Result<Vec<Command>, String>,
    mut show: impl FnMut(&[StepRecord]) -> Result<(), String>,
) -> Vec<StepRecord> {
    let begun = Instant::now();
    let mut records: Vec<StepRecord> = Vec::new();
    for (at, (name, seconds)) in (1..).zip(steps) {
        let left = total.saturating_sub(begun.elapsed());
        let limit = seconds.map_or(left, |seconds| left.min(Duration::from_secs(seconds)));
        println!("== {at} of {}: {name}, {} s at most", steps.len(), limit.as_secs());
        let stem = out.join(format!("{at:02}-{}", name.replace([' ', ','], "_")));
        let start = Instant::now();
        let (verdict, printed) = match commands(name, seconds.unwrap_or(left.as_secs()), &records) {
            Err(why) => (GpuVerdict::Skipped(why), Vec::new()),
            Ok(_) if limit.is_zero() => {
                (GpuVerdict::Failed("no time was left".to_owned()), Vec::new())
            }
            Ok(commands) => one(commands, limit, &stem),
        };
        let (name, took) = ((*name).to_owned(), start.elapsed());
        records.push(StepRecord { name, verdict, took, printed });
        println!("   {}", records[records.len() - 1].line());
        if let Err(why) = show(&records) {
            // Once is enough.
            if records.iter().all(|record| record.name != FIGURES) {
                println!("   {FIGURES}: {why}");
                let (verdict, took) = (GpuVerdict::Failed(why), Duration::ZERO);
                records.push(StepRecord {
                    name: FIGURES.into(),
                    verdict,
                    took,
                    printed: Vec::new(),
                });
            }
        }
    }
    records
}

/// Runs the commands of a step until one takes too long. A command that fails does not keep the next from running; the
/// first failure is the verdict of the step.
fn one(commands: Vec<Command>, limit: Duration, stem: &Path) -> (GpuVerdict, Vec<String>) {
    let begun = Instant::now();
    let (mut verdict, mut printed) = (GpuVerdict::Ok, Vec::new());
    let count = commands.len();
    for (done, command) in (1..).zip(commands) {
        let stem = if count == 1 { stem.to_owned() } else { stem.with_extension(done.to_string()) };
        let left = limit.saturating_sub(begun.elapsed());
        let (ended, text) = until(&command, left, &stem);
        printed.push(text);
        if !matches!(verdict, GpuVerdict::Failed(_)) && ended != GpuVerdict::Ok {
            verdict = ended;
        }
        if begun.elapsed() >= limit && done < count {
            if verdict == GpuVerdict::Ok {
                let why = "the time of the step was over";
                verdict = GpuVerdict::Failed(format!("{why} after {done} of {count} commands"));
            }
            break;
        }
    }
    (verdict, printed)
}

/// Runs a command until it ends, or is ended with all processes that it has started. Its output goes into files whose
/// names begin with `stem`; it is also returned.
fn until(command: &Command, limit: Duration, stem: &Path) -> (GpuVerdict, String) {
    let seconds = limit.as_secs_f64().max(0.1).to_string();
    let mut timed = program("timeout", &["--kill-after=5", &seconds]);
    timed.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    timed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let files = [".out", ".err"].map(|kind| PathBuf::from(format!("{}{kind}", stem.display())));
    let ran =
        (|| timed.stdout(File::create(&files[0])?).stderr(File::create(&files[1])?).status())();
    let [printed, errors] = files.map(|path| {
        fs::read(path).map_or(String::new(), |all| String::from_utf8_lossy(&all).into_owned())
    });
    let said = [&errors, &printed].into_iter().find(|said| !said.trim().is_empty());
    let lines = said.map_or("", String::as_str).lines().map(str::trim).filter(|l| !l.is_empty());
    let mut last: Vec<&str> = lines.rev().take(WHY).collect();
    last.reverse();
    let nothing = format!("{command:?} printed nothing");
    let last = if last.is_empty() { nothing } else { last.join(" / ") };
    let verdict = match ran {
        Err(error) => GpuVerdict::Failed(format!("{command:?} did not start: {error}")),
        Ok(status) => match status.code() {
            Some(0) => GpuVerdict::Ok,
            Some(NOT_THERE) => GpuVerdict::Skipped(last),
            Some(OUT_OF_TIME | KILLED) => GpuVerdict::Failed(format!("out of time: {last}")),
            _ => GpuVerdict::Failed(format!("{status}: {last}")),
        },
    };
    (verdict, printed)
}

/// Prints the table of the steps, and returns an error if one of them failed.
pub(super) fn verdict(records: &[StepRecord]) -> Result<(), String> {
    for record in records {
        println!("{:<20} {}", record.name, record.line());
    }
    let failed = records.iter().filter(|record| matches!(record.verdict, GpuVerdict::Failed(_)));
    let names: Vec<&str> = failed.map(|record| record.name.as_str()).collect();
    if names.is_empty() { Ok(()) } else { Err(format!("failed: {}", names.join(", "))) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::command::read;

    /// Makes the record of a step with this output.
    pub(in super::super) fn record(name: &str, printed: &[&str]) -> StepRecord {
        let printed = printed.iter().map(|text| (*text).to_owned()).collect();
        let (name, took) = (name.to_owned(), Duration::from_millis(1500));
        StepRecord { name, verdict: GpuVerdict::Ok, took, printed }
    }

    /// Makes the commands of a step from lines of a shell.
    fn shell(lines: &str) -> Vec<Command> {
        lines.lines().map(|line| program("sh", &["-c", line])).collect()
    }

    #[test]
    fn a_step_that_fails_or_hangs_keeps_no_other_from_running() {
        let folder = tempfile::tempdir().unwrap();
        let alive = folder.path().join("alive");
        let hangs = format!("sleep 3 && touch {} & echo hangs; wait", alive.display());
        let steps = [
            ("fails", "echo part one\necho no such thing >&2; exit 7\necho part three"),
            ("hangs", hangs.as_str()),
            ("crashes", "kill -SEGV $$"),
            ("skipped", ""),
            ("lacks", "echo '# not checked: no library'; exit 3"),
            ("is fine", "echo '# cases 0 to 3 of 3'"),
        ];
        let named = ["fails", "hangs", "crashes", "skipped", "lacks", "is fine"];
        let timed = named.map(|name| (name, Some(if name == "hangs" { 1 } else { 5 })));
        let commands = |name: &str, _, _: &_| match steps.iter().find(|step| step.0 == name) {
            Some((_, "")) | None => Err("nothing to run".to_owned()),
            Some((_, lines)) => Ok(shell(lines)),
        };
        let mut pages = Vec::new();
        let begun = Instant::now();
        let records = all(&timed, Duration::from_secs(20), folder.path(), commands, |records| {
            pages.push(records.len());
            Ok(())
        });
        assert_eq!(pages, [1, 2, 3, 4, 5, 6], "a page after every step");
        let lines: Vec<String> = records.iter().map(StepRecord::line).collect();
        assert!(lines[0].contains("7: no such thing"), "{lines:?}");
        assert_eq!(records[0].printed.concat(), "part one\npart three\n");
        assert!(lines[1].ends_with("out of time: hangs"), "{lines:?}");
        assert!(lines[2].contains("signal"), "{lines:?}");
        assert_eq!(lines[3..5], ["skipped: nothing to run", "skipped: # not checked: no library"]);
        assert_eq!(records[5].summary(), Some("cases 0 to 3 of 3"));
        assert_eq!(verdict(&records), Err("failed: fails, hangs, crashes".to_owned()));
        assert_eq!(verdict(&records[3..]), Ok(()));
        let file = |name: &str| read(&folder.path().join(name));
        assert_eq!(file("01-fails.2.err").as_deref(), Ok("no such thing\n"));
        assert_eq!(file("06-is_fine.out").as_deref(), Ok("# cases 0 to 3 of 3\n"));
        // A process that a step started ends with the step.
        std::thread::sleep(Duration::from_secs(4).saturating_sub(begun.elapsed()));
        assert!(!alive.exists());
    }

    #[test]
    fn all_of_it_ends_in_time_and_a_page_that_cannot_be_written_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let steps = [("one", Some(5)), ("two", Some(5)), ("last", None)];
        let lines = |name: &str| if name == "two" { "true" } else { "sleep 10\necho never" };
        let commands = |name: &str, _, _: &_| Ok(shell(lines(name)));
        let no_room = |_: &_| Err("no room".to_owned());
        let records = all(&steps, Duration::from_secs(1), folder.path(), commands, no_room);
        assert_eq!(verdict(&records), Err("failed: one, figures, two, last".to_owned()));
        assert_eq!(records[0].printed.len(), 1, "the step has no time for its second command");
        let quiet = r#"out of time: "sh" "-c" "sleep 10" printed nothing"#;
        assert_eq!(records[0].verdict, GpuVerdict::Failed(quiet.to_owned()));
    }
}
