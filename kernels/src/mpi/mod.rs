//! An MPI library that is in this process, or is loaded into it: found when the program runs, and called through
//! pointers. Nothing is linked, and no header is needed.
//!
//! find (which library) -> abi (what its handles look like) -> functions (what is called) -> types (what its types and
//! ops mean here, fortran the same for its numbers). carrier brings the messages of ranks on several hosts, and job is
//! the MPI of programs that have none of their own.
//!
//! A handle is a number here, whatever it is in the library's header: a pointer in Open MPI and in the standard ABI, an
//! `int` in MPICH and Intel MPI.

mod abi;
mod carrier;
mod find;
mod fortran;
mod functions;
mod job;
mod types;

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::Error;
pub use abi::{Abi, Handle};
pub use carrier::MpiCarrier;
pub use fortran::{Fortran, next};
pub use functions::{Functions, Symbol};
pub use job::MpiJob;
use types::Types;
pub use types::{Elements, Type};

/// An MPI library, and how it is called.
#[derive(Debug)]
pub struct Mpi {
    abi: Abi,
    version: String,
    functions: Functions,
    types: Types,
    fortran: Option<Fortran>,
}

/// What a process has of MPI.
#[derive(Debug)]
pub enum Found {
    /// One library that can be called.
    One(Box<Mpi>),
    /// A library that lacks a function, or whose handles nobody knows here, or several libraries.
    Other {
        /// In words, what was found.
        what: String,
        /// The functions of the first one.
        functions: Box<Functions>,
    },
    /// None.
    None,
}

impl Mpi {
    /// What there is of MPI in this process: loaded by the program, or before it.
    pub fn loaded() -> Found {
        let libraries = find::loaded(&find::NAMES);
        let Some(first) = libraries.first() else { return Found::None };
        let (functions, lacks) = Functions::of(&|name| first.symbol(name));
        let other = |what, functions| Found::Other { what, functions: Box::new(functions) };
        if libraries.len() > 1 {
            let paths: Vec<_> = libraries.iter().map(find::Library::path).collect();
            return other(format!("several MPI libraries: {}", paths.join(", ")), functions);
        }
        if let Some(missing) = lacks.first() {
            return other(format!("{} without {missing}", first.path()), functions);
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

    /// The library of this process; where there is none, the one that the variable `ROUNDELAY_MPI_LIB` names, or else
    /// the one that the loader finds by the usual names.
    ///
    /// # Errors
    /// E0427 where there is none, or it cannot be used.
    pub fn load() -> Result<Self, Error> {
        let not = |what: String| Err(Error::NotJoined { what });
        match Self::loaded() {
            Found::One(mpi) => return Ok(*mpi),
            Found::Other { what, .. } => return not(format!("this process has {what}")),
            Found::None => {}
        }
        find::load().map_err(|what| Error::NotJoined { what })?;
        match Self::loaded() {
            Found::One(mpi) => Ok(*mpi),
            Found::Other { what, .. } => not(format!("what was loaded is {what}")),
            Found::None => not("the library that was loaded is no MPI".to_owned()),
        }
    }

    /// What its handles look like.
    pub fn abi(&self) -> Abi {
        self.abi
    }

    /// What it says of itself, in one line.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its functions.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The elements of a predefined type, as far as they have a name here.
    pub fn elements(&self, handle: Handle) -> Option<Type> {
        self.types.of(self.abi.clean(handle))
    }

    /// The op of a predefined handle, if it is one of ours.
    pub fn op(&self, handle: Handle) -> Option<roundelay_core::dtype::ReduceOp> {
        self.types.op(self.abi.clean(handle))
    }

    /// What calls from Fortran need, where its functions are not made of those of C.
    pub fn fortran(&self) -> Option<&Fortran> {
        self.fortran.as_ref()
    }

    /// All ranks.
    pub fn comm_world(&self) -> Handle {
        self.types.comm_world
    }

    /// This process alone.
    pub fn comm_self(&self) -> Handle {
        self.types.comm_self
    }

    /// No communicator.
    pub fn comm_null(&self) -> Handle {
        self.types.comm_null
    }

    /// The type of bytes.
    pub fn byte(&self) -> Handle {
        self.types.byte
    }
}

/// The first line of what a library says of itself.
fn version(functions: &Functions) -> String {
    // No library says more than this many bytes: `MPI_MAX_LIBRARY_VERSION_STRING` is 8192 at most.
    let mut text = vec![0_u8; 1 << 15];
    let mut len: c_int = 0;
    // SAFETY: there is room, and the function may be called before MPI is begun.
    unsafe { (functions.get_library_version)(text.as_mut_ptr().cast::<c_char>(), &raw mut len) };
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy().into_owned();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Where a symbol is looked for: null where it is not.
type Lookup<'a> = &'a dyn Fn(&CStr) -> *mut c_void;
