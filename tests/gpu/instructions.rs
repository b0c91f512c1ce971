//! Every form of an instruction on a machine beside the interpreter, bit for bit.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::forms::{self, Form, ROW, THREADS};
use super::machines::{Interpreter, Job, Machine};
use super::operands;

/// Forms of one text, which the driver assembles at once.
const TOGETHER: usize = 16;
/// Differences of a form that are told.
const TOLD: usize = 5;

/// The results of the comparison.
#[derive(Default)]
pub(crate) struct Compared {
    /// Forms with the same results.
    pub(crate) same: usize,
    /// Forms with other results, or without results.
    pub(crate) other: usize,
    /// Forms for which no time was left.
    pub(crate) left: usize,
    /// Rows of operands.
    pub(crate) rows: usize,
    /// The differences, form by form.
    pub(crate) told: String,
}

/// Compares the forms on a machine with the interpreter, until the end of the time.
pub(crate) fn compare(machine: &dyn Machine, all: &[Form], end: Option<Instant>) -> Compared {
    let groups: Vec<&[Form]> = all.chunks(TOGETHER).collect();
    let (next, compared) = (AtomicUsize::new(0), Mutex::new(Compared::default()));
    let told = Mutex::new(vec![String::new(); groups.len()]);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(group) = groups.get(number) else { break };
            let one = if end.is_some_and(|end| Instant::now() >= end) {
                Compared { left: group.len(), ..Compared::default() }
            } else {
                compare_group(machine, group)
            };
            told.lock().expect("no thread fails")[number] = one.told;
            let mut compared = compared.lock().expect("no thread fails");
            compared.same += one.same;
            compared.other += one.other;
            compared.left += one.left;
            compared.rows += one.rows;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let told = told.into_inner().expect("no thread fails").concat();
    Compared { told, ..compared.into_inner().expect("no thread fails") }
}

/// Returns the texts of the forms, each with a name.
pub(crate) fn texts(all: &[Form]) -> impl Iterator<Item = (String, String)> {
    let groups = all.chunks(TOGETHER).enumerate();
    groups.map(|(number, group)| (format!("forms{number}"), forms::module(group.iter())))
}

fn compare_group(machine: &dyn Machine, group: &[Form]) -> Compared {
    let text = forms::module(group.iter());
    let rows: Vec<_> = group.iter().map(operands::rows).collect();
    let jobs: Vec<Job> = rows.iter().enumerate().map(|(number, rows)| job(number, rows)).collect();
    let found = match machine.run(&text, &jobs) {
        Ok(found) => found,
        Err(why) if group.len() == 1 => {
            let told = format!("{} is refused: {why}\n", group[0].text);
            return Compared { other: 1, told, ..Compared::default() };
        }
        // Each form alone tells which one it is.
        Err(_) => {
            let mut all = Compared::default();
            for form in group {
                let one = compare_group(machine, std::slice::from_ref(form));
                all.same += one.same;
                all.other += one.other;
                all.rows += one.rows;
                all.told += &one.told;
            }
            return all;
        }
    };
    let mut compared = Compared::default();
    for (number, form) in group.iter().enumerate() {
        compared.rows += rows[number].len();
        let differences = match Interpreter(0).run(&text, &jobs[number..=number]) {
            Ok(expected) => differences(form, &rows[number], &expected[0][1], &found[number][1]),
            Err(why) => format!("{}: the interpreter says: {why}\n", form.text),
        };
        compared.same += usize::from(differences.is_empty());
        compared.other += usize::from(!differences.is_empty());
        compared.told += &differences;
    }
    compared
}

/// Returns the launch of a form's kernel on its operands.
fn job(number: usize, rows: &[[u64; 4]]) -> Job {
    let operands: Vec<u8> = rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    debug_assert_eq!(operands.len(), ROW * rows.len());
    let results = vec![0; 8 * rows.len()];
    let blocks = rows.len() as u32 / THREADS;
    let buffers = vec![operands, results];
    Job { kernel: forms::kernel(number), blocks, threads: THREADS, buffers, numbers: Vec::new() }
}

/// Tells the rows with other results: how many, and a few from first to last.
fn differences(form: &Form, rows: &[[u64; 4]], expected: &[u8], found: &[u8]) -> String {
    let results = expected.chunks(8).zip(found.chunks(8)).zip(rows);
    let other: Vec<_> = results.filter(|((expected, found), _)| expected != found).collect();
    if other.is_empty() {
        return String::new();
    }
    let mut told = format!("{} differs on {} of {} inputs\n", form.text, other.len(), rows.len());
    let many = other.len().min(TOLD);
    for ((expected, found), row) in (0..many).map(|at| other[at * other.len() / many]) {
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let hex =
            |value: u64, bits: u32| format!("{value:#0width$x}", width = 2 + bits as usize / 4);
        let sources: Vec<String> =
            form.sources.iter().zip(row).map(|(kind, value)| hex(*value, kind.bits())).collect();
        let (expected, found) = (number(expected), number(found));
        let bits = form.to.bits();
        let (expected, found) = (hex(expected, bits), hex(found, bits));
        let _ = writeln!(
            told,
            "  of {}: {expected} by the interpreter, {found} by the device",
            sources.join(", ")
        );
    }
    told
}
