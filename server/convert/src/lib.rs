//! Configurations of other DNS64 servers, translated into a configuration of Sixfold: BIND, Unbound, PowerDNS Recursor (both
//! forms), CoreDNS, TOTD and mtd64-ng or MTD64.
//!
//! Pure: text goes in, text and accounts come out; included files come from the caller. Each dialect reads its own syntax
//! into statements, and a statement sets values of one common `model`; `print` writes them. A value is carried over if it
//! has the same effect in Sixfold. A default of the source that changes answers is written out, because Sixfold's may differ.
//! Every statement gets one outcome in the `ledger`; those that were not carried over are comments of the result.
//!
//! The crate knows the keys of Sixfold, not its configuration parser: a test of `server` checks that each result is accepted.
#![forbid(unsafe_code)]

mod access;
mod bind;
mod coredns;
mod draft;
mod empty_zones;
mod glob;
mod identity;
mod ledger;
mod model;
mod mtd64;
mod network;
mod powerdns;
mod print;
mod recognize;
mod source_ports;
mod sources;
mod totd;
mod trust;
mod unbound;
mod validation;
mod value;
mod views;

pub use ledger::{Entry, Outcome, Place};
pub use recognize::recognize;
pub use sources::Files;
pub use views::View;

use draft::Draft;
use ledger::Spot;
use sources::Sources;
use std::fmt;
use views::{NoView, Views};

/// Octets of a configuration file.
pub const MAX_FILE_OCTETS: usize = 16 << 20;

/// Server whose configuration is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// BIND: named.conf.
    Bind,
    /// Unbound: unbound.conf.
    Unbound,
    /// PowerDNS Recursor: recursor.conf, as YAML or in the old form.
    PowerDns,
    /// CoreDNS: Corefile.
    CoreDns,
    /// TOTD: totd.conf.
    Totd,
    /// MTD64 and mtd64-ng: settings.conf, mtd64-ng.conf.
    Mtd64,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Dialect; 6] =
        [Dialect::Bind, Dialect::Unbound, Dialect::PowerDns, Dialect::CoreDns, Dialect::Totd, Dialect::Mtd64];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Bind => "bind",
            Dialect::Unbound => "unbound",
            Dialect::PowerDns => "powerdns",
            Dialect::CoreDns => "coredns",
            Dialect::Totd => "totd",
            Dialect::Mtd64 => "mtd64",
        }
    }

    /// Name of the server for people.
    pub fn title(self) -> &'static str {
        match self {
            Dialect::Bind => "BIND",
            Dialect::Unbound => "Unbound",
            Dialect::PowerDns => "PowerDNS Recursor",
            Dialect::CoreDns => "CoreDNS",
            Dialect::Totd => "TOTD",
            Dialect::Mtd64 => "MTD64",
        }
    }
}

/// Result of a conversion.
#[derive(Debug)]
pub struct Conversion {
    /// Dialect of the source.
    pub dialect: Dialect,
    /// Configuration of Sixfold, TOML.
    pub text: String,
    /// Statements of the source and their outcomes, in the order of the source.
    pub entries: Vec<Entry>,
    /// Files that were read, the converted one first.
    pub files: Vec<String>,
}

impl Conversion {
    /// Number of statements that were not carried over.
    pub fn left_over(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.outcome, Outcome::LeftOver(_))).count()
    }
}

/// Reason why a file cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The content is not that of any dialect; name it with `--from`.
    Unrecognized,
    /// The file is too large for a configuration.
    TooLarge,
    /// The syntax is not that of the dialect.
    Syntax {
        /// The dialect.
        dialect: Dialect,
        /// Name of the file with the error.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The error.
        what: String,
    },
    /// Every client has one of several views; name the view to convert.
    Views(Vec<View>),
    /// There is no view with the name; these are there.
    UnknownView(String, Vec<View>),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConvertError::Unrecognized => {
                let names: Vec<&str> = Dialect::ALL.into_iter().map(Dialect::name).collect();
                write!(
                    formatter,
                    "this is not the configuration of a server that is known; if it is one, name the server with --from ({})",
                    names.join(", ")
                )
            }
            ConvertError::TooLarge => {
                write!(formatter, "a configuration has at most {} MiB", MAX_FILE_OCTETS >> 20)
            }
            ConvertError::Syntax { dialect, file, line, what } => {
                write!(formatter, "not a configuration of {}: {file}:{line}: {what}", dialect.title())
            }
            ConvertError::Views(views) => {
                write!(
                    formatter,
                    "it has {} views, and Sixfold has none: run an instance for each, with the configuration of",
                    views.len()
                )?;
                views.iter().try_for_each(|View { command, clients, .. }| {
                    write!(formatter, "\n  {command}   (clients {clients})")
                })
            }
            ConvertError::UnknownView(asked, views) if views.is_empty() => {
                write!(formatter, "it has no view `{asked}`, nor any other: leave out --view")
            }
            ConvertError::UnknownView(asked, views) => {
                let names: Vec<String> = views.iter().map(|view| format!("`{}`", view.name)).collect();
                write!(formatter, "it has no view `{asked}`; name one of {}", names.join(", "))
            }
        }
    }
}

