//! Worlds of some ranks of a world: of the ranks of each color, and of the ranks that are left after a failure.

use roundelay_kernels::shared_memory::{self, UniqueId};

use super::World;
use crate::Error;

/// Bytes that a rank says of itself: 1 more than its color or 0, its key, and the id of the world that it would name.
const RECORD: usize = 16 + UniqueId::BYTES;

impl World {
    /// Makes a world of the ranks of each color, in the order of their keys, and of their ranks here where keys are
    /// equal. A rank with no color gets no world. It is a call of all ranks, as `MPI_Comm_split` is, and this world
    /// works as before.
    ///
    /// The new world has the [`Options`](crate::Options) of this one, but not the algorithms that this one was told to
    /// use: they may not fit the smaller number of ranks.
    ///
    /// # Errors
    /// The errors of a call, and the errors of [`World::join`].
    ///
    /// ```
    /// use roundelay::{UniqueId, World};
    ///
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// let me = world.rank().id();
    /// // The even ranks and the odd ones, each with the last rank first.
    /// let half = world.split(Some(me % 2), -i64::from(me))?.expect("each has a color");
    /// assert_eq!(half.rank().id(), (world.nranks() - 1 - me) / 2);
    /// assert!(world.split(None, 0)?.is_none());
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>, Error> {
        let id = UniqueId::new()?;
        let (mut rank, nranks) = (self.rank(), self.nranks() as usize);
        let of_color = color.map_or(0, |color| u64::from(color) + 1);
        let mine = [&of_color.to_le_bytes()[..], &key.to_le_bytes(), id.as_bytes()].concat();
        let mut all = vec![0_u8; nranks * RECORD];
        rank.all_gather(&mine, &mut all)?;
        let mut members: Vec<(i64, usize)> = all
            .chunks_exact(RECORD)
            .enumerate()
            .filter(|(_, record)| record[..8] == mine[..8])
            .map(|(member, record)| (key_of(record), member))
            .collect();
        members.sort_unstable();
        if color.is_none() {
            return Ok(None);
        }
        if !self.share_a_host(members.iter().map(|(_, member)| *member as u32)) {
            self.on_one_host("ranks of one color are on several hosts")?;
        }
        let place = |(_, member): &(i64, usize)| *member == rank.id() as usize;
        let place = members.iter().position(place).expect("a rank has its own color");
        let first = &all[members[0].1 * RECORD + 16..];
        let id = UniqueId::from_bytes(*first.first_chunk().expect("a record has an id"));
        let (size, options) = (members.len() as u32, self.engine.options());
        Ok(Some(Self::of(shared_memory::World::join(&id, size, place as u32, options)?)))
    }

    /// Makes, after a failure, a new world of the ranks that are left, in their order: all survivors must call it, each
    /// after a call of its own has failed (E0428, E0405, E0413). Without a failure it makes a second world of the same
    /// ranks, if all ranks call it. It waits for the nonblocking calls under way.
    ///
    /// A rank is left if its process is alive and its world is not dropped. The new world has memory of its own: the
    /// failed world touches no part of it. It has the options and the algorithms ([`World::using`]) of this one, which
    /// are proved anew for the new number of ranks when they are called. Buffers of [`World::alloc`] stay good to read
    /// and to copy from; a call of the new world treats them as any other memory.
    ///
    /// # Errors
    /// E0405 where a rank that is alive does not call it within the deadline, with its name; E0427 where another rank
    /// ends meanwhile, so that the remaining ranks do not meet. After either error it can be called again. Else the
    /// errors of [`World::join`].
    ///
    /// ```
    /// use roundelay::{UniqueId, World};
    ///
    /// let mut world = World::join(&UniqueId::new()?, 1, 0)?;
    /// if let Err(error) = world.rank().barrier() {
    ///     eprintln!("going on without: {error}");
    ///     world = world.shrink()?;
    /// }
    /// // Without a failure it is a second world of all.
    /// assert_eq!(world.shrink()?.nranks(), world.nranks());
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn shrink(&self) -> Result<Self, Error> {
        self.engine.here()?;
        self.on_one_host("nothing brings those who are left together")?;
        self.turns.idle();
        let engine = self.engine.shrink()?;
        let most = self.plans_kept();
        Ok(Self::with(engine, self.chosen.clone(), most))
    }
}

/// Returns the key in a rank's record.
fn key_of(record: &[u8]) -> i64 {
    let mut key = [0; 8];
    key.copy_from_slice(&record[8..16]);
    i64::from_le_bytes(key)
}
