//! The axioms of PTX's memory model, on all candidate executions of the litmus programs.
//!
//! The machine is an operational form of the model. This is the other form, from the chapter on the memory consistency
//! model of the PTX ISA, and it shares no code with the machine: values are guessed for all loads, each load gets each
//! store of its value, the stores of a location get each order, and the axioms say which candidates are executions.
//! The axiom against values out of thin air is left out, because no litmus program has a circle of dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::programs::{Litmus, NOT_SHOWN, Thread, all};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    Fence,
    Barrier,
}

#[derive(Clone, Copy, Debug)]
struct Event<'a> {
    /// The thread; none for the values before the launch.
    thread: Option<usize>,
    kind: Kind,
    semantics: &'a str,
    scope: &'a str,
    /// The location and the element of a vector, or the number of a barrier.
    place: (&'a str, usize),
    bytes: u64,
    value: u64,
    is_constant: bool,
    /// Whether it is a half of an atomic operation.
    is_reduction: bool,
    /// Whether it is one without a result, whose load is not part of an acquire pattern.
    is_red: bool,
}

impl Event<'_> {
    fn is_access(&self) -> bool {
        matches!(self.kind, Kind::Load | Kind::Store)
    }

    fn is_strong(&self) -> bool {
        self.semantics != "weak"
    }
}

/// A relation of at most 32 events: for each event a set of events.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Relation([u32; 32]);

impl Relation {
    fn new(events: usize, has: impl Fn(usize, usize) -> bool) -> Self {
        assert!(events <= 32);
        let mut rows = [0; 32];
        for (from, row) in rows.iter_mut().enumerate().take(events) {
            *row = (0..events).filter(|&to| has(from, to)).fold(0, |row, to| row | 1 << to);
        }
        Self(rows)
    }

    fn has(&self, from: usize, to: usize) -> bool {
        self.0[from] >> to & 1 == 1
    }

    fn or(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// Pairs over one event between them.
    fn then(&self, other: &Self) -> Self {
        let row =
            |row: u32| (0..32).filter(|at| row >> at & 1 == 1).fold(0, |all, at| all | other.0[at]);
        Self(self.0.map(row))
    }

    fn closure(&self) -> Self {
        let mut all = *self;
        for middle in 0..32 {
            for from in 0..32 {
                if all.has(from, middle) {
                    all.0[from] |= all.0[middle];
                }
            }
        }
        all
    }

    fn or_same(&self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | 1 << at))
    }

    fn is_irreflexive(&self) -> bool {
        (0..32).all(|at| !self.has(at, at))
    }

    fn is_acyclic(&self) -> bool {
        self.closure().is_irreflexive()
    }
}

/// All tuples of numbers, each below its size.
fn tuples(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![Vec::new()], |tuples, &size| {
        let longer = |tuple: Vec<usize>| (0..size).map(move |next| [&tuple[..], &[next]].concat());
        tuples.into_iter().flat_map(longer).collect()
    })
}

/// All orders of numbers.
fn orders(numbers: &[usize]) -> Vec<Vec<usize>> {
    if numbers.is_empty() {
        return vec![Vec::new()];
    }
    let first = |at: usize| {
        let rest = [&numbers[..at], &numbers[at + 1..]].concat();
        orders(&rest).into_iter().map(move |order| [&[numbers[at]], &order[..]].concat())
    };
    (0..numbers.len()).flat_map(first).collect()
}

fn comes_before(order: &[usize], first: usize, second: usize) -> bool {
    let at = |number| order.iter().position(|&other| other == number);
    matches!((at(first), at(second)), (Some(first), Some(second)) if first < second)
}

/// The events of a thread, and its registers at the end.
#[derive(Clone)]
struct Run<'a> {
    events: Vec<Event<'a>>,
    registers: BTreeMap<&'a str, u64>,
}

