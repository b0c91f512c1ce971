//! The functions that the library exports, generated from the table: each by NCCL's name and by the name with a `p`, by
//! which a tool calls past what stands before it.

use std::ffi::{c_int, c_uint};

use crate::alone::Alone;
use crate::function_table::functions;
use crate::functions::{Behind, NcclFunctions as _};
use crate::group;
use crate::last_error;
use crate::mode::is_alone;
use crate::name::Name;
use crate::operation::Operation;
use crate::overlay::Overlay;
use crate::pass::{has, is_inside, lacks};
use crate::process::process;
use crate::types::{Answer as _, Code, Comm, In, Out, Stream, Team, Text, UniqueId, Window};

macro_rules! exports {
    ($($since:literal $kind:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        /// The functions, which no other library can replace.
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "the functions are NCCL's")]
        mod here {
            use super::*;

            $(pub(super) unsafe fn $name($($arg: $ty),*) -> $ret {
                /// Makes the call in the mode of the process. A call of the real library's own is its affair.
                ///
                /// # Safety
                /// The arguments are valid as NCCL requires.
                unsafe fn theirs($($arg: $ty),*) -> $ret {
                    // SAFETY: the arguments are the program's.
                    unsafe {
                        if is_alone() {
                            Alone.$name($($arg),*)
                        } else if is_inside() {
                            Behind.$name($($arg),*)
                        } else {
                            Overlay.$name($($arg),*)
                        }
                    }
                }
                process().is_called();
                exports!(@$kind $name $($arg)*)
            })*
        }

        #[allow(non_snake_case, clippy::too_many_arguments, reason = "the functions are NCCL's")]
        mod nccl {
            use super::*;

            $(#[unsafe(export_name = concat!("nccl", stringify!($name)))]
            unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
                // SAFETY: the arguments are the program's.
                unsafe { here::$name($($arg),*) }
            })*
        }

        #[allow(non_snake_case, clippy::too_many_arguments, reason = "the functions are NCCL's")]
        mod pnccl {
            use super::*;

            $(#[unsafe(export_name = concat!("pnccl", stringify!($name)))]
            unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
                // SAFETY: the arguments are the program's.
                unsafe { here::$name($($arg),*) }
            })*
        }
    };
    (@ask $name:ident $($arg:ident)*) => {{
        // SAFETY: the arguments are the program's.
        unsafe { theirs($($arg),*) }
    }};
    (@call $name:ident $($arg:ident)*) => {{
        group::hand_over();
        if lacks(Name::$name) {
            group::fail(Code::INVALID_USAGE);
        }
        // SAFETY: the arguments are the program's.
        unsafe { theirs($($arg),*) }
    }};
    (@joins $name:ident $comm:ident $nranks:ident $($arg:ident)*) => {{
        if !is_inside() && !is_alone() {
            process().joins(exports!(@rank $($arg)*));
        }
        exports!(@call $name $comm $nranks $($arg)*)
    }};
    // The argument before the rank is the id, if there is one.
    (@rank id $rank:ident $($arg:ident)*) => { $rank };
    (@rank $rank:ident $($arg:ident)*) => { $rank };
    (@operation $name:ident $($arg:ident)*) => {{
        unsafe fn pass(operation: &Operation) -> Code {
            // SAFETY: the arguments are the program's.
            unsafe { theirs($(operation.$arg),*) }
        }
        let operation = Operation { $($arg,)* ..Operation::new(Name::$name, pass) };
        if lacks(Name::$name) {
            process().refused(Name::$name);
            group::fail(Code::INVALID_USAGE);
            return operation.pass();
        }
        group::operation(&operation)
    }};
    (@starts $name:ident) => {{
        // SAFETY: the function has no arguments.
        group::start(|| unsafe { theirs() })
    }};
    (@ends $name:ident) => {{
        // SAFETY: the function has no arguments.
        group::end(false, || unsafe { theirs() })
    }};
    (@simulates $name:ident $info:ident) => {{
        // SAFETY: the argument is the program's.
        let theirs = || unsafe { theirs($info) };
        // Where there is no such function, the group stays open.
        if has(Name::$name) { group::end(true, theirs) } else { theirs() }
    }};
    (@text $name:ident $code:ident) => {{
        if !has(Name::$name) {
            return text_of($code);
        }
        // SAFETY: the function takes any number.
        unsafe { theirs($code) }
    }};
    (@last $name:ident $comm:ident) => {{
        if let Some(text) = last_error::own() {
            return text;
        }
        if !has(Name::$name) {
            return Text::REFUSED;
        }
        // SAFETY: the argument is the program's.
        unsafe { theirs($comm) }
    }};
}
functions!(exports);

/// The meaning of a code where there is no real library.
fn text_of(code: c_int) -> Text {
    let text = match code {
        0 => c"no error",
        1 => c"an error of CUDA",
        2 => c"an error of the system",
        3 => c"an internal error",
        4 => c"invalid argument",
        5 => c"invalid usage",
        6 => c"another process ended, or the network failed",
        7 => c"the call goes on",
        8 => c"the time is over",
        _ => c"unknown result code",
    };
    text.as_ptr()
}
