// Runs an executor or an operator on files: `key=value` words, see Usage. Ends with 1 where the executor is wrong, 2
// where a word is.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "door.h"

namespace {

const char* const USAGE =
    "words: [executor=NAME] [profile=a2|a3|350] nranks=N counts=N,... [type=f32] [op=sum] [units=IN,OUT] [ccl=BYTES] [dead=0-1,2-3]\n"
    "       [input=FILE output=FILE | dry=1] [inplace=1] [seed=N] [deadline=MS] [traffic=1] [loose=1] [late=1|2]\n"
    "There is a call for each count, all enqueued before the first runs; the files hold call by call, rank by rank.\n";

[[noreturn]] void Usage(const std::string& what) {
    std::cerr << "error: " << what << "\n" << USAGE;
    std::exit(2);
}

u64 Number(const std::map<std::string, std::string>& words, const std::string& key, u64 otherwise) {
    const auto found = words.find(key);
    if (found == words.end()) {
        return otherwise;
    }
    char* end = nullptr;
    const u64 value = std::strtoull(found->second.c_str(), &end, 10);
    if (found->second.empty() || *end != 0) {
        Usage(key + "=" + found->second + " is no number");
    }
    return value;
}

template <class T> T Named(const std::map<std::string, T>& all, const std::string& name) {
    const auto found = all.find(name);
    if (found == all.end()) {
        Usage("`" + name + "` is no type or op");
    }
    return found->second;
}

const std::map<std::string, HcclDataType> TYPES = {
    {"i8", HCCL_DATA_TYPE_INT8},   {"u8", HCCL_DATA_TYPE_UINT8},   {"i32", HCCL_DATA_TYPE_INT32},
    {"u32", HCCL_DATA_TYPE_UINT32}, {"i64", HCCL_DATA_TYPE_INT64},  {"u64", HCCL_DATA_TYPE_UINT64},
    {"f16", HCCL_DATA_TYPE_FP16},  {"bf16", HCCL_DATA_TYPE_BFP16}, {"f32", HCCL_DATA_TYPE_FP32},
    {"f64", HCCL_DATA_TYPE_FP64},
};
const std::map<std::string, HcclReduceOp> OPS = {
    {"sum", HCCL_REDUCE_SUM},
    {"prod", HCCL_REDUCE_PROD},
    {"max", HCCL_REDUCE_MAX},
    {"min", HCCL_REDUCE_MIN},
};

// Numbers with `between` between them.
std::vector<u64> Split(const std::string& text, char between) {
    std::vector<u64> numbers;
    std::istringstream words(text);
    std::string word;
    while (std::getline(words, word, between)) {
        numbers.push_back(Number({{"word", word}}, "word", 0));
    }
    return numbers;
}

[[noreturn]] void Wrong(const hccl::World& world) {
    const std::string& message = world.message();
    std::cerr << "error: " << (message.empty() ? "the program refuses" : message) << "\n";
    std::exit(1);
}

} // namespace

int main(int argc, char** argv) {
    std::map<std::string, std::string> words;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const size_t equals = word.find('=');
        if (equals == std::string::npos) {
            Usage("`" + word + "` is not key=value");
        }
        words[word.substr(0, equals)] = word.substr(equals + 1);
    }
    const HcclDataType type = Named(TYPES, words.count("type") ? words["type"] : "f32");
    const HcclReduceOp op = Named(OPS, words.count("op") ? words["op"] : "sum");
    const u64 unit = hccl::SizeOf(type);
    const std::vector<u64> counts = Split(words["counts"], ',');
    std::vector<u64> units = Split(words.count("units") ? words["units"] : "1,1", ',');
    if (units.size() != 2) {
        Usage("units=IN,OUT are two");
    }

    hccl::Options options;
    options.nranks = u32(Number(words, "nranks", 8));
    options.dry = Number(words, "dry", 0) != 0;
    options.threads = words.count("seed") == 0;
    options.seed = Number(words, "seed", 0);
    options.deadlineMillis = u32(Number(words, "deadline", options.deadlineMillis));
    options.counts = Number(words, "loose", 0) != 0;
    options.arrival = static_cast<hccl::Arrival>(Number(words, "late", 0));
    std::istringstream cut(words["dead"]);
    for (std::string pair; std::getline(cut, pair, ',');) {
        const std::vector<u64> ends = Split(pair, '-');
        if (ends.size() != 2 || ends[0] >= ends[1]) {
            Usage("dead=A-B has the lower rank first");
        }
        options.dead.insert({u32(ends[0]), u32(ends[1])});
    }

    hccl::World world(options);
    const hccl::Words named = {words["executor"], words["profile"], Number(words, "ccl", 200 << 20)};
    const std::unique_ptr<hccl::Door> door = hccl::MakeDoor(world, named);
    if (door == nullptr) {
        Usage("no executor `" + words["executor"] + "`; there are" + hccl::KnownExecutors());
    }
    std::ifstream in(words["input"], std::ios::binary);
    std::vector<std::vector<hccl::DeviceMem>> outputs(options.nranks);
    for (u32 rank = 0; rank < options.nranks; ++rank) {
        if (door->Open(rank, words.count("traffic") != 0) != HCCL_SUCCESS) {
            Wrong(world);
        }
    }
    for (const u64 count : counts) {
        for (u32 rank = 0; rank < options.nranks; ++rank) {
            hccl::UserCall param;
            param.input = world.Allocate(rank, units[0] * count * unit, "user input", 0);
            param.output = param.input;
            if (Number(words, "inplace", 0) == 0) {
                param.output = world.Allocate(rank, units[1] * count * unit, "user output", 0);
            }
            param.count = count;
            param.type = type;
            param.op = op;
            char* const bytes = reinterpret_cast<char*>(world.Bytes(param.input));
            if (options.dry) {
                world.ledger().Input(rank, param.input.address(), param.input.size());
            } else if (!in.read(bytes, std::streamsize(param.input.size()))) {
                Usage("input=FILE has too few bytes");
            }
            if (door->Call(rank, param) != HCCL_SUCCESS) {
                Wrong(world);
            }
            outputs[rank].push_back(param.output);
        }
    }
    if (door->Close() != HCCL_SUCCESS || !world.Run()) {
        Wrong(world);
    }
    if (words.count("traffic") != 0) {
        for (const auto& entry : world.traffic()) {
            std::cout << "link " << entry.first.first << " " << entry.first.second << " " << entry.second << "\n";
        }
    }
    std::ofstream out(words["output"], std::ios::binary);
    for (size_t call = 0; call < counts.size(); ++call) {
        for (u32 rank = 0; rank < options.nranks; ++rank) {
            const hccl::DeviceMem& memory = outputs[rank][call];
            if (options.dry) {
                const std::string wrong = world.ledger().Wrong(memory.address(), memory.size());
                if (!wrong.empty()) {
                    world.Fail(HCCL_E_INTERNAL, "rank " + std::to_string(rank) + ": " + wrong);
                    Wrong(world);
                }
            } else {
                out.write(reinterpret_cast<const char*>(world.Bytes(memory)), std::streamsize(memory.size()));
            }
        }
    }
    return options.dry || out.good() ? 0 : 2;
}
