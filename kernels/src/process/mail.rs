//! Messages from one rank to another, beside all calls: each ordered pair has a ring of bytes with one writer and one
//! reader. A message is a header and its bytes, filled up to whole units, so no header lies across the ring's end.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;

use super::arena::{Arena, LINE, MAIL};
use super::ends::End;
use super::failure::Cause;
use super::watch::{self, Watch};
use super::world::World;
use crate::Error;
use crate::host::{Element, Ended, Message};
use crate::reduce::{Stores, copy};

/// Bytes of a header, of which all that is in a ring is a multiple.
const UNIT: usize = 16;
/// Bytes that are made known at once, so that both sides of a long message copy at a time.
const PIECE: usize = MAIL / 4;
/// What every header has in it.
const MARK: u64 = 0x72_646c;

impl World {
    /// Sends `buffer` to rank `to`, which is to receive it with [`Self::recv`] in a buffer of the same length and type.
    ///
    /// # Errors
    /// E0411 for a rank that there is not; E0405 where it does not receive within the deadline what the ring has no
    /// room for, E0428 where its process ended, and then E0413 or E0428 for everything later.
    pub fn send<T: Element>(&self, buffer: &[T], to: u32) -> Result<(), Error> {
        self.here()?;
        let mut end = end(&self.mail.sent, to)?;
        self.intact()?;
        end.messages += 1;
        let bytes = size_of_val(buffer);
        let mut post = self.post::<T>(&mut end, (true, to as usize), bytes);
        let from = buffer.as_ptr().cast::<u8>();
        while post.room()? == 0 {
            watch::wait(&post, Some(post.to), || post.room() != Ok(0))?;
        }
        post.write_header();
        post.publish();
        while post.done < bytes {
            let room = post.room()?;
            if room == 0 {
                watch::wait(&post, Some(post.to), || post.room() != Ok(0))?;
                continue;
            }
            let (place, len) = post.piece(room);
            // SAFETY: what is left of the buffer has these bytes, and the ring's reader has done with the room.
            unsafe { copy(place, from.add(post.done), len, Stores::Cached) };
            post.step(len);
            post.publish();
        }
        Ok(())
    }

    /// Receives what rank `from` sent with [`Self::send`]: its messages come in the order in which it sent them.
    ///
    /// # Errors
    /// E0402 and E0403 for a message of another length or type, which is then gone, and the next is as good as ever;
    /// E0411 for a rank that there is not; E0405 where it does not send within the deadline, E0428 where its process
    /// ended, E0430 where its ring holds what no rank writes, and then E0413 or E0428 for everything later.
    pub fn recv<T: Element>(&self, buffer: &mut [T], from: u32) -> Result<(), Error> {
        self.here()?;
        let mut end = end(&self.mail.received, from)?;
        self.intact()?;
        end.messages += 1;
        let bytes = size_of_val(buffer);
        let mut post = self.post::<T>(&mut end, (false, from as usize), bytes);
        while post.filled()? == 0 {
            watch::wait(&post, Some(post.from), || post.filled() != Ok(0))?;
        }
        let sent = post.read_header()?;
        post.publish();
        // What does not fit is read to nowhere.
        let fits = sent == (bytes, T::DTYPE);
        post.bytes = sent.0;
        let to = buffer.as_mut_ptr().cast::<u8>();
        while post.done < post.bytes {
            let filled = post.filled()?;
            if filled == 0 {
                watch::wait(&post, Some(post.from), || post.filled() != Ok(0))?;
                continue;
            }
            let (place, len) = post.piece(filled);
            if fits {
                // SAFETY: what is left of the buffer has room for these bytes, which the ring's writer has done with;
                // any bytes are elements.
                unsafe { copy(to.add(post.done), place, len, Stores::Cached) };
            }
            post.step(len);
            post.publish();
        }
        if fits {
            return Ok(());
        }
        let message = |bytes: usize, dtype: DType| Message { len: bytes / dtype.size(), dtype };
        Err(Error::WrongMessage {
            ranks: [RankId(from), self.id()],
            sent: message(sent.0, sent.1),
            received: message(bytes, T::DTYPE),
        })
    }

