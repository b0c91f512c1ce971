//! A caller's values as bytes side by side: where they lie, if they do lie so, else a copy.

use std::ffi::{c_int, c_void};
use std::ops::{Deref, DerefMut};

use roundelay_kernels::mpi::{Handle, Mpi};

use crate::call::Values;
use crate::types::TypeLayout;

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
        // SAFETY: the words have at least so many bytes, and any bytes are bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) }
    }
}

impl DerefMut for Copied {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any bytes are words.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.bytes) }
    }
}

/// Values of a caller, and what MPI has to say of them.
#[derive(Clone, Copy)]
pub(crate) struct Side<'m> {
    pub(crate) mpi: &'m Mpi,
    pub(crate) comm: Handle,
    pub(crate) values: Values,
    pub(crate) kind: TypeLayout,
}

impl Side<'_> {
    /// All bytes of data.
    pub(crate) fn bytes(&self) -> usize {
        (self.values.count as u64 * self.kind.size) as usize
    }

    /// Whether the bytes lie side by side, at a place where elements of so many bytes may lie.
    pub(crate) fn is_dense(&self, align: usize) -> bool {
        self.kind.dense && self.values.at.addr().is_multiple_of(align) && !self.values.at.is_null()
    }

    /// Whether its bytes, where they lie side by side, are in part those of another.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let range = |side: &Self| {
            let first = side.values.at.addr();
            first..first + side.bytes()
        };
        let (mine, theirs) = (range(self), range(other));
        mine.start < theirs.end && theirs.start < mine.end
    }

    /// The bytes where they lie.
    ///
    /// # Safety
    /// They are dense, the caller of MPI owns them during the call, and nobody has them as mutable.
    pub(crate) unsafe fn there<'a>(&self) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.values.at.cast(), self.bytes()) }
    }

    /// The bytes where they lie, to be written.
    ///
    /// # Safety
    /// As for [`Self::there`], and nobody else has them at all.
    pub(crate) unsafe fn there_mut<'a>(&self) -> &'a mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.values.at.cast(), self.bytes()) }
    }

    /// A copy of the bytes, side by side.
    ///
    /// # Errors
    /// MPI's code.
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
        let values = Somewhere::new(self)?;
        values.pieces(|values, first, bytes| {
            let mut at = 0;
            // SAFETY: the type says where the data lies, which is the caller's; the copy has room for what MPI is told.
            let wrong = unsafe {
                let to = to.add(first).cast::<c_void>();
                let pack = self.mpi.functions().pack;
                pack(values.at, values.count as c_int, values.of, to, bytes, &raw mut at, self.comm)
            };
            (wrong, at)
        })?;
        Ok(copied)
    }

    /// Puts bytes that lie side by side to where the values belong.
    ///
    /// # Errors
    /// MPI's code.
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
        let values = Somewhere::new(self)?;
        values.pieces(|values, first, bytes| {
            let mut at = 0;
            // SAFETY: as in `packed`, the other way.
            let wrong = unsafe {
                let from = from.add(first).cast::<c_void>();
                let unpack = self.mpi.functions().unpack;
                let count = values.count as c_int;
                unpack(from, bytes, &raw mut at, values.at, count, values.of, self.comm)
            };
            (wrong, at)
        })
    }
}

/// An address that is somewhere, from which one that is nowhere is counted.
const BASE: usize = 4096;

/// Values whose address is not null. Those that begin at `MPI_BOTTOM` have a type with addresses of their own, and
/// MPICH packs nothing from there, so they are given a type that counts from another place.
struct Somewhere<'a> {
    side: &'a Side<'a>,
    values: Values,
    made: bool,
}

impl<'a> Somewhere<'a> {
    fn new(side: &'a Side<'a>) -> Result<Self, c_int> {
        let values = side.values;
        if !values.at.is_null() {
            return Ok(Self { side, values, made: false });
        }
        let functions = side.mpi.functions();
        let (one, back, mut of) = (1, -(BASE as i64), 0);
        // SAFETY: there is one block of one value, and room for the handle.
        let wrong = unsafe {
            let make = functions.type_create_hindexed;
            match make(1, &raw const one, &raw const back, values.of, &raw mut of) {
                0 => (functions.type_commit)(&raw mut of),
                wrong => wrong,
            }
        };
        let at = std::ptr::without_provenance_mut(BASE);
        let values = Values { at, of, ..values };
        if wrong == 0 { Ok(Self { side, values, made: true }) } else { Err(wrong) }
    }

    /// Does `then` for so many values at a time as MPI packs at once: with them, with the bytes before them, and with
    /// theirs; it returns MPI's code, and the bytes that it went through.
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
                // It writes something else beside the data, which we know nothing of.
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
            // SAFETY: it was made here, and nothing is under way with it.
            unsafe { (self.side.mpi.functions().type_free)(&raw mut self.values.of) };
        }
    }
}
