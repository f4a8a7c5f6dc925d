//! The file of constants: TOML, one section for one figure of all devices.

use super::raw;
use toml::{Table, Value};

/// The file of constants.
pub const FILE: &str = "docs/constants.toml";

/// The page of raw tables, which `sixfold-bench perf --page` writes.
pub const RAW: &str = "docs/development/measurements/rivals.md";

/// Section of the run that made the raw tables.
const RUN: &str = "runs.rivals";

/// The constants.
pub struct Constants(Table);

impl Constants {
    /// Reads the text of the file.
    ///
    /// # Errors
    ///
    /// The text is not TOML.
    pub fn read(text: &str) -> Result<Constants, String> {
        text.parse().map(Constants).map_err(|error| format!("{FILE}: {error}"))
    }

    /// Figure at a path like `cached.closed.sixfold`. With `.least` or `.most` behind the path, the end of its range.
    pub fn figure(&self, path: &str) -> Option<f64> {
        if let Some(value) = self.entry(path) {
            return value.as_array().map_or_else(|| number(value), |values| number(values.first()?));
        }
        let (path, end) = path.rsplit_once('.')?;
        let place = ["median", "least", "most"].iter().position(|name| *name == end)?;
        number(self.entry(path)?.as_array()?.get(place)?)
    }

    /// Text at a path like `runs.rivals.date`.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.entry(path)?.as_str()
    }

    /// Devices in the order of tables: key and name.
    pub fn devices(&self) -> Vec<(&str, &str)> {
        let list = self.entry("devices").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(pair).collect()
    }

    /// Text of the file in which each figure with a source is that of the raw tables, and date and commit are those of their run, if the
    /// page tells them.
    ///
    /// # Errors
    ///
    /// The text is not TOML, or the tables do not have a figure. The text of the error names it.
    pub fn updated(text: &str, page: &str) -> Result<String, String> {
        let constants = Constants::read(text)?;
        let (mut section, mut new) = ("", String::new());
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
            }
            match constants.measured(section, line, page)? {
                Some(figure) => new.push_str(&figure),
                None => new.push_str(line),
            }
            new.push('\n');
        }
        Ok(new)
    }

    /// Line of a figure with a source, as the raw tables have it, or of the date or commit of their run. `None` for other lines.
    fn measured(&self, section: &str, line: &str, page: &str) -> Result<Option<String>, String> {
        let source = self.entry(&format!("{section}.source")).and_then(Value::as_array);
        let key = line.split_once(" = ").map_or("", |(key, _)| key);
        if section == RUN
            && let Some(told) = raw::of_run(page, key)
        {
            return Ok(Some(format!("{key} = \"{told}\"")));
        }
        let (Some(source), Some(device)) = (source, self.raw_name(key)) else { return Ok(None) };
        let source: Vec<&str> = source.iter().filter_map(Value::as_str).collect();
        match raw::summary(page, &source, &device) {
            Some(summary) => Ok(Some(format!("{key} = [{}]", summary.join(", ")))),
            None => Err(format!("{section}.{key}: {RAW} has no figure of {device} in {source:?}")),
        }
    }

    /// Name of a device in the raw tables: name and version in lower case, or the key alone if it has no version there.
    fn raw_name(&self, key: &str) -> Option<String> {
        let (_, name) = self.devices().into_iter().find(|(device, _)| *device == key)?;
        let Some((kind, _)) = key.rsplit_once('-') else { return Some(key.to_owned()) };
        Some(format!("{kind} {}", name.rsplit(' ').next()?))
    }

    fn entry(&self, path: &str) -> Option<&Value> {
        let mut keys = path.split('.');
        let first = self.0.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get(key))
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| Some(value.as_integer()? as f64))
}

fn pair(value: &Value) -> Option<(&str, &str)> {
    Some((value.get(0)?.as_str()?, value.get(1)?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "devices = [[\"sixfold\", \"Sixfold 0.1.0\"], [\"bind-12\", \"BIND 9.18.49\"]]\n\
        [runs.rivals]\ndate = \"2026-01-01\"\n[entry]\nmean = 190\n[cached.closed]\nsource = [\"Cache\", \"closed loop\", \"us\"]\nsixfold = [1.0, 1.0, 1.0]\n\
        bind-12 = [7.0, 6.0, 8.5]\n[cached.old]\nsixfold = [3, 2, 4]\n";

    #[test]
    fn a_path_leads_to_a_figure_and_to_the_ends_of_its_range() {
        let constants = Constants::read(TEXT).unwrap();
        let figure = |path| constants.figure(path);
        assert_eq!((figure("entry.mean"), figure("cached.closed.bind-12")), (Some(190.0), Some(7.0)));
        let ends = ["cached.closed.bind-12.least", "cached.closed.bind-12.most"].map(figure);
        assert_eq!(ends, [Some(6.0), Some(8.5)]);
        assert_eq!((figure("cached.closed"), figure("entry.mean.least"), figure("none")), (None, None, None));
    }

    #[test]
    fn figures_with_a_source_are_taken_over_and_no_others() {
        let page = "- Date: 2026-01-02 (UTC)\n\n## Cache\n\n### closed loop\n\n| device | us |\n| --- | ---: |\n| sixfold | 3.74 [3.70-4.32] |\n\
                    | bind 9.18.49 | 8 [7-9] |\n";
        let updated = Constants::updated(TEXT, page).unwrap();
        let expected = TEXT
            .replace("[1.0, 1.0, 1.0]", "[3.74, 3.70, 4.32]")
            .replace("[7.0, 6.0, 8.5]", "[8, 7, 9]")
            .replace("2026-01-01", "2026-01-02");
        assert_eq!(updated, expected);
        let error = Constants::updated(TEXT, &page.replace("9.18.49", "9.18.50")).unwrap_err();
        assert!(error.starts_with("cached.closed.bind-12: ") && error.contains("bind 9.18.49"), "{error}");
    }
}
