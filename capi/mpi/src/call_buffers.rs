//! A caller's values as bytes side by side: where they lie, if they do lie so, else a copy.

use std::ffi::{c_int, c_void};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use roundelay_kernels::mpi::Mpi;

use crate::call::Values;
use crate::own;
use crate::types::{self, TypeLayout};

/// Bytes that MPI packs at once, as it counts them in an `int`.
const PIECE: u64 = 1 << 30;

/// Memory of our own, aligned for all elements.
pub(crate) struct Copied {
    words: Vec<u64>,
    bytes: usize,
}

impl Copied {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { words: vec![0; bytes.div_ceil(8)], bytes }
    }
}

impl Deref for Copied {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the words have at least `bytes` bytes, and every byte value is valid.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) }
    }
}

impl DerefMut for Copied {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the words have at least `bytes` bytes, and every byte value is valid in a word.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.bytes) }
    }
}

/// Values of a caller with the layout of their type in MPI.
#[derive(Clone, Copy)]
pub(crate) struct Side<'m> {
    pub(crate) mpi: &'m Mpi,
    pub(crate) values: Values,
    pub(crate) kind: TypeLayout,
}

impl Side<'_> {
    /// Returns the number of bytes of data.
    pub(crate) fn bytes(&self) -> usize {
        (self.values.count as u64 * self.kind.size) as usize
    }

    /// Whether the bytes lie side by side, at an address that is a multiple of `align`.
    pub(crate) fn is_dense(&self, align: usize) -> bool {
        self.kind.dense && self.values.at.addr().is_multiple_of(align) && !self.values.at.is_null()
    }

    /// Whether the bytes overlap those of `other`; both sides are dense.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let range = |side: &Self| {
            let first = side.values.at.addr();
            first..first + side.bytes()
        };
        let (mine, theirs) = (range(self), range(other));
        mine.start < theirs.end && theirs.start < mine.end
    }

    /// Returns the bytes in place.
    ///
    /// # Safety
    /// The bytes are dense, the caller of MPI owns them during the call, and no mutable reference to them exists.
    pub(crate) unsafe fn there<'a>(&self) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.values.at.cast(), self.bytes()) }
    }

    /// Returns the bytes in place, to be written.
    ///
    /// # Safety
    /// The bytes are dense, the caller of MPI owns them during the call, and no other reference to them exists.
    pub(crate) unsafe fn there_mut<'a>(&self) -> &'a mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.values.at.cast(), self.bytes()) }
    }

    /// Returns a copy of the bytes, side by side.
    ///
    /// # Errors
    /// MPI's code, of which no handler has heard.
    ///
    /// # Safety
    /// The values are there, and can be read.
    pub(crate) unsafe fn packed(&self) -> Result<Copied, c_int> {
        let mut copied = Copied::new(self.bytes());
        let to = copied.as_mut_ptr();
        if self.kind.dense {
            // SAFETY: as many bytes lie there, and here is room.
            unsafe { std::ptr::copy(self.values.at.cast::<u8>(), to, self.bytes()) };
            return Ok(copied);
        }
        if self.is_long() {
            // SAFETY: the type describes the caller's data, and the copy has room for it.
            unsafe { self.carried(to.cast(), Way::From) }?;
            return Ok(copied);
        }
        let values = Somewhere::new(self)?;
        values.pieces(|values, first, bytes| {
            let mut at = 0;
            // SAFETY: the type describes the caller's data; the copy has room for the bytes that MPI is told to pack.
            let wrong = unsafe {
                let to = to.add(first).cast::<c_void>();
                let (pack, comm) = (self.mpi.functions().pack, own::comm());
                pack(values.at, values.count as c_int, values.of, to, bytes, &raw mut at, comm)
            };
            (wrong, at)
        })?;
        Ok(copied)
    }

    /// Puts bytes that lie side by side to where the values belong.
    ///
    /// # Errors
    /// MPI's code, of which no handler has heard.
    ///
    /// # Safety
    /// The values can be written, and the bytes are as many as they have.
    pub(crate) unsafe fn unpack(&self, bytes: &[u8]) -> Result<(), c_int> {
        let from = bytes.as_ptr();
        if self.kind.dense {
            // SAFETY: there are as many bytes at both places.
            unsafe { std::ptr::copy(from, self.values.at.cast::<u8>(), self.bytes()) };
            return Ok(());
        }
        if self.is_long() {
            // SAFETY: the type describes the caller's data, which may be written; the bytes are only read.
            return unsafe { self.carried(from.cast_mut().cast(), Way::To) };
        }
        let values = Somewhere::new(self)?;
        values.pieces(|values, first, bytes| {
            let mut at = 0;
            // SAFETY: the type describes the caller's data, which has room for the bytes that MPI is told to unpack.
            let wrong = unsafe {
                let from = from.add(first).cast::<c_void>();
                let (unpack, comm) = (self.mpi.functions().unpack, own::comm());
                let count = values.count as c_int;
                unpack(from, bytes, &raw mut at, values.at, count, values.of, comm)
            };
            (wrong, at)
        })
    }

    /// Whether one value has more bytes than MPI packs, which counts them in an `int`.
    fn is_long(&self) -> bool {
        c_int::try_from(self.kind.size).is_err()
    }

    /// Copies values between their place and packed bytes by messages of this process to itself, which may have any
    /// length: data of any type may be received as packed bytes, and packed bytes may be sent as data of any type.
    ///
    /// # Safety
    /// The values are there, and there are as many bytes at `packed`; what the copy goes to can be written.
    unsafe fn carried(&self, packed: *mut c_void, way: Way) -> Result<(), c_int> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let values = Somewhere::new(self)?;
        let Values { at, count, of } = values.values;
        let (size, functions) = (self.kind.size, self.mpi.functions());
        let parts = size.div_ceil(PIECE);
        let lens: Vec<_> = (0..parts).map(|part| PIECE.min(size - part * PIECE) as c_int).collect();
        let places: Vec<_> = (0..parts).map(|part| (part * PIECE) as i64).collect();
        let mut bytes = 0;
        // SAFETY: there is a length and a place for each part, and room for the handle.
        let wrong = unsafe {
            let make = functions.type_create_hindexed;
            let (lens, places) = (lens.as_ptr(), places.as_ptr());
            match make(parts as c_int, lens, places, self.mpi.packed_type(), &raw mut bytes) {
                0 => (functions.type_commit)(&raw mut bytes),
                wrong => wrong,
            }
        };
        if wrong != 0 {
            return Err(wrong);
        }
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let (comm, tag) = (own::comm(), own::COPY_TAG);
        let mut wrong = 0;
        for value in 0..count {
            let laid = (at.wrapping_byte_offset((value * self.kind.extent) as isize), of);
            let packed = (packed.wrapping_byte_add((value as u64 * size) as usize), bytes);
            let [from, to] = if way == Way::From { [laid, packed] } else { [packed, laid] };
            let status = self.mpi.abi().status_ignore();
            // SAFETY: the caller's promise; one thread at a time has messages with this tag.
            wrong = unsafe {
                let carry = functions.sendrecv;
                carry(from.0, 1, from.1, 0, tag, to.0, 1, to.1, 0, tag, comm, status)
            };
            if wrong != 0 {
                break;
            }
        }
        types::free(self.mpi, bytes);
        if wrong == 0 { Ok(()) } else { Err(wrong) }
    }
}

