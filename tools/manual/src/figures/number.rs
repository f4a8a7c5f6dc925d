//! Numbers as documents write them.

/// A number with so many decimals; whole numbers with commas between thousands.
pub fn written(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// True if a written number is the value, rounded at its last digit: `3.7` is 3.74, and `235,000` is 235,470. Zeros at the end of a whole
/// number count as rounded, but for the first two digits.
pub fn is_rounded(text: &str, value: f64) -> bool {
    let plain = text.replace(',', "");
    let Ok(number) = plain.parse::<f64>() else { return false };
    let unit = match plain.split_once('.') {
        Some((_, fraction)) => fraction.chars().fold(1.0, |unit, _| unit / 10.0),
        None => {
            let zeros = plain.bytes().skip(2).rev().take_while(|digit| *digit == b'0');
            zeros.fold(1.0, |unit, _| unit * 10.0)
        }
    };
    // Half of the last digit, and what binary fractions lose.
    (number - value).abs() <= unit * 0.5 + value.abs() * 1e-9
}

/// Numbers of a text: digits with commas, points, hyphens and colons between them. Digits of a word, such as `IPv6`, and numbers of
/// standards and of their sections are none.
pub fn numbers(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, ',' | '.' | '-' | ':');
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, after) = rest.split_at(start);
        let is_word = before.ends_with(|c: char| c.is_alphabetic() || c == '_');
        let is_standard = ["RFC", "section"].iter().any(|word| before.trim_end().ends_with(word));
        let length = after.find(|c: char| !is_part(c)).unwrap_or(after.len());
        if !is_word && !is_standard {
            found.push(after[..length].trim_end_matches(|c: char| !c.is_ascii_digit()));
        }
        rest = &after[length..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas() {
        let texts = [(265_968.4, 0), (999.5, 0), (1_000_000.0, 0), (3.746, 1), (0.746_9, 3)];
        assert_eq!(
            texts.map(|(value, decimals)| written(value, decimals)),
            ["265,968", "1,000", "1,000,000", "3.7", "0.747"]
        );
    }

    #[test]
    fn a_number_is_compared_at_the_precision_in_which_it_is_written() {
        for (text, value) in
            [("3.7", 3.74), ("4", 3.74), ("235,000", 235_470.0), ("0.75", 0.747), ("100", 98.2), ("9", 9.4)]
        {
            assert!(is_rounded(text, value), "{text} {value}");
        }
        for (text, value) in
            [("3.8", 3.74), ("235,000", 235_600.0), ("235,471", 235_473.0), ("1.2.3", 1.2), ("100", 130.0)]
        {
            assert!(!is_rounded(text, value), "{text} {value}");
        }
    }

    #[test]
    fn numbers_are_found_without_the_marks_of_the_sentence() {
        let text = "IPv6 took 3.7 us (2,000, of 5), 1.17.1 on 2026-11-26: RFC\n8219 section 9.1, 64.";
        assert_eq!(numbers(text), ["3.7", "2,000", "5", "1.17.1", "2026-11-26", "64"]);
    }
}
