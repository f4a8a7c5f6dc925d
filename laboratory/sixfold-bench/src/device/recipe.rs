//! Recipe of a device under test: a template, or a command line.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kind of a device: a template, or a command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// A template of this program; see [`servers::NAMES`].
    Template {
        /// Its name.
        name: String,
        /// Path of its program; if absent, the agent searches for it.
        program: Option<String>,
    },
    /// Any other server. Placeholders in braces ([`crate::device::PLACEHOLDERS`]) are filled in both fields.
    Custom {
        /// The command line.
        command: Vec<String>,
        /// Files for its working folder, which is `{dir}`: name and text.
        files: BTreeMap<String, String>,
    },
}
