//! `$GENERATE` with BIND's syntax: one line that expands to many.
//!
//! ```text
//!     $GENERATE START-STOP[/STEP] NAME [TTL] [CLASS] TYPE DATA
//! ```
//!
//! In name and data, `$` becomes the number. `${OFFSET[,WIDTH[,BASE]]}` becomes the number plus an offset, with
//! leading zeros up to a width, in base `d`, `o`, `x`, `X`, or as nibbles `n`, `N` (last digit first, separated by
//! dots; the width counts digits and dots). `$$` and `\$` become a dollar sign.

use std::fmt::{self, Write};

/// A parsed `$GENERATE` line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Generate {
    start: u32,
    stop: u32,
    step: u32,
    parts: Vec<Part>,
}

/// A part of the repeated text.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Number { offset: i64, width: usize, base: Base },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Decimal,
    Octal,
    Hexadecimal { upper: bool },
    Nibbles { upper: bool },
}

/// Reason why a `$GENERATE` line cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GenerateError {
    /// No range, name and data.
    Shape,
    /// Not START-STOP or START-STOP/STEP, START above STOP, or STEP 0.
    Range,
    /// Wrong text in braces.
    Braces,
    /// Not UTF-8.
    Text,
}

impl fmt::Display for GenerateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GenerateError::Shape => {
                "$GENERATE is written: $GENERATE START-STOP[/STEP] NAME [TTL] [CLASS] TYPE DATA"
            }
            GenerateError::Range => {
                "the range of $GENERATE is START-STOP or START-STOP/STEP, as 0-255 or 0-254/2, with numbers below 2^32"
            }
            GenerateError::Braces => {
                "braces in $GENERATE are ${OFFSET}, ${OFFSET,WIDTH} or ${OFFSET,WIDTH,BASE} with base d, o, x, X, n or N, \
                 and a width of at most 255; write \\$ for a dollar sign"
            }
            GenerateError::Text => "$GENERATE has octets that are not UTF-8; write them as \\DDD",
        })
    }
}

impl Generate {
    /// Parses a line that begins with `$GENERATE`.
    ///
    /// # Errors
    ///
    /// `GenerateError::Text`: the line is not UTF-8. `GenerateError::Shape`: a range, an owner, a type or data are missing.
    /// `GenerateError::Range`: the range is malformed, ends before its start, or has step 0. `GenerateError::Braces`: a `${...}` is
    /// malformed.
    pub fn read(line: &[u8]) -> Result<Generate, GenerateError> {
        let line = std::str::from_utf8(line).map_err(|_| GenerateError::Text)?;
        let (_, rest) = line.trim().split_once(char::is_whitespace).ok_or(GenerateError::Shape)?;
        let (range, text) = rest.trim_start().split_once(char::is_whitespace).ok_or(GenerateError::Shape)?;
        let text = text.trim_start();
        if text.split_ascii_whitespace().count() < 3 {
            return Err(GenerateError::Shape);
        }
        let (start, stop, step) = range_of(range).ok_or(GenerateError::Range)?;
        Ok(Generate { start, stop, step, parts: parts(text).ok_or(GenerateError::Braces)? })
    }

    /// Writes the expanded lines into `out`. Calls `flush` whenever `out` has reached `octets` octets, and at the
    /// end.
    ///
    /// # Errors
    ///
    /// The first error of `flush`. Nothing else can fail.
    pub fn expand<E>(
        &self,
        octets: usize,
        mut flush: impl FnMut(&mut String) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut out = String::with_capacity(octets + 512);
        for number in (self.start..=self.stop).step_by(self.step as usize) {
            for part in &self.parts {
                match part {
                    Part::Text(text) => out.push_str(text),
                    Part::Number { offset, width, base } => {
                        write_number(&mut out, i64::from(number) + offset, *width, *base);
                    }
                }
            }
            out.push('\n');
            if out.len() >= octets {
                flush(&mut out)?;
            }
        }
        flush(&mut out)
    }
}

fn range_of(text: &str) -> Option<(u32, u32, u32)> {
    let (range, step) = text.split_once('/').map_or((text, "1"), |(range, step)| (range, step));
    let (start, stop) = range.split_once('-')?;
    let (start, stop, step): (u32, u32, u32) = (start.parse().ok()?, stop.parse().ok()?, step.parse().ok()?);
    (start <= stop && step > 0).then_some((start, stop, step))
}

fn parts(text: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '\\']) {
        plain.push_str(&rest[..at]);
        let (sign, after) = rest[at..].split_at(1);
        rest = after;
        if sign == "\\" {
            // An escape stays as it is for the zone parser, except an escaped dollar sign.
            let length = rest.chars().next().map_or(0, char::len_utf8);
            let (escaped, after) = rest.split_at(length);
            if escaped != "$" {
                plain.push('\\');
            }
            plain.push_str(escaped);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('$') {
            plain.push('$');
            rest = after;
        } else {
            let (inside, after) = match rest.strip_prefix('{') {
                Some(braces) => braces.split_once('}')?,
                None => ("0", rest),
            };
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(number(inside)?);
            rest = after;
        }
    }
    plain.push_str(rest);
    parts.push(Part::Text(plain));
    Some(parts)
}

