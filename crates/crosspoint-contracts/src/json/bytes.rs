//! Questions about bytes that the scanner asks often.

/// Whether no 64-bit integer and no finite float can hold the number.
pub(super) fn out_of_range(number: &str, float: bool) -> bool {
    // Any integer of at most 18 characters fits.
    if !float {
        return number.len() > 18 && number.parse::<i64>().is_err() && number.parse::<u64>().is_err();
    }
    number.parse::<f64>().is_ok_and(f64::is_infinite)
}

pub(super) fn digits(bytes: &[u8], from: usize) -> usize {
    bytes.get(from..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// Returns the first byte at or after `from` that ends a run of plain string bytes: a quote, a backslash or a control
/// character. Returns the end of the input if there is none.
///
/// Most strings are short, so the first bytes are checked eight at a time as one word, which tells exactly where the
/// run ends. In a long string, larger blocks without an early exit let the compiler compare many bytes at once, at the
/// speed of memory.
pub(super) fn plain_end(bytes: &[u8], from: usize) -> usize {
    const WORDS_NEAR: usize = 8;
    const BLOCK: usize = 64;
    let mut at = from;
    for _ in 0..WORDS_NEAR {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) else { break };
        if let Some(offset) = special_in(u64::from_le_bytes(*word)) {
            return at + offset;
        }
        at += 8;
    }
    while let Some(block) = bytes.get(at..at + BLOCK) {
        if block.iter().fold(false, |any, &byte| any | is_special(byte)) {
            break;
        }
        at += BLOCK;
    }
    while at < bytes.len() && !is_special(bytes[at]) {
        at += 1;
    }
    at
}

fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

/// Returns which of eight bytes, the lowest first, is the first special one.
///
/// A byte's high bit is set where the subtraction borrows from it: where the byte was below 0x20, or zero after
/// comparing by exclusive or. Borrows go upwards only, so the lowest bit that is set is right.
fn special_in(word: u64) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let found = below(word, 0x20) | equal(b'"') | equal(b'\\');
    (found != 0).then_some(found.trailing_zeros() as usize / 8)
}
