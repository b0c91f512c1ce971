//! Charts: the positions of values along an axis, and the levels of a topology whose loads are compared.

use roundelay_core::topology::Topology;
use roundelay_pictures::chart::Axis;
use roundelay_pictures::curves::Levels;

#[test]
fn shares_and_round_values() {
    let ratios = Axis::new([1.0, 4.0].into_iter(), 0.0);
    assert!((ratios.share(2.0) - 0.5).abs() < 1e-12);
    assert_eq!(ratios.values(), [1.0, 2.0]);
    assert_eq!(ratios.powers(), [0, 1, 2]);
    let one = Axis::new([8.0].into_iter(), 0.0);
    assert!((one.share(8.0) - 0.5).abs() < 1e-12);
    let wide = Axis::new([1.0, 2_f64.powi(40)].into_iter(), 0.0);
    assert!(wide.powers().len() <= 9 && wide.powers()[0] == 0, "{:?}", wide.powers());

    let linear = Axis::from_zero([0.25, 1.0].into_iter());
    assert!(linear.share(0.0).abs() < 1e-12 && linear.share(1.0) < 1.0);
    assert_eq!(linear.values(), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
    assert_eq!(Axis::from_zero(std::iter::empty()).values()[0].to_bits(), 0);
}

fn names(text: &str) -> Vec<String> {
    Levels::new(&text.parse::<Topology>().expect("a topology")).names
}

#[test]
fn levels_have_the_names_of_their_ends() {
    assert_eq!(names("spine_leaf(4, 8, 2, 2)"), ["rank-leaf", "leaf-spine"]);
    assert_eq!(names("crossbar(4)"), ["rank-switch"]);
    assert_eq!(names("full_mesh(4)"), ["rank-rank"]);
    assert_eq!(names("islands(2, 4)"), ["rank-island", "rank-rail"]);
}
