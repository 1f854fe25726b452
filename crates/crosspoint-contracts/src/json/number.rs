//! Whether two numbers are the same, by their exact decimal values.
//!
//! Floating point would call two account numbers of twenty digits one. Big integers would have to write `1e999999999` out. Neither is
//! needed: a number is its significant digits and the place of its point. The digits are compared as they are spelled, and of the
//! two places only the difference counts, which is worked out digit by digit. So the time is that of reading both texts once,
//! whatever their exponents are, and nothing is allocated.

/// Beyond this the difference of two exponents is never made up for: a text has at most 2^32 digits.
const DIFFERENCE_MAX: i64 = 100_000_000_000_000_000;

/// Whether two JSON numbers have the same value: `1`, `1.0`, `10e-1` and `0.1E1` have.
pub(super) fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (Decimal::of(a), Decimal::of(b));
    if a.is_zero() || b.is_zero() {
        return a.is_zero() && b.is_zero();
    }
    a.negative == b.negative
        && difference(a.exponent, b.exponent) == Some(b.point - a.point)
        && a.digits().eq(b.digits())
}

/// A number: 0.DIGITS times ten to the power of `exponent + point`.
struct Decimal<'s> {
    negative: bool,
    /// From the first digit that is not zero to the last, perhaps with a point between.
    significant: &'s str,
    /// How far the point stands after the first significant digit.
    point: i64,
    exponent: Exponent<'s>,
}

/// What stands after `e`, as it is spelled.
#[derive(Clone, Copy)]
struct Exponent<'s> {
    sign: i64,
    digits: &'s str,
}

impl<'s> Decimal<'s> {
    fn of(number: &'s str) -> Decimal<'s> {
        let unsigned = number.strip_prefix('-').unwrap_or(number);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let significant = mantissa.trim_matches(['0', '.']);
        let whole = mantissa.find('.').unwrap_or(mantissa.len());
        let first = mantissa.find(|digit| !matches!(digit, '0' | '.')).unwrap_or(0);
        // The point itself takes a place between the whole part and what follows it.
        let point = if first < whole { offset(whole - first) } else { -offset(first - whole - 1) };
        Decimal { negative: unsigned.len() < number.len(), significant, point, exponent: Exponent::of(exponent) }
    }

    fn is_zero(&self) -> bool {
        self.significant.is_empty()
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.significant.bytes().filter(u8::is_ascii_digit)
    }
}

impl<'s> Exponent<'s> {
    fn of(spelled: &'s str) -> Exponent<'s> {
        let sign = if spelled.starts_with('-') { -1 } else { 1 };
        Exponent { sign, digits: spelled.trim_start_matches(['+', '-']).trim_start_matches('0') }
    }

    /// What its digit at a place is worth, counted from the highest of so many.
    fn digit(self, at: usize, places: usize) -> i64 {
        let missing = places - self.digits.len();
        let digit = at.checked_sub(missing).map_or(0, |at| self.digits.as_bytes()[at] - b'0');
        self.sign * i64::from(digit)
    }
}

/// By how much one exponent is larger than another; `None` where that is more than any two texts can make up for.
fn difference(a: Exponent<'_>, b: Exponent<'_>) -> Option<i64> {
    let places = a.digits.len().max(b.digits.len());
    (0..places).try_fold(0_i64, |difference, at| {
        let difference = difference * 10 + a.digit(at, places) - b.digit(at, places);
        // What follows changes it by less than two in its last place, so it only grows from here.
        (difference.abs() <= DIFFERENCE_MAX).then_some(difference)
    })
}

/// Places in a text, which has at most 4 GiB.
fn offset(places: usize) -> i64 {
    i64::try_from(places).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
