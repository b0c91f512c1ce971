// Intervals of addresses and what they hold.
#include "ledger.h"

namespace hccl {

void Ledger::Input(u32 rank, u64 address, u64 bytes) {
    if (bytes == 0) {
        return;
    }
    Cell cell{bytes, 0, std::vector<u32>(nranks_, 0)};
    cell.times[rank] = 1;
    cells_[address] = cell;
}

// Makes `address` a boundary.
void Ledger::Cut(u64 address) {
    auto after = cells_.upper_bound(address);
    if (after == cells_.begin()) {
        return;
    }
    auto before = std::prev(after);
    const u64 head = address - before->first;
    if (head == 0 || head >= before->second.bytes) {
        return;
    }
    Cell tail = before->second;
    tail.bytes -= head;
    tail.origin += head;
    before->second.bytes = head;
    cells_[address] = tail;
}

Ledger::Cells Ledger::Read(u64 address, u64 bytes) {
    Cut(address);
    Cut(address + bytes);
    return Cells(cells_.lower_bound(address), cells_.lower_bound(address + bytes));
}

void Ledger::Erase(u64 address, u64 bytes) {
    Cut(address);
    Cut(address + bytes);
    cells_.erase(cells_.lower_bound(address), cells_.lower_bound(address + bytes));
}

void Ledger::Copy(u64 dst, u64 src, u64 bytes) {
    if (bytes == 0) {
        return;
    }
    const Cells read = Read(src, bytes);
    Erase(dst, bytes);
    for (const auto& entry : read) {
        cells_[entry.first - src + dst] = entry.second;
    }
}

void Ledger::Reduce(u64 dst, u64 src, u64 bytes) {
    if (bytes == 0) {
        return;
    }
    // Both sides cut at the same places.
    for (const auto& entry : Read(src, bytes)) {
        Cut(entry.first - src + dst);
        Cut(entry.first - src + dst + entry.second.bytes);
    }
    for (const auto& entry : Read(dst, bytes)) {
        Cut(entry.first - dst + src);
        Cut(entry.first - dst + src + entry.second.bytes);
    }
    const Cells from = Read(src, bytes), into = Read(dst, bytes);
    Erase(dst, bytes);
    for (const auto& entry : into) {
        const auto other = from.find(entry.first - dst + src);
        Cell cell = entry.second;
        const bool same = other != from.end() && other->second.origin == cell.origin &&
                          !other->second.times.empty() && !cell.times.empty();
        if (!same) {
            cell.times.clear();
        }
        for (size_t rank = 0; rank < cell.times.size(); ++rank) {
            cell.times[rank] += other->second.times[rank];
        }
        cells_[entry.first] = cell;
    }
}

std::string Ledger::Wrong(u64 address, u64 bytes) const {
    u64 at = address;
    const auto where = [&](u64 from, u64 to) {
        return "bytes " + std::to_string(from - address) + ".." + std::to_string(to - address) + " ";
    };
    auto cell = cells_.upper_bound(address);
    if (cell != cells_.begin() && std::prev(cell)->first + std::prev(cell)->second.bytes > address) {
        --cell;
    }
    for (; cell != cells_.end() && cell->first < address + bytes; ++cell) {
        if (cell->first > at) {
            return where(at, cell->first) + "were never written";
        }
        const Cell& held = cell->second;
        const u64 end = std::min(cell->first + held.bytes, address + bytes);
        if (held.times.empty()) {
            return where(at, end) + "mix data of different places";
        }
        const u64 origin = held.origin + (at - cell->first);
        if (origin != at - address) {
            return where(at, end) + "hold what belongs at byte " + std::to_string(origin);
        }
        for (u32 rank = 0; rank < nranks_; ++rank) {
            if (held.times[rank] != 1) {
                return where(at, end) + "have rank " + std::to_string(rank) + " in them " +
                       std::to_string(held.times[rank]) + " times";
            }
        }
        at = end;
    }
    return at < address + bytes ? where(at, address + bytes) + "were never written" : "";
}

} // namespace hccl
