//! The layout of a datatype: its bytes, and whether they lie side by side.

use std::ffi::c_int;

use roundelay_kernels::mpi::{Abi, Handle, Mpi};

use crate::own;

/// The layout of a datatype.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeLayout {
    /// Bytes of data in a value.
    pub(crate) size: u64,
    /// Bytes from one value to the next.
    pub(crate) extent: i64,
    /// Whether values lie side by side, in the order in which they are packed.
    pub(crate) dense: bool,
    /// Whether MPI takes the type in messages.
    pub(crate) committed: bool,
}

/// Asks MPI for the layout of a type; `None` where MPI knows no such type, or is to refuse it because it is not
/// committed. MPI itself is asked only about types that it knows: its errors about others would go to a handler that is
/// not the one of the call's communicator, and may end the program.
pub(crate) fn kind(mpi: &Mpi, of: Handle, refuses: bool) -> Option<TypeLayout> {
    if let Some(known) = mpi.elements(of) {
        let (size, extent) = (known.size, known.size as i64);
        return Some(TypeLayout { size, extent, dense: true, committed: true });
    }
    if !mpi.may_be_type(of) {
        return None;
    }
    let committed = is_committed(mpi, of);
    if refuses && !committed {
        return None;
    }
    let functions = mpi.functions();
    let (mut size, mut least, mut extent) = (0, 0, 0);
    // SAFETY: the caller gave MPI this handle, and there is room for each answer.
    let wrong = unsafe {
        [
            (functions.type_size)(of, &raw mut size),
            (functions.type_get_extent)(of, &raw mut least, &raw mut extent),
        ]
    };
    if wrong != [0; 2] || size < 0 {
        return None;
    }
    // A type of the program's own may have its parts in any order, and a predefined pair may have a gap.
    let dense = least == 0 && extent == size && is_predefined(mpi, of);
    Some(TypeLayout { size: size as u64, extent, dense, committed })
}

/// Whether MPI takes a type in messages: a message to no process has no effect but that.
pub(crate) fn is_committed(mpi: &Mpi, of: Handle) -> bool {
    let (value, to) = (0_u64, mpi.abi().proc_null());
    let at = (&raw const value).cast();
    // SAFETY: no process gets the message, so nothing is read.
    unsafe { (mpi.functions().send)(at, 1, of, to, own::COPY_TAG, own::comm()) == 0 }
}

/// Makes a type of a byte that is not committed.
pub(crate) fn not_committed(mpi: &Mpi) -> Option<Handle> {
    let (one, first, mut of) = (1, 0, 0);
    let make = mpi.functions().type_create_hindexed;
    // SAFETY: there is one block of one byte, and room for the handle.
    let wrong = unsafe { make(1, &raw const one, &raw const first, mpi.byte(), &raw mut of) };
    (wrong == 0).then_some(of)
}

/// Frees a type that was made here.
pub(crate) fn free(mpi: &Mpi, mut of: Handle) {
    // SAFETY: the type was made here, and no operation with it is under way.
    unsafe { (mpi.functions().type_free)(&raw mut of) };
}

/// Whether MPI defines the type. Where handles tell it, MPI is not asked: it refuses to tell of types that were made
/// with wide counts, and refusing may end the program.
fn is_predefined(mpi: &Mpi, of: Handle) -> bool {
    match mpi.abi() {
        Abi::Mpich => Abi::Mpich.clean(of) >> 30 == 1,
        Abi::Standard => of < 1 << 12,
        Abi::OpenMpi => {
            let mut envelope: [c_int; 4] = [0; 4];
            let [integers, addresses, types, combiner] =
                envelope.each_mut().map(std::ptr::from_mut);
            let ask = mpi.functions().type_get_envelope;
            // SAFETY: there is room for each answer.
            let wrong = unsafe { ask(of, integers, addresses, types, combiner) };
            wrong == 0 && envelope[3] == mpi.abi().combiner_named()
        }
    }
}
