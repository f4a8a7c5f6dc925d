//! Master files for the authority. What is accepted is a zone that can be asked.

use authority::Records;

/// Digits of the largest number in a file with `$GENERATE`: such a line may stand for billions of records, as its author
/// wants it. Here it stands for a thousand at most.
const DIGITS: usize = 3;

/// Tries one text.
pub fn run(input: &[u8]) {
    let folded = input.to_ascii_lowercase();
    if folded.windows(9).any(|word| word == b"$generate")
        && folded.split(|octet| !octet.is_ascii_digit()).any(|digits| digits.len() > DIGITS)
    {
        return;
    }
    match Records::parse(input) {
        Ok(records) => {
            let apex = records.name();
            assert_eq!(wire::name_len(apex), Some(apex.len()));
            assert_eq!(apex, apex.to_ascii_lowercase());
            assert!(records.records() >= 1 && records.names() >= 1);
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(shown.starts_with("text"), "{shown:?}");
        }
    }
}
