//! The state of a rank: its place in the world, a plan, and buffers.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use roundelay::{DType, Options, ReduceOp, stay_in_place};
use roundelay_core::collective::Collective;
use roundelay_core::counts::Counts;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::verify::Proved;
use roundelay_kernels::Error;
use roundelay_kernels::reference::fill;
use roundelay_kernels::shared_memory::{Lent, World, WorldPlan};

use super::meeting;
use crate::page_buffers::{Aligned, rewrite};

/// The byte that fills a result before a run.
const UNTOUCHED: u8 = 0xA5;

/// The world of a rank, and the plan by which it meets the other ranks.
pub(super) struct HeldPlace {
    world: Arc<World>,
    barrier: WorldPlan,
    /// Whether buffers lie in memory that all ranks can touch.
    alloc: bool,
}

/// The plan that is run, and its buffers.
pub(super) struct Held {
    plan: WorldPlan,
    buffers: Buffers,
}

struct Buffers {
    of: Of,
    input: HeldMemory,
    /// The buffer of the output, or in place of both.
    room: HeldMemory,
    output: usize,
    /// The starts of input and output in place.
    starts: [usize; 2],
}

/// The key of buffers and their contents: the collective, its root, the data, the seed, and the counts of blocks.
type Of = (Collective, RankId, (u64, DType, ReduceOp), u64, Option<Counts>);

enum HeldMemory {
    Own(Aligned),
    Lent(Lent<u8>),
}

impl HeldPlace {
    /// Joins the world that the command started this process in, and goes to a core of its own as far as there are so
    /// many.
    pub(super) fn join(options: Options, alloc: bool) -> Result<Self, Error> {
        let world = Arc::new(World::from_env(options)?);
        // After joining, because a world counts the cores that the process may use.
        stay_in_place(world.rank(), world.nranks());
        let barrier =
            WorldPlan::new(&world, &meeting(world.nranks()), 1, DType::U8, ReduceOp::Max)?;
        Ok(Self { world, barrier, alloc })
    }

    /// Adds the ways that the world has chosen to the host's file; rank 0 returns them, and the file's path.
    pub(super) fn keep_ways(&self) -> Result<(Vec<String>, Option<String>), Error> {
        if self.world.rank() != 0 {
            return Ok((Vec::new(), None));
        }
        let ways = self.world.ways().iter().map(ToString::to_string).collect();
        let file = self.world.keep_ways()?;
        Ok((ways, file.map(|file| file.display().to_string())))
    }

    pub(super) fn nranks(&self) -> u32 {
        self.world.nranks()
    }

    /// Makes a plan, and buffers unless the earlier buffers fit it.
    pub(super) fn hold(
        &self,
        before: Option<Held>,
        proved: &Proved,
        data: (u64, DType, ReduceOp),
        seed: u64,
    ) -> Result<Held, Error> {
        let schedule = proved.schedule();
        let counts = proved.even().map(|(_, counts)| counts.clone());
        let of = (schedule.collective, schedule.root, data, seed, counts);
        let (count, dtype, op) = data;
        let plan = WorldPlan::new(&self.world, proved, count, dtype, op)?;
        let buffers = match before.map(|held| held.buffers).filter(|held| held.of == of) {
            Some(buffers) => buffers,
            None => self.buffers(of, schedule)?,
        };
        Ok(Held { plan, buffers })
    }

    fn buffers(&self, of: Of, schedule: &Schedule) -> Result<Buffers, Error> {
        let (_, _, (count, dtype, op), seed, _) = of;
        let (rank, nranks) = (RankId(self.world.rank()), self.nranks());
        let bytes = |buffer| schedule.elements(buffer, rank, count) as usize * dtype.size();
        let (input, output) = (bytes(Buffer::Input), bytes(Buffer::Output));
        let (from, to) = schedule.in_place_starts(rank, count);
        let starts = [from, to].map(|at| at as usize * dtype.size());
        let memory = |len, nth| -> Result<HeldMemory, Error> {
            if self.alloc {
                return Ok(HeldMemory::Lent(self.world.alloc::<u8>(len)?));
            }
            Ok(HeldMemory::Own(Aligned::new(len, UNTOUCHED, nth)))
        };
        let room = memory(input.max(output), nranks + rank.0)?;
        let mut own = memory(input, rank.0)?;
        own.copy_from_slice(&fill(dtype, op, seed, rank.0, input / dtype.size()));
        Ok(Buffers { of, input: own, room, output, starts })
    }

    /// Takes the record of the traced runs, as lines of a trace.
    pub(super) fn trace(&self) -> String {
        self.world.trace()
    }

    /// Meets the other ranks, then runs `runs` times in a row, recorded or not, and returns the seconds of the runs.
    pub(super) fn row(
        &self,
        held: &mut Held,
        (in_place, traced): (bool, bool),
        runs: u32,
    ) -> Result<f64, Error> {
        self.barrier.run::<u8>(&[0], &mut [0])?;
        if traced {
            self.world.record(true);
        }
        let begun = Instant::now();
        for _ in 0..runs {
            held.run(in_place)?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        if traced {
            self.world.record(false);
        }
        Ok(seconds)
    }
}

impl Held {
    fn run(&mut self, in_place: bool) -> Result<(), Error> {
        let Buffers { input, room, output, .. } = &mut self.buffers;
        if in_place {
            self.plan.run_bytes_in_place(room)
        } else {
            self.plan.run_bytes(input, &mut room[..*output])
        }
    }

    /// Puts the input where it lies in place, and clears the buffer, so that no byte of an earlier result counts as a
    /// new one.
    pub(super) fn prepare(&mut self, in_place: bool) {
        let Buffers { input, room, starts: [start, _], .. } = &mut self.buffers;
        room.fill(UNTOUCHED);
        if in_place {
            room[*start..][..input.len()].copy_from_slice(input);
        }
    }

    /// Writes the input again, where it lies.
    pub(super) fn rewrite(&mut self, in_place: bool) {
        let Buffers { input, room, starts: [start, _], .. } = &mut self.buffers;
        let len = input.len();
        rewrite(if in_place { &mut room[*start..][..len] } else { input });
    }

    pub(super) fn shown(&self, in_place: bool) -> &[u8] {
        let Buffers { room, output, starts: [_, start], .. } = &self.buffers;
        &room[if in_place { *start } else { 0 }..][..*output]
    }
}

impl Deref for HeldMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(own) => own,
            Self::Lent(lent) => lent,
        }
    }
}

impl DerefMut for HeldMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(own) => own,
            Self::Lent(lent) => lent,
        }
    }
}
