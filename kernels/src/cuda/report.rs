//! What a kernel takes of a multiprocessor, as the assembler says in NVRTC's log.

use std::fmt;

/// What one kernel takes, with all that it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The kernel.
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of stack of a thread.
    pub stack: u32,
    /// Bytes that a thread stores because registers run out.
    pub spill_stores: u32,
    /// Bytes that it loads again.
    pub spill_loads: u32,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// Barriers of a block.
    pub barriers: u32,
}

/// The kernels of a log, in its order.
pub(super) fn report(log: &str) -> Vec<Usage> {
    let mut all: Vec<Usage> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            all.push(Usage { kernel, ..Usage::default() });
            continue;
        }
        let Some(usage) = all.last_mut() else { continue };
        let frame = before(line, " bytes stack frame");
        // Functions that were not inlined follow their kernel, each with a frame of its own.
        usage.stack = usage.stack.max(frame).max(before(line, " bytes cumulative stack size"));
        usage.spill_stores += before(line, " bytes spill stores");
        usage.spill_loads += before(line, " bytes spill loads");
        usage.registers = usage.registers.max(before(line, " registers"));
        usage.shared = usage.shared.max(before(line, " bytes smem"));
        usage.barriers = usage.barriers.max(before(line, " barriers"));
    }
    all
}

/// The number that stands before `unit`; 0 if there is none.
fn before(line: &str, unit: &str) -> u32 {
    let number = line.split_once(unit).map(|(head, _)| head);
    number.and_then(|head| head.split([' ', ',']).next_back()?.parse().ok()).unwrap_or(0)
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, registers, stack, spill_stores, spill_loads, shared, barriers } = self;
        write!(
            f,
            "{kernel}: {registers} registers, {stack} bytes of stack, {spill_stores} bytes spilled, {spill_loads} loaded again, {shared} bytes shared, {barriers} barriers"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_its_numbers() {
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'A' for 'sm_90'
ptxas info    : Function properties for A
ptxas         .     800 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 254 registers, used 3 barriers, 816 bytes cumulative stack size, 1040 bytes smem
ptxas info    : Function properties for helper
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'B' for 'sm_90'
ptxas info    : Function properties for B
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 16 bytes smem, 544 bytes cmem[0]
ptxas info    : Compile time = 2.386 ms
";
        let a = Usage {
            kernel: "A".to_owned(),
            registers: 254,
            stack: 816,
            spill_stores: 20,
            spill_loads: 32,
            shared: 1040,
            barriers: 3,
        };
        let b = Usage {
            kernel: "B".to_owned(),
            registers: 10,
            shared: 16,
            barriers: 1,
            ..Usage::default()
        };
        assert_eq!(report(log), [a, b]);
        assert_eq!(report("K.cu(3): warning: unused\n"), []);
    }
}
