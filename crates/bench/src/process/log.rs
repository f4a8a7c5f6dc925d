//! Output of a device, kept for error messages.

use serde::{Deserialize, Serialize};

/// What a device said, and how it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLog {
    /// How it ended, in words; nothing while it runs.
    pub ended: Option<String>,
    /// The last of its standard output and error.
    pub text: String,
}
