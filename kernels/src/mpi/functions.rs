//! The functions of an MPI library that this crate calls, by the names that no tool may take over (`PMPI_`).

use std::ffi::{CStr, c_char, c_int, c_void};

use super::Lookup;
use super::abi::Handle;

/// The pointer to a function of MPI that the standard may not have had when this was built.
pub type Symbol = *mut c_void;

/// Buffers of a caller.
type In = *const c_void;
type Out = *mut c_void;
/// `MPI_Count` and `MPI_Aint`: 64 bits on all supported systems.
type Count = i64;
/// A number for each rank.
type Ints = *const c_int;
type Counts = *const Count;
type Keyval = c_int;

/// Stands in for a function that a library lacks: it returns the `MPI_ERR_OTHER` of most libraries, which is no success
/// in any.
extern "C" fn lacking() -> c_int {
    16
}

macro_rules! functions {
    (
        required { $($(#[$doc:meta])* $name:ident $symbol:literal ($($arg:ty),*);)* }
        optional { $($(#[$large_doc:meta])* $large:ident $large_symbol:literal ($($large_arg:ty),*);)* }
    ) => {
        /// Pointers to the functions.
        #[derive(Clone, Debug)]
        pub struct Functions {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($arg),*) -> c_int,)*
            $($(#[$large_doc])* pub $large: Option<unsafe extern "C" fn($($large_arg),*) -> c_int>,)*
        }

        impl Functions {
            /// Returns a library's functions, and the names of those that it lacks: these return an error.
            pub(super) fn of(symbol: Lookup<'_>) -> (Self, Vec<&'static str>) {
                let mut lacks = Vec::new();
                let mut at = |name: &'static CStr| {
                    let found = symbol(name);
                    if !found.is_null() {
                        return found;
                    }
                    lacks.push(name.to_str().unwrap_or_default());
                    lacking as extern "C" fn() -> c_int as Symbol
                };
                $(
                    // SAFETY: the MPI standard gives the arguments and the result of a function of this name; handles
                    // that are numbers of 32 bits are passed in the registers and places on the stack of wider ones.
                    let $name = unsafe {
                        std::mem::transmute::<Symbol, unsafe extern "C" fn($($arg),*) -> c_int>(at($symbol))
                    };
                )*
                $(
                    let found = symbol($large_symbol);
                    // SAFETY: the MPI standard says what a function of this name is given and returns; handles of 32
                    // bits are passed in the registers and places on the stack of wider ones.
                    let $large = (!found.is_null()).then(|| unsafe {
                        std::mem::transmute::<Symbol, unsafe extern "C" fn($($large_arg),*) -> c_int>(found)
                    });
                )*
                (Self { $($name,)* $($large,)* }, lacks)
            }
        }
    };
}

functions! {
    required {
        /// `MPI_Get_library_version`
        get_library_version c"PMPI_Get_library_version" (*mut c_char, *mut c_int);
        /// `MPI_Init`
        init c"PMPI_Init" (*mut c_int, *mut *mut *mut c_char);
        /// `MPI_Init_thread`
        init_thread c"PMPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
        /// `MPI_Initialized`
        initialized c"PMPI_Initialized" (*mut c_int);
        /// `MPI_Finalized`
        finalized c"PMPI_Finalized" (*mut c_int);
        /// `MPI_Finalize`
        finalize c"PMPI_Finalize" ();
        /// `MPI_Abort`
        abort c"PMPI_Abort" (Handle, c_int);
        /// `MPI_Query_thread`
        query_thread c"PMPI_Query_thread" (*mut c_int);
        /// `MPI_Comm_size`
        comm_size c"PMPI_Comm_size" (Handle, *mut c_int);
        /// `MPI_Comm_rank`
        comm_rank c"PMPI_Comm_rank" (Handle, *mut c_int);
        /// `MPI_Comm_test_inter`
        comm_test_inter c"PMPI_Comm_test_inter" (Handle, *mut c_int);
        /// `MPI_Comm_remote_size`
        comm_remote_size c"PMPI_Comm_remote_size" (Handle, *mut c_int);
        /// `MPI_Comm_get_parent`
        comm_get_parent c"PMPI_Comm_get_parent" (*mut Handle);
        /// `MPI_Comm_dup`
        comm_dup c"PMPI_Comm_dup" (Handle, *mut Handle);
        /// `MPI_Comm_free`
        comm_free c"PMPI_Comm_free" (*mut Handle);
        /// `MPI_Comm_group`
        comm_group c"PMPI_Comm_group" (Handle, *mut Handle);
        /// `MPI_Group_translate_ranks`
        group_translate_ranks c"PMPI_Group_translate_ranks" (Handle, c_int, *const c_int, Handle, *mut c_int);
        /// `MPI_Group_free`
        group_free c"PMPI_Group_free" (*mut Handle);
        /// `MPI_Comm_create_keyval`
        comm_create_keyval c"PMPI_Comm_create_keyval" (Symbol, Symbol, *mut Keyval, *mut c_void);
        /// `MPI_Comm_set_attr`
        comm_set_attr c"PMPI_Comm_set_attr" (Handle, Keyval, *mut c_void);
        /// `MPI_Comm_create_errhandler`; the handler is a pointer to a function
        comm_create_errhandler c"PMPI_Comm_create_errhandler" (Symbol, *mut Handle);
        /// `MPI_Comm_get_errhandler`
        comm_get_errhandler c"PMPI_Comm_get_errhandler" (Handle, *mut Handle);
        /// `MPI_Comm_set_errhandler`
        comm_set_errhandler c"PMPI_Comm_set_errhandler" (Handle, Handle);
        /// `MPI_Errhandler_free`
        errhandler_free c"PMPI_Errhandler_free" (*mut Handle);
        /// `MPI_Comm_call_errhandler`
        comm_call_errhandler c"PMPI_Comm_call_errhandler" (Handle, c_int);
        /// `MPI_Add_error_code`
        add_error_code c"PMPI_Add_error_code" (c_int, *mut c_int);
        /// `MPI_Add_error_string`
        add_error_string c"PMPI_Add_error_string" (c_int, *const c_char);
        /// `MPI_Error_string`
        error_string c"PMPI_Error_string" (c_int, *mut c_char, *mut c_int);
        /// `MPI_Type_size_x`, whose size is a count
        type_size c"PMPI_Type_size_x" (Handle, *mut Count);
        /// `MPI_Type_get_extent`
        type_get_extent c"PMPI_Type_get_extent" (Handle, *mut Count, *mut Count);
        /// `MPI_Type_get_envelope`
        type_get_envelope c"PMPI_Type_get_envelope" (Handle, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
        /// `MPI_Pack`
        pack c"PMPI_Pack" (In, c_int, Handle, Out, c_int, *mut c_int, Handle);
        /// `MPI_Unpack`
        unpack c"PMPI_Unpack" (In, c_int, *mut c_int, Out, c_int, Handle, Handle);
        /// `MPI_Type_create_hindexed`
        type_create_hindexed c"PMPI_Type_create_hindexed" (c_int, *const c_int, *const Count, Handle, *mut Handle);
        /// `MPI_Type_commit`
        type_commit c"PMPI_Type_commit" (*mut Handle);
        /// `MPI_Type_free`
        type_free c"PMPI_Type_free" (*mut Handle);
        /// `MPI_Send`
        send c"PMPI_Send" (In, c_int, Handle, c_int, c_int, Handle);
        /// `MPI_Sendrecv`; the status is a pointer as a number
        sendrecv c"PMPI_Sendrecv"
            (In, c_int, Handle, c_int, c_int, Out, c_int, Handle, c_int, c_int, Handle, usize);
        /// `MPI_Isend`
        isend c"PMPI_Isend" (In, c_int, Handle, c_int, c_int, Handle, *mut Handle);
        /// `MPI_Irecv`
        irecv c"PMPI_Irecv" (Out, c_int, Handle, c_int, c_int, Handle, *mut Handle);
        /// `MPI_Test`; the status is a pointer as a number
        test c"PMPI_Test" (*mut Handle, *mut c_int, usize);
        /// `MPI_Cancel`
        cancel c"PMPI_Cancel" (*mut Handle);
        /// `MPI_Reduce_local`
        reduce_local c"PMPI_Reduce_local" (In, Out, c_int, Handle, Handle);
        /// `MPI_Allreduce`
        allreduce c"PMPI_Allreduce" (In, Out, c_int, Handle, Handle, Handle);
        /// `MPI_Allgather`
        allgather c"PMPI_Allgather" (In, c_int, Handle, Out, c_int, Handle, Handle);
        /// `MPI_Reduce_scatter_block`
        reduce_scatter_block c"PMPI_Reduce_scatter_block" (In, Out, c_int, Handle, Handle, Handle);
        /// `MPI_Bcast`
        bcast c"PMPI_Bcast" (Out, c_int, Handle, c_int, Handle);
        /// `MPI_Reduce`
        reduce c"PMPI_Reduce" (In, Out, c_int, Handle, Handle, c_int, Handle);
        /// `MPI_Scatter`
        scatter c"PMPI_Scatter" (In, c_int, Handle, Out, c_int, Handle, c_int, Handle);
        /// `MPI_Gather`
        gather c"PMPI_Gather" (In, c_int, Handle, Out, c_int, Handle, c_int, Handle);
        /// `MPI_Alltoall`
        alltoall c"PMPI_Alltoall" (In, c_int, Handle, Out, c_int, Handle, Handle);
        /// `MPI_Barrier`
        barrier c"PMPI_Barrier" (Handle);
        /// `MPI_Allgatherv`
        allgatherv c"PMPI_Allgatherv" (In, c_int, Handle, Out, Ints, Ints, Handle, Handle);
        /// `MPI_Reduce_scatter`
        reduce_scatter c"PMPI_Reduce_scatter" (In, Out, Ints, Handle, Handle, Handle);
        /// `MPI_Gatherv`
        gatherv c"PMPI_Gatherv" (In, c_int, Handle, Out, Ints, Ints, Handle, c_int, Handle);
        /// `MPI_Scatterv`
        scatterv c"PMPI_Scatterv" (In, Ints, Ints, Handle, Out, c_int, Handle, c_int, Handle);
        /// `MPI_Alltoallv`
        alltoallv c"PMPI_Alltoallv" (In, Ints, Ints, Handle, Out, Ints, Ints, Handle, Handle);
    }
    optional {
        /// `MPI_Allreduce_c`
        allreduce_c c"PMPI_Allreduce_c" (In, Out, Count, Handle, Handle, Handle);
        /// `MPI_Allgather_c`
        allgather_c c"PMPI_Allgather_c" (In, Count, Handle, Out, Count, Handle, Handle);
        /// `MPI_Reduce_scatter_block_c`
        reduce_scatter_block_c c"PMPI_Reduce_scatter_block_c" (In, Out, Count, Handle, Handle, Handle);
        /// `MPI_Bcast_c`
        bcast_c c"PMPI_Bcast_c" (Out, Count, Handle, c_int, Handle);
        /// `MPI_Reduce_c`
        reduce_c c"PMPI_Reduce_c" (In, Out, Count, Handle, Handle, c_int, Handle);
        /// `MPI_Scatter_c`
        scatter_c c"PMPI_Scatter_c" (In, Count, Handle, Out, Count, Handle, c_int, Handle);
        /// `MPI_Gather_c`
        gather_c c"PMPI_Gather_c" (In, Count, Handle, Out, Count, Handle, c_int, Handle);
        /// `MPI_Alltoall_c`
        alltoall_c c"PMPI_Alltoall_c" (In, Count, Handle, Out, Count, Handle, Handle);
        /// `MPI_Allgatherv_c`
        allgatherv_c c"PMPI_Allgatherv_c" (In, Count, Handle, Out, Counts, Counts, Handle, Handle);
        /// `MPI_Reduce_scatter_c`
        reduce_scatter_c c"PMPI_Reduce_scatter_c" (In, Out, Counts, Handle, Handle, Handle);
        /// `MPI_Gatherv_c`
        gatherv_c c"PMPI_Gatherv_c" (In, Count, Handle, Out, Counts, Counts, Handle, c_int, Handle);
        /// `MPI_Scatterv_c`
        scatterv_c c"PMPI_Scatterv_c" (In, Counts, Counts, Handle, Out, Count, Handle, c_int, Handle);
        /// `MPI_Alltoallv_c`
        alltoallv_c c"PMPI_Alltoallv_c" (In, Counts, Counts, Handle, Out, Counts, Counts, Handle, Handle);
    }
}
