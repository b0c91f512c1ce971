//! An MPI library that is in this process, or is loaded into it: found when the program runs, and called through
//! pointers. The crate links no library, and needs no header.
//!
//! find (the library) -> abi (the shape of its handles) -> functions (pointers to its functions) -> types (the meaning
//! of its types and ops, and in fortran of Fortran's numbers) -> arithmetic (how it combines values). carrier carries
//! the messages of ranks on several hosts, and job is the MPI of programs that do not use MPI themselves.
//!
//! A handle is a number here, whatever type it has in the library's header: a pointer in Open MPI and in the standard
//! ABI, an `int` in MPICH and Intel MPI.

mod abi;
mod arithmetic;
mod carrier;
mod find;
mod fortran;
mod functions;
mod job;
mod types;

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::Error;
use crate::loaded_library::LoadedLibrary;
pub use abi::{Abi, Handle};
pub use arithmetic::MpiArithmetic;
pub use carrier::MpiCarrier;
pub use fortran::{Fortran, next};
pub use functions::{Functions, Symbol};
pub use job::MpiJob;
use types::Types;
pub use types::{Elements, Type};

/// An MPI library with its ABI and its functions.
#[derive(Debug)]
pub struct Mpi {
    abi: Abi,
    version: String,
    functions: Functions,
    types: Types,
    fortran: Option<Fortran>,
}

/// The MPI libraries of a process.
#[derive(Debug)]
pub enum Found {
    /// One library that can be called.
    One(Box<Mpi>),
    /// A library that lacks a function, a library with unknown handles, or several libraries.
    Other {
        /// A description of the libraries, in words.
        what: String,
        /// The functions of the first library.
        functions: Box<Functions>,
    },
    /// No library.
    None,
}

impl Mpi {
    /// The MPI libraries that are in this process, whether the program loaded them or was linked to them.
    pub fn find_loaded() -> Found {
        let libraries = LoadedLibrary::all(&find::NAMES);
        let Some(first) = libraries.first() else { return Found::None };
        let (functions, lacks) = Functions::of(&|name| first.symbol(name));
        let other = |what, functions| Found::Other { what, functions: Box::new(functions) };
        if libraries.len() > 1 {
            let paths: Vec<_> =
                libraries.iter().map(|one| one.path().display().to_string()).collect();
            return other(format!("several MPI libraries: {}", paths.join(", ")), functions);
        }
        if let Some(missing) = lacks.first() {
            return other(format!("{} without {missing}", first.path().display()), functions);
        }
        let version = version(&functions);
        match Abi::of(first, &version) {
            Some(abi) => {
                let types = Types::new(abi, &|name| first.data(name));
                let fortran = Fortran::of(abi, first);
                Found::One(Box::new(Self { abi, version, functions, types, fortran }))
            }
            None => other(format!("an MPI library of an unknown kind: {version}"), functions),
        }
    }

    /// The library of this process; where there is none, the library that the variable `ROUNDELAY_MPI_LIB` names, or
    /// otherwise the first that the loader finds by the usual names.
    ///
    /// # Errors
    /// E0427 where there is none, or the library cannot be used.
    pub fn load() -> Result<Self, Error> {
        let not = |what: String| Err(Error::NotJoined { what });
        match Self::find_loaded() {
            Found::One(mpi) => return Ok(*mpi),
            Found::Other { what, .. } => return not(format!("this process has {what}")),
            Found::None => {}
        }
        find::load().map_err(|what| Error::NotJoined { what })?;
        match Self::find_loaded() {
            Found::One(mpi) => Ok(*mpi),
            Found::Other { what, .. } => not(format!("what was loaded is {what}")),
            Found::None => not("the library that was loaded is no MPI".to_owned()),
        }
    }

    /// The ABI of the library.
    pub fn abi(&self) -> Abi {
        self.abi
    }

    /// The version text of the library, in one line.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The functions of the library.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The elements of a predefined type; `None` for a type that has no name here.
    pub fn elements(&self, handle: Handle) -> Option<Type> {
        self.types.of(self.abi.clean(handle))
    }

    /// The op of a predefined handle, if Roundelay has the op.
    pub fn op(&self, handle: Handle) -> Option<roundelay_core::dtype::ReduceOp> {
        self.types.op(self.abi.clean(handle))
    }

    /// The translation for calls from Fortran; `None` where Fortran's functions call those of C.
    pub fn fortran(&self) -> Option<&Fortran> {
        self.fortran.as_ref()
    }

    /// Whether a handle is a datatype's, as far as handles tell.
    pub fn may_be_type(&self, handle: Handle) -> bool {
        let handle = self.abi.clean(handle);
        self.abi.may_be_type(handle) && handle != self.types.type_null
    }

    /// Whether a handle is a communicator's, as far as handles tell.
    pub fn may_be_comm(&self, handle: Handle) -> bool {
        let handle = self.abi.clean(handle);
        self.abi.may_be_comm(handle) && handle != self.types.comm_null
    }

    /// The communicator of all ranks.
    pub fn comm_world(&self) -> Handle {
        self.types.comm_world
    }

    /// The communicator of this process alone.
    pub fn comm_self(&self) -> Handle {
        self.types.comm_self
    }

    /// The null communicator.
    pub fn comm_null(&self) -> Handle {
        self.types.comm_null
    }

    /// The type of bytes.
    pub fn byte(&self) -> Handle {
        self.types.byte
    }

    /// The type of packed data.
    pub fn packed_type(&self) -> Handle {
        self.types.packed
    }

    /// The op that combines bits, and bytes too.
    pub fn bitwise_and(&self) -> Handle {
        self.types.bitwise_and
    }
}

/// Returns the first line of a library's version text.
fn version(functions: &Functions) -> String {
    // No library's text is longer: `MPI_MAX_LIBRARY_VERSION_STRING` is 8192 at most.
    let mut text = vec![0_u8; 1 << 15];
    let mut len: c_int = 0;
    // SAFETY: there is room, and the function may be called before MPI is begun.
    unsafe { (functions.get_library_version)(text.as_mut_ptr().cast::<c_char>(), &raw mut len) };
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy().into_owned();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// A function that looks up a symbol; it returns null where there is none.
type Lookup<'a> = &'a dyn Fn(&CStr) -> *mut c_void;
