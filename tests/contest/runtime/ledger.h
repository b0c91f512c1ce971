// What a dry run knows instead of bytes: which part of the user's input each byte descends from, and how often
// each rank's is in it. Sizes cost nothing, so a call beyond 4 GiB is looked through in no time.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "hccl_types.h"

namespace hccl {

class Ledger {
public:
    explicit Ledger(u32 nranks) : nranks_(nranks) {}
    // The user's input of a rank: byte i of it is byte i of the whole.
    void Input(u32 rank, u64 address, u64 bytes);
    void Copy(u64 dst, u64 src, u64 bytes);
    void Reduce(u64 dst, u64 src, u64 bytes);
    // What is not byte i of the whole with every rank in it once; empty if nothing.
    std::string Wrong(u64 address, u64 bytes) const;

private:
    struct Cell {
        u64 bytes = 0;
        u64 origin = 0;        // of its first byte in the user's buffer
        std::vector<u32> times; // by rank; empty where nothing is known, or two origins were mixed
    };
    using Cells = std::map<u64, Cell>; // by address; no two overlap

    void Cut(u64 address);
    Cells Read(u64 address, u64 bytes);
    void Erase(u64 address, u64 bytes);

    u32 nranks_;
    Cells cells_;
};

} // namespace hccl
