//! Texts that a server says of itself. Sixfold has one text for id.server, hostname.bind and NSID, which is `server.identity`. The other
//! servers have a text for some of these questions each, and can refuse one of them while they answer another.

use crate::draft::Draft;
use crate::ledger::{Outcome, Reading, Spot};
use crate::value;

/// Reason why the name of the machine is not carried over.
pub(crate) const NAME_OF_MACHINE: &str = "write the name of the machine into `server.identity`";

/// Statements with texts for these questions.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    texts: Vec<(Spot, String, Option<&'static str>)>,
    refuses: bool,
}

impl Identity {
    /// Adds a text; the first one counts. `also` names the questions that get this text from Sixfold alone.
    pub(crate) fn tell(&mut self, spot: &Spot, text: &str, also: Option<&'static str>) {
        self.texts.push((spot.clone(), text.to_owned(), also));
    }

    /// The file refuses one of the questions.
    pub(crate) fn refuse(&mut self) {
        self.refuses = true;
    }

    /// Sets the text of the model, and records the outcome of each statement.
    pub(crate) fn finish(self, draft: &mut Draft) {
        for (spot, text, also) in self.texts {
            let known = draft.model.identity.as_ref();
            let outcome = match (value::server_text(&text), known) {
                _ if self.refuses => "`server.identity` answers id.server, hostname.bind and NSID, and the file refuses one of them: \
                                      write it by hand if all may tell this text"
                    .into(),
                (Err(why), _) => why.into(),
                (Ok(text), Some(known)) if text != *known => {
                    format!("`server.identity` is one text for id.server, hostname.bind and NSID: \"{known}\"").into()
                }
                (Ok(_), Some(_)) => Outcome::Carried,
                (Ok(text), None) => {
                    draft.model.identity = Some(text);
                    also.map_or(Outcome::Carried, |also| Outcome::Differs(format!("it answers {also}, too")))
                }
            };
            draft.record(&spot, outcome);
        }
    }
}

/// Sets `server.version`.
pub(crate) fn set_version(text: &str, draft: &mut Draft) -> Reading {
    draft.model.version = Some(value::server_text(text)?);
    Ok(())
}
