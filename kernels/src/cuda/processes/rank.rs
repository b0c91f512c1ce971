//! A rank with a process and a device of its own.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUdevice_attribute;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::verify::{Callers, Proved};
use roundelay_export::cuda::{Kernel, Protocol, Spec};

use super::super::device::{Device, failed};
use super::super::device_rank::DeviceRank;
use super::super::error::Error;
use super::super::nvrtc::Nvrtc;
use super::super::shared_block::{BlockKind, SharedBlock, Ticket};
use super::agreement::agree;
use super::transport::{Transport, Uuid, uuid_of, way_to};
use super::watcher::Watcher;
use crate::shared_memory::World;
use crate::threads::stay_near;

/// The rank of this process in a world of processes that have a GPU each, or share GPUs.
///
/// Where ranks share a device, the device runs one process at a time, for about a millisecond each: a step in which
/// ranks wait for each other takes that time for each rank, so such a world is for tests and for debugging.
///
/// The rank leaves with the last of its clones and plans. Where the process of a rank ends, all other ranks get E0428,
/// and go on with [`Self::shrink`].
///
/// ```no_run
/// use roundelay_kernels::Options;
/// use roundelay_kernels::cuda::CudaRank;
/// use roundelay_kernels::shared_memory::World;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let world = World::from_env(Options::new())?;
/// let rank = CudaRank::join(&world, 0)?;
/// for (peer, transport, why) in rank.transports() {
///     println!("rank {peer}: {transport} {}", why.unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CudaRank(Arc<Shared>);

pub(super) struct Shared {
    rank: DeviceRank,
    /// A world of the device's ranks alone: its messages are those of this module.
    pub(super) world: Arc<World>,
    /// By the rank that owns the memory: the way of this rank to it, and the reason for that way.
    routes: Vec<(Transport, Option<String>)>,
    /// By rank: the kind of its block, which all other ranks can map.
    pub(super) kinds: Vec<BlockKind>,
    /// The reason why no switch folds and stores in the memory of all ranks; `None` where one does.
    pub(super) no_switch: Option<String>,
    /// A rank whose atomics are not whole in the memory of another rank, the owner of that memory, and the way to it.
    pub(super) torn: Option<(RankId, RankId, Transport)>,
    pub(super) watcher: Watcher,
    /// The stream on which calls follow each other, where the ranks are on several hosts.
    pub(super) order: Option<Arc<CudaStream>>,
}

impl fmt::Debug for CudaRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, nranks, device) = (self.rank(), self.nranks(), self.device.ordinal);
        write!(f, "CudaRank(rank {rank} of {nranks} on device {device})")
    }
}

impl Deref for CudaRank {
    type Target = DeviceRank;

    fn deref(&self) -> &DeviceRank {
        &self.0.rank
    }
}

impl CudaRank {
    /// Opens the device of that number for this process's rank of `world`, and returns when all ranks of the world have
    /// opened theirs and know how they reach each other's memory.
    ///
    /// # Errors
    /// E0415 without a driver or that device; E0421 where the driver refuses; E0413 with the error of another rank; E0405
    /// and E0428 where a rank does not come or its process ends.
    pub fn join(world: &World, device: usize) -> Result<Self, Error> {
        // Messages of the caller's world may be under way.
        let own = world.second()?;
        let device = Device::open(device);
        if let Ok(device) = &device {
            stay_near(&device.busid());
        }
        Self::on(own, device)
    }

    /// Returns the number of the device that is current in this thread, 0 where none is.
    ///
    /// # Errors
    /// E0415 without a driver or a device.
    pub fn current_device() -> Result<usize, Error> {
        super::super::device::current()
    }

    /// Returns the number of devices.
    ///
    /// # Errors
    /// E0415 without a driver or a device.
    pub fn devices() -> Result<usize, Error> {
        super::super::device::count()
    }

    /// Whether this process finds NVRTC, which compiles kernels.
    #[doc(hidden)]
    pub fn finds_compiler() -> bool {
        Nvrtc::of_process().is_ok()
    }

    /// Whether the process of another rank has ended. The kernels of all ranks end soon after, with the waits in which they
    /// were.
    pub fn has_lost(&self) -> bool {
        self.0.world.find_lost().is_some()
    }

