//! Placeholders in braces, such as `{listen_port}`, in a user's command line, files and options. Other braces stay as
//! they are, because configurations are full of them. A word in braces in the form of a placeholder that is none is an
//! error.

use super::Settings;
use std::fmt;
use std::path::Path;

/// Names of the placeholders.
pub const PLACEHOLDERS: [&str; 12] = [
    "listen",
    "listen_address",
    "listen_port",
    "upstream",
    "upstream_address",
    "upstream_port",
    "prefix",
    "prefix_address",
    "zone",
    "workers",
    "dir",
    "value",
];

/// A word in braces that is no placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceholderError(String);

impl fmt::Display for PlaceholderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{{{}}} is not a placeholder; the placeholders are {{{}}}",
            self.0,
            PLACEHOLDERS.join("}, {")
        )
    }
}

impl std::error::Error for PlaceholderError {}

/// Fills the placeholders of the user's options.
///
/// # Errors
///
/// As [`fill`].
pub fn fill_options(settings: &Settings, folder: &Path) -> Result<Settings, PlaceholderError> {
    let options =
        settings.options.iter().map(|option| fill(option, settings, folder)).collect::<Result<_, _>>()?;
    Ok(Settings { options, ..settings.clone() })
}

/// Fills the placeholders of a text.
///
/// # Errors
///
/// [`PlaceholderError`]: a word in braces is no placeholder.
pub fn fill(text: &str, settings: &Settings, folder: &Path) -> Result<String, PlaceholderError> {
    fill_with(text, |word| value(word, settings, folder))
}

/// Fills the placeholders of a text that have these values.
///
/// # Errors
///
/// [`PlaceholderError`]: a word in braces has no value.
pub(crate) fn fill_with(
    text: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, PlaceholderError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_')).unwrap_or(rest.len());
        let is_word = end > 0 && rest[end..].starts_with('}');
        if !is_word {
            filled.push('{');
            continue;
        }
        let (word, after) = (&rest[..end], &rest[end + 1..]);
        filled.push_str(&value(word).ok_or_else(|| PlaceholderError(word.to_owned()))?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn value(word: &str, settings: &Settings, folder: &Path) -> Option<String> {
    let (address, length) = settings.prefix;
    Some(match word {
        "listen" => settings.listen.to_string(),
        "listen_address" => settings.listen.ip().to_string(),
        "listen_port" => settings.listen.port().to_string(),
        "upstream" => settings.upstream.to_string(),
        "upstream_address" => settings.upstream.ip().to_string(),
        "upstream_port" => settings.upstream.port().to_string(),
        "prefix" => format!("{address}/{length}"),
        "prefix_address" => address.to_string(),
        "zone" => settings.zone.clone(),
        "workers" => settings.workers.to_string(),
        "dir" => folder.display().to_string(),
        "value" => settings.value.clone(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, PlaceholderError> {
        let settings = Settings { value: "v".into(), ..Settings::example() };
        fill(text, &settings, Path::new("/d"))
    }

    #[test]
    fn every_placeholder_has_a_value() {
        for word in PLACEHOLDERS {
            let text = filled(&format!("<{{{word}}}>")).unwrap();
            assert!(text.len() > 2 && !text.contains('{'), "{word}: {text}");
        }
        assert_eq!(filled("{prefix}{value}").unwrap(), "2001:db8:64::/96v");
    }

    #[test]
    fn other_braces_stay() {
        for text in ["", "{", "}", "{}", "{ listen }", "options { x; };", "{a b}", "{2}", "{{"] {
            assert_eq!(filled(text).unwrap(), text);
        }
        assert_eq!(filled("{{value}}").unwrap(), "{v}");
    }

    #[test]
    fn a_misspelt_placeholder_is_an_error_that_lists_them() {
        let error = filled("x {listen_prot}").unwrap_err().to_string();
        assert!(error.contains("{listen_prot}") && error.contains("{listen_port}"), "{error}");
    }
}