/// Runs a thread whose loads read `values`; there is no run if it has more loads.
fn run<'a>(thread: &'a Thread, number: usize, values: &[u64]) -> Option<Run<'a>> {
    let mut events = Vec::new();
    let mut registers: BTreeMap<&str, u64> = BTreeMap::new();
    let mut values = values.iter();
    for line in thread.text.lines().map(|line| line.trim().trim_end_matches(';')) {
        let value = |operand: &str| match operand.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None if operand.starts_with('%') => registers.get(operand).copied().unwrap_or(0),
            None => operand.parse().unwrap(),
        };
        let line = match line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
            Some((guard, _)) if value(guard) == 0 => continue,
            Some((_, guarded)) => guarded,
            None => line,
        };
        let (opcode, operands) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = opcode.split('.').collect();
        let operands: Vec<&str> =
            operands.split(',').map(|o| o.trim_matches([' ', '[', ']', '{', '}'])).collect();
        let word = |known: &[&'static str]| known.iter().copied().find(|word| words.contains(word));
        let event = Event {
            thread: Some(number),
            kind: Kind::Load,
            semantics: word(&["relaxed", "acquire", "release", "sc", "acq_rel"]).unwrap_or("weak"),
            scope: word(&["cta", "gpu", "sys"]).unwrap_or("cta"),
            place: ("", 0),
            bytes: if words.contains(&"u64") { 8 } else { 4 },
            value: 0,
            is_constant: words.contains(&"nc"),
            is_reduction: matches!(words[0], "red" | "atom"),
            is_red: words[0] == "red",
        };
        let elements = match word(&["v2", "v4"]) {
            Some("v2") => 2,
            Some(_) => 4,
            None => 1,
        };
        match words[0] {
            "mov" => _ = registers.insert(operands[0], value(operands[1])),
            "setp" => {
                let equal = value(operands[1]) == value(operands[2]);
                registers.insert(operands[0], u64::from(equal == (words[1] == "eq")));
            }
            "selp" => {
                let chosen = if value(operands[3]) == 0 { operands[2] } else { operands[1] };
                registers.insert(operands[0], value(chosen));
            }
            "membar" => {
                let scope = word(&["cta", "sys"]).unwrap_or("gpu");
                events.push(Event { kind: Kind::Fence, semantics: "sc", scope, ..event });
            }
            "fence" => events.push(Event { kind: Kind::Fence, ..event }),
            "bar" => events.push(Event { kind: Kind::Barrier, place: (operands[0], 0), ..event }),
            "ld" => {
                for element in 0..elements {
                    let (place, value) = ((operands[elements], element), *values.next()?);
                    events.push(Event { place, value, ..event });
                    registers.insert(operands[element], value);
                }
            }
            "st" => {
                let stores = (0..elements).map(|element| Event {
                    kind: Kind::Store,
                    place: (operands[0], element),
                    value: value(operands[1 + element]),
                    ..event
                });
                events.extend(stores);
            }
            "red" | "atom" => {
                let operands = &operands[usize::from(words[0] == "atom")..];
                let (place, old) = ((operands[0], 0), *values.next()?);
                let half = |other| match event.semantics {
                    "weak" => "relaxed",
                    "acq_rel" if other == "release" => "acquire",
                    "acq_rel" => "release",
                    own if own == other => "relaxed",
                    own => own,
                };
                events.push(Event { semantics: half("release"), place, value: old, ..event });
                let change = value(operands[1]);
                let value = if words.contains(&"exch") { change } else { old + change };
                let kind = Kind::Store;
                events.push(Event { kind, semantics: half("acquire"), place, value, ..event });
                if words[0] == "atom" {
                    let to = line.split_once(' ').unwrap().1.split(',').next().unwrap().trim();
                    registers.insert(to, old);
                }
            }
            other => panic!("{other} is no instruction of litmus programs"),
        }
    }
    Some(Run { events, registers })
}

