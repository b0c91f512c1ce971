"""The codes of ``roundelay.h``, by their names in the language and in the command."""

#: Codes of collectives, by the names of the language.
COLLECTIVES = {
    name: code
    for code, name in enumerate(
        (
            "AllReduce",
            "ReduceScatter",
            "AllGather",
            "Broadcast",
            "Reduce",
            "Scatter",
            "Gather",
            "AllToAll",
        )
    )
}

#: Promises about the order of reductions, in the order of their bits.
PROMISES = ("all_ranks", "all_elements", "all_counts", "rank_order", "every_run")

#: Flags of options for the values of ``check``, the flag that has no ways measured, and the flag that has sites kept.
CHECKS = {None: 0, "first": 1, "never": 2}
USUAL_WAYS = 4
SITES = 8

#: Codes of element types. They are NCCL's.
DTYPES = {
    name: code
    for code, name in enumerate(
        ("i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2")
    )
}

#: Bytes of an element of each type, by its code.
SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)

#: Codes of reduce ops. Ops that NCCL has, have NCCL's codes.
OPS = {
    name: code
    for code, name in enumerate(
        ("sum", "prod", "max", "min", "avg", "band", "bor", "bxor", "land", "lor", "lxor")
    )
}