impl std::error::Error for ConvertError {}

/// Error of a dialect's parser.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) file: usize,
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl SyntaxError {
    pub(crate) fn new(file: usize, line: usize, what: &str) -> SyntaxError {
        SyntaxError { file, line, what: what.to_owned() }
    }
}

/// Converts the text of a file. `from` is the dialect; without it the content decides. `view` is the view to convert, if the file
/// has several. `files` has the included files.
///
/// # Errors
///
/// `ConvertError::TooLarge`: the text has more than `MAX_FILE_OCTETS` octets. `ConvertError::Unrecognized`: it is of no dialect that
/// its content shows. `ConvertError::Syntax`: its syntax is not that of the dialect. `ConvertError::Views`,
/// `ConvertError::UnknownView`: it has several views, and `view` names none of them.
pub fn convert(
    name: &str,
    text: &str,
    from: Option<Dialect>,
    view: Option<&str>,
    files: &mut dyn Files,
) -> Result<Conversion, ConvertError> {
    if text.len() > MAX_FILE_OCTETS {
        return Err(ConvertError::TooLarge);
    }
    let dialect = from.or_else(|| recognize(text)).ok_or(ConvertError::Unrecognized)?;
    let mut sources = Sources::new(name, files);
    let views = Views::new(name, from.map(Dialect::name), view);
    let mut draft = Draft { views, ..Draft::default() };
    let result = match dialect {
        Dialect::Bind => bind::read(text, &mut sources, &mut draft),
        Dialect::Unbound => unbound::read(text, &mut sources, &mut draft),
        Dialect::PowerDns => powerdns::read(text, &mut sources, &mut draft),
        Dialect::CoreDns => coredns::read(text, &mut sources, &mut draft),
        Dialect::Totd => totd::read(text, &mut draft),
        Dialect::Mtd64 => mtd64::read(text, &mut draft),
    };
    let files = sources.into_names();
    result.map_err(|SyntaxError { file, line, what }| ConvertError::Syntax {
        dialect,
        file: files[file].clone(),
        line,
        what,
    })?;
    match draft.views.fault() {
        Some(NoView::Unnamed) => return Err(ConvertError::Views(draft.views.into_all())),
        Some(NoView::Unknown(asked)) => return Err(ConvertError::UnknownView(asked, draft.views.into_all())),
        None => {}
    }
    drop_plain_forwarders(&mut draft);
    draft.model.source_ports.finish(&mut draft.ledger);
    validation::finish(&mut draft);
    require_forwarders(dialect, &mut draft);
    draft.model.finish();
    let Draft { model, ledger, views } = draft;
    let entries = ledger.into_entries();
    let shown: String = name.chars().filter(|c| !c.is_control()).collect();
    let head =
        format!("# Converted from {shown} ({}) by `sixfold convert`.\n{}", dialect.title(), views.head());
    let text = print::print(&model, &head, &files, &entries);
    Ok(Conversion { dialect, text, entries, files })
}

/// Leaves the plain forwarders out of each list in which one over TLS is missing, and says so.
fn drop_plain_forwarders(draft: &mut Draft) {
    for (zone, spot) in draft.model.drop_plain_beside_lost_tls() {
        let why = format!(
            "the plain forwarders of `{zone}` are left out as well: questions that went over TLS must not go to them"
        );
        draft.record(&spot, why);
    }
}

/// Says that a source which resolves names itself, from the root, leaves Sixfold without a resolver.
fn require_forwarders(dialect: Dialect, draft: &mut Draft) {
    if draft.model.forwarders.is_empty() && !draft.model.uses_system_forwarders {
        // A forwarder that was lost has a remark of its own.
        let why = match dialect {
            Dialect::Bind | Dialect::Unbound | Dialect::PowerDns => format!(
                "{} resolves names itself, and Sixfold only forwards: keep it as resolver on another port without its DNS64, \
                 and name that address in `upstream.forwarders`",
                dialect.title()
            ),
            _ => "name the resolvers in `upstream.forwarders`".to_owned(),
        };
        draft.record(&Spot::line(1, "no forwarder for all names"), why);
    }
}
