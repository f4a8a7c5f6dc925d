//! Command lines as a shell takes them.

/// A command line in shell syntax.
pub fn command_line(command: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,[]{}".contains(c);
    let quoted = command.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_split_are_quoted() {
        let words = ["a-b", "two words", "", "it's"].map(str::to_owned);
        assert_eq!(command_line(&words), "a-b 'two words' '' 'it'\\''s'");
    }
}
