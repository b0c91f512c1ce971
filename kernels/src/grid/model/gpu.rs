//! The parameters of a GPU in the model.

/// The properties of a GPU that the model uses. Times are in seconds, rates in bytes a second.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// The name of the GPU.
    pub name: String,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The rate of copies within the GPU's memory, read and written.
    pub bandwidth: f64,
    /// The size of the GPU's memory in bytes.
    pub memory: u64,
    /// The size of the GPU's second-level cache in bytes.
    pub cache: u64,
    /// The rate of copies within the cache, read and written.
    pub cache_bandwidth: f64,
    /// The time from a load to its data, where many loads are under way.
    pub memory_latency: f64,
    /// The time from an op of a table to the next op, without waits: a row of the table, and a barrier of a CTA.
    pub step: f64,
    /// The time of an instruction of PTX of the warp that walks: most of them wait for the one before.
    pub instruction: f64,
    /// The time from a post to the end of the wait for it: a release, and a poll that sees it.
    pub signal: f64,
    /// The time from the store of a line that carries data and flag to the load that sees it.
    pub line: f64,
    /// The same for a line of 128 bytes, which the threads of a warp load and judge together.
    pub line128: f64,
    /// The time that a launch adds to the kernel's time, where launches follow each other.
    pub launch: f64,
    /// The time that a launch by a CUDA graph adds to the kernel's time.
    pub graph_launch: f64,
}

impl Gpu {
    /// The names of the GPUs that the model knows.
    pub const NAMES: [&str; 2] = ["H100", "H200"];

    /// The GPU of that name: `H100` or `H200`.
    ///
    /// Both are one chip with 132 multiprocessors. Their rates of copies, 3.0 and 4.3 TB/s, are measured. The times of
    /// launches and of steps are fitted to what was measured on an H100 (the book's page *On a GPU*). All other figures
    /// are assumed, from typical values of this generation: a cache that copies about twice as fast as memory, 0.7 us
    /// for a load where many are under way, and so on.
    pub fn find(name: &str) -> Option<Self> {
        let (bandwidth, memory, cache) = match name {
            "H100" => (3.0e12, 80_000_000_000, 50_000_000),
            "H200" => (4.3e12, 141_000_000_000, 60_000_000),
            _ => return None,
        };
        Some(Self::like_hopper(name, 132, bandwidth, (memory, cache)))
    }

    /// A GPU of this machine: its name, multiprocessors, memory and cache are the driver's, and the rate of its copies
    /// was measured. All other values are those of [`Gpu::find`].
    pub fn like_hopper(
        name: &str,
        multiprocessors: u32,
        bandwidth: f64,
        (memory, cache): (u64, u64),
    ) -> Self {
        Self {
            name: name.to_owned(),
            multiprocessors,
            bandwidth,
            memory,
            cache,
            cache_bandwidth: 8.0e12_f64.max(bandwidth),
            memory_latency: 0.7e-6,
            step: 0.2e-6,
            instruction: 6.1e-9,
            signal: 1.1e-6,
            line: 0.7e-6,
            line128: 0.9e-6,
            launch: 3.0e-6,
            graph_launch: 3.0e-6,
        }
    }

    /// The rate of memory for a launch that touches `touched` bytes.
    pub fn rate(&self, touched: u64) -> f64 {
        if touched <= self.cache { self.cache_bandwidth } else { self.bandwidth }
    }

    /// The assumptions of the model, one per line.
    pub fn assumptions(&self) -> Vec<String> {
        let us = |seconds: f64| format!("{:.1} us", seconds * 1e6);
        let tb = |rate: f64| format!("{:.1} TB/s", rate / 1e12);
        vec![
            format!("{}: {} multiprocessors", self.name, self.multiprocessors),
            format!(
                "copies, read and written: {} in memory, {} in {} MB of cache",
                tb(self.bandwidth),
                tb(self.cache_bandwidth),
                self.cache / 1_000_000
            ),
            format!("a load takes {} where many are under way", us(self.memory_latency)),
            format!(
                "a step takes {}, and the walk to it {:.1} ns for each instruction of the warp that walks",
                us(self.step),
                self.instruction * 1e9
            ),
            format!(
                "a signal takes {} more, a line with data and flag {}, one of 128 bytes {}",
                us(self.signal),
                us(self.line),
                us(self.line128)
            ),
            format!("a launch takes {}, by a graph {}", us(self.launch), us(self.graph_launch)),
        ]
    }
}
