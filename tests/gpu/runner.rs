//! Runs cases in their order until the time is over. Threads compile kernels and compute the expected results ahead of
//! the runs, which follow one another: a device belongs to one run at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use roundelay::{Algorithm as _, DType, ReduceOp, select};
use roundelay_core::prove_source;
use roundelay_export::cuda::{Form, Protocol, check_width};

use super::cases::{Case, Data, Way};
use super::engine::Engine;
use super::order::{Order, cores};

/// Cases that each thread may have prepared before they are run.
const AHEAD: usize = 2;

/// The time between two lines that tell how far a run is.
const PROGRESS: Duration = Duration::from_secs(30);

/// The preparation of a run: its kernel, and its results out of place and in place.
struct Prepared {
    kernel: Result<(), String>,
    expected: [Option<Vec<Vec<u8>>>; 2],
}

/// Cases that threads prepare.
struct Ahead<'a> {
    engine: &'a dyn Engine,
    order: &'a Order,
    next: AtomicUsize,
    /// The case that is run now.
    at: AtomicUsize,
    over: AtomicBool,
    ready: Mutex<HashMap<usize, Prepared>>,
    changed: Condvar,
}

impl Ahead<'_> {
    fn work(&self) {
        loop {
            let case = self.next.fetch_add(1, Ordering::Relaxed);
            if case >= self.order.len() {
                return;
            }
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            while case > self.at.load(Ordering::Relaxed) + AHEAD * cores() && !self.is_over() {
                ready = self.changed.wait(ready).unwrap_or_else(PoisonError::into_inner);
            }
            drop(ready);
            if self.is_over() {
                return;
            }
            let prepared = self.prepare(&self.order.case(case).1);
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(case, prepared);
            self.changed.notify_all();
        }
    }

    fn prepare(&self, case: &Case) -> Prepared {
        // What is kept as f32 has no kernel for narrower elements.
        if check_width(case.proved.schedule(), case.data.dtype).is_err() {
            return Prepared { kernel: Ok(()), expected: [None, None] };
        }
        let kernel = self.engine.prepare(case);
        let expected = match kernel {
            Ok(()) => [false, true].map(|in_place| case.expected(in_place)),
            Err(_) => [None, None],
        };
        Prepared { kernel, expected }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns a case as soon as it is prepared, unless the time ends before.
    fn take(&self, case: usize, end: Option<Instant>) -> Option<Prepared> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        self.at.store(case, Ordering::Relaxed);
        self.changed.notify_all();
        loop {
            if let Some(prepared) = ready.remove(&case) {
                return Some(prepared);
            }
            let left = match end {
                None => Duration::from_secs(1),
                Some(end) => end.checked_duration_since(Instant::now())?,
            };
            let waited = self.changed.wait_timeout(ready, left);
            ready = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn end(&self) {
        let _ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        self.over.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// The cases that have been run.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The case after the last that was run.
    pub(crate) reached: usize,
    runs: usize,
    pub(crate) failed: usize,
    /// Whether the device is of no use to this process any more.
    pub(crate) lost: bool,
    /// By algorithm: the number of runs, and of wrong runs.
    of: Vec<(usize, usize)>,
}

/// Where to begin and when to end.
pub(crate) struct Limits {
    pub(crate) from: usize,
    pub(crate) end: Option<Instant>,
    pub(crate) quick: bool,
}

pub(crate) fn run(engine: &dyn Engine, order: &Order, limits: &Limits) -> Outcome {
    let ahead = Ahead {
        engine,
        order,
        next: AtomicUsize::new(limits.from),
        at: AtomicUsize::new(limits.from),
        over: AtomicBool::new(false),
        ready: Mutex::default(),
        changed: Condvar::new(),
    };
    let of = vec![(0, 0); order.subjects.len()];
    let mut outcome = Outcome { reached: limits.from, of, ..Outcome::default() };
    for subject in &order.subjects {
        for why in &subject.unproved {
            println!("WRONG {}: {why}", subject.algorithm.name());
            outcome.failed += 1;
        }
    }
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(|| ahead.work());
        }
        outcome.cases(&ahead, limits);
        ahead.end();
    });
    outcome.print(order, limits.from, begun.elapsed());
    outcome
}

