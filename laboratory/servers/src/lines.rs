//! Lines of a configuration in which a user's line replaces the recipe's line for the same key: for servers that
//! refuse a key given twice.

/// Merges the user's lines into the recipe's. The key of a line is its first word.
pub(crate) fn merge_options(ours: Vec<String>, theirs: &[String]) -> Vec<String> {
    let mut lines = ours;
    for line in theirs {
        lines.retain(|our| key(our) != key(line));
    }
    lines.extend(theirs.iter().cloned());
    lines
}

fn key(line: &str) -> &str {
    line.trim_start().split(|c: char| c.is_whitespace() || c == '=' || c == ';').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_line_takes_the_place_of_ours() {
        let ours = vec!["recursive-clients 10000;".to_owned(), "querylog no;".to_owned()];
        assert_eq!(
            merge_options(ours, &["recursive-clients 50;".into(), "max-cache-size 1m;".into()]),
            ["querylog no;", "recursive-clients 50;", "max-cache-size 1m;"]
        );
    }
}
