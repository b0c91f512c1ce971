//! The functions of NCCL as a trait, which has one implementation for each way to make a call: by the real library, over
//! it, and without one.

use std::ffi::{c_int, c_uint};

use crate::function_table::functions;
use crate::name::Name;
use crate::pass::pass;
use crate::types::{Answer, Code, Comm, In, Out, Stream, Team, Text, UniqueId, Window};

macro_rules! all_functions {
    ($($since:literal $kind:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        /// All functions. One that an implementation does not have is made by `otherwise`.
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "the functions are NCCL's")]
        pub(crate) trait NcclFunctions {
            /// Makes a call that the implementation does not have.
            ///
            /// # Safety
            /// `F` is the type of the function in NCCL's header.
            unsafe fn otherwise<F: Copy, R: Answer>(
                &self,
                name: Name,
                call: impl FnOnce(F) -> R,
            ) -> R;

            $(
                /// # Safety
                /// The arguments are valid as NCCL requires.
                unsafe fn $name(&self, $($arg: $ty),*) -> $ret {
                    type Function = unsafe extern "C" fn($($ty),*) -> $ret;
                    // SAFETY: the table has the type of the function, and the arguments are the program's.
                    unsafe { self.otherwise(Name::$name, |function: Function| function($($arg),*)) }
                }
            )*
        }
    };
}
functions!(all_functions);

/// The functions of the real library.
pub(crate) struct Behind;

impl NcclFunctions for Behind {
    unsafe fn otherwise<F: Copy, R: Answer>(&self, name: Name, call: impl FnOnce(F) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe { pass(name, call) }
    }
}
