// Peers, and the operands of an op: regions with their ranks.
#pragma once
#include "objects.cuh"
#include "regions.cuh"

namespace roundelay {

// A region of one rank: an operand.
struct Place {
    Lane* lane;
    i32 rank;
    Region region;
};

// The first element of an operand in a rank's input (0), output (1) or scratch (2).
struct alignas(16) Operand {
    i64 element;
    i32 rank;
    i32 buffer;
};

// Pieces of a region of one rank.
struct Places {
    Lane* lane;
    i32 rank;
    Pieces pieces;

    ROUNDELAY_DEVICE Place operator[](i64 index) const { return {lane, rank, pieces[index]}; }

    ROUNDELAY_DEVICE Place range(i64 lo, i64 hi) const { return {lane, rank, pieces.range(lo, hi)}; }

    friend ROUNDELAY_DEVICE i64 len(const Places& places) { return len(places.pieces); }
};

// A rank to which this rank talks, or this rank itself.
struct Peer {
    Lane* lane;
    i32 rank;
    i32 known; // its number among these
    const Members* seen;

    ROUNDELAY_DEVICE i64 number() const; // among the ranks that are seen now

    ROUNDELAY_DEVICE Place operator[](const Region& region) const { return {lane, rank, region}; }
    ROUNDELAY_DEVICE Places operator[](const Pieces& pieces) const { return {lane, rank, pieces}; }

    ROUNDELAY_DEVICE void TxAck() const;
    ROUNDELAY_DEVICE void RxAck() const;
    ROUNDELAY_DEVICE void TxDataSignal() const;
    ROUNDELAY_DEVICE void RxDataSignal() const;

    // NCCL's primitives; see fifo.cuh.
    ROUNDELAY_DEVICE void send(const Place& src) const;
    ROUNDELAY_DEVICE void recv(const Place& dst) const;
    ROUNDELAY_DEVICE void recv_reduce(const Place& dst) const;
    ROUNDELAY_DEVICE void recv_copy_send(const Place& dst, const Peer& to) const;
    ROUNDELAY_DEVICE void recv_reduce_send(const Place& src, const Peer& to) const;
    ROUNDELAY_DEVICE void recv_reduce_copy(const Place& src, const Place& dst) const;
    ROUNDELAY_DEVICE void recv_reduce_copy_send(const Place& src, const Place& dst, const Peer& to) const;

    friend ROUNDELAY_DEVICE bool operator==(const Peer& a, const Peer& b) { return a.rank == b.rank; }
    friend ROUNDELAY_DEVICE bool operator!=(const Peer& a, const Peer& b) { return a.rank != b.rank; }
};

} // namespace roundelay
