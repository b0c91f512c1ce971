// The entry with one mistake at a time, by name.
#include "entry.h"

namespace hccl {
namespace {

Mistakes Typed() {
    Mistakes mistakes;
    mistakes.typed = true;
    return mistakes;
}

template <bool Mistakes::*ONE> Mistakes TypedAnd() {
    Mistakes mistakes = Typed();
    mistakes.*ONE = true;
    return mistakes;
}

template <Mistakes (*MADE)()> struct Entry : PublishedEntry {
    explicit Entry(const Site& site) : PublishedEntry(site, MADE()) {}
};

Mistakes None() { return {}; }

using CutsInBytes = Entry<TypedAnd<&Mistakes::bytes>>;
using TypedOrder = Entry<Typed>;
using AnyRankCount = Entry<None>;
using NarrowOffsets = Entry<TypedAnd<&Mistakes::narrow>>;
using WiredReduction = Entry<TypedAnd<&Mistakes::wired>>;

REGISTER_EXEC("CutsInBytes", CutsInBytes, CutsInBytes);
REGISTER_EXEC("TypedOrder", TypedOrder, TypedOrder);
REGISTER_EXEC("AnyRankCount", AnyRankCount, AnyRankCount);
REGISTER_EXEC("NarrowOffsets", NarrowOffsets, NarrowOffsets);
REGISTER_EXEC("WiredReduction", WiredReduction, WiredReduction);

} // namespace
} // namespace hccl
