
// The numbers of streams that fork streams: a stream has children of its own, which its later loops use again.
struct Streams {
    std::vector<std::vector<u32>> children = {{}};
    std::vector<u32> running = {0};

    // The streams of a loop: the stream that it is on, and a child for each further iteration.
    std::vector<u32> Fork(u32 parent, i64 many) {
        std::vector<u32> all = {parent};
        for (; i64(all.size()) < many; ++running[parent]) {
            if (running[parent] == children[parent].size()) {
                children[parent].push_back(u32(children.size()));
                children.push_back({});
                running.push_back(0);
            }
            all.push_back(children[parent][running[parent]]);
        }
        return all;
    }

    void Join(const std::vector<u32>& all) { running[all[0]] -= u32(all.size()) - 1; }
};
