//! The MPI job that this process is a rank of, for programs that do not use MPI themselves: the job begins MPI if no
//! other code has, and ends it only if it began it.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::carrier::{FAILED, MpiCarrier};
use super::{Abi, Handle, Mpi};
use crate::Error;
use crate::network::Carrier;

/// The MPI of this process, begun.
#[derive(Clone, Copy, Debug)]
pub struct MpiJob {
    mpi: &'static Mpi,
    /// The number of ranks.
    pub nranks: u32,
    /// The rank of this process.
    pub rank: u32,
}

static MPI: OnceLock<Result<Mpi, Error>> = OnceLock::new();
/// Locked while MPI is begun, because several threads may ask at once.
static BEGINNING: Mutex<()> = Mutex::new(());

impl MpiJob {
    /// The job of this process; begins MPI if it has not begun.
    ///
    /// MPI that this method began ends when the process exits, unless a call failed with messages under way, or a
    /// thread panicked that had the world: then the launcher sees a rank exit without an end of MPI, and ends the other
    /// ranks.
    ///
    /// # Errors
    /// E0427 where there is no MPI, it cannot begin, or it has ended.
    pub fn begin() -> Result<Self, Error> {
        let mpi = MPI.get_or_init(Mpi::load).as_ref().map_err(Clone::clone)?;
        let functions = mpi.functions();
        let one = BEGINNING.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut begun, mut ended): (c_int, c_int) = (0, 0);
        // SAFETY: there is room for the answers, and both functions may be called at any time.
        unsafe {
            (functions.initialized)(&raw mut begun);
            (functions.finalized)(&raw mut ended);
        }
        if ended != 0 {
            let what = "MPI has ended in this process; make the world before that".to_owned();
            return Err(Error::NotJoined { what });
        }
        if begun == 0 {
            let mut level = 0;
            let wanted = mpi.abi().thread_multiple();
            // SAFETY: MPI takes nulls for the arguments of the program; there is room for the answer.
            let code =
                unsafe { (functions.init_thread)(null_mut(), null_mut(), wanted, &raw mut level) };
            if code != 0 {
                return Err(mpi.error("MPI_Init_thread", code));
            }
            // SAFETY: the function stays, and unwinds nowhere.
            unsafe { libc::atexit(end) };
        }
        drop(one);
        let (mut nranks, mut rank): (c_int, c_int) = (0, 0);
        // SAFETY: there is room for the answers, and MPI has begun.
        let codes = unsafe {
            [
                (functions.comm_size)(mpi.comm_world(), &raw mut nranks),
                (functions.comm_rank)(mpi.comm_world(), &raw mut rank),
            ]
        };
        match codes.into_iter().find(|code| *code != 0) {
            None => Ok(Self { mpi, nranks: nranks as u32, rank: rank as u32 }),
            Some(code) => Err(mpi.error("MPI_Comm_size", code)),
        }
    }

    /// Gathers the bytes of all ranks in their order; each rank gives equally many, and all ranks call it.
    ///
    /// # Errors
    /// E0427 where MPI refuses.
    pub fn allgather(&self, mine: &[u8]) -> Result<Vec<u8>, Error> {
        self.mpi.allgather(self.mpi.comm_world(), self.nranks, mine)
    }

    /// A carrier of messages to the ranks of other hosts, over a communicator of its own: all ranks call it.
    ///
    /// # Errors
    /// E0427 where MPI refuses.
    pub fn carrier(&self) -> Result<Arc<dyn Carrier>, Error> {
        let mut level = 0;
        // SAFETY: there is room for the answer.
        let code = unsafe { (self.mpi.functions().query_thread)(&raw mut level) };
        if code != 0 {
            return Err(self.mpi.error("MPI_Query_thread", code));
        }
        let carrier = MpiCarrier::of_copy(self.mpi, self.mpi.comm_world())?;
        let abi = self.mpi.abi();
        Ok(Arc::new(if level >= abi.thread_multiple() {
            carrier
        } else {
            carrier.by_turns(level < abi.thread_serialized())
        }))
    }
}

/// Ends MPI when the process exits.
extern "C" fn end() {
    let Some(Ok(mpi)) = MPI.get() else { return };
    let mut ended: c_int = 0;
    // SAFETY: the function may be called at any time.
    unsafe { (mpi.functions().finalized)(&raw mut ended) };
    if ended == 0 && !FAILED.load(Ordering::Relaxed) {
        // SAFETY: this process began MPI, and no message of it is under way.
        unsafe { (mpi.functions().finalize)() };
    }
}

impl Mpi {
    /// Gathers the bytes of all ranks of a communicator of `size` ranks, in their order; each rank gives equally many,
    /// and all ranks call it.
    ///
    /// # Errors
    /// E0427 where MPI refuses.
    pub fn allgather(&self, comm: Handle, size: u32, mine: &[u8]) -> Result<Vec<u8>, Error> {
        let mut all = vec![0_u8; mine.len() * size as usize];
        let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
        let len =
            c_int::try_from(mine.len()).map_err(|_| self.error("MPI_Allgather", Abi::ERR_COUNT))?;
        let gather = self.functions().allgather;
        // SAFETY: there is room for `mine.len()` bytes of each rank of the communicator.
        let code = unsafe { gather(from, len, self.byte(), to, len, self.byte(), comm) };
        if code == 0 { Ok(all) } else { Err(self.error("MPI_Allgather", code)) }
    }
}
