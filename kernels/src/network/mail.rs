//! Messages from one rank to another beside all calls: those of a host go by its memory, and others are two messages of
//! the carrier, what it is and then its bytes.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;

use super::place::Hosts;
use super::traffic::CALLS;
use crate::Error;
use crate::element::Element;
use crate::error::Message;

/// The tag of all these messages.
const TAG: u32 = CALLS;
/// What every message begins with, but for its type.
const MARK: u64 = 0x726d << 48;

impl Hosts {
    /// Sends `buffer` to rank `to`, which is to receive it with [`Self::recv`] in a buffer of the same length and type.
    ///
    /// # Errors
    /// Those of [`World::send`](crate::shared_memory::World::send) for a rank of this host. E0411 for a rank that there is
    /// not; E0405 where it does not receive within the deadline, where the carrier waits for that; what the carrier
    /// says. After these but for E0411 nothing in this world works any more.
    pub fn send<T: Element>(&self, buffer: &[T], to: u32) -> Result<(), Error> {
        let _turn = self.turn(&self.sending, to)?;
        if let Some(nearby) = self.nearby(to) {
            return self.world.send(buffer, nearby as u32);
        }
        let bytes = size_of_val(buffer);
        let dtype = DType::ALL.iter().position(|dtype| *dtype == T::DTYPE);
        let dtype = dtype.expect("it is in the list of all") as u64;
        let header = [MARK | dtype, bytes as u64];
        let wanted = || format!("rank {to} of another host has not received {bytes} bytes");
        // SAFETY: the header is this function's, and the buffer is borrowed until all has ended.
        unsafe {
            self.carry(true, to, header.as_ptr().cast_mut().cast(), size_of_val(&header), &wanted)?;
            self.carry(true, to, buffer.as_ptr().cast_mut().cast(), bytes, &wanted)
        }
    }

    /// Receives what rank `from` sent with [`Self::send`]: its messages come in the order in which it sent them.
    ///
    /// # Errors
    /// Those of [`World::recv`](crate::shared_memory::World::recv) for a rank of this host. E0402 and E0403 for a message of
    /// another length or type, which is then gone, and the next is as good as ever; E0411 for a rank that there is not;
    /// E0405 where it does not send within the deadline; E0430 for what no rank sends, and what the carrier says: after
    /// these nothing in this world works any more.
    pub fn recv<T: Element>(&self, buffer: &mut [T], from: u32) -> Result<(), Error> {
        let _turn = self.turn(&self.receiving, from)?;
        if let Some(nearby) = self.nearby(from) {
            return self.world.recv(buffer, nearby as u32);
        }
        let mut header = [0_u64; 2];
        let wanted = || format!("rank {from} of another host has not sent a message");
        // SAFETY: it is this function's.
        unsafe {
            let at = header.as_mut_ptr().cast();
            self.carry(false, from, at, size_of_val(&header), &wanted)?;
        }
        let [mark, bytes] = header;
        let dtype = DType::ALL.get((mark & 0xff) as usize).copied();
        let dtype = dtype.filter(|dtype| {
            mark & !0xff == MARK
                && bytes.is_multiple_of(dtype.size() as u64)
                && isize::try_from(bytes).is_ok()
        });
        let Some(dtype) = dtype else {
            let what = format!(
                "a message of rank {from} begins with {mark:#x} and a length of {bytes} bytes"
            );
            return Err(self.world.give_up_for(Error::Corrupt { what }));
        };
        let (bytes, room) = (bytes as usize, size_of_val(buffer));
        let wanted = || format!("rank {from} of another host has not sent all of {bytes} bytes");
        if (bytes, dtype) == (room, T::DTYPE) {
            // SAFETY: the buffer has so many bytes, any of which are elements, and is borrowed until all has ended.
            return unsafe { self.carry(false, from, buffer.as_mut_ptr().cast(), bytes, &wanted) };
        }
        // Read to nowhere, a part at a time.
        let most = self.carrier.most();
        let mut nowhere = vec![0_u8; bytes.min(most)];
        for part in parts(bytes, most) {
            // SAFETY: it is this function's, and has room for a part.
            unsafe { self.carry(false, from, nowhere.as_mut_ptr(), part.len(), &wanted)? };
        }
        let message = |bytes: usize, dtype: DType| Message { len: bytes / dtype.size(), dtype };
        Err(Error::WrongMessage {
            ranks: [RankId(from), RankId(self.rank())],
            sent: message(bytes, dtype),
            received: message(room, T::DTYPE),
        })
    }

    /// The turn of this thread among those of this rank that do the same with that one.
    fn turn<'h>(&self, turns: &'h [Mutex<()>], rank: u32) -> Result<MutexGuard<'h, ()>, Error> {
        self.world.here()?;
        self.world.intact()?;
        let nranks = self.nranks();
        let turn = turns.get(rank as usize);
        let turn = turn.ok_or(Error::NoSuchRank { rank: RankId(rank), nranks })?;
        Ok(turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends so many bytes to a rank of another host, or receives them, and returns when that has ended.
    ///
    /// # Safety
    /// The memory at `at` is good for so many bytes, which nobody writes if they are sent, and nobody touches if they
    /// are received.
    unsafe fn carry(
        &self,
        sends: bool,
        peer: u32,
        at: *mut u8,
        bytes: usize,
        wanted: &dyn Fn() -> String,
    ) -> Result<(), Error> {
        let (world, carrier) = (&self.world, &*self.carrier);
        for part in parts(bytes, carrier.most()) {
            let (at, len) = (at.wrapping_add(part.start), part.len());
            // SAFETY: within the memory that the caller promises; the request ends here, or is cancelled.
            let request = unsafe {
                if sends {
                    carrier.send(peer, TAG, at, len)
                } else {
                    carrier.receive(peer, TAG, at, len)
                }
            };
            let mut request = request.map_err(|error| world.give_up_for(error))?;
            let mut ended = Ok(false);
            let waited = world.await_beside(wanted, || {
                if ended == Ok(false) {
                    ended = carrier.ended(&mut request);
                }
                ended != Ok(false)
            });
            match (waited, ended) {
                (_, Ok(true)) => {}
                (_, Err(error)) => return Err(world.give_up_for(error)),
                (waited, Ok(false)) => {
                    carrier.cancel(request);
                    return waited;
                }
            }
        }
        Ok(())
    }
}

/// So many bytes, as the carrier takes them.
fn parts(bytes: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..bytes).step_by(most).map(move |first| first..bytes.min(first + most))
}
