//! Texts with random mistakes: each is read, checked and run, or refused, and none ends in a panic.

use std::fmt::Write as _;

use roundelay_ptx::lint;
use roundelay_ptx::machine::{Alias, Failure, Launch, Limits, RankLaunch, Window};
use roundelay_ptx::program::Module;

use super::programs;

const MEMORY: u64 = 0x10_0000;
const MULTICAST: u64 = 0x40_0000;

/// A generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) as usize) % bound.max(1)
    }
}

/// The texts that are changed: the small kernel, the kernel with every construct of foreign modules, and the programs of
/// the memory model.
fn texts() -> Vec<String> {
    let mut all = vec![
        include_str!("kernels/small.ptx").to_owned(),
        include_str!("kernels/foreign.ptx").to_owned(),
        include_str!("kernels/foreign.ptx").to_owned(),
    ];
    for litmus in programs::all() {
        let mut text = String::from(".version 8.8\n.target sm_90\n.address_size 64\n");
        text += ".visible .entry k(.param .u64 memory)\n{\n";
        text += programs::REGISTERS;
        for (number, name) in programs::LOCATIONS.iter().enumerate() {
            writeln!(text, ".reg .b64 %{name};\nld.param.u64 %{name}, [memory];").unwrap();
            writeln!(text, "add.s64 %{name}, %{name}, {};", 16 * number).unwrap();
        }
        for thread in &litmus.threads {
            text += &thread.text;
        }
        text += "ret;\n}\n";
        all.push(text);
    }
    all
}

/// The pieces of a text: words with their points, numbers, marks and spaces.
fn pieces(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '%' | '$' | ':');
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if is_word(first) { rest.find(|c| !is_word(c)) } else { Some(first.len_utf8()) };
        let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
        all.push(piece);
        rest = behind;
    }
    all
}

const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "2",
    "31",
    "32",
    "64",
    "255",
    "4294967295",
    "0x7fffffffffffffff",
    "18446744073709551615",
    "0f7FC00000",
];

/// The kind of a piece, by its first character.
fn kind(piece: &str) -> u8 {
    match piece.as_bytes().first() {
        Some(b'0'..=b'9') => b'0',
        Some(b'a'..=b'z' | b'A'..=b'Z' | b'$' | b'_') => b'a',
        Some(&first) => first,
        None => 0,
    }
}

fn mutant(numbers: &mut Numbers, texts: &[String]) -> String {
    let text = &texts[numbers.below(texts.len())];
    let mut all: Vec<String> = pieces(text).into_iter().map(str::to_owned).collect();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(all.len());
        let other = numbers.below(all.len());
        match numbers.below(12) {
            0 => _ = all.remove(at),
            1 => all.swap(at, other),
            2 => {
                let piece = all[other].clone();
                all.insert(at, piece);
            }
            3 => {
                // A line again, elsewhere.
                let lines: Vec<String> = all.concat().lines().map(str::to_owned).collect();
                let line = lines[numbers.below(lines.len())].clone();
                let breaks = (0..all.len()).map(|step| (at + step) % all.len());
                if let Some(at) = { breaks }.find(|&at| all[at] == "\n") {
                    all.insert(at, format!("\n{line}"));
                }
            }
            4..6 => {
                // A number elsewhere.
                let found = (0..all.len()).map(|step| (at + step) % all.len());
                if let Some(at) = { found }.find(|&at| kind(&all[at]) == b'0') {
                    NUMBERS[numbers.below(NUMBERS.len())].clone_into(&mut all[at]);
                }
            }
            _ => {
                // A piece of the same kind, of any text.
                let from = pieces(&texts[numbers.below(texts.len())]);
                let first = numbers.below(from.len());
                let steps = (0..from.len()).map(|step| (first + step) % from.len());
                if let Some(piece) = { steps }.find(|&p| kind(from[p]) == kind(&all[at])) {
                    from[piece].clone_into(&mut all[at]);
                }
            }
        }
        if all.is_empty() {
            break;
        }
    }
    all.concat()
}

/// Runs each kernel of a text on two ranks. Returns whether one has run to its end or to a fault.
fn run(text: &str, seed: u64) -> bool {
    let _ = lint(text);
    let Ok(module) = Module::parse(text) else { return false };
    let mut has_run = false;
    for kernel in module.functions.iter().filter(|function| function.is_kernel) {
        let bytes = kernel.parameters.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0);
        let mut parameters = vec![0; bytes.min(4096) as usize];
        for place in parameters.chunks_exact_mut(8) {
            place.copy_from_slice(&MEMORY.to_le_bytes());
        }
        let block = kernel.most_threads.map_or([33, 1, 1], |[x, ..]| [x.clamp(1, 64), 1, 1]);
        let rank = |device: u32| RankLaunch {
            device: device / 2,
            grid: [2, 1, 1],
            cluster: [1 + device % 2, 1, 1],
            block,
            parameters: parameters.clone(),
            after: if device == 2 { vec![0] } else { Vec::new() },
            early: seed.is_multiple_of(2),
            ..RankLaunch::new(&module, &kernel.name)
        };
        let window = |number: u64| Window {
            name: "memory".to_owned(),
            address: MEMORY + 0x1000 * number,
            bytes: vec![0; 0x800],
        };
        let alias = Alias {
            name: "all".to_owned(),
            address: MULTICAST,
            bytes: 0x800,
            of: vec![MEMORY, MEMORY + 0x1000],
            multicast: true,
        };
        let races = (seed % 3) as usize * 10;
        let limits = Limits { instructions: 5000, idle_turns: 60, races, ..Limits::default() };
        let assumptions = roundelay_ptx::Assumption::ALL.iter().enumerate();
        let assumptions = assumptions.filter(|(number, _)| seed >> number & 4 != 0);
        let launch = Launch {
            seed,
            limits,
            aliases: vec![alias],
            assumptions: assumptions.map(|(_, assumption)| assumption.clone()).collect(),
            ..Launch::new((0..3).map(rank).collect(), (0..2).map(window).collect())
        };
        let result = launch.run();
        has_run |= !matches!(result, Err(Failure::Launch(_)));
        if let Err(failure) = result {
            let text = failure.to_string();
            assert!(!text.is_empty());
        }
    }
    has_run
}

/// The unchanged texts can be read, and the foreign one runs to its end.
#[test]
fn unchanged_texts_run() {
    for text in texts() {
        let module = Module::parse_whole(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(module.functions.iter().any(|function| function.is_kernel));
        assert!(run(&text, 0));
    }
}

#[test]
fn texts_with_mistakes_end_without_a_panic() {
    let count = std::env::var("PTX_MUTANTS").ok().and_then(|count| count.parse().ok());
    let texts = texts();
    let mut has_run = 0;
    for seed in 0..count.unwrap_or(2000u64) {
        let text = mutant(&mut Numbers(seed), &texts);
        let result = std::panic::catch_unwind(|| run(&text, seed));
        assert!(result.is_ok(), "mutant {seed}:\n{text}");
        has_run += u64::from(result.unwrap_or(false));
    }
    assert!(has_run > count.unwrap_or(2000) / 8, "{has_run} have run");
}
