//! Turns of ranks.

use roundelay_core::turns::Turns;

#[test]
fn a_turn_takes_each_rank_to_each_rank_once() {
    let all = [
        Turns::rotation(1),
        Turns::rotation(7),
        Turns::xor(8).expect("a power of two"),
        Turns::from_radices(&[3, 1, 4]),
        Turns::from_radices(&[2, 3, 2]),
    ];
    for turns in all {
        let n = turns.nranks();
        for a in 0..n {
            let mut met: Vec<u32> = (0..n).map(|by| turns.turn(a, by)).collect();
            met.sort_unstable();
            assert_eq!(met, (0..n).collect::<Vec<_>>(), "{turns}");
            assert_eq!(turns.turn(a, turns.back(a)), 0, "{turns}");
            for b in 0..n {
                assert_eq!(turns.turn(a, turns.turn_between(a, b)), b, "{turns}");
                assert_eq!(turns.turn(a, b), turns.turn(b, a), "{turns}");
            }
        }
        let mut made = vec![0];
        for step in turns.generators() {
            for from in made.clone() {
                let mut next = turns.turn(from, step);
                while next != from {
                    made.push(next);
                    next = turns.turn(next, step);
                }
            }
        }
        made.sort_unstable();
        assert_eq!(made, (0..n).collect::<Vec<_>>(), "{turns}");
    }
}

#[test]
fn names() {
    assert_eq!(Turns::rotation(5).to_string(), "rotation of 5");
    assert_eq!(Turns::xor(4).expect("a power of two").to_string(), "exclusive or of 4");
    assert_eq!(Turns::from_radices(&[4, 8]).to_string(), "rotations of 4 x 8");
    assert_eq!(Turns::xor(6), None);
}
