//! A table of every operation on every type that kernels have, and the conversions against other implementations.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};

use super::*;
use crate::program::{FloatOp, Module, Operand, Operation, Packed};

/// Instructions, the values of their registers in order, and the result.
const TABLE: &[(&str, &[u64], u64)] = &[
    ("add.s16 %rs0, %rs1, %rs2", &[0xffff, 2], 1),
    ("add.s32 %r0, %r1, %r2", &[0xffff_ffff, 2], 1),
    ("add.s64 %rd0, %rd1, %rd2", &[u64::MAX, 2], 1),
    ("add.u64 %rd0, %rd1, -1", &[5], 4),
    ("add.rn.f32 %f0, %f1, %f2", &[0x3f80_0000, 0x4000_0000], 0x4040_0000),
    ("add.rn.f32 %f0, %f1, %f2", &[0x7f80_0000, 0xff80_0000], 0x7fff_ffff),
    ("add.rn.f32 %f0, %f1, %f2", &[1, 1], 2),
    ("add.f32 %f0, %f1, %f2", &[0x3f80_0000, 0x4000_0000], 0x4040_0000),
    ("add.ftz.f32 %f0, %f1, %f2", &[1, 0x3f80_0000], 0x3f80_0000),
    ("add.ftz.f32 %f0, %f1, %f2", &[0x8000_0001, 0x8000_0001], 0x8000_0000),
    ("add.rz.f32 %f0, %f1, %f2", &[0x3f80_0000, 0x3300_0000], 0x3f80_0000),
    ("add.rp.f32 %f0, %f1, %f2", &[0x3f80_0000, 0x3300_0000], 0x3f80_0001),
    ("add.rm.f32 %f0, %f1, %f2", &[0xbf80_0000, 0xb300_0000], 0xbf80_0001),
    ("add.rz.f32 %f0, %f1, %f2", &[0x3f80_0000, 0xb300_0000], 0x3f7f_ffff),
    ("add.sat.f32 %f0, %f1, %f2", &[0x3f80_0000, 0x3f80_0000], 0x3f80_0000),
    ("add.sat.f32 %f0, %f1, %f2", &[0x7fc0_0000, 0x3f80_0000], 0),
    ("add.rp.f32 %f0, %f1, %f2", &[0x7f7f_ffff, 0x7f7f_ffff], 0x7f80_0000),
    ("add.rz.f32 %f0, %f1, %f2", &[0x7f7f_ffff, 0x7f7f_ffff], 0x7f7f_ffff),
    ("sub.f32 %f0, %f1, %f2", &[0x3f80_0000, 0x4000_0000], 0xbf80_0000),
    ("sub.rn.f64 %fd0, %fd1, %fd2", &[0x3ff0 << 48, 0x4000 << 48], 0xbff0 << 48),
    ("add.f64 %fd0, %fd1, %fd2", &[0x3ff0 << 48; 2], 0x4000 << 48),
    ("mul.f32 %f0, %f1, %f2", &[0x4040_0000, 0x4000_0000], 0x40c0_0000),
    ("mul.ftz.f32 %f0, %f1, %f2", &[0x0080_0000, 0x3f00_0000], 0),
    ("mul.rp.f32 %f0, %f1, %f2", &[1, 1], 1),
    ("fma.rn.f32 %f0, %f1, %f2, %f3", &[0x4040_0000, 0x4000_0000, 0xc0a0_0000], 0x3f80_0000),
    // (1 + 2^-12)^2 - 1 has 25 bits before the last rounding.
    ("fma.rn.f32 %f0, %f1, %f2, %f3", &[0x3f80_0800, 0x3f80_0800, 0xbf80_0000], 0x3a00_0400),
    ("fma.rm.f32 %f0, %f1, %f2, %f3", &[0x3f80_0800, 0x3f80_0800, 0x3300_0000], 0x3f80_1000),
    ("fma.rp.f32 %f0, %f1, %f2, %f3", &[0x3f80_0800, 0x3f80_0800, 0x3300_0000], 0x3f80_1001),
    (
        "fma.rn.f64 %fd0, %fd1, %fd2, %fd3",
        &[0x4008 << 48, 0x4000 << 48, 0xc014 << 48],
        0x3ff0 << 48,
    ),
    ("div.rz.f32 %f0, %f1, %f2", &[0x3f80_0000, 0x4040_0000], 0x3eaa_aaaa),
    ("div.approx.f32 %f0, %f1, %f2", &[0x40c0_0000, 0x4000_0000], 0x4040_0000),
    ("div.full.f32 %f0, %f1, %f2", &[0x40c0_0000, 0x4000_0000], 0x4040_0000),
    ("min.f32 %f0, %f1, %f2", &[0x8000_0000, 0], 0x8000_0000),
    ("min.f32 %f0, %f1, %f2", &[0x7fc0_0000, 0x3f80_0000], 0x3f80_0000),
    ("max.f32 %f0, %f1, %f2", &[0x8000_0000, 0], 0),
    ("max.f32 %f0, %f1, %f2", &[0x7fc0_0000, 0xffc0_0000], 0x7fff_ffff),
    ("max.NaN.f32 %f0, %f1, %f2", &[0x7fc0_0000, 0x3f80_0000], 0x7fff_ffff),
    ("max.f64 %fd0, %fd1, %fd2", &[0x3ff0 << 48, 0x4000 << 48], 0x4000 << 48),
    ("min.f64 %fd0, %fd1, %fd2", &[0x3ff0 << 48, 0x7ff8 << 48], 0x3ff0 << 48),
    ("neg.f32 %f0, %f1", &[0x3f80_0000], 0xbf80_0000),
    ("neg.f64 %fd0, %fd1", &[0x3ff0 << 48], 0xbff0 << 48),
    ("neg.f16 %h0, %h1", &[0x3c00], 0xbc00),
    ("neg.bf16x2 %r0, %r1", &[0x3f80_bf80], 0xbf80_3f80),
    ("abs.f64 %fd0, %fd1", &[0xbff0 << 48], 0x3ff0 << 48),
    ("abs.f16x2 %r0, %r1", &[0xbc00_3c00], 0x3c00_3c00),
    ("copysign.f32 %f0, %f1, %f2", &[0x8000_0000, 0x3f80_0000], 0xbf80_0000),
    ("sqrt.rn.f32 %f0, %f1", &[0x4000_0000], 0x3fb5_04f3),
    ("sqrt.rp.f32 %f0, %f1", &[0x4000_0000], 0x3fb5_04f4),
    ("sqrt.approx.f32 %f0, %f1", &[0x4080_0000], 0x4000_0000),
    ("rcp.rn.f32 %f0, %f1", &[0x4040_0000], 0x3eaa_aaab),
    ("rcp.approx.ftz.f32 %f0, %f1", &[1], 0x7f80_0000),
    ("rsqrt.approx.f32 %f0, %f1", &[0x4080_0000], 0x3f00_0000),
    ("rsqrt.approx.f32 %f0, %f1", &[0], 0x7f80_0000),
    ("ex2.approx.ftz.f32 %f0, %f1", &[0x4040_0000], 0x4100_0000),
    ("lg2.approx.f32 %f0, %f1", &[0x4100_0000], 0x4040_0000),
    ("tanh.approx.f32 %f0, %f1", &[0x7f80_0000], 0x3f80_0000),
    ("sin.approx.f32 %f0, %f1", &[0], 0),
    ("cos.approx.f32 %f0, %f1", &[0], 0x3f80_0000),
    ("add.f16 %h0, %h1, %h2", &[0x3c00, 0x4000], 0x4200),
    ("add.rn.f16 %h0, %h1, %h2", &[0x7bff, 0x7bff], 0x7c00),
    ("sub.f16 %h0, %h1, %h2", &[0x7c00, 0x7c00], 0x7fff),
    ("mul.ftz.f16 %h0, %h1, %h2", &[0x0400, 0x3800], 0),
    ("fma.rn.f16 %h0, %h1, %h2, %h3", &[0x4200, 0x4000, 0xc500], 0x3c00),
    ("fma.rn.relu.f16 %h0, %h1, %h2, %h3", &[0x4200, 0xc000, 0x3c00], 0),
    ("fma.rn.bf16x2 %r0, %r1, %r2, %r3", &[0x4040_4040, 0x4000_4000, 0xc0a0_c0a0], 0x3f80_3f80),
    ("add.bf16 %rs0, %rs1, %rs2", &[0x3f80, 0x3b80], 0x3f80),
    ("add.bf16 %rs0, %rs1, %rs2", &[0x3f81, 0x3b80], 0x3f82),
    ("add.f16x2 %r0, %r1, %r2", &[0x3c00_4000, 0x3c00_3c00], 0x4000_4200),
    ("add.bf16x2 %r0, %r1, %r2", &[0x3f80_4000, 0x3f80_3f80], 0x4000_4040),
    ("sub.bf16x2 %r0, %r1, %r2", &[0x3f80_4000, 0x3f80_3f80], 0x0000_3f80),
    ("mul.bf16x2 %r0, %r1, %r2", &[0x4000_4000, 0x4000_bf80], 0x4080_c000),
    ("max.f16x2 %r0, %r1, %r2", &[0x3c00_7e00, 0x4000_3c00], 0x4000_3c00),
    ("min.NaN.bf16x2 %r0, %r1, %r2", &[0x3f80_7fc0, 0x4000_3f80], 0x3f80_7fff),
    ("max.u16x2 %r0, %r1, %r2", &[0x0001_ffff, 0x0002_0001], 0x0002_ffff),
    ("min.s16x2 %r0, %r1, %r2", &[0x0001_ffff, 0x0002_0001], 0x0001_ffff),
    ("add.u16x2 %r0, %r1, %r2", &[0x0001_ffff, 0x0002_0001], 0x0003_0000),
    ("mad.wide.u32 %rd0, %r1, %r2, %rd1", &[0xffff_ffff, 2, 1], 0x1_ffff_ffff),
    ("mad.hi.s32 %r0, %r1, %r2, %r3", &[0x8000_0000, 2, 5], 4),
    ("sad.s32 %r0, %r1, %r2, %r3", &[0xffff_ffff, 2, 5], 8),
    ("bfe.s32 %r0, %r1, 4, 4", &[0x80], 0xffff_fff8),
    ("bfe.s32 %r0, %r1, 4, 4", &[0x70], 7),
    ("bfe.s32 %r0, %r1, 28, 8", &[0x8000_0000], 0xffff_fff8),
    ("shf.r.wrap.b32 %r0, %r1, %r2, 4", &[0x1234_5678, 0xa], 0xa123_4567),
    ("shf.r.clamp.b32 %r0, %r1, %r2, 40", &[1, 2], 2),
    ("setp.lt.f16 %p0, %h1, %h2", &[0xbc00, 0], 1),
    ("setp.nan.bf16 %p0, %rs1, %rs2", &[0x7fc0, 0], 1),
    ("setp.eq.ftz.f32 %p0, %f1, %f2", &[1, 0], 1),
    ("cvt.rn.f16.f32 %h0, %f1", &[0x3f80_1000], 0x3c00),
    ("cvt.rz.f16.f32 %h0, %f1", &[0x477f_ffff], 0x7bff),
    ("cvt.rn.bf16.f32 %rs0, %f1", &[0x3f80_8000], 0x3f80),
    ("cvt.rn.relu.bf16.f32 %rs0, %f1", &[0xbf80_0000], 0),
    ("cvt.rn.f32.f64 %f0, %fd1", &[0x3ff0_0000_1000_0000], 0x3f80_0000),
    ("cvt.rp.f32.f64 %f0, %fd1", &[0x3ff0_0000_1000_0000], 0x3f80_0001),
    ("cvt.f64.f32 %fd0, %f1", &[0x3f80_0000], 0x3ff0 << 48),
    ("cvt.ftz.f32.f16 %f0, %h1", &[0x3c00], 0x3f80_0000),
    ("cvt.sat.f32.f32 %f0, %f1", &[0x4000_0000], 0x3f80_0000),
    ("cvt.rni.f32.f32 %f0, %f1", &[0x4020_0000], 0x4000_0000),
    ("cvt.rmi.f32.f32 %f0, %f1", &[0xc020_0000], 0xc040_0000),
    ("cvt.rzi.s32.f32 %r0, %f1", &[0xc020_0000], 0xffff_fffe),
    ("cvt.rzi.u32.f32 %r0, %f1", &[0xc020_0000], 0),
    ("cvt.rzi.s32.f32 %r0, %f1", &[0x4f80_0000], 0x7fff_ffff),
    ("cvt.rzi.s32.f32 %r0, %f1", &[0x7fc0_0000], 0),
    ("cvt.rni.s64.f64 %rd0, %fd1", &[0x4004 << 48], 2),
    ("cvt.rzi.s64.f64 %rd0, %fd1", &[0x7ff8 << 48], 1 << 63),
    ("cvt.rn.f32.u32 %f0, %r1", &[0xffff_ffff], 0x4f80_0000),
    ("cvt.rz.f32.u32 %f0, %r1", &[0xffff_ffff], 0x4f7f_ffff),
    ("cvt.rn.f16.s32 %h0, %r1", &[0xffff_fffe], 0xc000),
    ("cvt.rn.f32.u64 %f0, %rd1", &[0x8000_0080_0000_0001], 0x5f00_0001),
    ("cvt.sat.u8.s32 %r0, %r1", &[300], 255),
    ("cvt.sat.s8.s32 %r0, %r1", &[0xffff_ff00], 0xffff_ff80),
    ("cvt.rz.bf16x2.f32 %r0, %f1, %f2", &[0x3f80_ffff, 0xbf80_ffff], 0x3f80_bf80),
    ("cvt.rn.satfinite.e4m3x2.f16x2 %rs0, %r1", &[0x3c00_7c00], 0x387e),
    ("cvt.rn.satfinite.e5m2x2.f16x2 %rs0, %r1", &[0x3c00_fc00], 0x3cfb),
    ("add.rn.f64 %fd0, %fd1, %fd2", &[0x3ff0_0000_0000_0000; 2], 0x4000_0000_0000_0000),
    ("add.rn.f64 %fd0, %fd1, %fd2", &[0x7ff0_0000_0000_0001, 0], 0x7ff8_0000_0000_0001),
    ("sub.s16 %rs0, %rs1, %rs2", &[1, 2], 0xffff),
    ("sub.s32 %r0, %r1, %r2", &[1, 2], 0xffff_ffff),
    ("sub.s64 %rd0, %rd1, %rd2", &[1, 2], u64::MAX),
    ("mul.lo.s32 %r0, %r1, %r2", &[0xffff_fffe, 3], 0xffff_fffa),
    ("mul.lo.s64 %rd0, %rd1, %rd2", &[u64::MAX, 3], (-3i64) as u64),
    ("mul.hi.u32 %r0, %r1, %r2", &[0xffff_ffff, 0xffff_ffff], 0xffff_fffe),
    ("mul.hi.s32 %r0, %r1, %r2", &[0xffff_fffe, 0x4000_0000], 0xffff_ffff),
    ("mul.hi.u64 %rd0, %rd1, %rd2", &[u64::MAX, u64::MAX], u64::MAX - 1),
    ("mul.wide.s32 %rd0, %r1, %r2", &[0xffff_ffff, 3], (-3i64) as u64),
    ("mul.wide.u32 %rd0, %r1, %r2", &[0xffff_ffff, 3], 0x2_ffff_fffd),
    ("mul.rn.f32 %f0, %f1, %f2", &[0x4040_0000, 0x4000_0000], 0x40c0_0000),
    ("mul.rn.f64 %fd0, %fd1, %fd2", &[0x4008_0000_0000_0000, 0x4000_0000_0000_0000], 0x4018 << 48),
    ("mad.lo.s32 %r0, %r1, %r2, -670", &[3, 5], 0xffff_fd71),
    ("mad.lo.s64 %rd0, %rd1, %rd2, %rd3", &[3, 5, 7], 22),
    ("div.s16 %rs0, %rs1, %rs2", &[0xfff9, 2], 0xfffd),
    ("div.u16 %rs0, %rs1, %rs2", &[0xfff9, 2], 0x7ffc),
    ("div.s32 %r0, %r1, %r2", &[0xffff_fff9, 2], 0xffff_fffd),
    ("div.s64 %rd0, %rd1, %rd2", &[(-7i64) as u64, 2], (-3i64) as u64),
    ("div.s64 %rd0, %rd1, %rd2", &[1 << 63, u64::MAX], 1 << 63),
    ("div.u32 %r0, %r1, %r2", &[0xffff_fff9, 2], 0x7fff_fffc),
    ("div.u32 %r0, %r1, %r2", &[7, 0], 0xffff_ffff),
    ("div.u64 %rd0, %rd1, %rd2", &[u64::MAX, 16], u64::MAX >> 4),
    ("div.rn.f32 %f0, %f1, %f2", &[0x3f80_0000, 0x4040_0000], 0x3eaa_aaab),
    ("div.rn.f64 %fd0, %fd1, %fd2", &[0x3ff0 << 48, 0x4008 << 48], 0x3fd5_5555_5555_5555),
    ("div.rn.f64 %fd0, %fd1, %fd2", &[0, 0], 0xfff8 << 48),
    ("rem.s16 %rs0, %rs1, %rs2", &[0xfff9, 4], 0xfffd),
    ("rem.u16 %rs0, %rs1, %rs2", &[0xfff9, 4], 1),
    ("rem.s32 %r0, %r1, %r2", &[0xffff_fff9, 4], 0xffff_fffd),
    ("rem.s64 %rd0, %rd1, %rd2", &[(-7i64) as u64, 4], (-3i64) as u64),
    ("rem.u32 %r0, %r1, %r2", &[0xffff_fff9, 4], 1),
    ("rem.u64 %rd0, %rd1, %rd2", &[7, 4], 3),
    ("min.s32 %r0, %r1, %r2", &[0xffff_ffff, 2], 0xffff_ffff),
    ("min.s64 %rd0, %rd1, %rd2", &[u64::MAX, 2], u64::MAX),
    ("min.u32 %r0, %r1, %r2", &[0xffff_ffff, 2], 2),
    ("min.u64 %rd0, %rd1, %rd2", &[u64::MAX, 2], 2),
    ("max.s32 %r0, %r1, %r2", &[0xffff_ffff, 2], 2),
    ("max.s64 %rd0, %rd1, %rd2", &[u64::MAX, 2], 2),
    ("max.u32 %r0, %r1, %r2", &[0xffff_ffff, 2], 0xffff_ffff),
    ("max.u64 %rd0, %rd1, %rd2", &[u64::MAX, 2], u64::MAX),
    ("neg.s32 %r0, %r1", &[1], 0xffff_ffff),
    ("neg.s64 %rd0, %rd1", &[1], u64::MAX),
    ("abs.s32 %r0, %r1", &[0xffff_fffb], 5),
    ("abs.s32 %r0, %r1", &[0x8000_0000], 0x8000_0000),
    ("abs.s64 %rd0, %rd1", &[(-5i64) as u64], 5),
    ("abs.f32 %f0, %f1", &[0x8000_0001], 1),
    // Found on an H200.
    ("abs.f32 %f0, %f1", &[0xffff_ff6c], 0x7fff_ffff),
    (
        "add.rn.f64 %fd0, %fd1, %fd2",
        &[0x7ff0_0000_0000_0001, 0x7ff5_a5a5_5a5a_a5a5],
        0x7ffd_a5a5_5a5a_a5a5,
    ),
    ("mul.rn.f64 %fd0, %fd1, %fd2", &[0xfff8 << 48, 0xffff_ffff_9ed4_c696], 0xffff_ffff_9ed4_c696),
    ("bfi.b64 %rd0, %rd1, %rd2, %r1, %r2", &[0, 0x4340 << 48, 0x1f, 0x100], 0),
    (
        "bfi.b64 %rd0, %rd1, %rd2, %r1, %r2",
        &[0xffff_ff80 << 32, 0x3fe0 << 48, 1 << 31, 0x28],
        0x3fe0 << 48,
    ),
    ("shl.b32 %r0, %r1, 31", &[3], 0x8000_0000),
    ("shl.b32 %r0, %r1, %r2", &[3, 32], 0),
    ("shl.b64 %rd0, %rd1, %r2", &[3, 33], 3 << 33),
    ("shr.u16 %rs0, %rs1, 15", &[0x8000], 1),
    ("shr.u32 %r0, %r1, 31", &[0x8000_0000], 1),
    ("shr.u32 %r0, %r1, 32", &[0x8000_0000], 0),
    ("shr.u64 %rd0, %rd1, 63", &[1 << 63], 1),
    ("shr.s32 %r0, %r1, 31", &[0x8000_0000], 0xffff_ffff),
    ("shr.s64 %rd0, %rd1, 99", &[1 << 63], u64::MAX),
    ("and.b16 %rs0, %rs1, 255", &[0x1234], 0x34),
    ("and.b32 %r0, %r1, %r2", &[0xf0f0, 0xff00], 0xf000),
    ("and.b64 %rd0, %rd1, -4294967296", &[u64::MAX], 0xffff_ffff_0000_0000),
    ("and.pred %p0, %p1, %p2", &[1, 0], 0),
    ("or.b16 %rs0, %rs1, %rs2", &[1, 0x100], 0x101),
    ("or.b32 %r0, %r1, %r2", &[1, 2], 3),
    ("or.b64 %rd0, %rd1, %rd2", &[1 << 40, 2], 1 << 40 | 2),
    ("or.pred %p0, %p1, %p2", &[1, 0], 1),
    ("xor.b32 %r0, %r1, -1", &[1], 0xffff_fffe),
    ("xor.b64 %rd0, %rd1, %rd2", &[3, 1], 2),
    ("xor.pred %p0, %p1, %p2", &[1, 1], 0),
    ("not.b32 %r0, %r1", &[1], 0xffff_fffe),
    ("not.b64 %rd0, %rd1", &[1], u64::MAX - 1),
    ("not.pred %p0, %p1", &[1], 0),
    ("lop3.b32 %r0, %r1, %r2, %r3, 0x8E", &[0b1111_0000, 0b1100_1100, 0b1010_1010], 0b1000_1110),
    ("lop3.b32 %r0, %r1, %r2, %r3, 0x01", &[0, 0, 0], 0xffff_ffff),
    ("bfi.b32 %r0, %r1, %r2, 8, 4", &[0xab, 0xffff_ffff], 0xffff_fbff),
    ("bfi.b64 %rd0, %rd1, %rd2, 1, 63", &[7, 1], 15),
    ("bfi.b32 %r0, %r1, %r2, 40, 4", &[0xab, 5], 5),
    ("bfe.u32 %r0, %r1, 4, 8", &[0xabcd], 0xbc),
    ("bfe.u32 %r0, %r1, 28, 64", &[0xffff_ffff], 0xf),
    ("bfe.u32 %r0, %r1, 40, 8", &[0xffff_ffff], 0),
    ("popc.b64 %r0, %rd1", &[1 << 63 | 7], 4),
    ("bfind.shiftamt.u32 %r0, %r1", &[0x10], 27),
    ("bfind.shiftamt.u32 %r0, %r1", &[0], 0xffff_ffff),
    ("brev.b32 %r0, %r1", &[1], 0x8000_0000),
    ("brev.b64 %rd0, %rd1", &[1], 1 << 63),
    ("clz.b64 %r0, %rd1", &[1], 63),
    ("clz.b64 %r0, %rd1", &[0], 64),
    ("prmt.b32 %r0, %r1, %r2, %r3", &[0x3322_1100, 0x7766_5544, 0x7531], 0x7755_3311),
    ("prmt.b32 %r0, %r1, 0, 0xba98", &[0x80ff_017f], 0xffff_0000),
    ("shf.l.wrap.b32 %r0, %r1, %r2, 36", &[0xf000_0000, 1], 0x1f),
    ("setp.eq.b32 %p0, %r1, %r2", &[5, 5], 1),
    ("setp.eq.s16 %p0, %rs1, 0", &[1], 0),
    ("setp.eq.s32 %p0, %r1, -1", &[0xffff_ffff], 1),
    ("setp.eq.s64 %p0, %rd1, -1", &[u64::MAX], 1),
    ("setp.eq.f32 %p0, %f1, %f2", &[0x8000_0000, 0], 1),
    ("setp.eq.f64 %p0, %fd1, %fd2", &[0x7ff8 << 48; 2], 0),
    ("setp.ne.s16 %p0, %rs1, %rs2", &[1, 2], 1),
    ("setp.ne.s32 %p0, %r1, %r2", &[1, 1], 0),
    ("setp.ne.u32 %p0, %r1, %r2", &[1, 1], 0),
    ("setp.ne.s64 %p0, %rd1, %rd2", &[1, 1 << 32 | 1], 1),
    ("setp.neu.f32 %p0, %f1, %f2", &[0x7fc0_0000, 0], 1),
    ("setp.nan.f32 %p0, %f1, %f2", &[0, 0x7fc0_0000], 1),
    ("setp.nan.f64 %p0, %fd1, %fd2", &[0, 0], 0),
    ("setp.lt.s16 %p0, %rs1, %rs2", &[0xffff, 1], 1),
    ("setp.lt.s32 %p0, %r1, %r2", &[0xffff_ffff, 1], 1),
    ("setp.lt.s64 %p0, %rd1, %rd2", &[u64::MAX, 1], 1),
    ("setp.lt.u32 %p0, %r1, %r2", &[0xffff_ffff, 1], 0),
    ("setp.lt.u64 %p0, %rd1, %rd2", &[u64::MAX, 1], 0),
    ("setp.lt.f32 %p0, %f1, %f2", &[0xbf80_0000, 0], 1),
    ("setp.lt.f64 %p0, %fd1, %fd2", &[0xbff0 << 48, 0], 1),
    ("setp.le.s64 %p0, %rd1, %rd2", &[1, 1], 1),
    ("setp.le.u32 %p0, %r1, %r2", &[5, 5], 1),
    ("setp.eq.b64 %p0, %rd1, %rd2", &[5, 1 << 32 | 5], 0),
    ("setp.le.u64 %p0, %rd1, %rd2", &[u64::MAX, 1], 0),
    ("setp.gt.s32 %p0, %r1, %r2", &[1, 0xffff_ffff], 1),
    ("setp.gt.s64 %p0, %rd1, %rd2", &[1, 1], 0),
    ("setp.gt.u32 %p0, %r1, %r2", &[1, 0xffff_ffff], 0),
    ("setp.gt.u64 %p0, %rd1, %rd2", &[2, 1], 1),
    ("setp.gt.f32 %p0, %f1, %f2", &[0x7fc0_0000, 0], 0),
    ("setp.gt.f64 %p0, %fd1, %fd2", &[0x3ff0 << 48, 0], 1),
    ("setp.ge.s32 %p0, %r1, -224", &[0xffff_ff20], 1),
    ("setp.ge.s64 %p0, %rd1, %rd2", &[u64::MAX, 0], 0),
    ("setp.ge.u32 %p0, %r1, %r2", &[5, 5], 1),
    ("setp.ge.u64 %p0, %rd1, %rd2", &[4, 5], 0),
    ("setp.lt.and.s32 %p0, %r1, %r2, !%p3", &[0, 1, 1], 0),
    ("selp.b16 %rs0, 1, %rs1, %p2", &[7, 0], 7),
    ("selp.u16 %rs0, %rs1, %rs2, %p3", &[1, 2, 1], 1),
    ("selp.b32 %r0, %r1, %r2, %p3", &[1, 2, 0], 2),
    ("selp.s32 %r0, %r1, %r2, %p3", &[1, 2, 0], 2),
    ("selp.u32 %r0, 1, 0, %p1", &[1], 1),
    ("selp.f32 %f0, %f1, %f2, %p3", &[0x7fa0_0000, 2, 1], 0x7fa0_0000),
    ("selp.b64 %rd0, %rd1, %rd2, %p3", &[1, 2, 0], 2),
    ("selp.u64 %rd0, %rd1, %rd2, %p3", &[1 << 60, 2, 1], 1 << 60),
    ("selp.f64 %fd0, %fd1, %fd2, %p3", &[1, 2, 0], 2),
    ("cvt.s16.s8 %rs0, %r1", &[0xff80], 0xff80),
    ("cvt.s16.s8 %rs0, %r1", &[0xff7f], 0x007f),
    ("cvt.s32.s8 %r0, %rs1", &[0x0080], 0xffff_ff80),
    ("cvt.s32.s16 %r0, %rs1", &[0x8000], 0xffff_8000),
    ("cvt.s64.s32 %rd0, %r1", &[0x8000_0000], 0xffff_ffff_8000_0000),
    ("cvt.u16.u32 %rs0, %r1", &[0x1_2345], 0x2345),
    ("cvt.u32.u16 %r0, %rs1", &[0x8000], 0x8000),
    ("cvt.u16.u64 %rs0, %rd1", &[0x1_2345], 0x2345),
    ("cvt.u64.u16 %rd0, %rs1", &[0x8000], 0x8000),
    ("cvt.u32.u64 %r0, %rd1", &[1 << 32 | 5], 5),
    ("cvt.u64.u32 %rd0, %r1", &[0xffff_ffff], 0xffff_ffff),
    ("cvt.s8.s32 %r0, %r1", &[0x1ff], 0xffff_ffff),
    ("cvt.rn.f32.s64 %f0, %rd1", &[u64::MAX], 0xbf80_0000),
    ("cvt.rn.f32.s64 %f0, %rd1", &[(1 << 24) + 1], 0x4b80_0000),
    ("cvt.rn.f64.s64 %fd0, %rd1", &[(-2i64) as u64], 0xc000 << 48),
    ("cvt.f32.f16 %f0, %h1", &[0x3c00], 0x3f80_0000),
    ("cvt.f32.bf16 %f0, %rs1", &[0x3f80], 0x3f80_0000),
    ("cvt.rn.f16x2.f32 %r0, %f1, %f2", &[0x3f80_0000, 0xc000_0000], 0x3c00_c000),
    ("cvt.rn.bf16x2.f32 %r0, %f1, %f2", &[0x3f80_0000, 0xc000_0000], 0x3f80_c000),
    ("cvt.rn.satfinite.e4m3x2.f32 %rs0, %f1, %f2", &[0x3f80_0000, 0x7f80_0000], 0x387e),
    ("cvt.rn.satfinite.e5m2x2.f32 %rs0, %f1, %f2", &[0x3f80_0000, 0xff80_0000], 0x3cfb),
    ("cvt.rn.f16x2.e4m3x2 %r0, %rs1", &[0x387f], 0x3c00_7fff),
    ("cvt.rn.f16x2.e5m2x2 %r0, %rs1", &[0x3cfc], 0x3c00_fc00),
];