/// All runs of a thread whose loads read some of these values.
fn runs<'a>(thread: &'a Thread, number: usize, values: &BTreeSet<u64>) -> Vec<Run<'a>> {
    let mut open = vec![Vec::new()];
    let mut whole = Vec::new();
    while let Some(read) = open.pop() {
        match run(thread, number, &read) {
            Some(run) => whole.push(run),
            None => open.extend(values.iter().map(|&next| [&read[..], &[next]].concat())),
        }
    }
    whole
}

/// The outcomes that the axioms allow, each with whether all its executions have loads that read later stores in a
/// circle.
fn outcomes(litmus: &Litmus) -> BTreeMap<String, bool> {
    let every = |values: &BTreeSet<u64>| -> Vec<Vec<Run>> {
        let threads = litmus.threads.iter().enumerate();
        threads.map(|(number, thread)| runs(thread, number, values)).collect()
    };
    let mut values = BTreeSet::from([0]);
    for _ in &litmus.threads {
        for event in every(&values).iter().flatten().flat_map(|run| &run.events) {
            if event.kind == Kind::Store {
                values.insert(event.value);
            }
        }
    }
    let every = every(&values);
    let mut found = BTreeMap::new();
    for chosen in tuples(&every.iter().map(Vec::len).collect::<Vec<_>>()) {
        let runs: Vec<&Run> = every.iter().zip(chosen).map(|(runs, at)| &runs[at]).collect();
        let accesses = runs.iter().flat_map(|run| &run.events).filter(|event| event.is_access());
        let places: BTreeSet<_> = accesses.map(|event| event.place).collect();
        let before = places.iter().map(|&place| Event {
            thread: None,
            kind: Kind::Store,
            semantics: "weak",
            scope: "sys",
            place,
            bytes: 0,
            value: 0,
            is_constant: false,
            is_reduction: false,
            is_red: false,
        });
        let events = before.chain(runs.iter().flat_map(|run| run.events.iter().copied()));
        Candidate { litmus, events: events.collect(), runs }.executions(&mut found);
    }
    found
}

struct Candidate<'a> {
    litmus: &'a Litmus,
    events: Vec<Event<'a>>,
    runs: Vec<&'a Run<'a>>,
}