/// Whether values are copied from their place, or to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    From,
    To,
}

/// An address that is not null, from which a type counts back to a null address.
const BASE: usize = 4096;

/// Values that MPI packs: their address is not null, and their type is committed. Values that begin at `MPI_BOTTOM`
/// have a type with absolute addresses, and MPICH packs nothing from there, so they get a type that counts from another
/// address. Some collectives of Open MPI take types that are not committed, which it does not pack: they get one that
/// is.
struct Somewhere<'a> {
    side: &'a Side<'a>,
    values: Values,
    made: bool,
}

impl<'a> Somewhere<'a> {
    fn new(side: &'a Side<'a>) -> Result<Self, c_int> {
        let values = side.values;
        if !values.at.is_null() && side.kind.committed {
            return Ok(Self { side, values, made: false });
        }
        let functions = side.mpi.functions();
        let base = if values.at.is_null() { BASE } else { 0 };
        let (one, back, mut of) = (1, -(base as i64), 0);
        // SAFETY: there is one block of one value, and room for the handle.
        let wrong = unsafe {
            let make = functions.type_create_hindexed;
            match make(1, &raw const one, &raw const back, values.of, &raw mut of) {
                0 => (functions.type_commit)(&raw mut of),
                wrong => wrong,
            }
        };
        let at = values.at.wrapping_byte_add(base);
        let values = Values { at, of, ..values };
        if wrong == 0 { Ok(Self { side, values, made: true }) } else { Err(wrong) }
    }

    /// Calls `then` for each part of the values that MPI packs at once: with the values, the number of bytes before
    /// them, and their number of bytes. `then` returns MPI's code, and the number of bytes that MPI processed.
    fn pieces(&self, then: impl Fn(Values, usize, c_int) -> (c_int, c_int)) -> Result<(), c_int> {
        let most = (PIECE / self.side.kind.size.max(1)).max(1) as i64;
        let mut done = 0;
        while done < self.values.count {
            let count = most.min(self.values.count - done);
            let offset = (done * self.side.kind.extent) as isize;
            let at = self.values.at.wrapping_byte_offset(offset);
            let first = (done as u64 * self.side.kind.size) as usize;
            let bytes = c_int::try_from(count as u64 * self.side.kind.size)
                .map_err(|_| self.side.mpi.abi().err_other())?;
            match then(Values { at, count, ..self.values }, first, bytes) {
                (0, packed) if packed == bytes => {}
                // MPI writes other bytes beside the data, whose meaning is unknown.
                (0, _) => return Err(self.side.mpi.abi().err_other()),
                (wrong, _) => return Err(wrong),
            }
            done += count;
        }
        Ok(())
    }
}

impl Drop for Somewhere<'_> {
    fn drop(&mut self) {
        if self.made {
            // SAFETY: the type was made here, and no operation with it is under way.
            unsafe { (self.side.mpi.functions().type_free)(&raw mut self.values.of) };
        }
    }
}
