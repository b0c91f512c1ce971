//! Tables of a library's functions, filled when the library is loaded.

/// A struct `Functions` of a library's functions, each with its symbol and its type, and how it is filled.
macro_rules! functions {
    ($($name:ident: $symbol:ident($($arg:ty),*) -> $result:ty;)*) => {
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) -> $result,)*
        }

        impl Functions {
            /// Those of a library that is known by its name to be the one of these types.
            pub(super) fn of(library: &libloading::Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $(
                        // SAFETY: the type is that of the function in the library's header.
                        $name: *unsafe { library.get(stringify!($symbol)) }?,
                    )*
                })
            }
        }
    };
}
pub(super) use functions;
