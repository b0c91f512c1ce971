//! Numbers as text.

use roundelay_core::units::{decimals, microseconds};

#[test]
fn a_number_beside_the_one_meant_is_printed_as_that() {
    let beside = 5.7e-6 * 1e6;
    assert_eq!(beside.to_string(), "5.699999999999999");
    assert_eq!(decimals(beside, 3), "5.7");
    assert_eq!(microseconds(5.7e-6).to_string(), "5.7");
    let all = [(0.1 + 0.2, 6), (3.0, 2), (1234.5678, 0), (100.0, 0), (2.5, 1)];
    let texts = all.map(|(value, most)| decimals(value, most));
    assert_eq!(texts, ["0.3", "3", "1235", "100", "2.5"]);
}
