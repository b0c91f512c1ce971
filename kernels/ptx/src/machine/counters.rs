//! Counts of the instructions and accesses of a run.

use std::ops::{Add, AddAssign};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of a run, or of a part of it. An instruction counts once for each group of lanes that executes it
        /// together.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }

        impl Counters {
            /// Each count with its name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }
    };
}

counters! {
    /// Instructions of all kinds.
    instructions,
    /// Instructions of all kinds, once for each lane.
    lane_instructions,
    /// Operations on registers: arithmetic, moves, addresses.
    arithmetic,
    /// Branches, calls and returns.
    control,
    /// Plain loads of global memory.
    global_loads,
    /// Plain stores to global memory.
    global_stores,
    /// Sectors of 32 bytes of the loads of global memory, plain and strong.
    load_sectors,
    /// Sectors of 32 bytes of the stores to global memory, plain and strong.
    store_sectors,
    /// Loads of global memory, plain and strong, of 16 bytes a lane.
    wide_loads,
    /// The sectors of these.
    wide_load_sectors,
    /// Stores to global memory, plain and strong, of 16 bytes a lane.
    wide_stores,
    /// The sectors of these.
    wide_store_sectors,
    /// Bytes that the lanes of these loads and stores take.
    wide_bytes,
    /// Plain accesses to shared memory.
    shared_accesses,
    /// Accesses to local memory, parameters and constants.
    private_accesses,
    /// Strong loads of global memory.
    strong_loads,
    /// Strong stores to global memory.
    strong_stores,
    /// Strong accesses to shared memory.
    handovers,
    /// Atomic reductions.
    reductions,
    /// Fences.
    fences,
    /// Barriers of a block.
    barriers,
    /// Shuffles, votes and barriers of a warp.
    warp_exchanges,
}

impl Add for Counters {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}
