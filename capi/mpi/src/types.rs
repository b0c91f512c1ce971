//! The layout of a datatype: its bytes, and whether they lie side by side.

use std::ffi::c_int;

use roundelay_kernels::mpi::{Abi, Handle, Mpi};

/// The layout of a datatype.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeLayout {
    /// Bytes of data in a value.
    pub(crate) size: u64,
    /// Bytes from one value to the next.
    pub(crate) extent: i64,
    /// Whether values lie side by side, in the order in which they are packed.
    pub(crate) dense: bool,
}

/// Asks MPI for the layout of a type; `None` where MPI knows no such type.
pub(crate) fn kind(mpi: &Mpi, of: Handle) -> Option<TypeLayout> {
    if let Some(known) = mpi.elements(of) {
        let (size, extent) = (known.size, known.size as i64);
        return Some(TypeLayout { size, extent, dense: true });
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
    Some(TypeLayout { size: size as u64, extent, dense })
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
