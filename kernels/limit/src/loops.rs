//! The loops that move bytes for the limit, one for each instruction set. They share no code with the engine's kernels
//! on purpose: the measure of the engine must not share its weaknesses.

/// Sums `len` bytes from `start` of all sources and writes them to all destinations.
///
/// # Safety
/// There is a source and a destination; each is valid for `start + len` bytes, the sources initialized. Two of them are
/// equal or apart, and no other thread touches the destinations or writes the sources. The CPU has the instructions,
/// and for streaming stores `dst + start` is a multiple of [`ALIGNED`].
pub(super) type Pass = unsafe fn(srcs: &[*const u8], dsts: &[*mut u8], start: usize, len: usize);

/// The kind of sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SumKind {
    /// The sum of `f32`.
    Float,
    /// The wrapping sum of 32-bit words, which moves the bytes of other types whatever their bits mean.
    Integer,
}

/// The alignment of destinations for streaming stores.
pub(super) const ALIGNED: usize = 64;

/// Instruction sets that have loops, the widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the sums of that system"))]
pub(super) enum Isa {
    Avx512,
    Avx2,
    Portable,
}

impl Isa {
    pub(super) fn widest() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Returns the loop, through the caches or past them; not every instruction set has a streaming loop.
    pub(super) fn pass(self, words: SumKind, streaming: bool) -> Option<Pass> {
        Some(match (self, words, streaming) {
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, SumKind::Float, false) => vector::avx512_float,
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, SumKind::Float, true) => vector::avx512_float_streaming,
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, SumKind::Integer, false) => vector::avx512_integer,
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, SumKind::Integer, true) => vector::avx512_integer_streaming,
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, SumKind::Float, false) => vector::avx2_float,
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, SumKind::Float, true) => vector::avx2_float_streaming,
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, SumKind::Integer, false) => vector::avx2_integer,
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, SumKind::Integer, true) => vector::avx2_integer_streaming,
            (_, SumKind::Float, false) => float,
            (_, SumKind::Integer, false) => integer,
            (_, _, true) => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "AVX-512",
            Self::Avx2 => "AVX2",
            Self::Portable => "portable",
        }
    }
}

/// Makes streamed bytes visible to the other threads, before a signal tells them.
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction; it touches no memory.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// # Safety
/// The promises of [`Pass`], for any CPU.
unsafe fn float(srcs: &[*const u8], dsts: &[*mut u8], start: usize, len: usize) {
    let add = |a, b| (f32::from_bits(a) + f32::from_bits(b)).to_bits();
    // SAFETY: the caller's promise.
    unsafe { plain(srcs, dsts, start, len, add) }
}

/// # Safety
/// The promises of [`Pass`], for any CPU.
unsafe fn integer(srcs: &[*const u8], dsts: &[*mut u8], start: usize, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { plain(srcs, dsts, start, len, u32::wrapping_add) }
}

