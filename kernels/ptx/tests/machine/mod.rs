//! The machine: threads of warps, barriers, memory of all kinds, and what it tells of wrong programs.

mod barriers;
mod counts;
mod foreign;
mod memory;
mod opcodes;
mod runs;
mod streams;
mod warps;

use roundelay_ptx::machine::{Failure, FinalState, KernelFault, Launch, RankLaunch, Window};
use roundelay_ptx::program::Module;

const MEMORY: u64 = 0x10_0000;

/// A module with the kernel `k`, which takes the address of 64 KiB of global memory as `%m`.
fn module(body: &str) -> Module {
    parse(&format!("{HEAD}{body}\nret;\n}}\n"))
}

const HEAD: &str = "\
.version 8.8
.target sm_90
.address_size 64
.shared .align 16 .b8 shared[1024];
.visible .entry k(.param .u64 memory)
{
.reg .pred %p<8>;
.reg .b32 %r<16>;
.reg .b64 %d<16>;
.reg .b64 %m;
ld.param.u64 %m, [memory];
mov.u32 %r0, %tid.x;
mul.wide.u32 %d0, %r0, 4;
add.s64 %d0, %m, %d0;
";

fn parse(text: &str) -> Module {
    Module::parse_whole(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

fn launch(module: &Module, ranks: u32, blocks: u32, threads: u32) -> Launch<'_> {
    let rank = |device| RankLaunch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        parameters: MEMORY.to_le_bytes().to_vec(),
        device,
        ..RankLaunch::new(module, "k")
    };
    let bytes = vec![0; 1 << 16];
    let windows = vec![Window { name: "memory".to_owned(), address: MEMORY, bytes }];
    Launch { seed: 1, ..Launch::new((0..ranks).map(rank).collect(), windows) }
}

/// Runs with several seeds, which all have to give the same 32-bit words of memory.
fn words(launch: &Launch, count: usize) -> Vec<u32> {
    let run = |seed| {
        let outcome = Launch { seed, ..launch.clone() }.run();
        let FinalState { windows, .. } = outcome.unwrap_or_else(|failure| panic!("{failure}"));
        let words = windows[0].bytes.chunks(4).take(count);
        words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect::<Vec<u32>>()
    };
    let first = run(0);
    (1..20).for_each(|seed| assert_eq!(run(seed), first, "seed {seed}"));
    first
}

/// The error of the runs with several seeds: that of the first one that has one.
fn fault(launch: &Launch) -> KernelFault {
    let run = |seed| match (Launch { seed, ..launch.clone() }).run() {
        Ok(_) => None,
        Err(Failure::Fault(fault)) => Some(*fault),
        Err(failure) => panic!("{failure}"),
    };
    (0..20).find_map(run).expect("no seed fails")
}

/// The line of the text, behind that of the last line of [`HEAD`].
fn line(fault: &KernelFault) -> u32 {
    fault.at.as_ref().unwrap().line - HEAD.lines().count() as u32
}
