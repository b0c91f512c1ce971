//! Instructions and their operands.

use super::types::{ArithmeticOp, ReduceOp, Scope, Semantics, Space, Type};

/// The number of a register of a function. A register holds 64 bits; a value narrower than that is zero-extended from
/// the width of the register's declaration, and a truth value is 0 or 1.
pub type Slot = u32;

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The truth value on which the instruction depends.
    pub guard: Option<Guard>,
    /// The effect.
    pub operation: Operation,
    /// The place of the source: an index in [`Module::places`](super::Module::places).
    pub place: Option<u32>,
    /// The line of the PTX text, from 1.
    pub line: u32,
}

/// The condition of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The register of the truth value.
    pub slot: Slot,
    /// Whether the instruction is executed if the value is false.
    pub negated: bool,
}

/// A source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register.
    Slot(Slot),
    /// A number, as the 64 bits of a slot.
    Value(u64),
}

/// The place of a named variable, before its address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A variable of the module, in global, constant or shared memory: an index in
    /// [`Module::variables`](super::Module::variables), and an offset.
    Variable(u32, i64),
    /// An offset in the function's frame in local memory.
    Local(i64),
    /// An offset in the function's frame in parameter space.
    Param(i64),
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// An address in a register.
    Slot(Slot),
    /// A number.
    Value(u64),
    /// A variable.
    Symbol(Symbol),
}

/// An address of an access: a base and an offset in bytes. The offset of a symbol is in the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The base.
    pub base: Base,
    /// The bytes behind the base.
    pub offset: i64,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryAccess {
    /// The space in which the address is.
    pub space: Space,
    /// The type of each element.
    pub ty: Type,
    /// The number of elements: 1, 2 or 4.
    pub elements: u8,
    /// The order that the access gives.
    pub semantics: Semantics,
    /// The threads for which it does, of a strong access.
    pub scope: Option<Scope>,
    /// Whether the load takes the path for data that no thread writes during the launch, `ld.global.nc`.
    pub non_coherent: bool,
    /// One bit for each byte of the access, the first byte at bit 0: whether the program uses the byte.
    pub used_bytes: u32,
    /// The address of the first element.
    pub address: Address,
}

/// An operation on registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arithmetic {
    /// The function.
    pub op: ArithmeticOp,
    /// The register of the result.
    pub to: Slot,
    /// The sources; an absent one is the value 0.
    pub from: [Operand; 4],
    /// One bit for each source, the first at bit 0: whether a truth value is negated with `!`.
    pub negated: u8,
}

/// A barrier of threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    /// The number of the barrier.
    pub id: Operand,
    /// The number of threads that take part, if it is not the whole block.
    pub count: Option<Operand>,
    /// Whether the thread waits: `bar.arrive` does not.
    pub waits: bool,
    /// The reduction over the threads that take part: the op, the register of the result, the truth value, and whether it
    /// is negated.
    pub reduction: Option<(ReduceOp, Slot, Operand, bool)>,
}

/// How a shuffle finds the lane whose value it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShuffleMode {
    /// The lane of that index.
    Idx,
    /// The lane that is so far below.
    Up,
    /// The lane that is so far above.
    Down,
    /// The lane whose index differs in those bits.
    Bfly,
}

/// An exchange of 32 bits between lanes of a warp, `shfl.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shuffle {
    /// How the lane is found.
    pub mode: ShuffleMode,
    /// The register of the result.
    pub to: Slot,
    /// The register of the truth value: whether the lane was in range.
    pub valid: Option<Slot>,
    /// The value that this lane gives.
    pub from: Operand,
    /// The lane, or the distance.
    pub lane: Operand,
    /// The clamp in bits 0 to 4, and the mask of segments in bits 8 to 12.
    pub clamp: Operand,
    /// The lanes that take part.
    pub mask: Operand,
}

/// The result of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteMode {
    /// Whether all values are true.
    All,
    /// Whether one value is true.
    Any,
    /// Whether all values are the same.
    Uni,
    /// One bit for each lane.
    Ballot,
}

/// A vote of lanes of a warp, `vote.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vote {
    /// The result.
    pub mode: VoteMode,
    /// The register of the result: a truth value, or 32 bits of a ballot.
    pub to: Slot,
    /// The truth value that this lane gives.
    pub from: Operand,
    /// Whether it is negated.
    pub negated: bool,
    /// The lanes that take part.
    pub mask: Operand,
}