/// # Safety
/// The promises of [`Pass`], for any CPU.
#[inline(always)]
unsafe fn plain(
    srcs: &[*const u8],
    dsts: &[*mut u8],
    start: usize,
    len: usize,
    add: impl Fn(u32, u32) -> u32,
) {
    const LANES: usize = 64;
    let end = start + len;
    let mut at = start;
    while at + 4 <= end {
        let lanes = if at + 4 * LANES <= end { LANES } else { 1 };
        let mut sums = [0_u32; LANES];
        // SAFETY: `4 * lanes` bytes from `at` end within every operand.
        unsafe {
            for (i, sum) in sums[..lanes].iter_mut().enumerate() {
                *sum = srcs[0].add(at + 4 * i).cast::<u32>().read_unaligned();
            }
            for src in &srcs[1..] {
                for (i, sum) in sums[..lanes].iter_mut().enumerate() {
                    *sum = add(*sum, src.add(at + 4 * i).cast::<u32>().read_unaligned());
                }
            }
            for dst in dsts {
                for (i, sum) in sums[..lanes].iter().enumerate() {
                    dst.add(at + 4 * i).cast::<u32>().write_unaligned(*sum);
                }
            }
        }
        at += 4 * lanes;
    }
    for at in at..end {
        // SAFETY: one byte of every operand.
        unsafe {
            let sum = srcs.iter().fold(0_u8, |sum, src| sum.wrapping_add(*src.add(at)));
            for dst in dsts {
                dst.add(at).write(sum);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::{
        __m256, __m256i, __m512, __m512i, _mm256_add_epi32, _mm256_add_ps, _mm256_loadu_ps,
        _mm256_loadu_si256, _mm256_storeu_ps, _mm256_storeu_si256, _mm256_stream_ps,
        _mm256_stream_si256, _mm512_add_epi32, _mm512_add_ps, _mm512_loadu_ps, _mm512_loadu_si512,
        _mm512_storeu_ps, _mm512_storeu_si512, _mm512_stream_ps, _mm512_stream_si512,
    };

    /// Vectors of each operand that are under way at once; then come single vectors, then the bytes of less than a
    /// vector.
    const LANES: usize = 8;

    macro_rules! pass {
        ($($name:ident $feature:literal $vector:ident $load:ident $add:ident $store:ident $rest:ident;)*) => {$(
            /// # Safety
            /// The promises of [`super::Pass`].
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn $name(
                srcs: &[*const u8],
                dsts: &[*mut u8],
                start: usize,
                len: usize,
            ) {
                const WIDTH: usize = size_of::<$vector>();
                let end = start + len;
                let mut at = start;
                macro_rules! steps {
                    ($lanes:expr) => {
                        while at + $lanes * WIDTH <= end {
                            // SAFETY: `lanes` vectors from `at` end within every operand. Loads and cached
                            // stores take any address; streaming ones are called where `start`, and so `at`,
                            // is aligned in every destination.
                            unsafe {
                                // No closure: it would not be inlined into a function with more target features.
                                let mut sums: [$vector; $lanes] = [$load(srcs[0].add(at).cast()); $lanes];
                                for (i, sum) in sums.iter_mut().enumerate().skip(1) {
                                    *sum = $load(srcs[0].add(at + i * WIDTH).cast());
                                }
                                for src in &srcs[1..] {
                                    for (i, sum) in sums.iter_mut().enumerate() {
                                        *sum = $add(*sum, $load(src.add(at + i * WIDTH).cast()));
                                    }
                                }
                                for dst in dsts {
                                    for (i, sum) in sums.iter().enumerate() {
                                        $store(dst.add(at + i * WIDTH).cast(), *sum);
                                    }
                                }
                            }
                            at += $lanes * WIDTH;
                        }
                    };
                }
                steps!(LANES);
                steps!(1);
                if at < end {
                    // SAFETY: the rest of the operands of this call.
                    unsafe { super::$rest(srcs, dsts, at, end - at) };
                }
            }
        )*};
    }

    pass! {
        avx512_float "avx512f" __m512 _mm512_loadu_ps _mm512_add_ps _mm512_storeu_ps float;
        avx512_float_streaming "avx512f" __m512 _mm512_loadu_ps _mm512_add_ps _mm512_stream_ps float;
        avx512_integer "avx512f" __m512i _mm512_loadu_si512 _mm512_add_epi32 _mm512_storeu_si512 integer;
        avx512_integer_streaming "avx512f" __m512i _mm512_loadu_si512 _mm512_add_epi32 _mm512_stream_si512 integer;
        avx2_float "avx2" __m256 _mm256_loadu_ps _mm256_add_ps _mm256_storeu_ps float;
        avx2_float_streaming "avx2" __m256 _mm256_loadu_ps _mm256_add_ps _mm256_stream_ps float;
        avx2_integer "avx2" __m256i _mm256_loadu_si256 _mm256_add_epi32 _mm256_storeu_si256 integer;
        avx2_integer_streaming "avx2" __m256i _mm256_loadu_si256 _mm256_add_epi32 _mm256_stream_si256 integer;
    }
}
