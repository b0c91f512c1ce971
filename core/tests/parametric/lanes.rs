//! Mutants with `parallel` put around statements, signals across its ends, and one iteration in another: a claim about
//! lanes for every nranks must hold at each count.

use fastrand::Rng;

use crate::parametric::{algorithms, finitely_right, members, prove};

const MUTANTS: u32 = 2000;

/// Up to this count a claim is tried.
const TRIED: u32 = 9;

/// Where `parallel` is put.
const NESTINGS: [Nesting; 3] = [Nesting::Outer, Nesting::Inner, Nesting::Nested];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nesting {
    /// Around statements of the algorithm's body.
    Outer,
    /// Around statements of a block in it.
    Inner,
    /// Around statements, and around some of these once more.
    Nested,
}

/// Iterations: iteration 0 alone in most, because its lane can be mistaken for the lane outside.
const ITERATIONS: [&str; 6] = ["0..1", "0..1", "0..1", "1..2", "-1..0", "0..2"];

/// How deep in blocks each line of `lines` begins.
fn depths(lines: &[String]) -> Vec<usize> {
    let mut depth = 0;
    let before = lines.iter().map(|line| {
        depth -= usize::from(line.trim_start().starts_with('}'));
        let begins = depth;
        depth += usize::from(line.trim_end().ends_with('{'));
        begins
    });
    before.collect()
}

/// Returns whole statements that stand side by side among the lines from `first` to `last`, none of which declares a
/// name: the first and last line of each choice.
fn ranges(lines: &[String], (first, last): (usize, usize)) -> Vec<(usize, usize)> {
    let depths = depths(lines);
    let mut all = Vec::new();
    for from in first..=last {
        for to in from..=last {
            let line = lines[to].trim_start();
            let declares = ["let ", "view ", "scratch "].iter().any(|word| line.starts_with(word));
            if depths[to] < depths[from] || depths[to] == depths[from] && declares {
                break;
            }
            let ends = line.ends_with(';') || line == "}";
            if depths[to] == depths[from] && ends && !lines[from].trim_start().starts_with('}') {
                all.push((from, to));
            }
        }
    }
    all
}

/// Puts `head` around statements between two lines, at a depth that `fits`, and says where these are now.
fn wrap(
    lines: &mut Vec<String>,
    within: (usize, usize),
    random: &mut Rng,
    head: &str,
    fits: impl Fn(usize) -> bool,
) -> Option<(usize, usize)> {
    let depths = depths(lines);
    let mut ranges = ranges(lines, within);
    ranges.retain(|(from, _)| fits(depths[*from]));
    if ranges.is_empty() {
        return None;
    }
    let (from, to) = ranges[random.usize(..ranges.len())];
    lines.insert(to + 1, "}".to_owned());
    lines.insert(from, format!("{head} {{"));
    Some((from + 1, to + 1))
}

/// A post, and its wait behind it: each at an end of the statements from `first` to `last`, on this side of it or
/// on that, or anywhere. Where these are then.
fn signal(
    lines: &mut Vec<String>,
    (mut first, mut last): (usize, usize),
    random: &mut Rng,
) -> (usize, usize) {
    let text = lines.join("\n");
    let (to, from) = if text.contains("let right") { ("right", "left") } else { ("to", "from") };
    let (to, from) = if random.usize(..2) == 0 { (to, from) } else { (from, to) };
    let kind = ["Ack", "DataSignal"][random.usize(..2)];
    let mut place = |at| match random.usize(..4) {
        0 => 1 + random.usize(..lines.len() - 1),
        side => at + side % 2,
    };
    let (post, wait) = (place(first - 1), place(last + 1));
    for (at, signal) in
        [(post.max(wait), format!("{from}.Rx")), (post.min(wait), format!("{to}.Tx"))]
    {
        lines.insert(at, format!("{signal}{kind}();"));
        first += usize::from(at < first);
        last += usize::from(at <= last + 1);
    }
    (first, last)
}

/// Returns a mutant of `text`, with `parallel` at a place of that nesting.
fn mutant(text: &str, nesting: Nesting, random: &mut Rng) -> Option<String> {
    let bare = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    let mut lines: Vec<String> = bare.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    let [p, q] = ["p", "q"]
        .map(|name| format!("parallel {name} in {}", ITERATIONS[random.usize(..ITERATIONS.len())]));
    let all = (0, lines.len() - 1);
    let outer = if nesting == Nesting::Inner { "for t in 0..1".to_owned() } else { p };
    let mut inside = wrap(&mut lines, all, random, &outer, |depth| depth == 1)?;
    if nesting != Nesting::Outer {
        inside = wrap(&mut lines, inside, random, &q, |_| true)?;
    }
    for _ in 0..random.usize(..3) {
        inside = signal(&mut lines, inside, random);
    }
    if random.usize(..4) == 0 {
        let signals = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.contains(".Tx") || line.contains(".Rx"));
        let signals: Vec<usize> = signals.map(|(at, _)| at).collect();
        lines.remove(signals[random.usize(..signals.len())]);
    }
    Some(lines.join("\n"))
}

#[test]
fn no_mutant_with_lanes_is_claimed_that_a_count_refutes() {
    let members = members();
    let mut random = Rng::with_seed(16);
    let (mut tried, mut claimed) = (0, [0; 3]);
    while tried < MUTANTS {
        let text = &members[random.usize(..members.len())];
        let nesting = NESTINGS[tried as usize % 3];
        let Some(mutant) = mutant(text, nesting, &mut random) else { continue };
        let Some(found) = algorithms(&mutant) else { continue };
        tried += 1;
        for (algorithm, source) in found {
            let Ok(every) = prove(&algorithm, &source) else { continue };
            claimed[nesting as usize] += 1;
            assert_eq!(
                finitely_right(&algorithm, &source, every.from..=TRIED),
                Ok(()),
                "claimed from {} on, and wrong\n{mutant}",
                every.from
            );
        }
    }
    println!("{tried} mutants; claimed for every nranks, {NESTINGS:?}: {claimed:?}");
    // One `parallel` in another leaves the class; where neither loops over nranks, the two others are in it.
    assert!(claimed[0] > 100 && claimed[1] > 30, "few claims: {claimed:?}");
}
