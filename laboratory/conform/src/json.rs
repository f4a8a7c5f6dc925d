//! JSON object: the form of a configuration and of an expectation in a case file.

use serde_json::{Map, Value};

/// A JSON object.
pub type Object = Map<String, Value>;