/// How a value is made of those of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectMode {
    /// For each lane the lanes that have its value, of that number of bits, `match.any`.
    Any(u8),
    /// The lanes, if all have the same value, else none, `match.all`.
    All(u8),
    /// A reduction, `redux`.
    Reduce(ReduceOp, Type),
    /// The first one of the lanes, `elect`.
    Elect,
}

/// A value that lanes of a warp have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collect {
    /// How it is made.
    pub mode: CollectMode,
    /// The register of the result.
    pub to: Option<Slot>,
    /// The register of the truth value: whether all have the same value, or the lane is the elected one.
    pub is: Option<Slot>,
    /// The value that this lane gives.
    pub from: Operand,
    /// The lanes that take part.
    pub mask: Operand,
}

/// An operation on all windows of a multicast address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MulticastOp {
    /// A load of the reduction of all their values, `multimem.ld_reduce`; of halves in f32 if it says so.
    LoadReduce(ReduceOp, bool),
    /// A store, `multimem.st`.
    Store,
    /// A reduction of each, `multimem.red`.
    Reduce(ReduceOp),
}

/// A fence's strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// Acquire alone.
    Acquire,
    /// Release alone.
    Release,
    /// Acquire and release.
    AcqRel,
    /// Sequential consistency.
    SeqCst,
}

/// A fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// The strength.
    pub ordering: Ordering,
    /// The threads to which it applies.
    pub scope: Scope,
}

/// A call of a function of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The index of the function in [`Module::functions`](super::Module::functions).
    pub function: u32,
    /// For each parameter of the function, the offset of its bytes in the caller's frame in parameter space.
    pub arguments: Box<[u32]>,
    /// For each returned value, the offset in the caller's frame to which its bytes go.
    pub returns: Box<[u32]>,
}

/// The lanes of a mask, by how their index compares with that of the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneMask {
    /// The lane itself.
    Equal,
    /// Those below.
    Less,
    /// Those below, and the lane.
    LessOrEqual,
    /// Those above.
    Greater,
    /// Those above, and the lane.
    GreaterOrEqual,
}

/// A register that the machine holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// The index of the thread in its block, in the axis x (0), y (1) or z (2).
    Tid(u8),
    /// The number of threads of a block in an axis.
    Ntid(u8),
    /// The index of the block in the grid, in an axis.
    Ctaid(u8),
    /// The number of blocks of the grid in an axis.
    Nctaid(u8),
    /// The index of the thread in its warp.
    LaneId,
    /// A clock in nanoseconds, of 64 bits.
    GlobalTimer,
    /// Its low half.
    TimerLow,
    /// Its high half.
    TimerHigh,
    /// The number of the warp in its block.
    WarpId,
    /// The number of warps of a block.
    WarpCount,
    /// The number of the launch.
    GridId,
    /// The index of the cluster in the grid, in an axis.
    ClusterId(u8),
    /// The number of clusters of the grid in an axis.
    ClusterCount(u8),
    /// The index of the block in its cluster, in an axis.
    InCluster(u8),
    /// The number of blocks of a cluster in an axis.
    ClusterShape(u8),
    /// The number of the block in its cluster.
    ClusterRank,
    /// The number of blocks of a cluster.
    ClusterSize,
    /// Bits of lanes.
    LaneMask(LaneMask),
}

