//! The title of a page (`.TH`): name, section, date, version, kind. The date is that of the last change of its text by hand.

/// The page with the version of the programs in its title.
///
/// # Errors
///
/// The first line is not `.TH` with a name, a section and three texts in quotation marks.
pub fn with_version(page: &str, version: &str) -> Result<String, String> {
    let (title, rest) = page.split_once('\n').unwrap_or((page, ""));
    let mut parts: Vec<String> = title.split('"').map(str::to_owned).collect();
    // Name and section, date, version, kind: each text is between quotation marks.
    match (parts.len(), parts.first().is_some_and(|first| first.starts_with(".TH "))) {
        (7, true) => parts[3] = format!("Sixfold {version}"),
        _ => {
            return Err(
                "the page does not begin with .TH NAME SECTION \"DATE\" \"VERSION\" \"KIND\"".to_owned()
            );
        }
    }
    Ok(format!("{}\n{rest}", parts.join("\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_has_the_version() {
        let page = ".TH X 8 \"2026-11-28\" \"Sixfold 0.0.9\" \"Kind of page\"\n.nh\n";
        let expected = ".TH X 8 \"2026-11-28\" \"Sixfold 1.2.3\" \"Kind of page\"\n.nh\n";
        assert_eq!(with_version(page, "1.2.3").as_deref(), Ok(expected));
        assert!(with_version(".TH X 8\n", "1.2.3").is_err());
    }
}
