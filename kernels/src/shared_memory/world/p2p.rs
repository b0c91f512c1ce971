//! Messages from one rank to another, beside all calls: each ordered pair of ranks has a ring for them. A message is a
//! header and its bytes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;

use super::World;
use super::failure::Cause;
use super::queue_ends::QueueEnd;
use super::ring::{Ring, UNIT};
use super::watch::{self, Watch};
use crate::Error;
use crate::element::Element;
use crate::error::{Ended, Message};
use crate::reduce::{Stores, copy};

/// The bits that every header has.
const MARK: u64 = 0x72_646c;

impl World {
    /// Sends `buffer` to rank `to`, which is to receive it with [`Self::recv`] in a buffer of the same length and type.
    ///
    /// # Errors
    /// E0411 for a rank that does not exist; E0405 where the ring has no room and rank `to` does not receive within the
    /// deadline, E0428 where its process ended; after that, E0413 or E0428 for every later call or message.
    pub fn send<T: Element>(&self, buffer: &[T], to: u32) -> Result<(), Error> {
        self.here()?;
        let mut end = end(&self.mail.sent, to)?;
        self.intact()?;
        end.messages += 1;
        let bytes = size_of_val(buffer);
        let mut post = self.post::<T>(&mut end, (true, to as usize), bytes);
        let from = buffer.as_ptr().cast::<u8>();
        while post.ring.room()? == 0 {
            watch::wait(&post, Some(post.ring.to), || post.ring.room() != Ok(0))?;
        }
        post.write_header();
        post.ring.publish();
        while post.done < bytes {
            let room = post.ring.room()?;
            if room == 0 {
                watch::wait(&post, Some(post.ring.to), || post.ring.room() != Ok(0))?;
                continue;
            }
            let (place, len) = post.piece(room);
            // SAFETY: the rest of the buffer has these bytes, and the ring's reader is done with this part of the ring.
            unsafe { copy(place, from.add(post.done), len, Stores::Cached) };
            post.step(len);
        }
        Ok(())
    }

    /// Receives a message that rank `from` sent with [`Self::send`]: messages arrive in the order in which they were
    /// sent.
    ///
    /// # Errors
    /// E0402 and E0403 for a message of another length or type: that message is lost, and later messages arrive as
    /// usual; E0411 for a rank that does not exist; E0405 where rank `from` does not send within the deadline, E0428
    /// where its process ended, E0430 where its ring holds bytes that no rank writes; after that, E0413 or E0428 for
    /// every later call or message.
    pub fn recv<T: Element>(&self, buffer: &mut [T], from: u32) -> Result<(), Error> {
        self.here()?;
        let mut end = end(&self.mail.received, from)?;
        self.intact()?;
        end.messages += 1;
        let bytes = size_of_val(buffer);
        let mut post = self.post::<T>(&mut end, (false, from as usize), bytes);
        while post.ring.filled()? == 0 {
            watch::wait(&post, Some(post.ring.from), || post.ring.filled() != Ok(0))?;
        }
        let sent = post.read_header()?;
        post.ring.publish();
        // A message that does not fit is read and dropped.
        let fits = sent == (bytes, T::DTYPE);
        post.bytes = sent.0;
        let to = buffer.as_mut_ptr().cast::<u8>();
        while post.done < post.bytes {
            let filled = post.ring.filled()?;
            if filled == 0 {
                watch::wait(&post, Some(post.ring.from), || post.ring.filled() != Ok(0))?;
                continue;
            }
            let (place, len) = post.piece(filled);
            if fits {
                // SAFETY: the rest of the buffer has room for these bytes, which the ring's writer is done with; any
                // bytes are elements.
                unsafe { copy(to.add(post.done), place, len, Stores::Cached) };
            }
            post.step(len);
        }
        if fits {
            return Ok(());
        }
        let message = |bytes: usize, dtype: DType| Message { len: bytes / dtype.size(), dtype };
        Err(Error::WrongMessage {
            ranks: [self.named(from as usize), self.named(self.rank)],
            sent: message(sent.0, sent.1),
            received: message(bytes, T::DTYPE),
        })
    }

    fn post<'w, T: Element>(
        &'w self,
        end: &'w mut QueueEnd,
        (writes, other): (bool, usize),
        bytes: usize,
    ) -> Post<'w> {
        let (from, to) = if writes { (self.rank, other) } else { (other, self.rank) };
        let at = self.shared.arena.layout.mail(from, to);
        let ring = Ring { world: self, end, at, from, to, writes };
        Post { ring, dtype: T::DTYPE, bytes, done: 0 }
    }
}

/// Returns this rank's end of a ring. Threads of a rank that send to one rank take turns.
fn end(ends: &[Mutex<QueueEnd>], rank: u32) -> Result<MutexGuard<'_, QueueEnd>, Error> {
    let nranks = ends.len() as u32;
    let end = ends.get(rank as usize).ok_or(Error::NoSuchRank { rank: RankId(rank), nranks })?;
    Ok(end.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A message under way, at one of its ends.
struct Post<'w> {
    ring: Ring<'w>,
    dtype: DType,
    bytes: usize,
    /// Bytes of the message that are in the ring, or read from it.
    done: usize,
}

