//! Names that were probably meant.

/// The name among `known` that is nearest to `name`, if it is near enough to be meant.
fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let near = |other: &'k str| {
        let (short, long) = (name.to_lowercase(), other.to_lowercase());
        let distance = edits(&short, &long);
        // A part of a long name is as good as a slip of the finger.
        let part = short.chars().count() >= 3 && long.contains(&short);
        let enough = distance <= 1 + name.chars().count() / 4;
        (enough || part).then_some((distance, other))
    };
    known.into_iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, other)| other)
}

/// `; did you mean "input_ids"?`, or nothing.
pub(crate) fn suggestion<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(name, known).map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default()
}

/// The least number of letters put in, left out or changed that makes `to` of `from` (Levenshtein 1966).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_parts_of_names_are_recognised_and_strange_names_are_not() {
        let known = ["input_ids", "attention_mask", "x"];
        assert_eq!(nearest("inptu_ids", known), Some("input_ids"));
        assert_eq!(nearest("mask", known), Some("attention_mask"));
        assert_eq!(nearest("INPUT_IDS", known), Some("input_ids"));
        assert_eq!(nearest("pixels", known), None);
        assert_eq!(suggestion("y", known), "; did you mean \"x\"?");
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
    }
}
