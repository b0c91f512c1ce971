//! Programs in Fortran. The Fortran functions of MPICH and Intel MPI call the C functions, which this library replaces
//! already, so they are passed on here. The Fortran functions of Open MPI call none that could be replaced: their
//! arguments become the arguments of our C functions.
//!
//! A program with `mpif.h` or `use mpi` calls functions whose names end in one underscore, as all compilers for Linux
//! make them. With `use mpi_f08` it calls other functions, which call C functions or, in Open MPI, functions with names
//! of their own.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use roundelay_kernels::mpi::{Fortran, Handle, Mpi, next};

use crate::process::process;
use crate::{
    MPI_Allgather, MPI_Allgatherv, MPI_Allreduce, MPI_Alltoall, MPI_Alltoallv, MPI_Barrier,
    MPI_Bcast, MPI_Gather, MPI_Gatherv, MPI_Reduce, MPI_Reduce_scatter, MPI_Reduce_scatter_block,
    MPI_Scatter, MPI_Scatterv,
};

/// An argument: Fortran gives the address of everything.
type At = *mut c_void;

/// The Fortran function of MPI that a function of ours replaces.
struct Next {
    name: &'static CStr,
    found: OnceLock<usize>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: OnceLock::new() }
    }

    /// Returns the address of the function, if it exists.
    fn at(&self) -> Option<*mut c_void> {
        let at = *self.found.get_or_init(|| next(self.name).expose_provenance());
        (at != 0).then(|| std::ptr::with_exposed_provenance_mut(at))
    }
}

/// Returns the conversion to C's handles, once MPI has begun, where calls may be taken and a Fortran integer is a C
/// `int`.
fn taking() -> Option<&'static Fortran> {
    static OF_C: OnceLock<bool> = OnceLock::new();
    let process = process();
    let (mpi, _) = process.mpi().zip(process.job())?;
    let fortran = mpi.fortran()?;
    OF_C.get_or_init(|| has_integers_of_c(mpi, fortran)).then_some(fortran)
}

/// Conversions of arguments, by their kind. The caller gives addresses of integers, and of data.
mod as_c {
    use super::{At, Fortran, Handle, c_int};

    pub(super) unsafe fn buffer(fortran: &Fortran, at: At) -> At {
        fortran.buffer(at)
    }

    pub(super) unsafe fn numbers(_: &Fortran, at: At) -> *const c_int {
        at.cast_const().cast()
    }

    pub(super) unsafe fn number(_: &Fortran, at: At) -> c_int {
        // SAFETY: it is the address of an integer.
        unsafe { at.cast::<c_int>().read() }
    }

    pub(super) unsafe fn datatype(fortran: &Fortran, at: At) -> Handle {
        // SAFETY: it is the address of an integer.
        fortran.type_of(unsafe { number(fortran, at) })
    }

    pub(super) unsafe fn op(fortran: &Fortran, at: At) -> Handle {
        // SAFETY: it is the address of an integer.
        fortran.op(unsafe { number(fortran, at) })
    }

    pub(super) unsafe fn comm(fortran: &Fortran, at: At) -> Handle {
        // SAFETY: it is the address of an integer.
        fortran.comm(unsafe { number(fortran, at) })
    }
}

/// Whether Fortran integers are as wide as a C `int` in this MPI: it may have been built for wider ones.
fn has_integers_of_c(mpi: &Mpi, fortran: &Fortran) -> bool {
    /// `MPI_INTEGER` in Fortran, for all of Open MPI's versions.
    const INTEGER: c_int = 7;
    let mut size = 0;
    // SAFETY: there is room for the answer.
    let wrong = unsafe { (mpi.functions().type_size)(fortran.type_of(INTEGER), &raw mut size) };
    wrong == 0 && size == size_of::<c_int>() as i64
}

/// Stores the code of a call. Programs of Fortran 2008 may pass no place for it.
unsafe fn answer(code: *mut c_int, value: c_int) {
    if !code.is_null() {
        // SAFETY: the caller gives the address of an integer.
        unsafe { code.write(value) };
    }
}

/// Reports a Fortran function that MPI does not have.
unsafe fn lacking(code: *mut c_int, name: &CStr) {
    process()
        .say_once(&format!("{} was called, and MPI has no such function", name.to_string_lossy()));
    // SAFETY: as the caller says.
    unsafe { answer(code, 16) };
}

/// Defines a symbol for Fortran: its arguments, and the body that runs where calls may be taken; else MPI's function
/// runs.
macro_rules! entry {
    ($symbol:literal, |$($arg:ident),*; $code:ident, $next:ident| $body:block) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn entry($($arg: At,)* $code: *mut c_int) {
                const NAME: &CStr = name(concat!($symbol, "\0").as_bytes());
                static NEXT: Next = Next::new(NAME);
                type Function = unsafe extern "C" fn($($arg: At,)* code: *mut c_int);
                let $next = || match NEXT.at() {
                    // SAFETY: the function of this name has these arguments, and they are the caller's.
                    Some(at) => unsafe {
                        std::mem::transmute::<*mut c_void, Function>(at)($($arg,)* $code);
                    },
                    // SAFETY: the caller's.
                    None => unsafe { lacking($code, NAME) },
                };
                $body
            }
        };
    };
}

