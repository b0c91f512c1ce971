//! Types, memory spaces, and the operations on values.

/// The type of a value: its class and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// A truth value, 0 or 1.
    Pred,
    /// Bits without a sign, of 8, 16, 32 or 64.
    Bits(u8),
    /// An unsigned integer of 8, 16, 32 or 64 bits.
    Unsigned(u8),
    /// A signed integer of 8, 16, 32 or 64 bits.
    Signed(u8),
    /// A float, or two of 16 bits.
    Float(Float),
}

/// The format of a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Float {
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// Two of f16 in 32 bits.
    F16x2,
    /// Two of bf16 in 32 bits.
    Bf16x2,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

/// Two narrow floats in one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Packed {
    /// Two of f16 in 32 bits.
    F16x2,
    /// Two of bf16 in 32 bits.
    Bf16x2,
    /// Two of f8e4m3 in 16 bits.
    E4m3x2,
    /// Two of f8e5m2 in 16 bits.
    E5m2x2,
}

impl Type {
    /// Bits of a value; 1 for a truth value.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Pred => 1,
            Self::Bits(bits) | Self::Unsigned(bits) | Self::Signed(bits) => bits as u32,
            Self::Float(float) => float.bits(),
        }
    }

    /// Bytes of a value in memory.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether it is a signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::Signed(_))
    }
}

impl Float {
    /// Bits of a value.
    pub const fn bits(self) -> u32 {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::F16x2 | Self::Bf16x2 | Self::F32 => 32,
            Self::F64 => 64,
        }
    }
}

/// A memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Any of the other spaces, by the address.
    Generic,
    /// Memory of all threads of all ranks.
    Global,
    /// Constant variables of the module.
    Const,
    /// Memory of a block.
    Shared,
    /// Memory of a thread.
    Local,
    /// Parameters of kernels and functions.
    Param,
}

/// The threads to which a strong access or a fence applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The threads of the block.
    Cta,
    /// The threads of the blocks of a cluster.
    Cluster,
    /// The threads of the device.
    Gpu,
    /// All threads of all devices and of the host.
    Sys,
}

/// The order that a memory access gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Semantics {
    /// A plain access, which may not race.
    Weak,
    /// A strong access without order.
    Relaxed,
    /// A strong load that orders the accesses behind it.
    Acquire,
    /// A strong store or reduction that orders the accesses before it.
    Release,
    /// An atomic operation that orders those before it and those behind it.
    AcqRel,
    /// A relaxed access of system scope that is performed as it is written.
    Volatile,
}

/// The operation of an atomic reduction on memory, `red`, or of a barrier, `bar.red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    /// The sum, which wraps around.
    Add,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// The bitwise and.
    And,
    /// The bitwise or.
    Or,
    /// The bitwise exclusive or.
    Xor,
    /// The value itself.
    Exch,
    /// A second value, if the one in memory is the first.
    Cas,
    /// The successor, or 0 from the value on.
    Inc,
    /// The predecessor, or the value for 0 and for what is beyond the value.
    Dec,
    /// The number of true values, of a barrier alone.
    Popc,
}

/// A comparison of `setp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// Equal; false for a NaN.
    Eq,
    /// Not equal; false for a NaN.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Equal, or one is a NaN.
    Equ,
    /// Not equal, or one is a NaN.
    Neu,
    /// Less, or one is a NaN.
    Ltu,
    /// Less or equal, or one is a NaN.
    Leu,
    /// Greater, or one is a NaN.
    Gtu,
    /// Greater or equal, or one is a NaN.
    Geu,
    /// Neither is a NaN.
    Num,
    /// One is a NaN.
    Nan,
}

/// A logical operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Logic {
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
}

/// The direction of rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// To the nearest value, ties to even, `.rn`.
    #[default]
    Nearest,
    /// To zero, `.rz`.
    Zero,
    /// To negative infinity, `.rm`.
    Down,
    /// To positive infinity, `.rp`.
    Up,
}

/// The range to which a result is clamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Clamp {
    /// None.
    #[default]
    None,
    /// From 0 to 1, or to the range of an integer, `.sat`.
    Saturate,
    /// From 0 on, `.relu`.
    Relu,
}

/// How the result of an operation on floats is made of the exact one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mode {
    /// The direction of rounding.
    pub rounding: Rounding,
    /// Whether subnormal sources and results are zeros, `.ftz`.
    pub ftz: bool,
    /// The range of the result.
    pub clamp: Clamp,
    /// Whether a NaN among the sources gives a NaN, `.NaN`.
    pub nan: bool,
}

