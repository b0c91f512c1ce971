//! The results that each collective promises: buffer sizes, in-place aliasing, and the contributions to each output.
//!
//! Sizes are in *units* of `c` = count elements, as NCCL counts; the conventions are NCCL's.

use std::fmt;

use crate::dtype::named_enum;
use crate::ids::RankId;

named_enum! {
    /// A collective operation: the data of every rank at the end, for every algorithm.
    ///
    /// The descriptions end with the lengths of input and output at each rank, where c is the count, n the number of
    /// ranks, and the unit of c is an element: `(n*c, c)` is an input of n blocks of c elements, and an output of one.
    /// The conventions are NCCL's. Reductions are by the plan's [`ReduceOp`](crate::dtype::ReduceOp).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Collective {
        /// Every rank gets the reduction of all inputs. (c, c)
        AllReduce = "AllReduce",
        /// Rank r gets unit r of the reduction. (n*c, c)
        ReduceScatter = "ReduceScatter",
        /// Every rank gets all inputs, in rank order. (c, n*c)
        AllGather = "AllGather",
        /// Every rank gets root's input. (c at root, c)
        Broadcast = "Broadcast",
        /// Root gets the reduction of all inputs. (c, c at root)
        Reduce = "Reduce",
        /// Rank r gets unit r of root's input. (n*c at root, c)
        Scatter = "Scatter",
        /// Root gets all inputs, in rank order. (c, n*c at root)
        Gather = "Gather",
        /// Rank r gets unit r of every rank's input. (n*c, n*c)
        AllToAll = "AllToAll",
    }
}

/// The value that a unit (c elements) of an output must hold at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The reduction over all ranks of unit `unit` of their inputs, each contribution exactly once.
    Reduced {
        /// The unit of every rank's input that is reduced, counted from 0.
        unit: u32,
    },
    /// A copy of unit `unit` of `rank`'s input.
    Copied {
        /// The rank of the input.
        rank: RankId,
        /// The unit of that input, counted from 0.
        unit: u32,
    },
}

/// The memory that input and output share when a collective runs in place, at one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alias {
    /// The buffers share no memory: the rank lacks one of them.
    Apart,
    /// The input lies in the output buffer and begins at unit `.0` of it.
    InputInOutput(u32),
    /// The output lies in the input buffer and begins at unit `.0` of it.
    OutputInInput(u32),
}

impl Alias {
    /// Returns the number of units of the shared buffer before the input, and the number before the output.
    pub const fn starts(self) -> (u32, u32) {
        match self {
            Self::Apart => (0, 0),
            Self::InputInOutput(units) => (units, 0),
            Self::OutputInInput(units) => (0, units),
        }
    }
}

