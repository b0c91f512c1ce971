//! The kernels of a harness itself: copies, and one that lets time pass.

use std::fmt::Write as _;

use roundelay_ptx::program::Module;

use crate::elements::POISON;

/// Threads of a block of these kernels.
pub(crate) const THREADS: u32 = 64;
/// The stores of the kernel that lets time pass, each of them a turn.
pub(crate) const DELAY: u64 = 300;
/// The kernel that lets time pass.
pub(crate) const WAIT: &str = "roundelay_wait";

/// The name of the kernel that copies, in words of 4 bytes or in bytes; `takes` leaves poison behind.
pub(crate) fn copy_name(words: bool, takes: bool) -> &'static str {
    match (words, takes) {
        (false, false) => "roundelay_copy_b8",
        (true, false) => "roundelay_copy_b32",
        (false, true) => "roundelay_take_b8",
        (true, true) => "roundelay_take_b32",
    }
}

/// The module.
pub(crate) fn module() -> Module {
    let mut text = String::from(".version 8.0\n.target sm_90\n.address_size 64\n");
    for (words, takes) in [(false, false), (true, false), (false, true), (true, true)] {
        let (ty, bytes) = if words { ("u32", 4) } else { ("u8", 1) };
        let poison = u32::from_le_bytes([POISON; 4]) & if words { u32::MAX } else { 0xff };
        let behind = if takes {
            format!("mov.u32 %r6, {poison};\nst.global.{ty} [%rd6], %r6;\n")
        } else {
            String::new()
        };
        _ = write!(
            text,
            ".visible .entry {}(\n.param .u64 p_to,\n.param .u64 p_from,\n.param .u64 p_units\n)\n{{\n\
             .reg .pred %p<3>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<10>;\n\
             ld.param.u64 %rd1, [p_to];\nld.param.u64 %rd2, [p_from];\nld.param.u64 %rd3, [p_units];\n\
             mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ntid.x;\ncvt.u64.u32 %rd4, %r1;\ncvt.u64.u32 %rd5, %r2;\n\
             $next:\nsetp.ge.u64 %p1, %rd4, %rd3;\n@%p1 bra $end;\n\
             mul.lo.s64 %rd7, %rd4, {bytes};\nadd.s64 %rd6, %rd2, %rd7;\nadd.s64 %rd8, %rd1, %rd7;\n\
             ld.global.{ty} %r5, [%rd6];\nst.global.{ty} [%rd8], %r5;\n{behind}\
             add.s64 %rd4, %rd4, %rd5;\nbra $next;\n$end:\nret;\n}}\n",
            copy_name(words, takes)
        );
    }
    _ = write!(
        text,
        ".visible .entry {WAIT}(\n.param .u64 p_word,\n.param .u64 p_turns\n)\n{{\n\
         .reg .pred %p<2>;\n.reg .b64 %rd<4>;\n\
         ld.param.u64 %rd1, [p_word];\nld.param.u64 %rd2, [p_turns];\n\
         $next:\nst.relaxed.sys.global.u64 [%rd1], %rd2;\nadd.s64 %rd2, %rd2, -1;\n\
         setp.ne.s64 %p1, %rd2, 0;\n@%p1 bra $next;\nret;\n}}\n"
    );
    Module::parse_whole(&text).expect("the harness's own kernels are in the subset")
}
