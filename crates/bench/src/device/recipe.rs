//! Recipe of a device under test: a template, or a command line.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// One that we know how to configure; see [`crate::device::NAMES`].
    Template {
        /// Its name.
        name: String,
        /// Its program; without: looked up.
        program: Option<String>,
    },
    /// Any other. Placeholders in braces ([`crate::device::PLACEHOLDERS`]) are filled in both.
    Custom {
        /// The command line.
        command: Vec<String>,
        /// Files for its working folder, which is `{dir}`: name and text.
        files: BTreeMap<String, String>,
    },
}