    /// Checks that the processes of all ranks are there, without waiting; any thread may call it.
    ///
    /// # Errors
    /// E0428 where one has ended before it left; the first cause where the ranks have failed before.
    pub fn check(&self) -> Result<(), Error> {
        let world = &self.0.world;
        world.intact()?;
        match world.find_lost() {
            Some((rank, how)) => {
                self.0.watcher.abort();
                Err(world.lost_beside(rank, &how, "left").into())
            }
            None => Ok(()),
        }
    }

    /// Makes a rank of the processes that are left, in their order, on the devices that they have. All of them must call
    /// it.
    ///
    /// # Errors
    /// The errors of [`Self::join`].
    pub fn shrink(&self) -> Result<Self, Error> {
        self.0.watcher.abort();
        let own = self.0.world.shrink()?;
        Self::on(own, Device::open(self.device.ordinal))
    }

    fn on(world: World, device: Result<Device, Error>) -> Result<Self, Error> {
        let world = Arc::new(world);
        let opened = device.and_then(|device| {
            let what = format!("opening device {}", device.ordinal);
            let kind = BlockKind::of_device(&device)?;
            let uuid = uuid_of(&device.context).map_err(failed(what))?;
            let multicast = device
                .context
                .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED)
                .map_err(failed(format!("asking device {}", device.ordinal)))?;
            let probe = SharedBlock::own(&device, kind, "memory to try the ways to it", 1)?;
            Ok((device, uuid, multicast != 0, probe))
        });
        let ((device, uuid, _, probe), told) =
            agree(&world, opened, |(_, uuid, multicast, probe)| {
                [&uuid[..], &[u8::from(*multicast)], &probe.ticket().to_bytes()].concat()
            })?;
        let peers = told.iter().map(|bytes| Peer::read(bytes)).collect::<Option<Vec<_>>>();
        let Some(peers) = peers else {
            return Err(world.corrupt("a rank tells no device".to_owned()).into());
        };
        let files: Vec<_> = probe.descriptor().into_iter().collect();
        let mut files = world.exchange_descriptors(&files)?;
        let mine = world.rank() as usize;
        let mut routes = Vec::new();
        for (rank, peer) in peers.iter().enumerate() {
            if rank == mine {
                routes.push((Transport::SameDevice, None));
                continue;
            }
            let mapped = SharedBlock::import(&device, &peer.ticket, files[rank].pop());
            routes.push(match mapped {
                Ok(_) => way_to(&device, &uuid, &peer.uuid),
                Err(error) => (Transport::Host, Some(error.to_string())),
            });
        }
        let row = routes.iter().map(|(transport, _)| *transport as u8).collect();
        let ((), rows) = agree(&world, Ok(()), |()| row)?;
        // No probe is freed while another rank has it mapped.
        drop(probe);
        let nranks = peers.len();
        let reaches = |from: usize, owner: usize| rows[from].get(owner).copied();
        let is = |from, owner, transport: Transport| reaches(from, owner) == Some(transport as u8);
        let mut kinds = Vec::new();
        for (owner, peer) in peers.iter().enumerate() {
            let barred = (0..nranks).find(|from| is(*from, owner, Transport::Host));
            kinds.push(if barred.is_some() { BlockKind::Host } else { peer.ticket.kind });
            if let (Some(from), Some((route, why))) = (barred, routes.get_mut(owner)) {
                if owner != mine && *route != Transport::Host {
                    *why = Some(format!("rank {from} cannot reach the device of rank {owner}"));
                }
                *route = Transport::Host;
            }
        }
        let whole = |from, owner| {
            from == owner
                || is(from, owner, Transport::SameDevice)
                || is(from, owner, Transport::NvLink)
        };
        let mut all = (0..nranks).flat_map(|from| (0..nranks).map(move |owner| (from, owner)));
        let torn = all.find(|&(from, owner)| !whole(from, owner)).map(|(from, owner)| {
            let by_pcie = is(from, owner, Transport::Pcie);
            let way = if by_pcie { Transport::Pcie } else { Transport::Host };
            (RankId(from as u32), RankId(owner as u32), way)
        });
        let lacks = peers.iter().position(|peer| !peer.multicast);
        let mut pairs = (0..nranks).flat_map(|from| (0..from).map(move |owner| (from, owner)));
        let apart = pairs.find(|&(from, owner)| !is(from, owner, Transport::NvLink));
        let no_switch = match (lacks, apart) {
            (Some(rank), _) => Some(format!("the device of rank {rank} has no multicast")),
            (None, Some((from, owner))) if is(from, owner, Transport::SameDevice) => {
                Some(format!("ranks {owner} and {from} share a device"))
            }
            (None, Some((from, owner))) => {
                Some(format!("NVLink does not join the devices of ranks {owner} and {from}"))
            }
            (None, None) => (kinds.iter().any(|kind| *kind != BlockKind::Virtual))
                .then(|| "memory of a device has no descriptors".to_owned()),
        };
        let rank = DeviceRank::new(device, RankId(world.rank()), world.nranks())?;
        let watcher = Watcher::new(&world)?;
        let order = None;
        Ok(Self(Arc::new(Shared { rank, world, routes, kinds, no_switch, torn, watcher, order })))
    }

    /// Opens the device of that number for a rank of several hosts, of which `world` joins those of this host: `rank` is
    /// its number among all, and calls go through memory of the hosts.
    ///
    /// # Errors
    /// The errors of [`Self::join`].
    #[doc(hidden)]
    pub fn across_hosts(
        world: &World,
        device: usize,
        (rank, nranks): (RankId, u32),
    ) -> Result<Self, Error> {
        let world = Arc::new(world.second()?);
        let (device, _) = agree(&world, Device::open(device), |_| Vec::new())?;
        stay_near(&device.busid());
        let rank = DeviceRank::new(device, rank, nranks)?;
        let order = rank.context().new_stream().map_err(failed("making a stream"))?;
        let why = "ranks are on several hosts".to_owned();
        let routes = (0..nranks).map(|_| (Transport::Host, Some(why.clone()))).collect();
        let kinds = vec![BlockKind::Host; nranks as usize];
        let watcher = Watcher::new(&world)?;
        let shared = Shared {
            rank,
            world,
            routes,
            kinds,
            no_switch: Some(why),
            torn: None,
            watcher,
            order: Some(order),
        };
        Ok(Self(Arc::new(shared)))
    }

    /// The ways from this rank's device to the memory of each other rank, and the reason where it is not the best way.
    pub fn transports(&self) -> impl Iterator<Item = (RankId, Transport, Option<&str>)> {
        let mine = self.rank();
        let all = (0..).map(RankId).zip(&self.0.routes);
        all.filter(move |(rank, _)| *rank != mine)
            .map(|(rank, (transport, why))| (rank, *transport, why.as_deref()))
    }

    /// Whether a switch makes the moves of all ranks of an algorithm: the algorithm has some, the switch has the op for the
    /// elements, and it reaches the memory of all ranks.
    pub fn has_switch_for(&self, proved: &Proved, (element, op): (DType, ReduceOp)) -> bool {
        let (protocol, callers) = (Protocol::Direct, Callers::Each);
        let spec = Spec { element, op, protocol, vector: 16, callers };
        self.0.no_switch.is_none() && Kernel::of_switch(proved, spec).is_ok()
    }

    /// Ends the launches of all ranks for a reason of the caller's: they and later ones fail with E0413.
    ///
    /// # Errors
    /// E0427 in a forked child.
    pub fn abort(&self, why: &str) -> Result<(), Error> {
        self.0.world.abort(why)?;
        self.0.watcher.abort();
        Ok(())
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0
    }
}

/// The words of a rank about its device and its block.
struct Peer {
    uuid: Uuid,
    /// Whether a switch reaches its memory.
    multicast: bool,
    ticket: Ticket,
}

impl Peer {
    fn read(told: &[u8]) -> Option<Self> {
        let (uuid, rest) = told.split_first_chunk()?;
        let (multicast, rest) = rest.split_first()?;
        Some(Self { uuid: *uuid, multicast: *multicast != 0, ticket: Ticket::read(rest)? })
    }
}
