//! The shapes of the handles and constants of an MPI library.

use std::ffi::c_int;

use crate::loaded_library::LoadedLibrary;

/// A handle, as wide as the widest kind; of an `int` only the low half counts ([`Abi::clean`]).
pub type Handle = usize;

/// The shape of handles, and the numbers of constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// Handles are addresses of the library's data.
    OpenMpi,
    /// Handles are numbers of 32 bits: MPICH, Intel MPI, MVAPICH and Cray's.
    Mpich,
    /// The ABI of the MPI standard, from 5.0 on: handles are pointers, the predefined ones small numbers.
    Standard,
}

impl Abi {
    /// Returns the ABI of a library, if it is a known one.
    pub(super) fn of(library: &LoadedLibrary, version: &str) -> Option<Self> {
        let file = library.path().file_name().unwrap_or_default().to_string_lossy();
        if file.starts_with("libmpi_abi.") {
            return Some(Self::Standard);
        }
        if !library.symbol(c"ompi_mpi_comm_world").is_null() {
            return Some(Self::OpenMpi);
        }
        let mpich = ["MPICH", "Intel(R) MPI", "MVAPICH"].iter().any(|name| version.contains(name));
        mpich.then_some(Self::Mpich)
    }

    /// The handle without the bits that a caller left in the upper half of an `int`'s register.
    pub const fn clean(self, handle: Handle) -> Handle {
        match self {
            Self::Mpich => handle & 0xffff_ffff,
            Self::OpenMpi | Self::Standard => handle,
        }
    }

    /// `MPI_IN_PLACE`.
    pub const fn in_place(self) -> usize {
        match self {
            Self::Mpich => usize::MAX,
            Self::OpenMpi | Self::Standard => 1,
        }
    }

    /// `MPI_STATUS_IGNORE`.
    pub const fn status_ignore(self) -> usize {
        match self {
            Self::Mpich => 1,
            Self::OpenMpi | Self::Standard => 0,
        }
    }

    /// `MPI_PROC_NULL`.
    pub const fn proc_null(self) -> c_int {
        match self {
            Self::OpenMpi => -2,
            Self::Mpich => -1,
            Self::Standard => -3,
        }
    }

    /// Whether a handle can be a communicator's: not the null handle, and not of another kind, as far as handles tell.
    pub const fn may_be_comm(self, handle: Handle) -> bool {
        match self {
            Self::OpenMpi => handle != 0,
            // The kind of an object is in four bits, and the two bits above tell how it was made: 0 is nothing.
            Self::Mpich => handle >> 26 & 0xf == 1 && handle >> 30 & 3 != 0,
            Self::Standard => handle > 0x100 && (handle < 0x108 || handle > 0xfff),
        }
    }

    /// Whether a handle can be a datatype's, as [`Self::may_be_comm`].
    pub const fn may_be_type(self, handle: Handle) -> bool {
        match self {
            Self::OpenMpi => handle != 0,
            Self::Mpich => handle >> 26 & 0xf == 3 && handle >> 30 & 3 != 0,
            Self::Standard => handle > 0x200 && (handle < 0x300 || handle > 0xfff),
        }
    }

    /// `MPI_UNDEFINED`, equal in all ABIs.
    pub const UNDEFINED: c_int = -32766;

    /// `MPI_COMBINER_NAMED`: the combiner of predefined types.
    pub const fn combiner_named(self) -> c_int {
        match self {
            Self::OpenMpi => 0,
            Self::Mpich => 1,
            Self::Standard => 101,
        }
    }

    /// `MPI_THREAD_SERIALIZED`.
    pub const fn thread_serialized(self) -> c_int {
        match self {
            Self::OpenMpi | Self::Mpich => 2,
            Self::Standard => 2048,
        }
    }

    /// `MPI_THREAD_MULTIPLE`.
    pub const fn thread_multiple(self) -> c_int {
        match self {
            Self::OpenMpi | Self::Mpich => 3,
            Self::Standard => 4096,
        }
    }

    /// `MPI_ERR_OTHER`.
    pub const fn err_other(self) -> c_int {
        match self {
            Self::Mpich => 15,
            Self::OpenMpi | Self::Standard => 16,
        }
    }

    /// `MPI_ERR_COUNT`, equal in all ABIs.
    pub const ERR_COUNT: c_int = 2;
}
