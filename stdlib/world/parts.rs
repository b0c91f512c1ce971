//! Worlds of some ranks of a world: of the ranks of each color, and of the ranks that are left after a failure.

use std::collections::BTreeMap;

use roundelay_kernels::network::Survivors;
use roundelay_kernels::shared_memory::{self, UniqueId};

use super::World;
use super::joining::{given, taken};
use crate::Error;

/// Bytes that a rank says of itself: 1 more than its color or 0, its key, and the id of the world that it would name.
const RECORD: usize = 16 + UniqueId::BYTES;

/// A rank of a part behind its key, and all ranks of a part, in their order.
type Member = (i64, u32);
type Members = Vec<Member>;

impl World {
    /// Makes a world of the ranks of each color, in the order of their keys, and of their ranks here where keys are
    /// equal. A rank with no color gets no world. It is a call of all ranks, as `MPI_Comm_split` is, and this world
    /// works as before.
    ///
    /// On several hosts, a part whose ranks are on several hosts meets by TCP at a port of its first rank. Where messages
    /// between hosts are MPI's, such a part is refused (E0427).
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
        // The members of each color, in the order of their keys.
        let mut parts: BTreeMap<u64, Members> = BTreeMap::new();
        for (member, record) in (0_u32..).zip(all.chunks_exact(RECORD)) {
            let [of_color, key] = [0, 8].map(|at| number(&record[at..]));
            parts.entry(of_color).or_default().push((key as i64, member));
        }
        parts.remove(&0);
        for members in parts.values_mut() {
            members.sort_unstable();
        }
        let mine = parts.get(&of_color);
        let place = self.place_for(&parts, mine)?;
        let Some(members) = mine else { return Ok(None) };
        let own = |(_, member): &Member| *member == rank.id();
        let own = members.iter().position(own).expect("a rank has its own color") as u32;
        let (size, options) = (members.len() as u32, self.engine.options());
        if let Some(id) = place {
            return Ok(Some(Self::join_with(&id, size, own, options)?));
        }
        let first = &all[members[0].1 as usize * RECORD + 16..];
        let id = UniqueId::from_bytes(*first.first_chunk().expect("a record has an id"));
        Ok(Some(Self::of(shared_memory::World::join(&id, size, own, options)?)))
    }

    /// Returns the id by which the members of this rank's part meet, where they are on several hosts: the first of them opens
    /// a place. All ranks call it.
    fn place_for(
        &self,
        parts: &BTreeMap<u64, Members>,
        mine: Option<&Members>,
    ) -> Result<Option<UniqueId>, Error> {
        let Some(hosts) = &self.hosts else { return Ok(None) };
        let apart = |members: &&Members| self.are_apart(members);
        if !parts.values().any(|members| apart(&members)) {
            return Ok(None);
        }
        let mine = mine.filter(apart);
        let opens = mine.is_some_and(|members| members[0].1 == hosts.rank());
        let opened = opens.then(|| Ok(hosts.carrier().open_place(self.engine.options())?));
        let mut ids = vec![0_u8; hosts.nranks() as usize * UniqueId::BYTES];
        self.rank().all_gather(&given(opened.as_ref()), &mut ids)?;
        let Some(members) = mine else { return Ok(None) };
        let id = opened.unwrap_or_else(|| taken(&ids, members[0].1))?;
        Ok(Some(hosts.carrier().with_key(&id)?))
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
    /// On several hosts, the first rank that is left opens a port, and invites the others, also where the process at which
    /// the ranks met first has ended; a rank that is alive and does not call it is E0427, with its number in the new world.
    /// Where messages between hosts are MPI's, it is refused (E0427).
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
        self.turns.idle();
        let most = self.plans_kept();
        let Some(hosts) = &self.hosts else {
            return Ok(Self::with(self.engine.shrink()?, self.chosen.clone(), most));
        };
        let options = self.engine.options();
        let Survivors { id, nranks, rank } = hosts.carrier().survivors(options)?;
        let mut world = Self::join_with(&id, nranks, rank, options)?;
        world.engine.goes_on_as(&self.engine);
        world.chosen = self.chosen.on_hosts_of(&world.chosen);
        Ok(world.keeping(most))
    }
}

/// Returns the number of 8 bytes at the beginning of some.
fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("a record has two numbers"))
}
