//! Contradictions in the description of a network.

/// The place of a value in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The key with its tables, like `network.pool` or `network.interface[0].role`.
    pub key: String,
    /// The item of a list, counted from 0.
    pub item: Option<usize>,
}

/// A contradiction: values that cannot all be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Both values, and the reason why they contradict each other.
    pub what: String,
    /// The place of one of them. None: the choice of the command line.
    pub place: Option<Place>,
    /// What to change.
    pub remedy: String,
}

impl Contradiction {
    /// A contradiction at a key of `[network]`.
    pub fn at(key: &str, what: impl Into<String>, remedy: impl Into<String>) -> Contradiction {
        let place = Place { key: format!("network.{key}"), item: None };
        Contradiction { what: what.into(), place: Some(place), remedy: remedy.into() }
    }

    /// The same, at an item of the key's list.
    pub fn with_item(mut self, item: usize) -> Contradiction {
        if let Some(place) = &mut self.place {
            place.item = Some(item);
        }
        self
    }
}

/// Path of a key of the interface with this number.
pub fn of_interface(number: usize, key: &str) -> String {
    format!("interface[{number}].{key}")
}
