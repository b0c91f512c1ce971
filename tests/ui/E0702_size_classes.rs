roundelay::executor! {
    pub executor Small for AllReduce {
        topology: full_mesh(8) without (0, 1);
        when bytes < 64 KiB => RingAllReduce(ring = around(topology));
        when bytes < 1 KiB => RingAllReduce(ring = around(topology));
    }
}

fn main() {
    let _ = Small;
}