/// Parses the text in braces.
fn number(inside: &str) -> Option<Part> {
    let mut fields = inside.split(',');
    let offset = fields.next()?.parse::<i32>().ok()?.into();
    let width = fields.next().map_or(Some(0), |width| width.parse::<u8>().ok())?.into();
    let base = match fields.next().unwrap_or("d") {
        "d" => Base::Decimal,
        "o" => Base::Octal,
        "x" => Base::Hexadecimal { upper: false },
        "X" => Base::Hexadecimal { upper: true },
        "n" => Base::Nibbles { upper: false },
        "N" => Base::Nibbles { upper: true },
        _ => return None,
    };
    fields.next().is_none().then_some(Part::Number { offset, width, base })
}

fn write_number(out: &mut String, value: i64, width: usize, base: Base) {
    // Writing to a String cannot fail.
    let _ = match base {
        Base::Decimal => write!(out, "{value:0width$}"),
        Base::Octal => write!(out, "{value:0width$o}"),
        Base::Hexadecimal { upper: false } => write!(out, "{value:0width$x}"),
        Base::Hexadecimal { upper: true } => write!(out, "{value:0width$X}"),
        Base::Nibbles { upper } => {
            let mut left = value as u64;
            let mut written = 0;
            while written == 0 || left > 0 || written < width {
                if written > 0 {
                    out.push('.');
                    written += 1;
                }
                // A width may end with a dot.
                if written > 0 && left == 0 && written >= width {
                    break;
                }
                let digit = char::from_digit((left & 15) as u32, 16).unwrap_or('0');
                out.push(if upper { digit.to_ascii_uppercase() } else { digit });
                written += 1;
                left >>= 4;
            }
            Ok(())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(line: &str) -> Vec<String> {
        let mut all = String::new();
        let done: Result<(), ()> = Generate::read(line.as_bytes()).unwrap().expand(16, |out| {
            all.push_str(out);
            out.clear();
            Ok(())
        });
        done.unwrap();
        all.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_examples_of_binds_manual() {
        assert_eq!(
            expand("$GENERATE 1-2 @ NS SERVER$.EXAMPLE."),
            ["@ NS SERVER1.EXAMPLE.", "@ NS SERVER2.EXAMPLE."]
        );
        assert_eq!(expand("$GENERATE 1-3 $ CNAME $.0"), ["1 CNAME 1.0", "2 CNAME 2.0", "3 CNAME 3.0"]);
        assert_eq!(
            expand("$GENERATE 126-127 HOST-$ MX \"0 .\""),
            ["HOST-126 MX \"0 .\"", "HOST-127 MX \"0 .\""]
        );
    }

    #[test]
    fn offsets_widths_and_bases() {
        assert_eq!(
            expand("$GENERATE 0-4/2 010-${1,3}-${-1,2,d} 60 IN A 10.0.${16,0,d}.$"),
            ["010-001--1 60 IN A 10.0.16.0", "010-003-01 60 IN A 10.0.18.2", "010-005-03 60 IN A 10.0.20.4"]
        );
        assert_eq!(
            expand("$generate\t255-255  ${0,4,x}.${0,1,X}.${0,4,o} A 1.2.3.4"),
            ["00ff.FF.0377 A 1.2.3.4"]
        );
        // Nibbles: the width counts digits and dots.
        assert_eq!(expand("$GENERATE 18-18 ${0,7,n}.x PTR a$"), ["2.1.0.0.x PTR a18"]);
        assert_eq!(expand("$GENERATE 171-171 ${0,3,N}.x PTR a"), ["B.A.x PTR a"]);
        assert_eq!(expand("$GENERATE 0-0 ${0,0,n} PTR a"), ["0 PTR a"]);
    }

    #[test]
    fn dollar_signs_and_other_escapes_stay() {
        assert_eq!(expand(r"$GENERATE 5-5 a$$b\$c\.d\\$ TXT \036"), [r"a$b$c\.d\\5 TXT \036"]);
    }

    #[test]
    fn the_largest_range_ends() {
        assert_eq!(expand("$GENERATE 4294967295-4294967295 $ A 1.2.3.4").len(), 1);
        assert_eq!(expand("$GENERATE 0-4294967295/4294967295 $ A 1.2.3.4").len(), 2);
    }

    #[test]
    fn a_malformed_generate_line_is_an_error_that_says_how_it_is_written() {
        for (line, error) in [
            ("$GENERATE", GenerateError::Shape),
            ("$GENERATE 1-2", GenerateError::Shape),
            ("$GENERATE 1-2 a A", GenerateError::Shape),
            ("$GENERATE 2-1 a A 1.2.3.4", GenerateError::Range),
            ("$GENERATE 1-2/0 a A 1.2.3.4", GenerateError::Range),
            ("$GENERATE 1 a A 1.2.3.4", GenerateError::Range),
            ("$GENERATE 1-4294967296 a A 1.2.3.4", GenerateError::Range),
            ("$GENERATE 1-2 ${ A 1.2.3.4", GenerateError::Braces),
            ("$GENERATE 1-2 ${x} A 1.2.3.4", GenerateError::Braces),
            ("$GENERATE 1-2 ${0,256} A 1.2.3.4", GenerateError::Braces),
            ("$GENERATE 1-2 ${0,1,q} A 1.2.3.4", GenerateError::Braces),
            ("$GENERATE 1-2 ${0,1,d,1} A 1.2.3.4", GenerateError::Braces),
        ] {
            assert_eq!(Generate::read(line.as_bytes()), Err(error), "{line}");
            assert!(error.to_string().contains("$GENERATE"));
        }
        assert_eq!(Generate::read(b"$GENERATE 1-2 \xff A 1.2.3.4"), Err(GenerateError::Text));
    }
}