    fn post<'w, T: Element>(
        &'w self,
        end: &'w mut End,
        (sends, other): (bool, usize),
        bytes: usize,
    ) -> Post<'w> {
        let (from, to) = if sends { (self.rank, other) } else { (other, self.rank) };
        Post { world: self, end, from, to, sends, dtype: T::DTYPE, bytes, done: 0 }
    }
}

/// This rank's end of a ring. Threads of a rank that send to the same rank take turns.
fn end(ends: &[Mutex<End>], rank: u32) -> Result<MutexGuard<'_, End>, Error> {
    let nranks = ends.len() as u32;
    let end = ends.get(rank as usize).ok_or(Error::NoSuchRank { rank: RankId(rank), nranks })?;
    Ok(end.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A message under way, for one of its ends.
struct Post<'w> {
    world: &'w World,
    end: &'w mut End,
    from: usize,
    to: usize,
    /// Whether this rank sends, which may be to itself.
    sends: bool,
    dtype: DType,
    bytes: usize,
    /// Bytes of the message that went in or out.
    done: usize,
}

impl Post<'_> {
    fn arena(&self) -> &Arena {
        &self.world.board.arena
    }

    fn at(&self) -> usize {
        self.arena().layout.mail(self.from, self.to)
    }

    /// Bytes between the reader and the writer, as the other end tells of itself.
    fn filled_to(&self, written: u64, read: u64) -> Result<usize, Error> {
        let filled = written.wrapping_sub(read);
        if filled > MAIL as u64 || !filled.is_multiple_of(UNIT as u64) {
            let [from, to] = [self.from, self.to];
            return Err(self.world.corrupt(format!(
                "of {written} bytes that rank {from} wrote for rank {to} that one has read {read}, by a ring of {MAIL} bytes"
            )));
        }
        Ok(filled as usize)
    }

    /// Bytes that can be written.
    fn room(&self) -> Result<usize, Error> {
        let read = self.arena().word(self.at() + LINE).load(Ordering::Acquire);
        Ok(MAIL - self.filled_to(self.end.bytes, read)?)
    }

    /// Bytes that can be read.
    fn filled(&self) -> Result<usize, Error> {
        let written = self.arena().word(self.at()).load(Ordering::Acquire);
        self.filled_to(written, self.end.bytes)
    }

    /// Where this end stands in the ring, and how far it is from there to the ring's end.
    fn place(&self) -> (usize, usize) {
        let place = (self.end.bytes % MAIL as u64) as usize;
        (self.at() + 2 * LINE + place, MAIL - place)
    }

    /// What every header of a message of this pair has in its first word, but for the type.
    fn mark(&self) -> u64 {
        self.end.messages << 32 | MARK << 8
    }

    fn write_header(&mut self) {
        let (at, _) = self.place();
        let dtype = DType::ALL.iter().position(|dtype| *dtype == self.dtype);
        let dtype = dtype.expect("it is in the list of all") as u64;
        self.arena().word(at).store(self.mark() | dtype, Ordering::Relaxed);
        self.arena().word(at + 8).store(self.bytes as u64, Ordering::Relaxed);
        self.end.bytes += UNIT as u64;
    }

    /// The length in bytes and the type of the next message.
    fn read_header(&mut self) -> Result<(usize, DType), Error> {
        let (at, _) = self.place();
        let [word, bytes] = [0, 8].map(|word| self.arena().word(at + word).load(Ordering::Relaxed));
        let dtype = DType::ALL.get((word & 0xff) as usize).copied();
        let dtype = dtype.filter(|_| word & !0xff == self.mark());
        let whole = dtype.filter(|dtype| bytes.is_multiple_of(dtype.size() as u64));
        let Some(dtype) = whole else {
            let [from, to, number] = [self.from as u64, self.to as u64, self.end.messages];
            return Err(self.world.corrupt(format!(
                "message {number} of rank {from} to rank {to} begins with {word:#x} and a length of {bytes} bytes"
            )));
        };
        self.end.bytes += UNIT as u64;
        Ok((bytes as usize, dtype))
    }

    /// The next bytes of the message that lie in one piece, of so many that there are.
    fn piece(&self, there: usize) -> (*mut u8, usize) {
        let (at, to_end) = self.place();
        let len = there.min(to_end).min(PIECE).min(self.bytes - self.done);
        (self.arena().address(at, len), len)
    }

    /// Goes on behind so many bytes, and at the end of the message to a whole unit.
    fn step(&mut self, len: usize) {
        self.done += len;
        self.end.bytes += len.next_multiple_of(UNIT) as u64;
    }

    /// Tells the other end how far this one is.
    fn publish(&self) {
        let (line, other) = if self.sends { (0, self.to) } else { (LINE, self.from) };
        // Release: the bytes are there, or are read.
        self.arena().word(self.at() + line).store(self.end.bytes, Ordering::Release);
        self.world.board.ring_for(other);
    }

    /// What the other rank is to do, in words.
    fn wanted(&self) -> String {
        let (number, Self { from, to, bytes, done, .. }) = (self.end.messages, self);
        let Message { len, dtype } = Message { len: bytes / self.dtype.size(), dtype: self.dtype };
        match (self.sends, done) {
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
        self.world
    }

    fn ends(&self) -> bool {
        self.goes_on().is_err()
    }

    fn goes_on(&self) -> Result<(), Error> {
        self.world.intact()
    }

    fn needs(&self, _: usize) -> bool {
        true
    }

    fn lost(&self, rank: usize, how: &str) -> Error {
        let (pid, who) = (self.world.peers[rank].pid, self.world.who_waits(rank));
        let wanted = self.wanted();
        let what = format!("rank {rank} (process {pid}) {how} before it {wanted}; {who}");
        let number = self.world.board.number(rank);
        let ended = Ended { rank: RankId(rank as u32), pid, number, what };
        let error = Error::RankEnded(Box::new(ended.clone()));
        self.world.give_up(&Cause::Ended(ended), error)
    }

    fn late(&self, _: Option<usize>) -> Error {
        let (world, wanted) = (self.world, self.wanted());
        let other = if self.sends { self.to } else { self.from };
        let (rank, after) = (world.id(), world.deadline());
        let pid = world.peers[other].pid;
        let what = format!(
            "rank {rank} waited {after:?} for rank {other} (process {pid}), which has not {wanted}"
        );
        world.give_up_for(Error::Late { what })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::Ordering;

    use super::{LINE, World};
    use crate::{Error, Options};

    /// What rank 1 is told when it receives, and rank 0 when it sends so much, after `spoil` wrote to the ring.
    fn told(spoil: impl Fn(&dyn Fn(usize, u64))) -> [Result<(), Error>; 2] {
        let worlds = World::together(2, Options::new()).expect("a world");
        worlds[0].send(&[1_u32, 2], 1).expect("there is room");
        let arena = &worlds[0].board.arena;
        let at = arena.layout.mail(0, 1);
        spoil(&|word, value| arena.word(at + word).store(value, Ordering::Relaxed));
        let sent = worlds[0].send(&[0_u32], 1);
        [sent, worlds[1].recv(&mut [0_u32; 2], 0)]
    }

    #[test]
    fn what_no_rank_writes_is_corrupt() {
        assert_eq!(told(|_| ()), [Ok(()), Ok(())]);
        // The count of the reader, in the sender's eyes.
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
        // The count of the writer, which has made its last message known.
        for count in [u64::MAX, 1 << 20, 33] {
            let worlds = World::together(2, Options::new()).expect("a world");
            let at = worlds[0].board.arena.layout.mail(0, 1);
            worlds[0].board.arena.word(at).store(count, Ordering::Relaxed);
            let received = worlds[1].recv(&mut [0_u32; 2], 0);
            assert!(matches!(received, Err(Error::Corrupt { .. })), "{count}: {received:?}");
        }
    }
}
