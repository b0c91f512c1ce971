//! The data for calls from Fortran: handles of C for its numbers, its marks for buffers, and the next functions in the
//! order of libraries.

use std::ffi::{CStr, c_int, c_void};

use super::abi::{Abi, Handle};
use crate::loaded_library::LoadedLibrary;

/// The function that returns the handle of C for a number of Fortran.
type FromFortran = unsafe extern "C" fn(c_int) -> Handle;

/// Files that have an MPI library's functions for Fortran, without the version behind.
const NAMES: [&str; 5] = [
    "libmpi_mpifh.so",
    "libmpi_mpifh-gfortran.so",
    "libmpifort.so",
    "libmpichfort.so",
    "libmpifort_abi.so",
];

/// The translation of arguments for Open MPI's functions for Fortran, which call no function of C that a tool could
/// take over.
#[derive(Debug)]
pub struct Fortran {
    comm: FromFortran,
    of: FromFortran,
    op: FromFortran,
    /// Addresses that stand for `MPI_IN_PLACE`, and for `MPI_BOTTOM`.
    in_place: [usize; 2],
    bottom: [usize; 2],
}

impl Fortran {
    /// Returns the translation of a library; `None` where functions for Fortran call those of C.
    pub(super) fn of(abi: Abi, library: &LoadedLibrary) -> Option<Self> {
        if abi != Abi::OpenMpi {
            return None;
        }
        let function = |name: &CStr| {
            let found = library.symbol(name);
            // SAFETY: the MPI standard gives the arguments of a function of this name, and handles are pointers here.
            (!found.is_null())
                .then(|| unsafe { std::mem::transmute::<*mut c_void, FromFortran>(found) })
        };
        // A common block has the address of the program's copy, and in a module that was loaded later it may have the
        // address of the library's.
        let both = |name: &CStr| {
            let found = [library.data(name).addr(), library.symbol(name).addr()];
            (!found.contains(&0)).then_some(found)
        };
        Some(Self {
            comm: function(c"PMPI_Comm_f2c")?,
            of: function(c"PMPI_Type_f2c")?,
            op: function(c"PMPI_Op_f2c")?,
            in_place: both(c"mpi_fortran_in_place_")?,
            bottom: both(c"mpi_fortran_bottom_")?,
        })
    }

    /// The handle of a communicator.
    pub fn comm(&self, number: c_int) -> Handle {
        // SAFETY: the function takes any number, once MPI has begun; for an unknown number it returns no communicator.
        unsafe { (self.comm)(number) }
    }

    /// The handle of a type.
    pub fn type_of(&self, number: c_int) -> Handle {
        // SAFETY: the function takes any number, once MPI has begun.
        unsafe { (self.of)(number) }
    }

    /// The handle of an op.
    pub fn op(&self, number: c_int) -> Handle {
        // SAFETY: the function takes any number, once MPI has begun.
        unsafe { (self.op)(number) }
    }

    /// A buffer as C would name it.
    pub fn buffer(&self, at: *mut c_void) -> *mut c_void {
        if self.in_place.contains(&at.addr()) {
            std::ptr::without_provenance_mut(Abi::OpenMpi.in_place())
        } else if self.bottom.contains(&at.addr()) {
            std::ptr::null_mut()
        } else {
            at
        }
    }
}

/// The function of this name that a program would call without this library; null if there is none.
pub fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() {
        return next;
    }
    // Modules of interpreters load libraries with local symbols.
    let libraries = LoadedLibrary::all(&NAMES);
    libraries.iter().map(|library| library.symbol(name)).find(|at| !at.is_null()).unwrap_or(next)
}
