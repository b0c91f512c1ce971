// A class has fewer bytes than this.
const u64 LIMITS[CLASSES] = {@LIMITS@};

// A scratch buffer of a class: slots, and their width in units.
struct Declared {
    u32 which;
    u64 slots;
    u64 num;
    u64 den;
};
const std::vector<Declared> DECLARED = {
@SCRATCH@};
