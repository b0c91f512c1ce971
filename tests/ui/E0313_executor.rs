roundelay::executor! {
    /// Uses the cable that is cut.
    pub executor Careless for AllReduce {
        topology: full_mesh(8) without (0, 1);
        slave_streams: 0;
        when bytes < 64 KiB => TwistedRingAllReduce(ring = around(topology));
        otherwise => RingAllReduce;
    }
}
