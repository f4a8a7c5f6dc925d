//! Values of `run --device`: the name of a template, or a TOML file with a table `[device]`.

use crate::bundle::safe_file_name;
use crate::file_error::file_error;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use measure::plan::{DeviceDraft, Draft};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

/// End of the name of a file.
const FILE_END: &str = ".toml";

/// Takes the names of the templates, and names of files that end in `.toml`.
#[derive(Clone, Debug)]
pub(super) struct DeviceParser;

impl TypedValueParser for DeviceParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        match value.to_str() {
            Some(text) if text.ends_with(FILE_END) => Ok(text.to_owned()),
            _ => PossibleValuesParser::new(servers::NAMES).parse_ref(command, argument, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(servers::NAMES.into_iter().map(PossibleValue::new)))
    }
}

/// The device that a value stands for.
///
/// # Errors
///
/// The file cannot be read, is no plan, has more than the table `[device]`, or names neither a template nor a command.
pub(super) fn read(value: &str) -> Result<DeviceDraft, String> {
    if !value.ends_with(FILE_END) {
        return Ok(DeviceDraft { template: Some(value.to_owned()), ..DeviceDraft::default() });
    }
    let text = File::open(value).and_then(textfile::read_to_string);
    let text = text.map_err(|error| format!("--device {}", file_error(value, &error)))?;
    let draft = Draft::parse(&text).map_err(|error| format!("--device {value}: {error}"))?;
    let device = draft.device.clone();
    if draft != (Draft { device: device.clone(), ..Draft::default() }) {
        return Err(format!(
            "--device {value}: write [device] alone there; the rest is common to all devices: write it in a file for --plan"
        ));
    }
    if device.template.is_none() && device.command.is_none() {
        return Err(format!(
            "--device {value}: its [device] needs a template or a command: a device that runs already cannot be stopped while another \
             one is measured"
        ));
    }
    Ok(device)
}

/// A name for each device, which is that of its folder: the template, or the file without its end; with a number from the
/// second one of that name on.
pub(super) fn names(values: &[String]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |value: &String| {
        let stem = Path::new(value).file_stem().unwrap_or_default().to_string_lossy();
        let stem = safe_file_name(&stem);
        let numbered = (2..).map(|number| format!("{stem}-{number}"));
        let free = std::iter::once(stem.clone()).chain(numbered).find(|name| !taken.contains(name));
        let name = free.unwrap_or(stem);
        taken.insert(name.clone());
        name
    };
    values.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_with_one_name_are_told_apart() {
        let values = ["unbound", "a/unbound.toml", "unbound-2.toml", "../my server.toml", "bind"];
        let names = names(&values.map(str::to_owned));
        assert_eq!(names, ["unbound", "unbound-2", "unbound-2-2", "my_server", "bind"]);
    }
}
