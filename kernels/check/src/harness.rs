//! A harness: kernels, the memory of each rank, the launches of a call, and the result that is expected.

use std::collections::BTreeMap;
use std::time::Instant;

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};

use crate::assumption::Assumption;
use crate::expression::Expression;

/// A harness.
#[derive(Clone, Debug, Default)]
pub struct Harness {
    /// The name of the case, where a file has several.
    pub case: Option<String>,
    /// Words for people.
    pub title: String,
    /// The link to the origin of the kernel.
    pub source: String,
    /// The modules that kernels come from.
    pub modules: Vec<KernelModule>,
    /// The buffers, one of each for every rank.
    pub memory: Vec<Buffer>,
    /// The steps of a call.
    pub calls: Vec<Step>,
    /// The streams, each with the names of its steps; none where all steps are in one stream.
    pub streams: Vec<(String, Vec<String>)>,
    /// The results that are expected.
    pub expect: Vec<Expect>,
    /// The runs.
    pub run: Runs,
    /// The declared assumptions, each with its reason.
    pub assume: BTreeMap<Assumption, String>,
    /// The verdicts of which one is right, where the file states any.
    pub verdict: Vec<String>,
}

/// The origin of a module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleText {
    /// A file of CUDA C++.
    File(String),
    /// CUDA C++ in the harness itself.
    Text(String),
    /// A file of PTX.
    Ptx(String),
    /// PTX in the harness itself.
    PtxText(String),
}

/// A module of kernels.
#[derive(Clone, Debug)]
pub struct KernelModule {
    /// The name in the harness.
    pub name: String,
    /// The origin of its text.
    pub origin: ModuleText,
    /// `nvrtc`, or the path of an nvcc.
    pub compiler: String,
    /// Such as `sm_90`.
    pub arch: String,
    /// Macros, such as `A=1`; `RANKS` is defined as the number of ranks.
    pub defines: Vec<String>,
    /// Folders of headers.
    pub includes: Vec<String>,
    /// Names of texts that stand before the module's.
    pub preludes: Vec<String>,
    /// Ranges of lines of the file, of which the others are left out.
    pub slices: Vec<(u32, u32)>,
    /// Further flags of the compiler.
    pub options: Vec<String>,
    /// Names of kernels, each with the C++ expression that names it.
    pub instantiate: Vec<(String, String)>,
}

/// A buffer of each rank.
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// The number of its elements.
    pub len: Expression,
    /// The alignment that it has, and no more.
    pub align: u64,
    /// Whether peers have its address.
    pub peers: bool,
    /// Whether it has a multicast address on all ranks.
    pub multicast: bool,
    /// The bytes at the start.
    pub fill: Fill,
    /// Whether all bytes are to be zero at the end.
    pub zero_after: bool,
    /// The addresses that it holds.
    pub pointers: Option<PointerTable>,
    /// Whether it holds the sentinel, the word of its fill.
    pub is_sentinel: bool,
    /// The buffer that it is a part of, and for each rank the first byte and the bytes of the part.
    pub part: Option<(String, Vec<(u64, u64)>)>,
}

/// The addresses of buffers on all ranks.
#[derive(Clone, Debug)]
pub struct PointerTable {
    /// The buffers, each with the offset in bytes of the place in it, whose `rank` is that of the buffer.
    pub of: Vec<(String, Expression)>,
    /// The order of ranks.
    pub order: Order,
    /// Whether all buffers of a rank stand together, and not all ranks of a buffer.
    pub by_rank: bool,
    /// The buffers whose multicast addresses stand behind those of the ranks.
    pub of_all: Vec<String>,
}

/// The bytes of a buffer at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// All zero.
    Zero,
    /// A pattern that no kernel is to rely on.
    Poison,
    /// Other values in each call and run.
    Random,
    /// A word of 32 bits, again and again.
    Word(u32),
    /// For each element the number that an expression gives.
    Each(Expression),
    /// The first elements, one by one; the others are zero.
    Values(Vec<i64>),
}

/// The order of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From rank 0 on.
    Rank,
    /// From the own rank on, around.
    OwnFirst,
    /// Any.
    Any,
}

/// A step of a call, of one rank.
#[derive(Clone, Debug)]
pub struct Step {
    /// The name, for streams and events.
    pub name: String,
    /// Its work.
    pub work: StepWork,
    /// The steps of the same call that end before, beside those before it in its stream.
    pub after: Vec<String>,
    /// The ranks that take it; all where there is none.
    pub ranks: Vec<Expression>,
    /// Whether it is taken: not where this is 0.
    pub when: Option<Expression>,
}

/// The work of a step.
#[derive(Clone, Debug)]
pub enum StepWork {
    /// A kernel.
    Kernel(Box<KernelCall>),
    /// New values for a buffer, by a kernel before.
    Write(String),
    /// A byte in a range of a buffer.
    Set {
        /// The buffer.
        to: BufferPlace,
        /// The byte.
        byte: u8,
        /// The bytes of the range; all of the buffer where there is none.
        bytes: Option<Expression>,
    },
    /// A copy of bytes between buffers.
    Copy {
        /// The buffer that is written.
        to: BufferPlace,
        /// The buffer that is read.
        from: BufferPlace,
        /// The bytes; as many as the smaller buffer has where there is none.
        bytes: Option<Expression>,
    },
}

