//! The known word that is nearest to a misspelled one.

/// Returns the known word that the writer of a word may have meant.
pub fn nearest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
    let word = word.to_lowercase().replace('-', "_");
    // The beginning of a word, or a word without its unit, is as likely as a typing mistake.
    let part = |known: &str| word.len() >= 3 && (known.contains(&word) || word.contains(known));
    let cost = |known: &str| if part(known) { distance(&word, known).min(2) } else { distance(&word, known) };
    let best = known.iter().map(|known| (cost(known), *known)).min_by_key(|(cost, _)| *cost)?;
    (best.0 <= 1 + word.chars().count() / 4).then_some(best.1)
}

/// The number of letters that must be inserted, removed, changed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(a != b)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_wild_guesses_left_alone() {
        let known = ["listen", "name", "wait_seconds_max", "drain_seconds", "log", "log_format"];
        let cases =
            [("lisen", "listen"), ("Listen", "listen"), ("drain", "drain_seconds"), ("log-format", "log_format")];
        for (typed, meant) in cases {
            assert_eq!(nearest(typed, &known), Some(meant));
        }
        assert_eq!(nearest("colour", &known), None);
    }
}
