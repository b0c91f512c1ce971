//! The resources of a multiprocessor that kernels take, as the assembler says in NVRTC's log.

use std::fmt;

/// The resources that a kernel takes, or a function that was not inlined, which several kernels may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The name of the kernel or function, as the assembler has it.
    pub name: String,
    /// The resources of the kernel with all functions that it calls; `None` for a function, whose part is in its
    /// callers' resources.
    pub kernel: Option<Resources>,
    /// Bytes of stack of a thread, in this function.
    pub stack: u32,
    /// Bytes that a thread stores because registers run out.
    pub spill_stores: u32,
    /// Bytes that a thread loads again after it stored them because registers ran out.
    pub spill_loads: u32,
}

/// The resources of a multiprocessor that a kernel takes, with all functions that it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of stack of a thread.
    pub stack: u32,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// Barriers of a block.
    pub barriers: u32,
}

/// Returns all kernels and functions of a log, in its order.
pub(super) fn report(log: &str) -> Vec<Usage> {
    let mut all: Vec<Usage> = Vec::new();
    let mut kernel = 0;
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            kernel = all.len();
            all.push(Usage { name, kernel: Some(Resources::default()), ..Usage::default() });
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            if all.get(kernel).is_none_or(|kernel| kernel.name != name) {
                all.push(Usage { name: name.to_owned(), ..Usage::default() });
            }
        } else if let Some(usage) = all.last_mut().filter(|_| line.contains(" bytes stack frame")) {
            usage.stack = before(line, " bytes stack frame");
            usage.spill_stores = before(line, " bytes spill stores");
            usage.spill_loads = before(line, " bytes spill loads");
        } else if let Some(usage) = all.get_mut(kernel).filter(|_| line.contains(" registers")) {
            usage.kernel = Some(Resources {
                registers: before(line, " registers"),
                stack: before(line, " bytes cumulative stack size"),
                shared: before(line, " bytes smem"),
                barriers: before(line, " barriers"),
            });
        }
    }
    all
}

/// Returns the number that stands before `unit`; 0 if there is none.
fn before(line: &str, unit: &str) -> u32 {
    let number = line.split_once(unit).map(|(head, _)| head);
    number.and_then(|head| head.split([' ', ',']).next_back()?.parse().ok()).unwrap_or(0)
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kernel, stack, spill_stores, spill_loads } = self;
        match kernel {
            Some(Resources { registers, stack, shared, barriers }) => write!(
                f,
                "{name}: {registers} registers, {stack} bytes of stack, {shared} bytes shared, {barriers} barriers"
            )?,
            None => write!(f, "{name}, called: {stack} bytes of stack")?,
        }
        match (spill_stores, spill_loads) {
            (0, 0) => f.write_str(", no spills"),
            _ => write!(f, ", {spill_stores} bytes spilled, {spill_loads} loaded again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_and_function_has_its_numbers() {
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'A' for 'sm_90'
ptxas info    : Function properties for A
ptxas         .     800 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 254 registers, used 3 barriers, 816 bytes cumulative stack size, 1040 bytes smem
ptxas info    : Compiling entry function 'B' for 'sm_90'
ptxas info    : Function properties for B
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 16 bytes smem, 544 bytes cmem[0]
ptxas info    : Compile time = 2.386 ms
ptxas info    : Function properties for helper
ptxas         .     16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
";
        let usage = |name: &str, kernel, stack, spill_stores, spill_loads| {
            let name = name.to_owned();
            Usage { name, kernel, stack, spill_stores, spill_loads }
        };
        let a = Resources { registers: 254, stack: 816, shared: 1040, barriers: 3 };
        let b = Resources { registers: 10, stack: 0, shared: 16, barriers: 1 };
        assert_eq!(
            report(log),
            [
                usage("A", Some(a), 800, 16, 24),
                usage("B", Some(b), 0, 0, 0),
                usage("helper", None, 16, 4, 8),
            ]
        );
        assert_eq!(report("K.cu(3): warning: unused\n"), []);
    }
}
