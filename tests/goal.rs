//! GOAL, as `LogGOPSim`'s `txt2bin` reads it: a reader of that grammar accepts the exported text, every program runs to
//! its end, and the data of each rank reaches the ranks that it must reach.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use roundelay::{Algorithm as _, select};
use roundelay_core::collective::Collective;
use roundelay_core::messages::TwoSided;
use roundelay_core::prove_source;
use roundelay_export::goal::{Export, goal};
use roundelay_simulate::cost::Costs;
use roundelay_tests::taken;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Send { bytes: u64, to: usize, tag: u32 },
    Receive { bytes: u64, from: usize, tag: u32 },
    Calc(u64),
}

/// A task, the tasks that end before it begins, and the tasks that begin before it does.
#[derive(Clone, Debug)]
struct Task {
    what: What,
    requires: Vec<usize>,
    irequires: Vec<usize>,
}

type Programs = Vec<Vec<Task>>;

/// Reads a text by the grammar: a line a statement, labels before they are named, `b` behind bytes without a blank, ranks
/// in braces behind their number.
fn read(text: &str) -> Result<Programs, String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("//")
    });
    let wrong = |number: usize, line: &str, why: &str| format!("line {number}, `{line}`: {why}");
    let (number, first) = lines.next().ok_or("no ranks")?;
    let nranks: usize = first
        .strip_prefix("num_ranks ")
        .and_then(|n| n.parse().ok())
        .ok_or_else(|| wrong(number, first, "not the number of ranks"))?;
    let mut programs: Vec<Option<Vec<Task>>> = vec![None; nranks];
    while let Some((number, line)) = lines.next() {
        let rank = line.strip_prefix("rank ").and_then(|rest| rest.strip_suffix(" {"));
        let rank = rank.and_then(|rank| rank.parse::<usize>().ok()).filter(|rank| *rank < nranks);
        let rank = rank.ok_or_else(|| wrong(number, line, "not the head of a rank"))?;
        let mut labels: BTreeMap<String, usize> = BTreeMap::new();
        let mut tasks: Vec<Task> = Vec::new();
        loop {
            let (number, line) = lines.next().ok_or("a rank without an end")?;
            if line == "}" {
                break;
            }
            let why = |why| wrong(number, line, why);
            let words: Vec<&str> = line.split(' ').collect();
            let int = |word: &str| {
                let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
                digits.then(|| word.parse::<u64>().ok()).flatten().ok_or_else(|| why("no number"))
            };
            let bytes = |word: &str| int(word.strip_suffix('b').ok_or_else(|| why("no bytes"))?);
            let known =
                |label: &str| labels.get(label).copied().ok_or_else(|| why("no such label"));
            let peer = |word: &str| {
                let peer = int(word)? as usize;
                if peer < nranks && peer != rank { Ok(peer) } else { Err(why("no such peer")) }
            };
            match words[..] {
                [a, "requires", b] => {
                    let need = known(b)?;
                    tasks[known(a)?].requires.push(need);
                }
                [a, "irequires", b] => {
                    let need = known(b)?;
                    tasks[known(a)?].irequires.push(need);
                }
                [label, ref rest @ ..] => {
                    let name = label.strip_suffix(':').ok_or_else(|| why("no label"))?;
                    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                    if !letters || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                        return Err(why("not the name of a label"));
                    }
                    let what = match *rest {
                        ["calc", time] => What::Calc(int(time)?),
                        ["send", size, "to", to, "tag", tag] => {
                            let (bytes, tag) = (bytes(size)?, int(tag)? as u32);
                            What::Send { bytes, to: peer(to)?, tag }
                        }
                        ["recv", size, "from", from, "tag", tag] => {
                            let (bytes, tag) = (bytes(size)?, int(tag)? as u32);
                            What::Receive { bytes, from: peer(from)?, tag }
                        }
                        _ => return Err(why("no statement")),
                    };
                    if labels.insert(name.to_owned(), tasks.len()).is_some() {
                        return Err(why("the label is there already"));
                    }
                    tasks.push(Task { what, requires: Vec::new(), irequires: Vec::new() });
                }
                [] => return Err(why("nothing")),
            }
        }
        if programs[rank].replace(tasks).is_some() {
            return Err(wrong(number, line, "the rank is there already"));
        }
    }
    programs.into_iter().collect::<Option<_>>().ok_or_else(|| "a rank is missing".to_owned())
}

