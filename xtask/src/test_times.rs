//! The time of every single test. The harness of a stable compiler does not print it, but it says when each test ends, and
//! begins the tests in the order of their names, as many at once as there are threads: so each begin is known, too.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The times of the tests of all programs that ran.
#[derive(Default)]
pub(crate) struct TestTimes {
    tests: Vec<(Duration, String)>,
}

impl TestTimes {
    /// Runs `cargo test`, passes its output on, and keeps the times of its tests, of which `threads` run at once.
    pub(crate) fn run(&mut self, command: &mut Command, threads: usize) -> Result<(), String> {
        command.env("RUST_TEST_THREADS", threads.to_string());
        let shown = format!("{command:?}");
        let spawned = command.stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("{shown} did not start: {error}"))?;
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (mut begun, mut ended) = (Instant::now(), Vec::new());
        for line in output.lines() {
            let line = line.map_err(|error| format!("{shown}: {error}"))?;
            println!("{line}");
            if line.starts_with("running ") {
                begun = Instant::now();
            } else if line.starts_with("test result: ") {
                self.tests.extend(durations(std::mem::take(&mut ended), threads));
            } else if let Some(name) = ended_test(&line) {
                ended.push((name.to_owned(), begun.elapsed()));
            }
        }
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{shown} ended with {status}")),
            Err(error) => Err(format!("{shown}: {error}")),
        }
    }

    /// Takes the times of another run in.
    pub(crate) fn join(&mut self, other: Self) {
        self.tests.extend(other.tests);
    }

    /// The slowest tests, up to `most` of them, a line each.
    pub(crate) fn slowest(&self, most: usize) -> String {
        let mut tests: Vec<_> = self.tests.iter().collect();
        tests.sort_by(|a, b| b.cmp(a));
        let line =
            |(time, name): &(Duration, String)| format!("{:>8.2} s  {name}\n", time.as_secs_f64());
        tests.into_iter().take(most).map(line).collect()
    }
}

/// The number of threads on which the harness runs `per_core` tests on each core, unless the environment has another
/// number.
pub(crate) fn threads(per_core: usize) -> usize {
    let set = std::env::var("RUST_TEST_THREADS").ok().and_then(|set| set.parse().ok());
    set.unwrap_or_else(|| per_core * std::thread::available_parallelism().map_or(1, usize::from))
}

/// The name of the test that ends with this line.
fn ended_test(line: &str) -> Option<&str> {
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let ends = ["ok", "FAILED", "ignored"].iter().any(|end| result.starts_with(end));
    ends.then_some(name)
}

/// The durations of tests, from the times at which they ended, in that order.
fn durations(ended: Vec<(String, Duration)>, threads: usize) -> Vec<(Duration, String)> {
    let mut order: Vec<String> = ended.iter().map(|(name, _)| name.clone()).collect();
    order.sort();
    let mut waiting = order.into_iter();
    let mut begun: BTreeMap<String, Duration> =
        waiting.by_ref().take(threads).map(|name| (name, Duration::ZERO)).collect();
    let mut tests = Vec::new();
    for (name, end) in ended {
        let begin = begun.remove(&name).unwrap_or(end);
        tests.push((end.saturating_sub(begin), name));
        if let Some(next) = waiting.next() {
            begun.insert(next, end);
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_begins_when_one_before_it_ends() {
        let at = |name: &str, seconds| (name.to_owned(), Duration::from_secs(seconds));
        let ended = vec![at("b", 1), at("c", 3), at("a", 7), at("d", 8)];
        let named = |name: &str, seconds| (Duration::from_secs(seconds), name.to_owned());
        let right = [named("b", 1), named("c", 2), named("a", 7), named("d", 5)];
        assert_eq!(durations(ended, 2), right);
    }

    #[test]
    fn lines_of_the_harness() {
        assert_eq!(ended_test("test book::pages ... ok"), Some("book::pages"));
        assert_eq!(ended_test("test a.rs - f (line 3) ... FAILED"), Some("a.rs - f (line 3)"));
        assert_eq!(ended_test("test slow ... ignored, by hand"), Some("slow"));
        assert_eq!(ended_test("test result: ok. 3 passed"), None);
        assert_eq!(ended_test("a test ... ok"), None);
    }
}
