//! `server-id`, `hostname` and `version`. The word `none` turns the answer off; the same word in quotation marks is a text, as many files
//! have it.

use super::syntax::{Part, Statement};
use crate::draft::Draft;
use crate::identity::{Identity, NAME_OF_MACHINE, set_version};
use crate::ledger::Spot;

/// Texts that BIND says of itself.
#[derive(Debug, Default)]
pub(super) struct AboutItself {
    /// Text for id.server and NSID.
    server_id: Option<(Spot, String)>,
    /// Text for hostname.bind.
    hostname: Option<(Spot, String)>,
    identity: Identity,
}

impl AboutItself {
    /// Reads a statement, if it is one of these. The outcome of a text for the name of the server is recorded at the end.
    pub(super) fn read(&mut self, statement: &Statement, draft: &mut Draft) -> bool {
        let keyword = statement.keyword();
        let is_quoted = matches!(statement.parts.get(1), Some(Part::Quoted(_)));
        let is_word = |word: &str| !is_quoted && statement.word(1).eq_ignore_ascii_case(word);
        let text = || Some((statement.spot.clone(), statement.word(1).to_owned()));
        let reading = match keyword {
            "version" if is_word("none") => Ok(()),
            "version" => set_version(statement.word(1), draft),
            "server-id" | "hostname" if is_word("none") => {
                self.identity.refuse();
                Ok(())
            }
            "server-id" if is_word("hostname") => Err(NAME_OF_MACHINE.into()),
            "server-id" | "hostname" => {
                let place = if keyword == "hostname" { &mut self.hostname } else { &mut self.server_id };
                *place = text();
                return true;
            }
            _ => return false,
        };
        draft.record(&statement.spot, reading);
        true
    }

    /// Sets the text that all questions for the name of the server get. NSID has that of `server-id`, so this one goes first.
    pub(super) fn finish(self, draft: &mut Draft) {
        let AboutItself { server_id, hostname, mut identity } = self;
        if let Some((spot, text)) = &server_id {
            identity.tell(spot, text, None);
        }
        if let Some((spot, text)) = &hostname {
            identity.tell(spot, text, Some("id.server and NSID"));
        }
        identity.finish(draft);
    }
}