/// Runs the programs: the k-th receive that starts takes the k-th send of its pair and tag, which must be as long.
/// Returns the ranks that each rank has heard of in the end, and the longest chain of messages.
fn run(programs: &Programs) -> Result<(Vec<BTreeSet<usize>>, usize), String> {
    type State = (BTreeSet<usize>, usize);
    // From, to, tag; and the task that receives, its size and the ranks that it had heard of.
    type Ends = (usize, usize, u32);
    type Open = (usize, u64, State);
    let mut started: Vec<Vec<bool>> = programs.iter().map(|p| vec![false; p.len()]).collect();
    let mut done: Vec<Vec<Option<State>>> = programs.iter().map(|p| vec![None; p.len()]).collect();
    let mut sent: BTreeMap<Ends, VecDeque<(u64, State)>> = BTreeMap::new();
    let mut open: BTreeMap<Ends, VecDeque<Open>> = BTreeMap::new();
    loop {
        let mut moved = false;
        for (rank, tasks) in programs.iter().enumerate() {
            for (at, task) in tasks.iter().enumerate() {
                if started[rank][at] {
                    continue;
                }
                let before = task.requires.iter().map(|need| done[rank][*need].clone());
                let Some(before) = before.collect::<Option<Vec<State>>>() else { continue };
                if task.irequires.iter().any(|need| !started[rank][*need]) {
                    continue;
                }
                started[rank][at] = true;
                moved = true;
                let mut state: State = (BTreeSet::from([rank]), 0);
                for (heard, depth) in before {
                    state.0.extend(heard);
                    state.1 = state.1.max(depth);
                }
                match task.what {
                    What::Calc(_) => done[rank][at] = Some(state),
                    What::Send { bytes, to, tag } => {
                        done[rank][at] = Some(state.clone());
                        state.1 += 1;
                        sent.entry((rank, to, tag)).or_default().push_back((bytes, state));
                    }
                    What::Receive { bytes, from, tag } => {
                        open.entry((from, rank, tag)).or_default().push_back((at, bytes, state));
                    }
                }
            }
        }
        for (ends, receives) in &mut open {
            while let Some((at, expected, own)) = receives.pop_front() {
                let Some((bytes, state)) = sent.get_mut(ends).and_then(VecDeque::pop_front) else {
                    receives.push_front((at, expected, own));
                    break;
                };
                if bytes != expected {
                    return Err(format!("{ends:?}: {bytes} bytes meet a receive of {expected}"));
                }
                let heard = own.0.union(&state.0).copied().collect();
                done[ends.1][at] = Some((heard, own.1.max(state.1)));
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    if done.iter().flatten().any(Option::is_none) || sent.values().any(|left| !left.is_empty()) {
        return Err("it does not come to its end".to_owned());
    }
    let depth = done.iter().flatten().flatten().map(|state| state.1).max().unwrap_or(0);
    let heard = (0..programs.len()).map(|rank| {
        let states = done[rank].iter().flatten();
        states.flat_map(|state| state.0.iter().copied()).chain([rank]).collect()
    });
    Ok((heard.collect(), depth))
}

fn exported(name: &str, nranks: u32, count: u64) -> Option<String> {
    let algorithm = select::library().iter().find(|a| a.name() == name)?;
    let proved = prove_source(algorithm, nranks).ok()?;
    let form = TwoSided::new(&proved).expect("it has the form");
    let costs = Costs::parse(
        "test",
        "latency = 1us\nmessage = 1us\nbandwidth = 1GB/s\nreduce = 1GB/s\ncopy = 2GB/s",
    )
    .ok()?;
    let export =
        Export { form: &form.part(None), count, element: 4, costs: &costs, command: "a test" };
    Some(goal(&export).expect("it fits"))
}

#[test]
fn every_program_is_read_and_comes_to_its_end() {
    let mut turn = 0;
    for algorithm in select::library() {
        for nranks in 1..=17 {
            turn += 1;
            if !taken(turn, 7) {
                continue;
            }
            for count in [1, 1000] {
                let name = algorithm.name();
                let Some(text) = exported(name, nranks, count) else { continue };
                let what = format!("{name} at {nranks} ranks, {count} elements");
                let programs = read(&text).unwrap_or_else(|why| panic!("{what}: {why}"));
                let (heard, _) = run(&programs).unwrap_or_else(|why| panic!("{what}: {why}"));
                let all: BTreeSet<usize> = (0..nranks as usize).collect();
                let to_all = matches!(
                    algorithm.collective(),
                    Collective::AllReduce | Collective::AllGather | Collective::AllToAll
                );
                if to_all && count > 1 {
                    assert!(heard.iter().all(|heard| *heard == all), "{what}: {heard:?}");
                }
            }
        }
    }
    assert!(turn > 500, "{turn}");
}

/// Bytes, times and messages one after another, counted by hand for a ring.
#[test]
fn a_ring_sends_what_it_must() {
    let text = exported("RingAllReduce", 4, 1000).expect("a ring of four");
    let programs = read(&text).expect("it is right");
    let (_, depth) = run(&programs).expect("it comes to its end");
    assert_eq!(depth, 6, "messages one after another");
    for tasks in &programs {
        let sent: u64 = tasks
            .iter()
            .map(|task| if let What::Send { bytes, .. } = task.what { bytes } else { 0 })
            .sum();
        let calculated: Vec<u64> = tasks
            .iter()
            .filter_map(|task| if let What::Calc(time) = task.what { Some(time) } else { None })
            .collect();
        assert_eq!(sent, 6 * 1000);
        // 4000 bytes copied at 2 GB/s, and three times 1000 bytes reduced at 1 GB/s.
        assert_eq!(calculated, [2000, 1000, 1000, 1000]);
    }
}

/// The reader is strict: it refuses texts that the grammar does not have.
#[test]
fn other_texts_are_refused() {
    let right = "num_ranks 2\nrank 0 {\nl1: send 4b to 1 tag 0\nl2: calc 5\nl2 requires l1\n}\nrank 1 {\nl1: recv 4b from 0 tag 0\n}\n";
    assert!(read(right).is_ok_and(|programs| run(&programs).is_ok()));
    for (from, to) in [
        ("num_ranks 2\n", ""),
        ("4b to 1", "4 b to 1"),
        ("4b to 1", "4b to 2"),
        ("4b to 1", "4b from 1"),
        ("requires l1", "requires l3"),
        ("l2: calc", "l1: calc"),
        ("l2: calc 5", "l2: calc -5"),
        ("rank 1 {", "rank 0 {"),
        ("tag 0\n}\n", "tag 0\n"),
    ] {
        assert!(read(&right.replacen(from, to, 1)).is_err(), "{from:?} as {to:?}");
    }
    let ends = |from: &str, to: &str| {
        run(&read(&right.replacen(from, to, 1)).expect("the grammar has it")).is_ok()
    };
    assert!(!ends("recv 4b", "recv 5b"));
    assert!(!ends("recv 4b from 0 tag 0", "recv 4b from 0 tag 1"));
}
