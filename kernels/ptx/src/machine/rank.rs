//! A launch of one kernel.

use crate::program::Module;

/// A launch of a kernel: one for a rank, or one for several ranks.
#[derive(Clone, Debug)]
pub struct RankLaunch<'a> {
    /// The module; ranks may share one.
    pub module: &'a Module,
    /// The name of the kernel.
    pub kernel: &'a str,
    /// The blocks in x, y and z.
    pub grid: [u32; 3],
    /// The threads of a block in x, y and z.
    pub block: [u32; 3],
    /// The blocks of a cluster in x, y and z, which divide those of the grid; a cluster has several in x alone.
    pub cluster: [u32; 3],
    /// The bytes of the parameters.
    pub parameters: Vec<u8>,
    /// Bytes of shared memory beyond the variables of the module.
    pub dynamic_shared: u32,
    /// The device: the scope `gpu` has the threads of all its launches.
    pub device: u32,
    /// The launches that end before this one begins, by their numbers, which are lower, and all those before them; none
    /// begins with the run.
    pub after: Vec<usize>,
    /// Whether it may begin before these have ended: as soon as each of their blocks has ended, or has executed
    /// `griddepcontrol.launch_dependents`. It knows nothing of what they do before it executes `griddepcontrol.wait`.
    pub early: bool,
}

impl<'a> RankLaunch<'a> {
    /// The launch of one block of one thread on device 0, that begins with the run.
    pub fn new(module: &'a Module, kernel: &'a str) -> Self {
        Self {
            module,
            kernel,
            grid: [1; 3],
            block: [1; 3],
            cluster: [1; 3],
            parameters: Vec::new(),
            dynamic_shared: 0,
            device: 0,
            after: Vec::new(),
            early: false,
        }
    }
}