impl Candidate<'_> {
    fn relation(&self, has: impl Fn(&Event, &Event) -> bool) -> Relation {
        let both = |from: usize, to: usize| has(&self.events[from], &self.events[to]);
        Relation::new(self.events.len(), both)
    }

    /// Whether the scope of an event includes the other event's thread.
    fn reaches(&self, from: &Event, to: &Event) -> bool {
        let (Some(here), Some(there)) = (from.thread, to.thread) else { return false };
        let (here, there) = (&self.litmus.threads[here], &self.litmus.threads[there]);
        match from.scope {
            "cta" => (here.rank, here.block) == (there.rank, there.block),
            "gpu" => here.rank == there.rank,
            _ => true,
        }
    }

    fn are_morally_strong(&self, a: &Event, b: &Event) -> bool {
        let strong = a.is_strong() && b.is_strong() && self.reaches(a, b) && self.reaches(b, a);
        let overlap = !a.is_access() || !b.is_access() || (a.place, a.bytes) == (b.place, b.bytes);
        (a.thread.is_some() && a.thread == b.thread || strong) && overlap
    }

    /// Adds the outcomes of all executions with these events.
    fn executions(&self, found: &mut BTreeMap<String, bool>) {
        let events = &self.events;
        let numbers = |is: &dyn Fn(&Event) -> bool| -> Vec<usize> {
            (0..events.len()).filter(|&at| is(&events[at])).collect()
        };
        let loads = numbers(&|event| event.kind == Kind::Load);
        let sources: Vec<Vec<usize>> = loads
            .iter()
            .map(|&load| {
                let (place, value) = (events[load].place, events[load].value);
                numbers(&|e| e.kind == Kind::Store && (e.place, e.value) == (place, value))
            })
            .collect();
        let sequential = numbers(&|event| event.kind == Kind::Fence && event.semantics == "sc");
        let places: BTreeSet<_> =
            events.iter().filter(|e| e.thread.is_none()).map(|event| event.place).collect();
        let stores: Vec<Vec<Vec<usize>>> = places
            .iter()
            .map(|&place| {
                let is_store = |e: &Event| e.kind == Kind::Store && e.place == place;
                let all = numbers(&|event| event.thread.is_some() && is_store(event));
                let first = numbers(&|event| event.thread.is_none() && is_store(event));
                orders(&all).into_iter().map(|order| [&first[..], &order].concat()).collect()
            })
            .collect();
        for source in tuples(&sources.iter().map(Vec::len).collect::<Vec<_>>()) {
            let source: BTreeMap<usize, usize> = loads
                .iter()
                .zip(&sources)
                .zip(source)
                .map(|((&load, of), at)| (load, of[at]))
                .collect();
            let reads_from =
                Relation::new(events.len(), |store, load| source.get(&load) == Some(&store));
            for fences in orders(&sequential) {
                for order in tuples(&stores.iter().map(Vec::len).collect::<Vec<_>>()) {
                    let order: Vec<&Vec<usize>> =
                        stores.iter().zip(order).map(|(orders, at)| &orders[at]).collect();
                    let coherence = Relation::new(events.len(), |first, second| {
                        order.iter().any(|order| comes_before(order, first, second))
                    });
                    if let Some((fault, circle)) = self.judge(&reads_from, &fences, &coherence) {
                        let last = |name: &str| {
                            let last = order.iter().find(|o| events[o[0]].place == (name, 0));
                            last.map_or(0, |order| events[order[order.len() - 1]].value)
                        };
                        let outcome = fault.map_or_else(|| self.outcome(last), str::to_owned);
                        let all = found.entry(outcome).or_insert(true);
                        *all &= circle;
                    }
                }
            }
        }
    }

    fn outcome(&self, last: impl Fn(&str) -> u64) -> String {
        let value = |name: &String| match name.split_once(':') {
            Some((thread, register)) => {
                let registers = &self.runs[thread.parse::<usize>().unwrap()].registers;
                registers.get(&*format!("%{register}")).copied().unwrap_or(0)
            }
            None => last(&format!("%{name}")),
        };
        let names = self.litmus.names().into_iter();
        names.map(|name| format!("{name}={}", value(&name))).collect::<Vec<_>>().join(" ")
    }

    /// Judges a candidate: none if an axiom does not hold, else its first race, and whether loads read later stores in a
    /// circle. No litmus program needs the axiom of the fences: the other axioms refuse the same candidates.
    fn judge(
        &self,
        reads_from: &Relation,
        fences: &[usize],
        coherence: &Relation,
    ) -> Option<(Option<&'static str>, bool)> {
        let events = &self.events;
        let program = Relation::new(events.len(), |from, to| {
            from < to && events[from].thread.is_some() && events[from].thread == events[to].thread
        });
        let strong = self.relation(|a, b| self.are_morally_strong(a, b));
        let same_place = self.relation(|a, b| a.is_access() && b.is_access() && a.place == b.place);
        let program_place = program.and(&same_place);
        let reductions = Relation::new(events.len(), |load, store| {
            load + 1 == store
                && events[load].kind == Kind::Load
                && events[store].kind == Kind::Store
                && events[load].is_reduction
                && events[store].is_reduction
        });
        let mut observed = reads_from.and(&strong);
        loop {
            let longer = observed.or(&observed.then(&reductions).then(&observed));
            if longer == observed {
                break;
            }
            observed = longer;
        }
        let is_store = |e: &Event| e.kind == Kind::Store && e.is_strong();
        let is_fence = |e: &Event, half: &str| {
            e.kind == Kind::Fence && [half, "acq_rel", "sc"].contains(&e.semantics)
        };
        let is_load = |e: &Event| e.kind == Kind::Load && e.is_strong() && !e.is_red;
        let release = self.relation(|a, b| is_store(a) && a.semantics == "release" && is_store(b));
        let release = release.and(&program_place.or_same());
        let release =
            release.or(&program.and(&self.relation(|a, b| is_fence(a, "release") && is_store(b))));
        let acquire = self.relation(|a, b| is_load(a) && is_load(b) && b.semantics == "acquire");
        let acquire = acquire.and(&program_place.or_same());
        let acquire =
            acquire.or(&program.and(&self.relation(|a, b| is_load(a) && is_fence(b, "acquire"))));
        let synchronized = release.then(&observed).then(&acquire).and(&strong);
        let sequential =
            Relation::new(events.len(), |a, b| comes_before(fences, a, b)).and(&strong);
        let barriers = self.relation(|a, b| {
            a.kind == Kind::Barrier
                && b.kind == Kind::Barrier
                && a.place == b.place
                && a.thread != b.thread
                && self.reaches(a, b)
        });
        let steps = synchronized.or(&sequential).or(&barriers);
        let base = program.or_same().then(&steps).then(&program.or_same()).closure();
        let cause = base.or(&observed.then(&base.or(&program_place)));

        let from_reads = Relation::new(events.len(), |load, store| {
            (0..events.len()).any(|from| reads_from.has(from, load) && coherence.has(from, store))
        });
        let communication = reads_from.or(coherence).or(&from_reads).and(&strong);
        let between = from_reads.and(&strong).then(&coherence.and(&strong));
        let caused_stores = cause
            .and(&same_place)
            .and(&self.relation(|a, b| a.kind == Kind::Store && b.kind == Kind::Store));
        let is_execution = caused_stores.and(coherence) == caused_stores
            && sequential.then(&cause).is_irreflexive()
            && between.and(&reductions) == Relation([0; 32])
            && communication.or(&program_place).is_acyclic()
            && reads_from.or(&from_reads).then(&cause).is_irreflexive();
        if !is_execution {
            return None;
        }
        let ordered = cause.or(&program);
        let circle = !reads_from.or(&program).is_acyclic();
        let mut fault = None;
        for (second, b) in events.iter().enumerate() {
            for (first, a) in events.iter().enumerate().take(second) {
                let conflict = same_place.has(first, second)
                    && a.thread.is_some()
                    && a.thread != b.thread
                    && (a.kind == Kind::Store || b.kind == Kind::Store);
                if conflict && (a.is_constant || b.is_constant) {
                    return Some((Some("race with a constant"), circle));
                }
                let is_ordered = ordered.has(first, second) || ordered.has(second, first);
                if conflict && !is_ordered && !strong.has(first, second) {
                    let scopes = a.is_strong() && b.is_strong() && a.bytes == b.bytes;
                    fault = fault.or(Some(if scopes { "race of scopes" } else { "race" }));
                }
            }
        }
        Some((fault, circle))
    }
}

/// The axioms allow the outcomes of each litmus program, and no others but those that the machine does not show.
#[test]
fn the_axioms_give_the_outcomes() {
    let mut wrong = String::new();
    let mut not_shown = Vec::new();
    for litmus in all() {
        let allowed = outcomes(&litmus);
        for (outcome, &circle) in &allowed {
            if circle {
                not_shown.push((litmus.name.clone(), outcome.clone()));
            } else if !litmus.outcomes.contains(outcome) {
                writeln!(wrong, "{}: allowed by the axioms: {outcome}", litmus.name).unwrap();
            }
        }
        for outcome in litmus.outcomes.iter().filter(|&outcome| !allowed.contains_key(outcome)) {
            writeln!(wrong, "{}: against the axioms: {outcome}", litmus.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let expected = NOT_SHOWN.map(|(name, outcome)| (name.to_owned(), outcome.to_owned()));
    assert_eq!(not_shown, expected);
}
