//! Views: parts of a file that answer some clients in another way. Sixfold has none, so each view becomes a configuration of its
//! own, for an instance of its own.

use crate::ledger::one_line;

/// View of the file that is converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub name: String,
    /// Its clients, as the file writes them.
    pub clients: String,
    /// The command that converts it.
    pub command: String,
}

/// Views of a file, and the one that is converted.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// Command without a view.
    command: String,
    /// Name of the view that the user wants.
    asked: Option<String>,
    all: Vec<View>,
    /// Index of the view that is converted.
    chosen: Option<usize>,
    /// True if clients without a view are served as well.
    serves_others: bool,
}

/// Reason why no view can be converted.
#[derive(Debug)]
pub(crate) enum NoView {
    /// The user must name one of several.
    Unnamed,
    /// There is none with the name.
    Unknown(String),
}

impl Views {
    /// Starts without views. `file` and `from` are those of the command, `asked` is the view that the user wants.
    pub(crate) fn new(file: &str, from: Option<&str>, asked: Option<&str>) -> Views {
        let from = from.map_or(String::new(), |name| format!("--from {name} "));
        let command = format!("sixfold convert {from}{}", shell_word(file));
        Views { command, asked: asked.map(str::to_owned), ..Views::default() }
    }

    /// Adds a view of the file.
    pub(crate) fn add(&mut self, name: &str, clients: &str) {
        let command = format!("{} --view {}", self.command, shell_word(name));
        self.all.push(View { name: printable(name), clients: one_line(clients), command });
    }

    /// The view with this index.
    pub(crate) fn get(&self, index: usize) -> &View {
        &self.all[index]
    }

    /// Chooses the view that the user wants. `standard` is the one to choose if the user names none; `serves_others`: clients
    /// without a view are served, too.
    pub(crate) fn choose(&mut self, standard: Option<usize>, serves_others: bool) -> Option<usize> {
        self.serves_others = serves_others;
        self.chosen = match &self.asked {
            Some(asked) => self.all.iter().position(|view| view.name == *asked),
            None => standard,
        };
        self.chosen
    }

    /// True if one of the views is converted.
    pub(crate) fn is_one_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    /// Reason why there is nothing to convert, if there is none.
    pub(crate) fn fault(&self) -> Option<NoView> {
        match (&self.asked, self.chosen) {
            (_, Some(_)) => None,
            (Some(asked), None) => Some(NoView::Unknown(asked.clone())),
            (None, None) => (!self.all.is_empty() && !self.serves_others).then_some(NoView::Unnamed),
        }
    }

    /// All views.
    pub(crate) fn into_all(self) -> Vec<View> {
        self.all
    }

    /// Comments about the views that are not in this configuration.
    pub(crate) fn head(&self) -> String {
        let others: Vec<&View> = (0..)
            .zip(&self.all)
            .filter(|(index, _)| Some(*index) != self.chosen)
            .map(|(_, one)| one)
            .collect();
        let without = self.serves_others && self.chosen.is_some();
        if others.is_empty() && !without {
            return String::new();
        }
        let this = match self.chosen.map(|index| &self.all[index]) {
            Some(View { name, clients, .. }) => format!("view `{name}`, for the clients {clients}"),
            None => "part for the clients without a view".to_owned(),
        };
        let mut head = format!(
            "# This is the {this}. Sixfold has no views: run an instance for each part, with its own\n\
             # `server.listen`, `control.socket` and `metrics.listen`. The other parts:\n"
        );
        for View { clients, command, .. } in others {
            head += &format!("#   {command}   (clients {clients})\n");
        }
        if without {
            head += &format!("#   {}   (clients without a view)\n", self.command);
        }
        head
    }
}

/// The text without control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// The text as one word of a shell.
fn shell_word(text: &str) -> String {
    let text = printable(text);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(asked: Option<&str>) -> Views {
        let mut views = Views::new("named.conf", Some("bind"), asked);
        views.add("inside", "10.0.0.0/8");
        views.add("all others", "any");
        views
    }

    #[test]
    fn a_view_must_be_named_if_all_clients_have_one() {
        let mut views = two(None);
        assert_eq!(views.choose(None, false), None);
        assert!(matches!(views.fault(), Some(NoView::Unnamed)));
        assert_eq!(views.choose(None, true), None);
        assert!(views.fault().is_none());
        let mut views = two(Some("outside"));
        assert_eq!(views.choose(Some(0), true), None);
        assert!(matches!(views.fault(), Some(NoView::Unknown(name)) if name == "outside"));
    }

    #[test]
    fn the_head_names_the_commands_of_all_other_parts() {
        let mut views = two(Some("inside"));
        assert_eq!(views.choose(None, false), Some(0));
        let head = views.head();
        assert!(head.contains("view `inside`, for the clients 10.0.0.0/8."), "{head}");
        let command = "sixfold convert --from bind named.conf --view 'all others'   (clients any)\n";
        assert!(head.ends_with(command), "{head}");
        assert!(!head.contains("--view inside"), "{head}");
    }

    #[test]
    fn names_are_words_of_a_shell() {
        assert_eq!(shell_word("a-b_c.d/e"), "a-b_c.d/e");
        assert_eq!(shell_word("it's $1"), r"'it'\''s $1'");
        assert_eq!(shell_word(""), "''");
    }
}
