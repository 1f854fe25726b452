//! Compares two numbers by their exact decimal values.
//!
//! Floating point would take two different account numbers of twenty digits for the same. Big integers would have to
//! write `1e999999999` out. Neither is needed: a number is its significant digits and the place of its point. The
//! digits are compared as they are spelled. Of the two places only the difference counts, and it is computed digit by
//! digit. So the time is that of reading both texts once, whatever their exponents are, and nothing is allocated.

/// Largest difference of two exponents that digits could make up for: a text has at most 2^32 digits.
const DIFFERENCE_MAX: i64 = 100_000_000_000_000_000;

/// Whether two JSON numbers have the same value, as `1`, `1.0`, `10e-1` and `0.1E1` have.
pub(super) fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (Decimal::of(a), Decimal::of(b));
    if a.is_zero() || b.is_zero() {
        return a.is_zero() && b.is_zero();
    }
    a.negative == b.negative
        && difference(a.exponent, b.exponent) == Some(b.point - a.point)
        && a.digits().eq(b.digits())
}

/// Most zeros that are written to the left or right of the digits of a number. Others are left to its exponent.
const ZEROS_MAX: i64 = 40;

/// Returns a JSON number in the one spelling that all numbers of its exact value share: `1` for `1.0` and `10e-1`, and
/// `0.1e401` for `10e399`. Numbers of a usual size have no exponent.
pub fn one_spelling(number: &str) -> String {
    let decimal = Decimal::of(number);
    if decimal.is_zero() {
        return "0".to_owned();
    }
    let sign = if decimal.negative { "-" } else { "" };
    let digits: String = decimal.digits().map(char::from).collect();
    let exponent = decimal.exponent.plus(decimal.point);
    let point =
        exponent.parse::<i64>().ok().filter(|point| (-ZEROS_MAX..=offset(digits.len()) + ZEROS_MAX).contains(point));
    let Some(point) = point else { return format!("{sign}0.{digits}e{exponent}") };
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    match usize::try_from(point) {
        Ok(0) | Err(_) => format!("{sign}0.{}{digits}", zeros(-point)),
        Ok(whole) if whole < digits.len() => format!("{sign}{}.{}", &digits[..whole], &digits[whole..]),
        Ok(_) => format!("{sign}{digits}{}", zeros(point - offset(digits.len()))),
    }
}

/// A number: 0.DIGITS times ten to the power of `exponent + point`.
struct Decimal<'s> {
    negative: bool,
    /// From the first digit that is not zero to the last, perhaps with a point between.
    significant: &'s str,
    /// How many digits after the start of the significant ones the point stands; negative where it stands before them.
    point: i64,
    exponent: Exponent<'s>,
}

/// The exponent, as it is spelled after `e`.
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
        // The point itself takes up a place between the whole part and the fraction.
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

    /// Returns the sum of the exponent and a number of places, in decimal digits.
    fn plus(self, places: i64) -> String {
        let short = self.digits.parse::<i64>().or_else(|error| match self.digits.is_empty() {
            true => Ok(0),
            false => Err(error),
        });
        if let Some(sum) = short.ok().and_then(|exponent| (self.sign * exponent).checked_add(places)) {
            return sum.to_string();
        }
        // An exponent of this length is farther from zero than there are places in a text, so its sign stays.
        let (mut sum, mut carry) = (Vec::new(), self.sign * places);
        for digit in self.digits.bytes().rev() {
            let digit = i64::from(digit - b'0') + carry;
            sum.extend(u8::try_from(digit.rem_euclid(10)).map(|digit| b'0' + digit));
            carry = digit.div_euclid(10);
        }
        let carry = if carry > 0 { carry.to_string() } else { String::new() };
        let digits: String = carry.chars().chain(sum.into_iter().rev().map(char::from)).collect();
        format!("{}{}", if self.sign < 0 { "-" } else { "" }, digits.trim_start_matches('0'))
    }

    /// Returns the signed digit at a place, where the exponent is padded with zeros to `places` digits.
    fn digit(self, at: usize, places: usize) -> i64 {
        let missing = places - self.digits.len();
        let digit = at.checked_sub(missing).map_or(0, |at| self.digits.as_bytes()[at] - b'0');
        self.sign * i64::from(digit)
    }
}

/// Returns by how much one exponent is larger than the other, or `None` where that is more than any two texts can make
/// up for.
fn difference(a: Exponent<'_>, b: Exponent<'_>) -> Option<i64> {
    let places = a.digits.len().max(b.digits.len());
    (0..places).try_fold(0_i64, |difference, at| {
        let difference = difference * 10 + a.digit(at, places) - b.digit(at, places);
        // The digits that follow change the difference by less than two in its last place, so it only grows from here.
        (difference.abs() <= DIFFERENCE_MAX).then_some(difference)
    })
}

/// Converts a number of places in a text, which has at most 4 GiB.
fn offset(places: usize) -> i64 {
    i64::try_from(places).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