const fn name(text: &'static [u8]) -> &'static CStr {
    match CStr::from_bytes_with_nul(text) {
        Ok(name) => name,
        Err(_) => panic!("a zero within a name"),
    }
}

/// Defines the collectives: both symbols of each, the C function, and its arguments with their kinds.
macro_rules! collectives {
    ($($plain:literal $inner:literal $c:ident ($($arg:ident: $is:ident),*);)*) => {$(
        collectives!(@one $plain $c ($($arg: $is),*));
        collectives!(@one $inner $c ($($arg: $is),*));
    )*};
    (@one $symbol:literal $c:ident ($($arg:ident: $is:ident),*)) => {
        entry!($symbol, |$($arg),*; code, next| {
            match taking() {
                // SAFETY: the caller gives addresses of the C function's arguments.
                Some(fortran) => unsafe { answer(code, $c($(as_c::$is(fortran, $arg)),*)) },
                None => next(),
            }
        });
    };
}

collectives! {
    "mpi_allreduce_" "ompi_allreduce_f" MPI_Allreduce
        (send: buffer, recv: buffer, count: number, of: datatype, op: op, comm: comm);
    "mpi_reduce_scatter_block_" "ompi_reduce_scatter_block_f" MPI_Reduce_scatter_block
        (send: buffer, recv: buffer, count: number, of: datatype, op: op, comm: comm);
    "mpi_reduce_" "ompi_reduce_f" MPI_Reduce
        (send: buffer, recv: buffer, count: number, of: datatype, op: op, root: number, comm: comm);
    "mpi_bcast_" "ompi_bcast_f" MPI_Bcast
        (buffer: buffer, count: number, of: datatype, root: number, comm: comm);
    "mpi_allgather_" "ompi_allgather_f" MPI_Allgather
        (send: buffer, sends: number, sent: datatype, recv: buffer, receives: number, received: datatype, comm: comm);
    "mpi_alltoall_" "ompi_alltoall_f" MPI_Alltoall
        (send: buffer, sends: number, sent: datatype, recv: buffer, receives: number, received: datatype, comm: comm);
    "mpi_scatter_" "ompi_scatter_f" MPI_Scatter
        (send: buffer, sends: number, sent: datatype, recv: buffer, receives: number, received: datatype,
         root: number, comm: comm);
    "mpi_gather_" "ompi_gather_f" MPI_Gather
        (send: buffer, sends: number, sent: datatype, recv: buffer, receives: number, received: datatype,
         root: number, comm: comm);
    "mpi_allgatherv_" "ompi_allgatherv_f" MPI_Allgatherv
        (send: buffer, sends: number, sent: datatype, recv: buffer, receives: numbers, places: numbers,
         received: datatype, comm: comm);
    "mpi_reduce_scatter_" "ompi_reduce_scatter_f" MPI_Reduce_scatter
        (send: buffer, recv: buffer, counts: numbers, of: datatype, op: op, comm: comm);
    "mpi_gatherv_" "ompi_gatherv_f" MPI_Gatherv
        (send: buffer, sends: number, sent: datatype, recv: buffer, receives: numbers, places: numbers,
         received: datatype, root: number, comm: comm);
    "mpi_scatterv_" "ompi_scatterv_f" MPI_Scatterv
        (send: buffer, sends: numbers, places: numbers, sent: datatype, recv: buffer, receives: number,
         received: datatype, root: number, comm: comm);
    "mpi_alltoallv_" "ompi_alltoallv_f" MPI_Alltoallv
        (send: buffer, sends: numbers, from: numbers, sent: datatype, recv: buffer, receives: numbers, to: numbers,
         received: datatype, comm: comm);
    "mpi_barrier_" "ompi_barrier_f" MPI_Barrier (comm: comm);
}

/// Looks whether MPI has begun.
fn begun() {
    let Some(functions) = process().functions() else { return };
    let mut begun = 0;
    // SAFETY: there is room for the answer, which may be asked for at all times.
    if unsafe { (functions.initialized)(&raw mut begun) } == 0 && begun != 0 {
        process().begin();
    }
}

/// Defines all symbols of a function, those of `mpi_f08` of MPICH and Intel MPI included: they call no C function of
/// ours.
macro_rules! all {
    ([$($symbol:literal),*] $arguments:tt $next:ident $body:block) => {
        $(all!(@one $symbol $arguments $next $body);)*
    };
    (@one $symbol:literal ($($arg:ident),*) $next:ident $body:block) => {
        entry!($symbol, |$($arg),*; code, $next| $body);
    };
}

all!(["mpi_init_", "ompi_init_f", "mpi_init_f08_"] () next {
    next();
    begun();
});
all!(["mpi_init_thread_", "ompi_init_thread_f", "mpi_init_thread_f08_"] (required, provided) next {
    next();
    begun();
});
all!(["mpi_finalize_", "ompi_finalize_f", "mpi_finalize_f08_"] () next {
    process().end();
    next();
});
