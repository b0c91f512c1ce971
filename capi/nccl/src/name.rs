//! The functions by their names.

use std::ffi::CStr;
use std::fmt;

use crate::function_table::functions;

macro_rules! names {
    ($($since:literal $kind:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        /// A function of NCCL.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Name {
            $(
                #[doc = concat!("`nccl", stringify!($name), "`")]
                $name,
            )*
        }

        impl Name {
            /// All functions, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];
            const TEXTS: &[&str] = &[$(concat!("nccl", stringify!($name), "\0")),*];
            const SINCE: &[u32] = &[$($since),*];
        }
    };
}
functions!(names);

impl Name {
    /// The number of functions.
    pub(crate) const COUNT: usize = Self::ALL.len();

    /// The name for the loader.
    pub(crate) fn symbol(self) -> &'static CStr {
        CStr::from_bytes_with_nul(Self::TEXTS[self as usize].as_bytes()).unwrap_or_default()
    }

    /// The version of NCCL that added the function, or an older one, as NCCL counts.
    pub(crate) fn since(self) -> u32 {
        Self::SINCE[self as usize]
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::TEXTS[*self as usize].trim_end_matches('\0'))
    }
}
