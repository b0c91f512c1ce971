//! A contest entry as a macro block: an AllReduce for eight cards on a mesh whose 0-1 cable is cut. The numbers that a
//! contestant computes by hand are derived, and any size runs: at once, or in loops over the CCL buffers with a tail.

use roundelay::ReduceOp;
use roundelay::executor::{Executor as _, Framework, find, register};

// ANCHOR: entry
roundelay::executor! {
    /// Small, medium, huge.
    pub executor Entry for AllReduce {
        topology: full_mesh(8) without (0, 1);
        ccl_buffer: 4 MiB;
        slave_streams: 6;                        // checked against what the schedules need
        when bytes < 1 MiB => TwoShotAround;
        when bytes < 8 MiB => MeshAround(slices = 2);
        otherwise          => MeshAround(slices = 6);
    }
}
// ANCHOR_END: entry

const RANKS: usize = 8;

fn main() -> Result<(), roundelay::Error> {
    println!(
        "{} slave streams, {} notifies, {} links, {} bytes of scratch",
        Entry.calc_stream_num(),
        Entry.calc_notify_num(Entry.calc_stream_num()),
        Entry.calc_comm_info().links.len(),
        Entry.calc_scratch_mem_size(Entry.ccl_buffer_size()),
    );
    // ANCHOR: find
    register(Entry)?;
    let entry = find("Entry").expect("the entry has just been registered");
    // ANCHOR_END: find

    // 1 KB, 1 MB, and 10 MB + 4 B: more than two CCL buffers, and a tail.
    for count in [256, 262_144, 2_621_441] {
        // Element i of rank r is (7 * i + r) % 11: sums of small integers are exact.
        let value = |rank: usize, i: usize| ((7 * i + rank) % 11) as f32;
        let inputs: Vec<Vec<f32>> =
            (0..RANKS).map(|rank| (0..count).map(|i| value(rank, i)).collect()).collect();
        let mut outputs = vec![vec![0.0; count]; RANKS];
        let reads: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let mut writes: Vec<&mut [f32]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();

        // ANCHOR: run
        let framework = Framework::new();
        let ran = framework.run(&*entry, count as u64, ReduceOp::Sum, &reads, &mut writes)?;
        // ANCHOR_END: run

        for output in &outputs {
            for (i, element) in output.iter().enumerate() {
                let sum: f32 = (0..RANKS).map(|rank| value(rank, i)).sum();
                assert_eq!(element.to_bits(), sum.to_bits(), "element {i} of {count}");
            }
        }
        let staged = if ran.staged { "through the CCL buffers" } else { "where the data lies" };
        println!("{count} elements right, in {} loops {staged}", ran.loops);
    }
    Ok(())
}