/// A place in a buffer.
#[derive(Clone, Debug)]
pub struct BufferPlace {
    /// The buffer.
    pub buffer: String,
    /// The rank; the own one where there is none.
    pub rank: Option<Expression>,
    /// The offset in bytes.
    pub offset: Expression,
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub struct KernelCall {
    /// The module.
    pub module: String,
    /// The kernel in it.
    pub kernel: String,
    /// Blocks in x, y and z.
    pub grid: Vec<Expression>,
    /// Threads of a block in x, y and z.
    pub block: Vec<Expression>,
    /// The arguments.
    pub args: Vec<Argument>,
    /// Bytes of dynamic shared memory.
    pub shared: Expression,
    /// Blocks of a cluster in x, y and z.
    pub cluster: Vec<Expression>,
    /// Whether it may begin when the launch before it allows that.
    pub pdl: bool,
}

/// An argument of a kernel, or a part of one.
#[derive(Clone, Debug)]
pub enum Argument {
    /// An address.
    Pointer(BufferPlace),
    /// The multicast address of a buffer.
    Multicast(String),
    /// The addresses of a buffer on all ranks, and null for each further one up to a number.
    Pointers(String, Order, Option<u32>),
    /// A number of that many bytes.
    Number(u32, Expression),
    /// A float of 4 or 8 bytes, by its bits.
    Float(u32, u64),
    /// Parts as C lays them out, aligned to as many bytes where that is given.
    Struct(Vec<Argument>, Option<u32>),
    /// Bytes as they are.
    Bytes(Vec<u8>),
}

/// A result that is expected.
#[derive(Clone, Debug)]
pub struct Expect {
    /// The buffer that holds it.
    pub buffer: String,
    /// The value.
    pub values: ExpectedValues,
    /// The distance that is allowed, in units of the last place of the sum of magnitudes.
    pub ulp: Option<u32>,
    /// Whether all ranks are to hold the same bits.
    pub same_bits: bool,
    /// The ranks that take part; all where there is none.
    pub ranks: Vec<Expression>,
}

/// The values of a result.
#[derive(Clone, Debug)]
pub enum ExpectedValues {
    /// Those of a collective.
    Collective {
        /// The collective.
        collective: Collective,
        /// The op.
        op: ReduceOp,
        /// The buffer of the inputs.
        input: String,
        /// The root.
        root: Expression,
        /// The elements of a unit; by the input's length where there is none.
        count: Option<Expression>,
        /// The order of the reduction.
        order: Order,
        /// Whether narrow floats are summed as f32.
        wide: bool,
    },
    /// For each element the number that an expression gives.
    Each(Expression),
}

/// The runs of a harness.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The calls of a run.
    pub calls: u32,
    /// Whether the arguments are those of call 0 in each call.
    pub graph: bool,
    /// The numbers of ranks.
    pub ranks: Vec<u32>,
    /// The elements: each list is a case, whose calls take its numbers in turn.
    pub elements: Vec<Vec<i64>>,
    /// The seeds of a case.
    pub seeds: u64,
    /// Ranks of which one starts late in some runs.
    pub late: Vec<Expression>,
    /// Ranks of which one is absent in some runs.
    pub absent: Vec<Expression>,
    /// Values that random elements have now and then.
    pub special: Vec<Special>,
    /// Blocks that a device runs at once; all where there is none.
    pub resident_blocks: Option<u32>,
    /// The number that `root` is in expressions.
    pub root: u32,
    /// The most that one run takes.
    pub limits: RunLimits,
}

/// The most that one run takes.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// Bytes of all memory.
    pub bytes: u64,
    /// Threads of all launches.
    pub threads: u64,
    /// Instructions, once for each group of lanes.
    pub instructions: u64,
    /// The time at which a run ends, if it is still going on.
    pub end: Option<Instant>,
}

/// A value that is special.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Special {
    /// A number.
    Number(f64),
    /// The word of the sentinel.
    Sentinel,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            calls: 2,
            graph: false,
            ranks: vec![2],
            elements: vec![vec![64]],
            seeds: 100,
            late: Vec::new(),
            absent: Vec::new(),
            special: Vec::new(),
            resident_blocks: None,
            root: 0,
            limits: RunLimits {
                bytes: 1 << 30,
                threads: 1 << 24,
                instructions: 100_000_000,
                end: None,
            },
        }
    }
}

impl Harness {
    /// The number of the buffer of that name.
    pub fn buffer(&self, name: &str) -> Option<usize> {
        self.memory.iter().position(|buffer| buffer.name == name)
    }
}

impl Buffer {
    /// A buffer of elements, which only its own rank reaches, and which holds no values at the start.
    pub fn new(name: &str, dtype: DType, len: Expression) -> Self {
        let align = dtype.size() as u64;
        Self {
            name: name.to_owned(),
            dtype,
            len,
            align,
            peers: false,
            multicast: false,
            fill: Fill::Poison,
            zero_after: false,
            pointers: None,
            is_sentinel: false,
            part: None,
        }
    }
}

impl KernelModule {
    /// A module that NVRTC compiles for `sm_90`.
    pub fn new(name: &str, origin: ModuleText) -> Self {
        Self {
            name: name.to_owned(),
            origin,
            compiler: "nvrtc".to_owned(),
            arch: "sm_90".to_owned(),
            defines: Vec::new(),
            includes: Vec::new(),
            preludes: Vec::new(),
            slices: Vec::new(),
            options: Vec::new(),
            instantiate: Vec::new(),
        }
    }
}

impl Step {
    /// A step of all ranks in every call.
    pub fn new(name: &str, work: StepWork) -> Self {
        let name = name.to_owned();
        Self { name, work, after: Vec::new(), ranks: Vec::new(), when: None }
    }
}
