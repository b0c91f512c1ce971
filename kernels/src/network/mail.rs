//! Messages from one rank to another beside all calls: messages within a host go through its memory, and a message
//! between hosts is two messages of the carrier: a header, and then the bytes.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;

use super::place::Hosts;
use super::transfers::CALLS;
use crate::Error;
use crate::element::Element;
use crate::error::Message;

/// The tag of all messages beside calls.
const TAG: u32 = CALLS;
/// The first word of a header, without the dtype in its low byte.
const MARK: u64 = 0x726d << 48;

impl Hosts {
    /// Sends `buffer` to rank `to`, which is to receive it with [`Self::recv`] in a buffer of the same length and type.
    ///
    /// # Errors
    /// For a rank of this host, the errors of [`World::send`](crate::shared_memory::World::send). E0411 for a rank that
    /// does not exist; E0405 where the rank does not receive within the deadline, if the carrier waits for the receive;
    /// the errors of the carrier. After all of these but E0411 nothing in this world works any more.
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
        // SAFETY: the header and the buffer live until `carry` returns, and its requests end before.
        unsafe {
            self.carry(true, to, header.as_ptr().cast_mut().cast(), size_of_val(&header), &wanted)?;
            self.carry(true, to, buffer.as_ptr().cast_mut().cast(), bytes, &wanted)
        }
    }

    /// Receives the next message that rank `from` sent with [`Self::send`], in the order of its sends.
    ///
    /// # Errors
    /// For a rank of this host, the errors of [`World::recv`](crate::shared_memory::World::recv). E0402 and E0403 for a
    /// message of another length or type, which is then gone, and the next message works as before; E0411 for a rank
    /// that does not exist; E0405 where the rank does not send within the deadline; E0430 for a header that no rank
    /// sends; the errors of the carrier. After E0405, E0430 and errors of the carrier nothing in this world works any
    /// more.
    pub fn recv<T: Element>(&self, buffer: &mut [T], from: u32) -> Result<(), Error> {
        let _turn = self.turn(&self.receiving, from)?;
        if let Some(nearby) = self.nearby(from) {
            return self.world.recv(buffer, nearby as u32);
        }
        let mut header = [0_u64; 2];
        let wanted = || format!("rank {from} of another host has not sent a message");
        // SAFETY: `header` is a local value, and all requests end in `carry`.
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
            // SAFETY: the buffer has `bytes` bytes, of which any bits are elements, and is borrowed until `carry`
            // returns.
            return unsafe { self.carry(false, from, buffer.as_mut_ptr().cast(), bytes, &wanted) };
        }
        // Reads the message and drops it, a part at a time.
        let most = self.carrier.most();
        let mut nowhere = vec![0_u8; bytes.min(most)];
        for part in parts(bytes, most) {
            // SAFETY: `nowhere` is a local value with room for a part, and all requests end in `carry`.
            unsafe { self.carry(false, from, nowhere.as_mut_ptr(), part.len(), &wanted)? };
        }
        let message = |bytes: usize, dtype: DType| Message { len: bytes / dtype.size(), dtype };
        Err(Error::WrongMessage {
            ranks: [RankId(from), RankId(self.rank())],
            sent: message(bytes, dtype),
            received: message(room, T::DTYPE),
        })
    }

    /// Takes the turn of this thread among the threads of this rank that send to `rank`, or among those that receive
    /// from it.
    fn turn<'h>(&self, turns: &'h [Mutex<()>], rank: u32) -> Result<MutexGuard<'h, ()>, Error> {
        self.world.here()?;
        self.world.intact()?;
        let nranks = self.nranks();
        let turn = turns.get(rank as usize);
        let turn = turn.ok_or(Error::NoSuchRank { rank: RankId(rank), nranks })?;
        Ok(turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends `bytes` bytes to a rank of another host, or receives them from it, and returns when its requests have
    /// ended.
    ///
    /// # Safety
    /// `at` is valid for `bytes` bytes; no thread writes them while they are sent, and no other code touches them while
    /// they are received.
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
            // SAFETY: the part is within the memory that the caller promises; the request ends here, or is cancelled.
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

/// Returns the parts of `bytes` bytes, of at most `most` bytes each.
fn parts(bytes: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..bytes).step_by(most).map(move |first| first..bytes.min(first + most))
}
