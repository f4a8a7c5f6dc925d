//! Tokens of a record's text (RFC 1035 section 5.1), and a scanner of tokens for the `domain` library.

use domain::base::scan::{ConvertSymbols, EntrySymbol, IterScanner, Scanner, StrError, Symbol};
use domain::base::{CharStr, Name};
use domain::dep::octseq::str::Str;

/// Splits a text into tokens. Spaces separate tokens; a quoted string is part of one token and loses its quotes.
/// Escapes stay: the reader of the token resolves them.
///
/// # Errors
///
/// A quote is not closed.
pub fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut tokens = Vec::new();
    let mut token: Option<String> = None;
    let mut quoted = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                quoted = !quoted;
                token.get_or_insert_default();
            }
            '\\' => {
                let token = token.get_or_insert_default();
                token.push('\\');
                token.extend(characters.next());
            }
            ' ' | '\t' if !quoted => tokens.extend(token.take()),
            other => token.get_or_insert_default().push(other),
        }
    }
    if quoted {
        return Err("a quote is not closed");
    }
    tokens.extend(token);
    Ok(tokens)
}

/// Scanner of record data in tokens. The library's own scanner of tokens lacks two things: it does not read service
/// parameters (RFC 9460 section 2.1), and it does not step over the mark of the general notation (RFC 3597 section
/// 5).
pub struct RecordTokens(IterScanner<std::vec::IntoIter<String>, Vec<u8>>);

impl RecordTokens {
    /// A scanner of `tokens`, as [`split`] returns them.
    pub fn new(tokens: Vec<String>) -> RecordTokens {
        RecordTokens(IterScanner::new(tokens))
    }

    /// True if all tokens have been read.
    pub fn is_exhausted(&mut self) -> bool {
        self.0.is_exhausted()
    }
}

impl Scanner for RecordTokens {
    type Octets = Vec<u8>;
    type OctetsBuilder = Vec<u8>;
    type Name = Name<Vec<u8>>;
    type Error = StrError;

    fn scan_svcb_octets(&mut self) -> Result<Vec<u8>, StrError> {
        self.0.scan_octets()
    }

    fn scan_opt_unknown_marker(&mut self) -> Result<bool, StrError> {
        let marked = self.0.scan_opt_unknown_marker()?;
        if marked {
            self.0.scan_octets()?;
        }
        Ok(marked)
    }

    fn has_space(&self) -> bool {
        self.0.has_space()
    }

    fn continues(&mut self) -> bool {
        self.0.continues()
    }

    fn scan_symbols<F>(&mut self, op: F) -> Result<(), StrError>
    where
        F: FnMut(Symbol) -> Result<(), StrError>,
    {
        self.0.scan_symbols(op)
    }

    fn scan_entry_symbols<F>(&mut self, op: F) -> Result<(), StrError>
    where
        F: FnMut(EntrySymbol) -> Result<(), StrError>,
    {
        self.0.scan_entry_symbols(op)
    }

    fn convert_token<C: ConvertSymbols<Symbol, StrError>>(
        &mut self,
        convert: C,
    ) -> Result<Vec<u8>, StrError> {
        self.0.convert_token(convert)
    }

    fn convert_entry<C: ConvertSymbols<EntrySymbol, StrError>>(
        &mut self,
        convert: C,
    ) -> Result<Vec<u8>, StrError> {
        self.0.convert_entry(convert)
    }

    fn scan_octets(&mut self) -> Result<Vec<u8>, StrError> {
        self.0.scan_octets()
    }

    fn scan_ascii_str<F, T>(&mut self, op: F) -> Result<T, StrError>
    where
        F: FnOnce(&str) -> Result<T, StrError>,
    {
        self.0.scan_ascii_str(op)
    }

    fn scan_name(&mut self) -> Result<Name<Vec<u8>>, StrError> {
        self.0.scan_name()
    }

    fn scan_charstr(&mut self) -> Result<CharStr<Vec<u8>>, StrError> {
        self.0.scan_charstr()
    }

    fn scan_string(&mut self) -> Result<Str<Vec<u8>>, StrError> {
        self.0.scan_string()
    }

    fn scan_charstr_entry(&mut self) -> Result<Vec<u8>, StrError> {
        self.0.scan_charstr_entry()
    }

    fn octets_builder(&mut self) -> Result<Vec<u8>, StrError> {
        self.0.octets_builder()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_a_word_together_and_go_away() {
        assert_eq!(split("a  b\tc").unwrap(), ["a", "b", "c"]);
        assert_eq!(split(r#"key="a b" "" "c d""#).unwrap(), ["key=a b", "", "c d"]);
    }

    #[test]
    fn escapes_stay_and_an_escaped_quote_is_no_quote() {
        assert_eq!(split(r#"a\"b c\ d \#"#).unwrap(), [r#"a\"b"#, r"c\ d", r"\#"]);
        assert!(split(r#"a "b"#).is_err());
    }
}