impl Post<'_> {
    /// Returns the first word of the header of this pair's current message, without the type.
    fn mark(&self) -> u64 {
        self.ring.end.messages << 32 | MARK << 8
    }

    fn write_header(&mut self) {
        let dtype = DType::ALL.iter().position(|dtype| *dtype == self.dtype);
        let dtype = dtype.expect("it is in the list of all") as u64;
        self.ring.write([self.mark() | dtype, self.bytes as u64]);
    }

    /// Reads the length in bytes and the type of the next message.
    fn read_header(&mut self) -> Result<(usize, DType), Error> {
        let [word, bytes] = self.ring.look(0);
        let dtype = DType::ALL.get((word & 0xff) as usize).copied();
        let dtype = dtype.filter(|_| word & !0xff == self.mark());
        let whole = dtype.filter(|dtype| bytes.is_multiple_of(dtype.size() as u64));
        let Some(dtype) = whole else {
            let world = self.ring.world;
            let [from, to] = [self.ring.from, self.ring.to].map(|rank| world.named(rank));
            let number = self.ring.end.messages;
            return Err(world.corrupt(format!(
                "message {number} of rank {from} to rank {to} begins with {word:#x} and a length of {bytes} bytes"
            )));
        };
        self.ring.step(UNIT);
        Ok((bytes as usize, dtype))
    }

    /// Returns the place and the length of the message's next bytes in one piece, of the `there` bytes in the ring.
    fn piece(&self, there: usize) -> (*mut u8, usize) {
        self.ring.piece(there, self.bytes - self.done)
    }

    /// Advances by `len` bytes, and publishes the new position to the other end.
    fn step(&mut self, len: usize) {
        self.done += len;
        self.ring.step(len);
        self.ring.publish();
    }

    /// Returns a text about the action for which this rank waits.
    fn wanted(&self) -> String {
        let (Self { bytes, done, .. }, number) = (self, self.ring.end.messages);
        let [from, to] = [self.ring.from, self.ring.to].map(|rank| self.ring.world.named(rank));
        let Message { len, dtype } = Message { len: bytes / self.dtype.size(), dtype: self.dtype };
        match (self.ring.writes, done) {
            (true, _) => format!(
                "received message {number} of rank {from}, {len} elements of {dtype}, {done} of whose {bytes} bytes were on their way"
            ),
            (false, 0) => format!("sent message {number} to rank {to}"),
            (false, _) => {
                format!("sent all of message {number} to rank {to}: {done} of {bytes} bytes came")
            }
        }
    }
}

impl Watch for Post<'_> {
    fn world(&self) -> &World {
        self.ring.world
    }

    fn ends(&self) -> bool {
        self.goes_on().is_err()
    }

    fn goes_on(&self) -> Result<(), Error> {
        self.ring.world.intact()
    }

    fn needs(&self, _: usize) -> bool {
        true
    }

    fn lost(&self, rank: usize, how: &str) -> Error {
        let world = self.ring.world;
        let (pid, who) = (world.peers[rank].pid, world.who_waits(rank));
        let (wanted, number, rank) = (self.wanted(), world.shared.number(rank), world.named(rank));
        let what = format!("rank {rank} (process {pid}) {how} before it {wanted}; {who}");
        let ended = Ended { rank, pid, number, what };
        let error = Error::RankEnded(Box::new(ended.clone()));
        world.give_up(&Cause::Ended(ended), error)
    }

    fn late(&self, _: Option<usize>) -> Error {
        let (world, wanted) = (self.ring.world, self.wanted());
        let other = self.ring.other();
        let (rank, after) = (world.named(world.rank), world.deadline());
        let (pid, other) = (world.peers[other].pid, world.named(other));
        let what = format!(
            "rank {rank} waited {after:?} for rank {other} (process {pid}), which has not {wanted}"
        );
        world.give_up_for(Error::Late { what })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::memory::arena::LINE;
    use super::World;
    use crate::{Error, Options};

    /// Returns the results of a send of rank 0 and a receive of rank 1, after `spoil` wrote to the ring.
    fn told(spoil: impl Fn(&dyn Fn(usize, u64))) -> [Result<(), Error>; 2] {
        let worlds = World::together(2, Options::new()).expect("a world");
        worlds[0].send(&[1_u32, 2], 1).expect("there is room");
        let arena = &worlds[0].shared.arena;
        let at = arena.layout.mail(0, 1);
        spoil(&|word, value| arena.word(at + word).store(value, Ordering::Relaxed));
        let sent = worlds[0].send(&[0_u32], 1);
        [sent, worlds[1].recv(&mut [0_u32; 2], 0)]
    }

    #[test]
    fn what_no_rank_writes_is_corrupt() {
        assert_eq!(told(|_| ()), [Ok(()), Ok(())]);
        // The reader's count, which the sender reads.
        let [sent, received] = told(|store| store(LINE, 1 << 40));
        assert!(matches!(&sent, Err(Error::Corrupt { .. })), "{sent:?}");
        assert!(matches!(received, Err(Error::Abandoned { .. })), "the first cause is told");
        let spoiled = [
            // No type, no mark, another message's number, a part of an element.
            (2 * LINE, 0x0001_7264_6cff),
            (2 * LINE, 0),
            (2 * LINE, 0x0002_7264_6c00),
            (2 * LINE + 8, 7),
        ];
        for (word, value) in spoiled {
            let [_, received] = told(|store| store(word, value));
            assert!(matches!(received, Err(Error::Corrupt { .. })), "{word} {value}: {received:?}");
        }
        // The writer's count, after its last message was published.
        for count in [u64::MAX, 1 << 20, 33] {
            let worlds = World::together(2, Options::new()).expect("a world");
            let at = worlds[0].shared.arena.layout.mail(0, 1);
            worlds[0].shared.arena.word(at).store(count, Ordering::Relaxed);
            let received = worlds[1].recv(&mut [0_u32; 2], 0);
            assert!(matches!(received, Err(Error::Corrupt { .. })), "{count}: {received:?}");
        }
    }
}
