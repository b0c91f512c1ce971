// Integers wrap; f16 and bf16 compute in f32 and round to nearest even; minimum and maximum are IEEE 754-2019's.
#include "reduce.h"

#include <cstring>

namespace hccl {
namespace {

template <class To, class From> To BitsAs(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

float WidenHalf(u16 half) {
    const u32 sign = u32(half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31) {
        return BitsAs<float>(sign | 0x7f800000 | mantissa << 13);
    }
    if (exponent == 0) {
        const float tiny = float(mantissa) / 16777216.0f; // 2^-24 each
        return sign ? -tiny : tiny;
    }
    return BitsAs<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

u16 NarrowHalf(float wide) {
    const u32 bits = BitsAs<u32>(wide), magnitude = bits & 0x7fffffff;
    const u16 sign = u16(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000) {
        return u16(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    }
    if (magnitude >= 0x477ff000) { // 65520 and more round beyond the largest
        return u16(sign | 0x7c00);
    }
    if (magnitude < 0x38800000) { // below 2^-14: units of 2^-24, rounded by an addition that has them as its last place
        const float units = BitsAs<float>(magnitude) + 0.5f;
        return u16(sign | (BitsAs<u32>(units) - BitsAs<u32>(0.5f)));
    }
    const u32 odd = magnitude >> 13 & 1;
    return u16(sign | ((magnitude - (112u << 23) + 0xfff + odd) >> 13));
}

float WidenBf16(u16 bits) { return BitsAs<float>(u32(bits) << 16); }

u16 NarrowBf16(float wide) {
    const u32 bits = BitsAs<u32>(wide);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return u16(bits >> 16 | 0x40);
    }
    return u16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T, class Bits> struct Real {
    static T Sum(T src, T acc) { return src + acc; }
    static T Prod(T src, T acc) { return src * acc; }
    // Equal numbers have equal bits, but for zeros: there the sign decides.
    static T Min(T src, T acc) {
        if (src != src || acc != acc) {
            return src + acc;
        }
        return src == acc ? BitsAs<T>(Bits(BitsAs<Bits>(src) | BitsAs<Bits>(acc))) : src < acc ? src : acc;
    }
    static T Max(T src, T acc) {
        if (src != src || acc != acc) {
            return src + acc;
        }
        return src == acc ? BitsAs<T>(Bits(BitsAs<Bits>(src) & BitsAs<Bits>(acc))) : src > acc ? src : acc;
    }
};

template <class T> struct Whole {
    static T Sum(T src, T acc) { return T(u64(src) + u64(acc)); }
    static T Prod(T src, T acc) { return T(u64(src) * u64(acc)); }
    static T Min(T src, T acc) { return src < acc ? src : acc; }
    static T Max(T src, T acc) { return src > acc ? src : acc; }
};

template <u16 (*NARROW)(float), float (*WIDEN)(u16)> struct Narrow {
    using F = Real<float, u32>;
    static u16 Sum(u16 src, u16 acc) { return NARROW(F::Sum(WIDEN(src), WIDEN(acc))); }
    static u16 Prod(u16 src, u16 acc) { return NARROW(F::Prod(WIDEN(src), WIDEN(acc))); }
    static u16 Min(u16 src, u16 acc) { return NARROW(F::Min(WIDEN(src), WIDEN(acc))); }
    static u16 Max(u16 src, u16 acc) { return NARROW(F::Max(WIDEN(src), WIDEN(acc))); }
};

template <class T, T (*FOLD)(T, T)> void Each(u8* dst, const u8* src, u64 bytes) {
    for (u64 at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
        T acc, other;
        std::memcpy(&acc, dst + at, sizeof acc);
        std::memcpy(&other, src + at, sizeof other);
        acc = FOLD(other, acc);
        std::memcpy(dst + at, &acc, sizeof acc);
    }
}

template <class T, class Ops> void Fold(HcclReduceOp op, u8* dst, const u8* src, u64 bytes) {
    switch (op) {
    case HCCL_REDUCE_SUM: return Each<T, Ops::Sum>(dst, src, bytes);
    case HCCL_REDUCE_PROD: return Each<T, Ops::Prod>(dst, src, bytes);
    case HCCL_REDUCE_MAX: return Each<T, Ops::Max>(dst, src, bytes);
    case HCCL_REDUCE_MIN: return Each<T, Ops::Min>(dst, src, bytes);
    }
}

} // namespace

u32 SizeOf(HcclDataType type) {
    switch (type) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_UINT8: return 1;
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16: return 2;
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32:
    case HCCL_DATA_TYPE_FP32: return 4;
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
    case HCCL_DATA_TYPE_FP64: return 8;
    }
    return 0;
}

void ReduceBytes(HcclDataType type, HcclReduceOp op, u8* dst, const u8* src, u64 bytes) {
    switch (type) {
    case HCCL_DATA_TYPE_INT8: return Fold<int8_t, Whole<int8_t>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_INT16: return Fold<int16_t, Whole<int16_t>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_INT32: return Fold<s32, Whole<s32>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_FP16: return Fold<u16, Narrow<NarrowHalf, WidenHalf>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_FP32: return Fold<float, Real<float, u32>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_INT64: return Fold<s64, Whole<s64>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_UINT64: return Fold<u64, Whole<u64>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_UINT8: return Fold<u8, Whole<u8>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_UINT16: return Fold<u16, Whole<u16>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_UINT32: return Fold<u32, Whole<u32>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_FP64: return Fold<double, Real<double, u64>>(op, dst, src, bytes);
    case HCCL_DATA_TYPE_BFP16: return Fold<u16, Narrow<NarrowBf16, WidenBf16>>(op, dst, src, bytes);
    }
}

} // namespace hccl
