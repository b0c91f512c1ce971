//! Element types and reduce ops: the two parameters of a plan that no schedule depends on.

use std::fmt;

use crate::diagnostics::{Code, Diagnostic};
#[doc(hidden)]
pub use crate::named_enum;
use crate::source::Span;

/// Defines an enumeration whose values have names: `ALL` of them, the `name` of each, and the value `from_name`. Behind
/// `as slice`, `ALL` is a slice in place of an array.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    (@all; $($variant:ident)*) => {
        /// All values, in the order of their declaration.
        pub const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];
    };
    (@all slice; $($variant:ident)*) => {
        /// All values, in the order of their declaration.
        pub const ALL: &'static [Self] = &[$(Self::$variant),*];
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident $(as $slice:ident)? {
        $($(#[$doc:meta])* $variant:ident = $text:literal,)*
    }) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            $crate::named_enum! { @all $($slice)?; $($variant)* }

            /// Returns the name of the value, as texts, reports and messages have it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns the value of a name, as `name` writes it.
            #[allow(dead_code, reason = "names of some enumerations are only written")]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }
    };
}

named_enum! {
    /// The type of the elements of all buffers of a plan: NCCL's twelve. [`DType::size`] is its size in bytes.
    ///
    /// Each reduction of [`DType::F8E4M3`] and [`DType::F8E5M2`] is computed in f32, rounded to the nearest value, ties
    /// to even, and saturates: a finite result beyond the largest finite value becomes the largest one, with its sign.
    /// The specification of OFP8 calls this conversion SATFINITE.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum DType as slice {
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
        /// OFP8 with 4 exponent bits and 3 mantissa bits: up to 448, no infinity, one NaN.
        F8E4M3 = "f8e4m3",
        /// OFP8 with 5 exponent bits and 2 mantissa bits: up to 57344, with infinities and NaNs.
        F8E5M2 = "f8e5m2",
    }
}

named_enum! {
    /// The operation that combines two contributions to one. Integers wrap around; `Min` and `Max` of floats are
    /// minimum and maximum of IEEE 754-2019. The bitwise and the logical ops are MPI's, and for integers alone
    /// ([`ReduceOp::takes`]). Collectives that only copy ignore it.
    ///
    /// A single rank has no second contribution: for every op its result is its contribution unchanged. The result of
    /// a logical op is 0 or 1 wherever there are two ranks or more, in any order of combination.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum ReduceOp as slice {
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
        /// The bitwise and, `a & b`.
        Band = "band",
        /// The bitwise or, `a | b`.
        Bor = "bor",
        /// The bitwise exclusive or, `a ^ b`.
        Bxor = "bxor",
        /// The logical and: 1 if both are not 0, else 0.
        Land = "land",
        /// The logical or: 1 if one of the two is not 0 or both are not, else 0.
        Lor = "lor",
        /// The logical exclusive or: 1 if exactly one of the two is not 0, else 0.
        Lxor = "lxor",
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl DType {
    /// Bytes of one element, which is also its alignment.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::F8E4M3 | Self::F8E5M2 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point type narrower than f32: reductions compute in f32, and round.
    pub const fn is_narrow_float(self) -> bool {
        self.is_float() && self.size() < size_of::<f32>()
    }

    /// Whether it is a floating-point type, whose arithmetic rounds.
    pub const fn is_float(self) -> bool {
        match self {
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 | Self::F8E4M3 | Self::F8E5M2 => true,
            Self::I8 | Self::U8 | Self::I32 | Self::U32 | Self::I64 | Self::U64 => false,
        }
    }
}

impl ReduceOp {
    /// Whether it is an op on bits or truth values, which only integers have.
    pub const fn is_for_integers(self) -> bool {
        match self {
            Self::Sum | Self::Prod | Self::Min | Self::Max | Self::Avg => false,
            Self::Band | Self::Bor | Self::Bxor | Self::Land | Self::Lor | Self::Lxor => true,
        }
    }

    /// Whether it can combine elements of `dtype`.
    pub const fn takes(self, dtype: DType) -> bool {
        !(self.is_for_integers() && dtype.is_float())
    }

    /// Refuses a type for which [`Self::takes`] is false.
    ///
    /// # Errors
    /// E0431 where it cannot combine elements of `dtype`.
    pub const fn check(self, dtype: DType) -> Result<(), NoSuchOp> {
        if self.takes(dtype) { Ok(()) } else { Err(NoSuchOp { op: self, element: dtype.name() }) }
    }
}

/// E0431: an op that combines only integers, for elements that are floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchOp {
    /// The op that was asked for.
    pub op: ReduceOp,
    /// The name of the type of the elements.
    pub element: &'static str,
}

impl NoSuchOp {
    /// Returns the advice: the ops and element types that fit.
    pub fn help() -> String {
        fn names<T: fmt::Display>(all: impl Iterator<Item = T>) -> String {
            all.map(|one| one.to_string()).collect::<Vec<_>>().join(" ")
        }
        format!(
            "take one of the ops {}, or elements of one of {}",
            names(ReduceOp::ALL.iter().filter(|op| !op.is_for_integers())),
            names(DType::ALL.iter().filter(|dtype| !dtype.is_float()))
        )
    }
}

impl fmt::Display for NoSuchOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, element } = self;
        write!(f, "the op {op} is for integers, and {element} is a type of floats")
    }
}

impl Diagnostic {
    /// Returns the error of a missing kernel for the reduce op and element type at `place`.
    pub fn no_such_op(none: NoSuchOp, place: Span) -> Self {
        Self::new(Code::NoSuchOp, place, none.to_string()).help(NoSuchOp::help())
    }
}
