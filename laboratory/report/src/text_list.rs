//! Lists of words in sentences.

/// `a, b and c`.
pub fn and(words: &[&str]) -> String {
    joined(words, "and")
}

/// `a`, or `a, b or c`.
pub fn or_one(words: &[&str]) -> String {
    joined(words, "or")
}

fn joined(words: &[&str], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_list_has_a_conjunction() {
        assert_eq!(
            [and(&[]), and(&["a"]), and(&["a", "b"]), or_one(&["a", "b", "c"])],
            ["", "a", "a and b", "a, b or c"]
        );
    }
}