/// The effect of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A copy of a value.
    Move {
        /// The register of the result.
        to: Slot,
        /// The value.
        from: Operand,
    },
    /// The address of a variable in its own space.
    AddressOf {
        /// The register of the result.
        to: Slot,
        /// The variable.
        symbol: Symbol,
    },
    /// An address of a space as a generic address.
    ToGeneric {
        /// The register of the result.
        to: Slot,
        /// The address.
        from: Operand,
        /// The space of the address.
        space: Space,
    },
    /// A generic address as one of a space.
    FromGeneric {
        /// The register of the result.
        to: Slot,
        /// The address.
        from: Operand,
        /// The space of the result.
        space: Space,
    },
    /// A value taken apart into pieces of equal width, the low one first.
    Unpack {
        /// The registers of the pieces; a piece that is not wanted has none.
        to: Box<[Option<Slot>]>,
        /// The value.
        from: Operand,
        /// Bits of a piece.
        bits: u32,
    },
    /// A value made of pieces of equal width, the low one first.
    Join {
        /// The register of the result.
        to: Slot,
        /// The pieces.
        from: Box<[Operand]>,
        /// Bits of a piece.
        bits: u32,
    },
    /// An operation on registers.
    Arithmetic(Arithmetic),
    /// A special register's value.
    Special {
        /// The register of the result.
        to: Slot,
        /// The special register.
        register: Special,
    },
    /// A load. A signed element is extended to the width of its register.
    Load {
        /// The access.
        access: MemoryAccess,
        /// The registers of the elements, each with its width in bits; an element that is not wanted has none.
        to: Box<[Option<(Slot, u8)>]>,
    },
    /// A store of the low bits of each value.
    Store {
        /// The access.
        access: MemoryAccess,
        /// The elements.
        from: Box<[Operand]>,
    },
    /// An atomic operation on memory.
    Reduce {
        /// The access.
        access: MemoryAccess,
        /// The operation.
        op: ReduceOp,
        /// The value, and for `cas` the one that is stored.
        from: [Operand; 2],
        /// Whether it is an `atom`, whose load gives the value before, and not a `red`.
        returns: bool,
        /// The register of the value before.
        to: Option<Slot>,
    },
    /// A fence.
    Fence(Fence),
    /// A fence between accesses by different addresses of one byte, `fence.proxy.alias`.
    FenceAliases,
    /// A barrier of the block.
    Barrier(Barrier),
    /// An exchange between lanes.
    Shuffle(Shuffle),
    /// A vote of lanes.
    Vote(Vote),
    /// A value that lanes have in common.
    Collect(Collect),
    /// An access to all windows of a multicast address.
    Multicast {
        /// The operation.
        op: MulticastOp,
        /// The access to each window.
        access: MemoryAccess,
        /// The values, of a store or a reduction.
        from: Box<[Operand]>,
        /// The registers of the elements, of a load.
        to: Box<[Option<Slot>]>,
    },
    /// Comes to the barrier of the cluster.
    ClusterArrive {
        /// Whether what the thread knows is released.
        releases: bool,
    },
    /// Waits for all threads of the cluster to come to its barrier.
    ClusterWait {
        /// Whether what they have released is acquired.
        acquires: bool,
    },
    /// The address of a variable in the shared memory of a block of the cluster.
    MapShared {
        /// The register of the result.
        to: Slot,
        /// The address.
        from: Operand,
        /// The number of the block in the cluster.
        rank: Operand,
    },
    /// The number of the block in the cluster that has an address of shared memory.
    RankOfShared {
        /// The register of the result.
        to: Slot,
        /// The address.
        from: Operand,
    },
    /// The lanes that execute the instruction together.
    ActiveMask {
        /// The register of the mask.
        to: Slot,
    },
    /// Whether a generic address is in a space.
    IsSpace {
        /// The register of the truth value.
        to: Slot,
        /// The address.
        from: Operand,
        /// The space.
        space: Space,
    },
    /// Nothing that shows.
    Nothing,
    /// A pause, in which other threads may go on.
    Pause,
    /// The end of the launch with an error, by a condition of the source that does not hold: the frame's offsets of the
    /// addresses of its text, its file and its function, and of its line.
    Assert {
        /// The offsets of three addresses.
        texts: [u32; 3],
        /// The offset of the line.
        line: u32,
    },
    /// A barrier of the lanes of a mask.
    WarpSync {
        /// The lanes.
        mask: Operand,
    },
    /// Tells that launches which may begin early need not wait for the block, `griddepcontrol.launch_dependents`.
    LaunchDependents,
    /// Waits for the end of the launches before this one, `griddepcontrol.wait`.
    WaitForLaunches,
    /// A branch.
    Branch {
        /// The index of the next instruction.
        target: u32,
        /// Whether the text says that all lanes go the same way.
        uniform: bool,
    },
    /// A call.
    Call(Call),
    /// The end of a function, and of the thread in a kernel.
    Return,
    /// The end of the thread.
    Exit,
    /// The end of the launch with an error.
    Trap,
}