impl Collective {
    /// Whether one rank, the root, has a special part.
    pub const fn is_rooted(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Scatter | Self::Gather)
    }

    /// Whether contributions are combined by a reduce op.
    pub const fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter | Self::Reduce)
    }

    /// Returns the length of the input of `rank` in units of the count; 0 where the rank has no input.
    pub fn input_units(self, rank: RankId, nranks: u32, root: RankId) -> u32 {
        match self {
            Self::AllReduce | Self::AllGather | Self::Reduce | Self::Gather => 1,
            Self::ReduceScatter | Self::AllToAll => nranks,
            Self::Broadcast => u32::from(rank == root),
            Self::Scatter => u32::from(rank == root) * nranks,
        }
    }

    /// Returns the length of the output of `rank` in units of the count; 0 where the rank has no output.
    pub fn output_units(self, rank: RankId, nranks: u32, root: RankId) -> u32 {
        match self {
            Self::AllReduce | Self::ReduceScatter | Self::Broadcast | Self::Scatter => 1,
            Self::AllGather | Self::AllToAll => nranks,
            Self::Reduce => u32::from(rank == root),
            Self::Gather => u32::from(rank == root) * nranks,
        }
    }

    /// Returns the length of the largest input of any rank, in units of the count.
    pub fn max_input_units(self, nranks: u32) -> u32 {
        self.input_units(RankId(0), nranks, RankId(0))
    }

    /// Returns the length of the largest output of any rank, in units of the count.
    pub fn max_output_units(self, nranks: u32) -> u32 {
        self.output_units(RankId(0), nranks, RankId(0))
    }

    /// Whether the collective has an in-place form (`AllToAll` has none, as in NCCL).
    pub const fn has_in_place(self) -> bool {
        !matches!(self, Self::AllToAll)
    }

    /// Returns the memory that input and output share in place at `rank`.
    pub fn alias(self, rank: RankId, root: RankId) -> Alias {
        match self {
            Self::AllReduce => Alias::InputInOutput(0),
            Self::ReduceScatter => Alias::OutputInInput(rank.0),
            Self::AllGather => Alias::InputInOutput(rank.0),
            Self::Broadcast | Self::Reduce if rank == root => Alias::InputInOutput(0),
            Self::Scatter if rank == root => Alias::OutputInInput(root.0),
            Self::Gather if rank == root => Alias::InputInOutput(root.0),
            _ => Alias::Apart,
        }
    }

    /// Returns the number of blocks that may have a count each; `None` where ranks own no blocks.
    pub fn blocks(self, nranks: u32) -> Option<u64> {
        match self {
            Self::AllGather | Self::Gather | Self::ReduceScatter | Self::Scatter => {
                Some(nranks.into())
            }
            Self::AllToAll => Some(u64::from(nranks) * u64::from(nranks)),
            Self::AllReduce | Self::Broadcast | Self::Reduce => None,
        }
    }

    /// Returns the block that unit `unit` of `rank`'s input is: that of a rank has the rank's number, and that from rank
    /// i to rank j of an AllToAll the number `i * nranks + j`. `None` where ranks own no blocks.
    pub fn input_block(self, rank: RankId, unit: u32, nranks: u32) -> Option<u64> {
        let (rank, unit, nranks) = (rank.0.into(), unit.into(), u64::from(nranks));
        match self {
            Self::AllGather | Self::Gather => Some(rank),
            Self::ReduceScatter | Self::Scatter => Some(unit),
            Self::AllToAll => Some(rank * nranks + unit),
            Self::AllReduce | Self::Broadcast | Self::Reduce => None,
        }
    }

    /// Returns the block that unit `unit` of `rank`'s output is, as [`Self::input_block`] does.
    pub fn output_block(self, rank: RankId, unit: u32, nranks: u32) -> Option<u64> {
        let (rank, unit, nranks) = (rank.0.into(), unit.into(), u64::from(nranks));
        match self {
            Self::AllGather | Self::Gather => Some(unit),
            Self::ReduceScatter | Self::Scatter => Some(rank),
            Self::AllToAll => Some(unit * nranks + rank),
            Self::AllReduce | Self::Broadcast | Self::Reduce => None,
        }
    }

    /// Returns the value that unit `unit` of `rank`'s output must hold at the end.
    pub fn expected_value(self, rank: RankId, unit: u32, root: RankId) -> Expected {
        match self {
            Self::AllReduce | Self::Reduce => Expected::Reduced { unit },
            Self::ReduceScatter => Expected::Reduced { unit: rank.0 },
            Self::AllGather | Self::Gather => Expected::Copied { rank: RankId(unit), unit: 0 },
            Self::Broadcast => Expected::Copied { rank: root, unit },
            Self::Scatter => Expected::Copied { rank: root, unit: rank.0 },
            Self::AllToAll => Expected::Copied { rank: RankId(unit), unit: rank.0 },
        }
    }

    /// Returns the least units of data that pass through the busiest port of any algorithm, where each rank has one
    /// port each way: some rank must receive (or send) that amount. For `AllReduce` 2(n-1)/n of the buffer (Patarasu
    /// and Yuan, *Bandwidth optimal all-reduce algorithms for clusters of workstations*, 2009).
    pub fn least_units(self, nranks: u32) -> f64 {
        let n = f64::from(nranks);
        match self {
            _ if nranks < 2 => 0.0,
            Self::AllReduce => 2.0 * (n - 1.0) / n,
            Self::Broadcast | Self::Reduce => 1.0,
            Self::ReduceScatter
            | Self::AllGather
            | Self::Scatter
            | Self::Gather
            | Self::AllToAll => n - 1.0,
        }
    }

    /// Returns the least number of dependent sends of any algorithm whose ranks send to, and receive from, `ports`
    /// peers at once: with each send, the data of one rank reaches at most `ports + 1` times as many ranks.
    pub fn least_rounds(self, nranks: u32, ports: u32) -> u32 {
        let (mut rounds, mut reached) = (0, 1_u64);
        while reached < u64::from(nranks) {
            reached = reached.saturating_mul(u64::from(ports.max(1)) + 1);
            rounds += 1;
        }
        rounds
    }

    /// Returns the size of a call in bytes by nccl-tests' convention: the size of the larger of a rank's two buffers,
    /// for `count` elements a unit of `dtype_size` bytes each.
    pub fn bytes(self, count: u64, nranks: u32, dtype_size: u64) -> u64 {
        count * self.max_units(nranks) * dtype_size
    }

    /// Returns the length of the larger of a rank's two buffers, in units of the count.
    pub fn max_units(self, nranks: u32) -> u64 {
        u64::from(self.max_input_units(nranks).max(self.max_output_units(nranks)))
    }

    /// Returns the factor from algorithm bandwidth (size by time) to bus bandwidth, by nccl-tests' convention (its
    /// `PERFORMANCE.md`).
    pub fn bus_factor(self, nranks: u32) -> f64 {
        let n = f64::from(nranks);
        match self {
            Self::AllReduce => 2.0 * (n - 1.0) / n,
            Self::Broadcast | Self::Reduce => 1.0,
            _ => (n - 1.0) / n,
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
