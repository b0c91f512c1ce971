//! Tables of a library's functions, filled when the library is loaded.

/// Defines a struct `Functions` of a library's functions, each with its symbol and its type, and the code that fills
/// it.
macro_rules! functions {
    ($($name:ident: $symbol:ident($($arg:ty),*) -> $result:ty;)*) => {
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) -> $result,)*
        }

        impl Functions {
            /// Looks up the functions in a library whose name says that it has these types.
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
