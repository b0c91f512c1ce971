use roundelay_core::schedule::text;

use super::*;

/// A GPU of round numbers, without a cache.
fn gpu() -> Gpu {
    Gpu {
        name: "A GPU".to_owned(),
        multiprocessors: 10,
        bandwidth: 1e12,
        memory: 1 << 40,
        cache: 0,
        cache_bandwidth: 4e12,
        memory_latency: 1e-6,
        loop_step: 0.0,
        slot_step: 0.0,
        step: 0.1e-6,
        signal: 2e-6,
        line: 0.5e-6,
        launch: 5e-6,
        graph_launch: 3e-6,
    }
}

const SHAPE: LaunchShape = LaunchShape { parts: 10, in_flight: 100_000, graph: false };

/// Rank 1 copies the data that rank 0 has copied.
const CHAIN: &str = "\
schedule Chain AllReduce nranks 2 root 0
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
  post data 0->1 @0
rank 1 stream 0
  wait data 0->1 @0
  copy 0.output[0..1] -> 1.output[0..1] @0
";

/// A chain of two ranks through a slot.
const SLOT: &str = "\
schedule Slot AllReduce nranks 2 root 0
scratch slot slots 1 width 1
rank 0 stream 0
  copy 0.input[0..1] -> 1.slot#0@0[0..1] @0
  post tail 0->1 @0
rank 1 stream 0
  wait tail 0->1 @0
  copy 1.slot#0@0[0..1] -> 1.output[0..1] @0
";

fn estimate(text: &str, lined: bool, gpu: &Gpu, shape: LaunchShape) -> Estimate {
    let schedule = text::parse(text).expect("a schedule");
    Estimate::of_schedule(&schedule, (1_000_000, 4), |_| lined, gpu, shape)
}

fn assert_us(found: f64, expected: f64) {
    assert!((found * 1e6 - expected).abs() < 1e-6, "{} us, and not {expected}", found * 1e6);
}

#[test]
fn a_chain_takes_two_moves_a_signal_and_a_launch() {
    let found = estimate(CHAIN, false, &gpu(), SHAPE);
    // 4 MB read and 4 MB written at 1 TB/s: 8 us each; the loads alone would allow twice that rate.
    assert_us(found.moving, 16.0);
    // Two moves of 1.1 us, a post and a wait of 0.1 us.
    assert_us(found.latency, 2.4);
    assert_us(found.signals, 2.0);
    assert_us(found.time, 5.0 + 20.4);
    assert_eq!((found.waits, found.traffic, found.touched), (1, 16_000_000, 16_000_000));
    assert_eq!(found.in_flight, 2_000_000);
}

#[test]
fn few_loads_under_way_are_the_limit() {
    // 100 KB in each microsecond: 40 us for 4 MB.
    let found = estimate(CHAIN, false, &gpu(), LaunchShape { parts: 1, ..SHAPE });
    assert_us(found.moving, 80.0);
}

#[test]
fn what_the_cache_holds_moves_at_its_rate() {
    let found = estimate(CHAIN, false, &Gpu { cache: 16_000_000, ..gpu() }, SHAPE);
    // The cache's rate would be 2 us a move, and the loads take 4 us.
    assert_us(found.moving, 8.0);
    let found = estimate(CHAIN, false, &Gpu { cache: 15_999_999, ..gpu() }, SHAPE);
    assert_us(found.moving, 16.0);
}

#[test]
fn a_graph_launches_sooner() {
    let found = estimate(CHAIN, false, &gpu(), LaunchShape { graph: true, ..SHAPE });
    assert_us(found.time, 3.0 + 20.4);
}

#[test]
fn lines_save_a_signal_and_double_their_bytes() {
    let (plain, lined) =
        (estimate(SLOT, false, &gpu(), SHAPE), estimate(SLOT, true, &gpu(), SHAPE));
    assert_us(plain.signals, 2.0);
    assert_us(lined.signals, 0.5);
    assert_us(plain.latency, 2.4);
    assert_us(lined.latency, 2.2);
    // 4 MB and 8 MB of lines, once written and once read.
    assert_us(plain.moving, 16.0);
    assert_us(lined.moving, 24.0);
    assert_eq!((plain.traffic, lined.traffic), (16_000_000, 24_000_000));
}

#[test]
fn moves_at_one_time_share_memory() {
    let text = "\
schedule Two AllReduce nranks 2 root 0
rank 0 stream 0
  copy 0.input[0..1/4] -> 0.output[0..1/4] @0
rank 1 stream 0
  copy 1.input[0..1] -> 1.output[0..1] @0
";
    // 2 MB beside 8 MB: 4 us at half of 1 TB/s each, then 6 MB alone.
    let found = estimate(text, false, &gpu(), SHAPE);
    assert_us(found.moving, 4.0 + 6.0);
    // Each stream's loads bring 0.2 TB/s of loads, so 0.4 TB/s of traffic: neither stream slows the other.
    let few = LaunchShape { parts: 2, ..SHAPE };
    assert_us(estimate(text, false, &gpu(), few).moving, 20.0);
}

#[test]
fn what_one_cannot_use_the_others_have() {
    let text = "\
schedule Two AllReduce nranks 2 root 0
rank 0 stream 0
  fold 0.output[0..1], 1.input[0..1] -> 0.output[0..1] @0
rank 1 stream 0
  copy 1.input[0..1] -> 1.output[0..1] @0
";
    // 0.3 TB/s of loads: 0.45 TB/s for the traffic of two loads and a store, 0.6 TB/s for a copy, to which memory
    // leaves 0.55.
    let found = estimate(text, false, &gpu(), LaunchShape { parts: 3, ..SHAPE });
    let copied = 8e6 / 0.55e12;
    assert!(copied < 12e6 / 0.45e12, "the reduce is the slower one");
    assert_us(found.moving, 12e6 / 0.45e12 * 1e6);
}

#[test]
fn posts_meet_waits_in_their_order() {
    let text = "\
schedule Two AllReduce nranks 2 root 0
rank 0 stream 0
  post data 0->1 @0
  copy 0.input[0..1] -> 0.output[0..1] @0
  post data 0->1 @0
rank 1 stream 0
  wait data 0->1 @0
  wait data 0->1 @0
";
    let found = estimate(text, false, &gpu(), SHAPE);
    assert_us(found.moving, 8.0);
    // A post, a move, a post; the second of two consecutive waits is no step.
    assert_us(found.latency, 0.1 + 1.1 + 0.1);
    assert_eq!(found.waits, 1, "the first is over by then");
}

#[test]
fn gpus_have_names() {
    for name in Gpu::NAMES {
        let gpu = Gpu::named(name).expect("it is one of them");
        assert_eq!(gpu.name, name);
        assert!(gpu.assumptions()[0].starts_with(name));
        assert!(gpu.cache_bandwidth > gpu.bandwidth && gpu.step < gpu.loop_step);
    }
    assert_eq!(Gpu::named("h200"), None);
}