impl Outcome {
    fn cases(&mut self, ahead: &Ahead, limits: &Limits) {
        let Ahead { engine, order, .. } = ahead;
        let mut told = Instant::now();
        let is_late = || limits.end.is_some_and(|end| Instant::now() >= end);
        loop {
            // As soon as every algorithm was seen, the run without the last rank is checked once.
            if self.reached == order.first_pass && limits.from < order.first_pass {
                self.without_last(*engine);
                self.lost |= engine.is_lost();
            }
            if self.reached == order.len() || is_late() || self.lost {
                return;
            }
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                println!("# {} of {} cases", self.reached, order.len());
            }
            let Some(prepared) = ahead.take(self.reached, limits.end) else { return };
            let (subject, case) = order.case(self.reached);
            for why in self.one(*engine, &case, subject, prepared, limits.quick) {
                println!("WRONG {}: {why}", case.algorithm.name());
                self.failed += 1;
                self.of[subject].1 += 1;
                self.lost |= engine.is_lost();
            }
            self.reached += 1;
        }
    }

    /// Runs a case in both forms of its buffers; returns the errors.
    fn one(
        &mut self,
        engine: &dyn Engine,
        case: &Case,
        subject: usize,
        prepared: Prepared,
        quick: bool,
    ) -> Vec<String> {
        if let Err(why) = prepared.kernel {
            return vec![format!("{}: {why}", case.name(false))];
        }
        let mut wrong = Vec::new();
        for (in_place, expected) in [false, true].into_iter().zip(prepared.expected) {
            let Some(expected) = expected else { continue };
            self.runs += 1;
            self.of[subject].0 += 1;
            match engine.run(case, in_place, case.repeats(quick)) {
                Ok(outputs) if outputs == expected => {}
                Ok(outputs) => wrong.push(case.difference(in_place, &expected, &outputs)),
                Err(why) => wrong.push(format!("{}: {why}", case.name(in_place))),
            }
        }
        wrong
    }

    fn without_last(&mut self, engine: &dyn Engine) {
        match without_last(engine) {
            Ok(report) => println!("a rank that never runs is reported: {report}"),
            Err(why) => {
                self.failed += 1;
                println!("WRONG a rank that never runs: {why}");
            }
        }
    }

    fn print(&self, order: &Order, from: usize, took: Duration) {
        for (subject, (runs, wrong)) in order.subjects.iter().zip(&self.of) {
            let verdict = match (runs, wrong) {
                (0, 0) => "not reached",
                (_, 0) => "ok",
                _ => "WRONG",
            };
            println!("{:<44} {runs:>5} runs  {verdict}", subject.algorithm.name());
        }
        let Self { reached, runs, failed, .. } = self;
        let (all, seconds) = (order.len(), took.as_secs_f64());
        println!(
            "# cases {from} to {reached} of {all}: {runs} runs, {failed} wrong, {seconds:.0} s"
        );
    }
}

/// Returns the report of a ring whose last rank never runs.
fn without_last(engine: &dyn Engine) -> Result<String, String> {
    const NRANKS: u32 = 4;
    let ring = select::library().iter().find(|algorithm| algorithm.name() == "RingAllReduce");
    let algorithm = ring.ok_or("the library has no RingAllReduce")?;
    let proved = prove_source(algorithm, NRANKS).map_err(|all| all[0].title.clone())?;
    let data = Data { count: 100, dtype: DType::F32, op: ReduceOp::Sum };
    let (form, protocol) = (Form::Loops, Protocol::Direct);
    let (nranks, way) = (NRANKS, Way::One);
    engine.without_last(&Case { algorithm, proved: &proved, nranks, data, form, protocol, way })
}

/// Compiles every kernel and runs none; returns their number, and names the refused ones.
pub(crate) fn compile(kernels: &super::cuda::Kernels, order: &Order, limits: &Limits) -> usize {
    let (next, failed) = (AtomicUsize::new(limits.from), AtomicUsize::new(0));
    let begun = Instant::now();
    let work = || {
        while limits.end.is_none_or(|end| Instant::now() < end) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= order.len() {
                return;
            }
            let (_, case) = order.case(at);
            if let Err(why) = kernels.compile(&case) {
                println!("WRONG {}: {}: {why}", case.algorithm.name(), case.name(false));
                failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(work);
        }
    });
    let (reached, failed) = (next.into_inner().min(order.len()), failed.into_inner());
    let (kernels, seconds) = (kernels.count(), begun.elapsed().as_secs_f64());
    let (from, all) = (limits.from, order.len());
    println!(
        "# cases {from} to {reached} of {all}: {kernels} kernels, {failed} refused, {seconds:.0} s"
    );
    failed
}