/// The operation of an instruction, and its sources with the values of its registers.
fn read(instruction: &str, values: &[u64]) -> (ArithmeticOp, [u64; 4]) {
    let registers =
        [".pred %p", ".b16 %rs", ".f16 %h", ".b32 %r", ".b64 %rd", ".f32 %f", ".f64 %fd"];
    let registers = registers.map(|kind| format!(".reg {kind}<4>;\n")).concat();
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry K()\n{{\n{registers}{instruction};\nret;\n}}"
    );
    let module =
        Module::parse_whole(&text).unwrap_or_else(|error| panic!("{instruction}: {error}"));
    let Operation::Arithmetic(found) = &module.functions[0].instructions[0].operation else {
        panic!("{instruction} is not arithmetic");
    };
    let mut values = values.iter();
    let mut sources = found.from.map(|operand| match operand {
        Operand::Value(value) => value,
        Operand::Slot(_) => *values.next().expect("a value for each register"),
    });
    assert_eq!(values.next(), None, "{instruction}");
    for (at, source) in sources.iter_mut().enumerate() {
        *source ^= u64::from(found.negated >> at & 1);
    }
    (found.op, sources)
}

#[test]
fn operations_give_the_results_of_the_table() {
    for (instruction, values, expected) in TABLE {
        let (op, sources) = read(instruction, values);
        let found = evaluate(op, sources);
        assert_eq!(found, *expected, "{instruction} of {values:x?}: {found:#x}");
    }
}

