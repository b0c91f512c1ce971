//! Element types and reduce ops: the two parameters of a plan that no schedule depends on.

use std::fmt;

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every value, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name by which the command line, reports and messages call it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value of that name, as `name` writes it.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named_enum! {
    /// The type of the elements of all buffers of a plan: ten of NCCL's. [`DType::size`] is its size in bytes.
    DType {
        /// Signed 8-bit integer.
        I8 = "i8",
        /// Unsigned 8-bit integer.
        U8 = "u8",
        /// Signed 32-bit integer.
        I32 = "i32",
        /// Unsigned 32-bit integer.
        U32 = "u32",
        /// Signed 64-bit integer.
        I64 = "i64",
        /// Unsigned 64-bit integer.
        U64 = "u64",
        /// IEEE 754 binary16.
        F16 = "f16",
        /// bfloat16.
        Bf16 = "bf16",
        /// IEEE 754 binary32.
        F32 = "f32",
        /// IEEE 754 binary64.
        F64 = "f64",
    }
}

named_enum! {
    /// How two contributions are combined to one. Integers wrap around; `Min` and `Max` of floats are minimum and
    /// maximum of IEEE 754-2019. Collectives that only copy ignore it.
    ReduceOp {
        /// The sum, `a + b`.
        Sum = "sum",
        /// The product, `a * b`.
        Prod = "prod",
        /// The smaller of the two (NaN if either is NaN, and -0 < +0).
        Min = "min",
        /// The larger of the two (NaN if either is NaN, and -0 < +0).
        Max = "max",
        /// The sum, divided by the number of ranks once it is complete; integers truncate toward zero.
        Avg = "avg",
    }
}

impl DType {
    /// Bytes of one element, which is also its alignment.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point type, whose arithmetic rounds.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }
}
