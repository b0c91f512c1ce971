// Rings, trees, groups and topologies: words that the host laid out, and this rank's place in them. They hold numbers
// among the ranks that were seen where the object was made, and answer with numbers among the ranks seen at the call.
#pragma once
#include "lists.cuh"

namespace roundelay {

class Lane;
struct Peer;

// Ranks in ring order.
class Ring {
    Lane* lane;
    const Members* made;
    List order; // empty for the natural order
    i32 count;
    i32 mine; // this rank's position

    ROUNDELAY_DEVICE i64 number(i64 position) const { return len(order) == 0 ? position : order[position]; }

  public:
    ROUNDELAY_DEVICE Ring(Lane& lane, const List& order, const Members* made);

    ROUNDELAY_DEVICE Peer operator[](i64 position) const;
    ROUNDELAY_DEVICE Peer left() const;
    ROUNDELAY_DEVICE Peer right() const;
    ROUNDELAY_DEVICE i64 position() const { return mine; }
    ROUNDELAY_DEVICE i64 position_of(i64 rank) const;
};

// The common part of the other objects.
class Object {
  protected:
    Lane* lane;
    const Members* made;
    const i64* words; // null for an object that was never made, which is empty

    ROUNDELAY_DEVICE i64 word(i64 index) const { return words == nullptr ? 0 : constant(words + index); }
    ROUNDELAY_DEVICE i32 me() const;                        // this rank's number where it was made
    ROUNDELAY_DEVICE Peer peer(i64 number) const;
    ROUNDELAY_DEVICE List list(i64 first, i64 count) const; // words that are numbers
    ROUNDELAY_DEVICE List row(i64 offsets, i64 index, i64 items) const;

  public:
    ROUNDELAY_DEVICE Object(Lane& lane, i64 offset);
    ROUNDELAY_DEVICE Object(Lane& lane, i64 offset, const Members* made);
};

// [k, offset of each ring's order]
class Rings : Object {
  public:
    using Object::Object;

    ROUNDELAY_DEVICE Ring operator[](i64 index) const;
    friend ROUNDELAY_DEVICE i64 len(const Rings& rings) { return rings.word(0); }
};

// [n, root, depth, parent[n], level[n], first[n + 1], children…]
class Tree : Object {
    ROUNDELAY_DEVICE i64 of_mine(i64 table) const { return me() < word(0) ? word(3 + table * word(0) + me()) : 0; }

  public:
    using Object::Object;

    ROUNDELAY_DEVICE Peer root() const;
    ROUNDELAY_DEVICE Peer parent() const;
    ROUNDELAY_DEVICE List children() const { return row(3 + 2 * word(0), me(), word(0)); }
    ROUNDELAY_DEVICE i64 level() const { return of_mine(1); }
    ROUNDELAY_DEVICE i64 depth() const { return word(2); }
};

// [id, k, offset of each tree, weight[k], position[k], n, first[n + 1], weights of the trees of each root…]
class Trees : Object {
    ROUNDELAY_DEVICE i64 of_tree(i64 table, i64 tree) const {
        return u64(tree) < u64(word(1)) ? word(2 + table * word(1) + tree) : 0;
    }

  public:
    using Object::Object;

    ROUNDELAY_DEVICE i64 id() const { return word(0); }

    ROUNDELAY_DEVICE Tree operator[](i64 index) const { return {*lane, of_tree(0, index), made}; }
    ROUNDELAY_DEVICE List weights() const { return {words + 2 + word(1), word(1)}; }
    ROUNDELAY_DEVICE List weights_of(i64 rank) const;
    ROUNDELAY_DEVICE i64 position_of(i64 tree) const { return of_tree(2, tree); }
    friend ROUNDELAY_DEVICE i64 len(const Trees& trees) { return trees.word(1); }
};

ROUNDELAY_DEVICE void spell(Hash& hash, const Trees& trees) { hash.word(trees.id()); }

// [n, k, even, index[n], position[n], first[k + 1], members…, most, first_across[most + 1], across…]
class Groups : Object {
    ROUNDELAY_DEVICE i64 of(i64 table, i64 number) const {
        return u64(number) < u64(word(0)) ? word(3 + table * word(0) + number) : 0;
    }
    ROUNDELAY_DEVICE i64 of_rank(i64 table, i64 rank) const;
    ROUNDELAY_DEVICE i64 firsts() const { return 3 + 2 * word(0); }

  public:
    using Object::Object;

    ROUNDELAY_DEVICE List operator[](i64 index) const { return row(firsts(), index, word(1)); }
    ROUNDELAY_DEVICE List mine() const { return (*this)[index()]; }
    ROUNDELAY_DEVICE List across() const {
        const i64 most = firsts() + word(1) + 1 + word(0);
        return row(most + 1, position(), word(most));
    }
    ROUNDELAY_DEVICE i64 index() const { return of(0, me()); }
    ROUNDELAY_DEVICE i64 position() const { return of(1, me()); }
    ROUNDELAY_DEVICE bool even() const { return word(2) != 0; }
    ROUNDELAY_DEVICE i64 index_of(i64 rank) const { return of_rank(0, rank); }
    ROUNDELAY_DEVICE i64 position_of(i64 rank) const { return of_rank(1, rank); }
    friend ROUNDELAY_DEVICE i64 len(const Groups& groups) { return groups.word(1); }
};

// [id, n, linked[n * n], first[n + 1], neighbors…, shares[n], m, missing[m], h, hubs[h]]: numbers of the machine's
// ranks, for every caller.
class Topology : Object {
    ROUNDELAY_DEVICE i64 behind() const { // the neighbors
        const i64 n = word(1), firsts = 2 + n * n;
        return firsts + n + 1 + word(firsts + n);
    }
    ROUNDELAY_DEVICE List list(i64 at) const { return {words + at + 1, word(at)}; }

  public:
    using Object::Object;

    ROUNDELAY_DEVICE i64 id() const { return word(0); }

    ROUNDELAY_DEVICE bool linked(i64 a, i64 b) const {
        const u64 n = u64(word(1));
        return u64(a) < n && u64(b) < n && word(2 + a * i64(n) + b) != 0;
    }

    ROUNDELAY_DEVICE List neighbors(i64 rank) const;
    ROUNDELAY_DEVICE List shares() const { return {words + behind(), word(1)}; }
    ROUNDELAY_DEVICE List missing() const { return list(behind() + word(1)); }
    ROUNDELAY_DEVICE List hubs() const {
        const i64 missing = behind() + word(1);
        return list(missing + 1 + word(missing));
    }
};

ROUNDELAY_DEVICE void spell(Hash& hash, const Topology& topology) { hash.word(topology.id()); }

} // namespace roundelay