/// The bits above a source's type have no meaning.
#[test]
fn operations_ignore_the_bits_above_a_sources_type() {
    for (instruction, values, expected) in TABLE {
        let wide = |register: &str| register.contains("%rd") || register.contains("%fd");
        let names: Vec<_> = instruction.split(", ").skip(1).filter(|o| o.contains('%')).collect();
        let noise = |name: &&str| if wide(name) || name.contains("%p") { 0 } else { 0xdead << 32 };
        let noisy: Vec<_> = values.iter().zip(&names).map(|(v, name)| v | noise(name)).collect();
        let (op, sources) = read(instruction, &noisy);
        assert_eq!(evaluate(op, sources), *expected, "{instruction} of {noisy:x?}");
    }
}

/// Every opcode of arithmetic in the list of known ones has a row.
#[test]
fn the_table_has_every_opcode_of_the_kernels() {
    let in_table = |opcode: &str| TABLE.iter().any(|row| row.0.split(' ').next() == Some(opcode));
    let missing: Vec<_> = crate::lint::OPCODES
        .iter()
        .filter(|opcode| {
            let first = opcode.split('.').next().unwrap_or_default();
            let others = [
                "ld", "st", "red", "fence", "cvta", "bra", "call", "ret", "trap", "bar", "shfl",
                "vote", "mov",
            ];
            !others.contains(&first) && !in_table(opcode)
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn floats_of_16_bits_are_those_of_half() {
    for bits in 0..=u16::MAX {
        let (ours, theirs) = (narrow::to_f32(Float::F16, bits), f16::from_bits(bits).to_f32());
        assert!(same(ours, theirs), "f16 {bits:#x}: {ours:#x}");
        let (ours, theirs) = (narrow::to_f32(Float::Bf16, bits), bf16::from_bits(bits).to_f32());
        assert!(same(ours, theirs), "bf16 {bits:#x}: {ours:#x}");
    }
}

fn same(ours: u32, theirs: f32) -> bool {
    ours == theirs.to_bits() || (f32::from_bits(ours).is_nan() && theirs.is_nan())
}

#[test]
fn floats_of_8_bits_are_those_of_float8() {
    for byte in 0..=u8::MAX {
        let pair = u16::from(byte) << 8 | u16::from(byte);
        let e4m3 = narrow::widened(Packed::E4m3x2, pair);
        let e5m2 = narrow::widened(Packed::E5m2x2, pair);
        for (ours, theirs) in
            [(e4m3, F8E4M3::from_bits(byte).to_f32()), (e5m2, F8E5M2::from_bits(byte).to_f32())]
        {
            assert_eq!(ours >> 16, ours & 0xffff);
            let ours = narrow::to_f32(Float::F16, ours as u16);
            assert!(same(ours, theirs), "{byte:#x}: {ours:#x}, {theirs}");
        }
    }
}

/// Every value of the narrow type, the values half way between two of them, and the neighbours of those.
fn around(values: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut values: Vec<f32> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f32::total_cmp);
    let middles = values.windows(2).map(|pair| f32::midpoint(pair[0], pair[1]));
    let all: Vec<f32> = values.iter().copied().chain(middles).collect();
    let near = |value: &f32| [value.next_down(), *value, value.next_up()];
    let ends =
        [f32::MIN, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40, 70000.0, 465.0];
    all.iter().flat_map(near).chain(ends).collect()
}

fn packed(to: Packed, value: f32) -> u64 {
    narrow::packed(to, Mode::default(), value.into(), 0.0)
}

#[test]
fn f32_is_rounded_as_half_rounds_it() {
    for value in around((0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32())) {
        let ours = packed(Packed::F16x2, value) >> 16;
        assert_eq!(ours, u64::from(f16::from_f32(value).to_bits()), "f16 {value:e}");
    }
    for value in around((0..=u16::MAX).map(|bits| bf16::from_bits(bits).to_f32())) {
        let ours = packed(Packed::Bf16x2, value) >> 16;
        assert_eq!(ours, u64::from(bf16::from_f32(value).to_bits()), "bf16 {value:e}");
    }
    let nan = |to| narrow::packed(to, Mode::default(), f64::NAN, f64::NAN);
    assert_eq!(nan(Packed::F16x2), 0x7fff_7fff);
    assert_eq!(nan(Packed::Bf16x2), 0x7fff_7fff);
    assert_eq!(nan(Packed::E4m3x2), 0x7f7f);
    assert_eq!(nan(Packed::E5m2x2), 0x7f7f);
}

#[test]
fn f32_is_rounded_to_8_bits_as_float8_rounds_it_and_saturates() {
    for value in around((0..=u8::MAX).map(|bits| F8E4M3::from_bits(bits).to_f32())) {
        let clamped = value.clamp(-448.0, 448.0);
        let ours = packed(Packed::E4m3x2, value) >> 8;
        assert_eq!(ours, u64::from(F8E4M3::from_f32(clamped).to_bits()), "e4m3 {value:e}");
    }
    for value in around((0..=u8::MAX).map(|bits| F8E5M2::from_bits(bits).to_f32())) {
        let clamped = value.clamp(-57344.0, 57344.0);
        let ours = packed(Packed::E5m2x2, value) >> 8;
        assert_eq!(ours, u64::from(F8E5M2::from_f32(clamped).to_bits()), "e5m2 {value:e}");
    }
}

/// Whether two values are the same, or zeros.
fn is_equal(one: impl Into<f64>, other: impl Into<f64>) -> bool {
    one.into().partial_cmp(&other.into()) == Some(std::cmp::Ordering::Equal)
}

/// Sums, products, quotients and more of narrow floats, against the formats of `half`, whose f64 is exact for them but
/// for the one rounding.
#[test]
fn operations_on_floats_of_16_bits_are_those_of_half() {
    let mut state = 0x1234_5678_9abc_def0u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 40) as u16
    };
    let mode = Mode::default();
    for _ in 0..200_000 {
        let [a, b, c] = [next(), next(), next()];
        let values = [a, b, c].map(u64::from);
        let [x, y, z] = [a, b, c].map(|bits| f16::from_bits(bits).to_f64());
        let exact = [
            (FloatOp::Add, x + y),
            (FloatOp::Sub, x - y),
            (FloatOp::Mul, x * y),
            // Within 53 bits, too: 22 of the product, and the exponents of f16.
            (FloatOp::Fma, x.mul_add(y, z)),
        ];
        for (op, value) in exact {
            let ours = float::evaluate(op, Float::F16, mode, values) as u16;
            // `half` rounds an f64 by f32, so the f32 is the one to zero, with a last bit that tells of a rest.
            let near = value as f32;
            let rest = !is_equal(f64::from(near), value) && !value.is_nan();
            let to_zero = near.to_bits() - u32::from(f64::from(near).abs() > value.abs());
            let theirs = f16::from_f32(f32::from_bits(to_zero | u32::from(rest)));
            let is = if theirs.is_nan() { ours == 0x7fff } else { ours == theirs.to_bits() };
            assert!(is, "{op:?} of {a:#x}, {b:#x}, {c:#x}: {ours:#x}, {theirs}");
        }
        let [x, y] = [a, b].map(|bits| bf16::from_bits(bits).to_f32());
        let ours = float::evaluate(FloatOp::Mul, Float::Bf16, mode, values) as u16;
        let theirs = bf16::from_f64(f64::from(x) * f64::from(y));
        let is = if theirs.is_nan() { ours == 0x7fff } else { ours == theirs.to_bits() };
        assert!(is, "{a:#x} * {b:#x}: {ours:#x}, {theirs}");
    }
}

