//! Tests of comparing numbers by their exact decimal values.
use proptest::prelude::*;

use super::{equal, one_spelling};

/// Compares in both directions: the order must not matter.
fn same(a: &str, b: &str) -> bool {
    let (there, back) = (equal(a, b), equal(b, a));
    assert_eq!(there, back, "{a} and {b}");
    let (spelled, other) = (one_spelling(a), one_spelling(b));
    assert_eq!(spelled == other, there, "{a} and {b}");
    assert!(equal(a, &spelled), "{a}");
    there
}

#[test]
fn spelling_does_not_count() {
    let ones =
        ["1", "1.0", "1.000", "10e-1", "0.1e1", "0.01E+2", "1E0", "1e-0", "1e00000000000000000000000", "1000e-03"];
    let zeros = ["0", "-0", "0.0", "-0.000", "0e999999999999999999999", "0E-999999999999999999999999", "-0e5"];
    let larges = ["12345678901234567890123", "12345678901234567890123.0", "1.2345678901234567890123e22"];
    let far =
        ["1e100000000000000000000000000000", "0.1e100000000000000000000000000001", "10e99999999999999999999999999999"];
    let tiny = [
        "1e-100000000000000000000000000000",
        "0.1e-99999999999999999999999999999",
        "0.001e-99999999999999999999999999997",
    ];
    let minus = ["-12.5", "-125e-1", "-0.125e2", "-12.50"];
    let groups = [&ones[..], &zeros, &larges, &far, &tiny, &minus];
    for (at, group) in groups.iter().enumerate() {
        for (other, others) in groups.iter().enumerate() {
            for a in *group {
                assert!(others.iter().all(|b| same(a, b) == (at == other)), "{a}");
            }
        }
    }
}

#[test]
fn numbers_of_a_usual_size_are_spelled_as_people_do() {
    for usual in ["0", "1", "-1", "100", "12345678901234567890123", "1.5", "-0.25", "0.001", "1000000000000"] {
        assert_eq!(one_spelling(usual), usual);
    }
    let spelled = ["1.50", "1e2", "10e399", "1e-400", "999e99999999999999999998", "1e-100000000000000000000"];
    let spelled = spelled.map(one_spelling);
    let wanted = ["1.5", "100", "0.1e401", "0.1e-399", "0.999e100000000000000000001", "0.1e-99999999999999999999"];
    assert_eq!(spelled, wanted);
}

#[test]
fn what_differs_beyond_floating_point_differs() {
    let pairs = [
        ("1000000000000000000001", "1000000000000000000002"),
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993.0", "9007199254740992"),
        ("18446744073709551616", "18446744073709551617"),
        ("0.1000000000000000000000001", "0.1000000000000000000000002"),
        ("1e400", "1e401"),
        ("1e400", "-1e400"),
        ("1e-400", "0"),
        ("1e-400", "1e-401"),
        ("1e100000000000000000000000000000", "1e100000000000000000000000000001"),
        ("1e100000000000000000000000000000", "1e-100000000000000000000000000000"),
        ("1e99999999999999999999", "1e9999999999999999999"),
        ("12", "21"),
        ("12", "1.2"),
        ("102", "12"),
        ("1", "-1"),
        ("100", "10"),
    ];
    for (a, b) in pairs {
        assert!(!same(a, b), "{a} and {b}");
    }
}

/// This test would not end if anything wrote an exponent out or looked at a digit more than once.
#[test]
fn long_numbers_are_read_once() {
    let digits = "7".repeat(1_000_000);
    assert!(same(&format!("{digits}.0"), &format!("0.{digits}e1000000")));
    assert!(!same(&format!("{digits}1"), &format!("{digits}2")));
    assert!(same(&format!("1e{digits}"), &format!("10e{}6", &digits[1..])));
    assert!(!same(&format!("1e{digits}"), &format!("1e{}6", &digits[1..])));
    assert!(same(&format!("1{}", "0".repeat(1_000_000)), "1e1000000"));
}

/// A slow model: writes the number out as a whole multiple of a unit that is smaller than any digit of the tested
/// numbers.
fn written_out(negative: bool, whole: &str, fraction: &str, exponent: i32) -> (bool, String) {
    const UNITS: i32 = 60;
    let zeros = usize::try_from(UNITS + exponent).expect("exponents are small") - fraction.len();
    let digits = format!("{whole}{fraction}{}", "0".repeat(zeros));
    let digits = digits.trim_start_matches('0').to_owned();
    (negative && !digits.is_empty(), digits)
}

fn number() -> impl Strategy<Value = (String, (bool, String))> {
    // Few digits and exponents, so that many of the numbers are equal.
    let parts = (any::<bool>(), "0|[1-3][0-2]{0,3}", "[0-2]{0,4}", -4..=4_i32, "[eE]", "\\+?|-", "0{0,2}");
    parts.prop_map(|(negative, whole, fraction, exponent, e, plus, zeros)| {
        let point = if fraction.is_empty() { String::new() } else { format!(".{fraction}") };
        let sign = if exponent < 0 {
            "-"
        } else if plus == "-" {
            ""
        } else {
            &plus
        };
        let power = if exponent == 0 && zeros.is_empty() {
            String::new()
        } else {
            format!("{e}{sign}{zeros}{}", exponent.abs())
        };
        let minus = if negative { "-" } else { "" };
        (format!("{minus}{whole}{point}{power}"), written_out(negative, &whole, &fraction, exponent))
    })
}

proptest! {
    #[test]
    fn it_agrees_with_numbers_written_out((a, value) in number(), (b, other) in number()) {
        prop_assert_eq!(same(&a, &b), value == other, "{} and {}", a, b);
        let json = format!("[{a},{b}]");
        prop_assert!(serde_json::from_str::<Vec<f64>>(&json).is_ok(), "{}", json);
    }
}