/// An operation on floats. PTX gives functions other than the sums, products, quotients and roots with a tolerance; here
/// they are rounded to the nearest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FloatOp {
    /// a + b.
    Add,
    /// a - b.
    Sub,
    /// a * b.
    Mul,
    /// a * b + c, rounded once.
    Fma,
    /// a / b.
    Div,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// -a.
    Neg,
    /// The absolute value of a.
    Abs,
    /// The absolute value of b with the sign of a.
    CopySign,
    /// The square root of a.
    Sqrt,
    /// 1 / a.
    Rcp,
    /// 1 by the square root of a.
    Rsqrt,
    /// 2 to the power of a.
    Ex2,
    /// The logarithm of a to the base 2.
    Lg2,
    /// The sine of a.
    Sin,
    /// The cosine of a.
    Cos,
    /// The hyperbolic tangent of a.
    Tanh,
}

/// An operation on values of registers. Sources are named a, b and c in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithmeticOp {
    /// a + b, of integers.
    Add(Type),
    /// a - b, of integers.
    Sub(Type),
    /// The low half of a * b.
    Mul(Type),
    /// The high half of a * b.
    MulHigh(Type),
    /// The whole product of a and b, of twice the width of the type.
    MulWide(Type),
    /// The low half of a * b, plus c.
    Mad(Type),
    /// The high half of a * b, plus c.
    MadHigh(Type),
    /// The whole product of a and b, plus c, of twice the width of the type.
    MadWide(Type),
    /// An operation on floats.
    Float {
        /// The function.
        op: FloatOp,
        /// The format of the sources and of the result.
        ty: Float,
        /// How the result is made of the exact one.
        mode: Mode,
    },
    /// The op on each half of 32 bits: the sum, the smaller one, or the larger one of two integers.
    Halves(ReduceOp, Type),
    /// The absolute value of a - b, plus c.
    Sad(Type),
    /// a / b, of integers.
    Div(Type),
    /// The remainder of a / b.
    Rem(Type),
    /// The smaller one of two integers.
    Min(Type),
    /// The larger one of two integers.
    Max(Type),
    /// -a, of integers.
    Neg(Type),
    /// The absolute value of an integer a.
    Abs(Type),
    /// a shifted left by b bits; 0 from the width on.
    Shl(Type),
    /// a shifted right by b bits, with copies of the sign of a signed type.
    Shr(Type),
    /// a op b, bit by bit.
    Logic(Logic, Type),
    /// Not a.
    Not(Type),
    /// The logical function of three sources that a table of 8 bits gives, on 32 bits.
    Lop3(u8),
    /// a's low bits inserted into b, at position c. The length is the fourth source.
    Bfi(Type),
    /// The bits of a from position b on, c of them; those of a signed type are extended by their sign.
    Bfe(Type),
    /// The position of the most significant bit of a that differs from the sign, or all ones.
    Bfind {
        /// The type.
        ty: Type,
        /// Whether the result is the shift that brings the bit to the top.
        shift: bool,
    },
    /// The bits of a in reverse order.
    Brev(Type),
    /// The number of zeros above the most significant one of a.
    Clz(Type),
    /// The number of ones of a.
    Popc(Type),
    /// Four bytes selected from the eight of a and b by c.
    Prmt,
    /// A half of b (the high half) and a (the low half), shifted by c.
    Shf {
        /// Whether they are shifted left, and the high half is taken.
        left: bool,
        /// Whether the distance is at most 32, and not c modulo 32.
        clamp: bool,
    },
    /// Whether a compares with b so; combined with the truth value c if there is one.
    Setp {
        /// The comparison.
        compare: Comparison,
        /// The type of a and b.
        ty: Type,
        /// How c is combined, if there is a c.
        combine: Option<Logic>,
        /// Whether subnormal floats are zeros.
        ftz: bool,
    },
    /// a if c is true, else b.
    Selp(Type),
    /// a converted.
    Convert {
        /// The type of the result.
        to: Type,
        /// The type of a.
        from: Type,
        /// Bits of the register that takes the result: a narrower signed result is extended by its sign.
        width: u8,
        /// How the result is made of the exact one.
        mode: Mode,
        /// Whether a float is rounded to an integer.
        integral: bool,
    },
    /// a (the high half) and b, of f32, converted to two narrow floats.
    Pack {
        /// The format of the result. A finite value beyond the range of f8 becomes the largest one, as `satfinite` says.
        to: Packed,
        /// How the result is made of the exact one.
        mode: Mode,
    },
    /// The two halves of a converted to floats of 8 bits.
    Narrow {
        /// The format of the result.
        to: Packed,
        /// The format of a.
        from: Float,
        /// How the result is made of the exact one.
        mode: Mode,
    },
    /// The two narrow floats of a converted to f16.
    Widen {
        /// The format of a.
        from: Packed,
    },
}