/// Operations on f32 that go by f64 are those of the hardware, and the directions of rounding enclose them.
#[test]
fn operations_on_f32_are_rounded_once() {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let bits = (state >> 32) as u32;
        // Exponents that are near each other in half of the cases.
        if state & 8 == 0 { bits } else { bits & 0x83ff_ffff | 0x3c00_0000 }
    };
    let by = |op, rounding, values| {
        let mode = Mode { rounding, ..Mode::default() };
        f32::from_bits(float::evaluate(op, Float::F32, mode, values) as u32)
    };
    for _ in 0..100_000 {
        let bits = [next(), next(), next()];
        let [x, y, z] = bits.map(f32::from_bits);
        let values = bits.map(u64::from);
        let all = [
            (FloatOp::Sub, x - y),
            (FloatOp::Fma, x.mul_add(y, z)),
            (FloatOp::Div, x / y),
            (FloatOp::Sqrt, x.sqrt()),
            (FloatOp::Add, x + y),
            (FloatOp::Mul, x * y),
        ];
        for (op, expected) in all {
            let near = by(op, Rounding::Nearest, values);
            assert!(
                is_equal(near, expected) || near.is_nan() && expected.is_nan(),
                "{op:?} {x:e} {y:e} {z:e}"
            );
            if near.is_nan() {
                continue;
            }
            let [down, up, zero] =
                [Rounding::Down, Rounding::Up, Rounding::Zero].map(|r| by(op, r, values));
            assert!(
                down <= near && near <= up,
                "{op:?} {x:e} {y:e} {z:e}: {down:e} {near:e} {up:e}"
            );
            assert!(is_equal(up, down) || is_equal(up, down.next_up()), "{op:?} {x:e} {y:e} {z:e}");
            assert!(is_equal(zero, if near > 0.0 || down >= 0.0 { down } else { up }));
        }
    }
}

/// Floats beyond the range and NaNs are converted to integers as the tables of PTX say.
#[test]
fn floats_become_the_nearest_integer_of_the_range() {
    for (value, signed, unsigned) in
        [(1e20f32, i32::MAX, u32::MAX), (-1e20, i32::MIN, 0), (-0.6, -1, 0)]
    {
        let of = |to| {
            let mode = Mode::default();
            let op = ArithmeticOp::Convert {
                to,
                from: Type::Float(Float::F32),
                width: 32,
                mode,
                integral: true,
            };
            evaluate(op, [value.to_bits().into(), 0, 0, 0]) as u32
        };
        assert_eq!(of(Type::Signed(32)), signed as u32, "{value}");
        assert_eq!(of(Type::Unsigned(32)), unsigned, "{value}");
    }
}
