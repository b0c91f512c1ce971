roundelay::collective! {
    algorithm Wrong(ring: Ring) -> AllGather {
        view block = output.split(nranks);
        fifo like block, credits = 2, slices = 2;
        copy(local.input, local.block[rank]);
        if nranks > 1 {
            ring.right.send(local.block[rank]);
            for j in 1..nranks - 1 {
                ring.left.recv_copy_send(local.block[(rank - j) % nranks], ring.right);
            }
            ring.left.recv(local.block[(rank + 1) % nranks]);
        }
    }
}

fn main() {}
