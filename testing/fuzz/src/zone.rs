//! Master files of the authority. An accepted file is a zone that can be queried.

use authority::Records;

/// Largest number of digits of a number in a file with `$GENERATE`. Such a line may stand for billions of records, and its
/// author wants that. Here it stands for at most a thousand.
const DIGITS: usize = 3;

/// Tests one text.
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
