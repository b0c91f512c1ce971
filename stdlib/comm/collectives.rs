//! The table of the calls of a rank: each with its name, its buffers, its arguments and its collective. The blocking
//! interface ([`Rank`](crate::Rank)) and the nonblocking ones ([`Nonblocking`](crate::Nonblocking),
//! [`Scope`](crate::Scope)) have a method for each row.

/// Hands each row to the macro `$row`: documentation, whether the buffers are one (`in_place`) or two (`apart`), the
/// name and the arguments of the method, and the collective, root and op of the call.
macro_rules! collectives {
    ($row:ident) => {
        $row! {
            /// Reduces the buffers of all ranks, one of c elements each, and leaves the result in every one of them.
            /// [Errors](crate::Comm#errors-of-calls): E0414 where lengths differ from rank to rank.
            in_place all_reduce(op: ReduceOp) AllReduce, 0, op
        }
        $row! {
            /// Reduces the inputs of all ranks into every output; each has c elements.
            /// [Errors](crate::Comm#errors-of-calls): E0402 where input and output differ in length, E0414 where ranks
            /// do.
            apart all_reduce_into(op: ReduceOp) AllReduce, 0, op
        }
        $row! {
            /// Reduces block r of all inputs into the output of rank r. The output has c elements, and the input n
            /// blocks of c. [Errors](crate::Comm#errors-of-calls): E0402 where the input is not n times as long as the
            /// output.
            apart reduce_scatter(op: ReduceOp) ReduceScatter, 0, op
        }
        $row! {
            /// Copies the input of rank r to block r of every output. The input has c elements, and the output n blocks
            /// of c. [Errors](crate::Comm#errors-of-calls): E0402 where the output is not n times as long as the input.
            apart all_gather() AllGather, 0, ReduceOp::Sum
        }
        $row! {
            /// Copies the buffer of rank `root` to the buffers of all other ranks; each has c elements. [Errors of
            /// calls](crate::Comm#errors-of-calls): E0411 for a root that is no rank, E0414 where ranks differ in
            /// length or root.
            in_place broadcast(root: u32) Broadcast, root, ReduceOp::Sum
        }
        $row! {
            /// Reduces the buffers of all ranks, of c elements each, into the buffer of rank `root`; the other buffers
            /// do not change. [Errors](crate::Comm#errors-of-calls): E0411 for a root that is no rank, E0414 where
            /// ranks differ in length, op or root.
            in_place reduce(op: ReduceOp, root: u32) Reduce, root, op
        }
        $row! {
            /// Copies block r of the root's input to the output of rank r. The output has c elements; the input has n
            /// blocks of c at the root, and is empty elsewhere. [Errors](crate::Comm#errors-of-calls): E0402 for
            /// another length, E0411 for a root that is no rank.
            apart scatter(root: u32) Scatter, root, ReduceOp::Sum
        }
        $row! {
            /// Copies the input of rank r to block r of the root's output. The input has c elements; the output has n
            /// blocks of c at the root, and is empty elsewhere. [Errors](crate::Comm#errors-of-calls): E0402 for
            /// another length, E0411 for a root that is no rank.
            apart gather(root: u32) Gather, root, ReduceOp::Sum
        }
        $row! {
            /// Copies block s of the input of rank r to block r of the output of rank s. Input and output have n blocks
            /// of c elements. [Errors](crate::Comm#errors-of-calls): E0402 where they differ in length, or have no
            /// multiple of n elements.
            apart all_to_all() AllToAll, 0, ReduceOp::Sum
        }
    };
}

pub(crate) use collectives;
