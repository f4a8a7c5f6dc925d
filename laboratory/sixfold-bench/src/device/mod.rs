//! Devices under test: templates for servers as a package or their own build tool installs them. All get the same task: DNS64 with
//! one prefix; everything is forwarded to the authority; no validation, except with [`Settings::trust_anchor`], which CoreDNS and
//! dnsproxy, who do not validate, leave out; no log of queries, room for many outstanding queries; the same receive buffer
//! ([`RECEIVE_BUFFER`]); each server's default cache; in the foreground, without control sockets, as the user who starts them. With
//! [`Settings::as_shipped`] buffers and limits are each server's own.
//!
//! A template (`Template`) is a pure function of text: settings in, files and a command line out. [`program`] finds
//! programs and asks for their version; the agent starts them. First file to read: `settings.rs`, then one template,
//! such as `unbound.rs`.

mod bind;
mod config_lines;
mod coredns;
mod dnsproxy;
mod knot_resolver;
pub mod placeholder;
mod powerdns;
pub mod program;
mod recipe;
mod settings;
mod sixfold;
mod unbound;

pub use placeholder::{PLACEHOLDERS, PlaceholderError};
pub use program::ProgramError;
pub use recipe::Recipe;
pub use settings::{Settings, TrustAnchor};

use measure::order::Transport;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Receive buffer of the listening sockets in octets, which the kernel doubles: that of Sixfold, which has no setting for it.
/// Unbound (`so-rcvbuf`), BIND since 9.18 (`udp-receive-buffer`) and dnsproxy (`--udp-buf-size`) have one; PowerDNS Recursor, Knot
/// Resolver, CoreDNS and older versions of BIND have none. For these, and where the kernel cuts the size, the run raises the buffer
/// from outside ([`crate::sockets`]).
pub const RECEIVE_BUFFER: i32 = datapath::limits::RECEIVE_BUFFER;

/// Names of the templates.
pub const NAMES: [&str; 7] =
    ["sixfold", "unbound", "bind", "powerdns", "knot-resolver", "coredns", "dnsproxy"];

/// PEM file of the certificate, in the working folder of a device that is asked over an encrypted transport.
pub(crate) const CERTIFICATE_FILE: &str = "certificate.pem";

/// PEM file of its private key. It belongs to no record.
pub(crate) const KEY_FILE: &str = "key.pem";

/// Transports of every server.
const PLAIN: &[Transport] = &[Transport::Udp, Transport::Tcp, Transport::TcpReuse, Transport::Tfo];

/// Template of a device: how to find and configure a server.
#[derive(Debug)]
pub(crate) struct Template {
    /// Its name, one of [`NAMES`].
    pub(crate) name: &'static str,
    /// File name of its program.
    pub(crate) program: &'static str,
    /// How to install it.
    pub(crate) remedy: &'static str,
    /// Arguments that make it print its version and end.
    pub(crate) version: &'static [&'static str],
    /// Text with which its version begins.
    pub(crate) version_prefix: &'static str,
    /// Encrypted transports that it configures.
    pub(crate) encrypted: &'static [Transport],
    /// Makes files and command line.
    pub(crate) plan: fn(&TemplateInput) -> LaunchPlan,
}

/// Input of a template.
pub(crate) struct TemplateInput<'a> {
    /// The settings, with placeholders filled.
    pub(crate) settings: &'a Settings,
    /// Path of the program.
    pub(crate) program: &'a str,
    /// Version that the program reports.
    pub(crate) version: &'a str,
    /// The working folder, which will exist.
    pub(crate) folder: &'a Path,
}

/// Command line, files and environment that start a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchPlan {
    /// The command line.
    pub command: Vec<String>,
    /// Files for the working folder: name and text.
    pub files: BTreeMap<String, String>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Version that the program reports; empty for a user's own command line.
    pub version: String,
}

/// All templates.
const TEMPLATES: [&Template; NAMES.len()] = [
    &sixfold::TEMPLATE,
    &unbound::TEMPLATE,
    &bind::TEMPLATE,
    &powerdns::TEMPLATE,
    &knot_resolver::TEMPLATE,
    &coredns::TEMPLATE,
    &dnsproxy::TEMPLATE,
];

/// A template whose program has been found.
#[derive(Clone, Debug)]
pub struct InstalledTemplate {
    template: &'static Template,
    program: String,
    version: String,
    /// Folder of another system, in which it runs.
    root: Option<PathBuf>,
}

impl InstalledTemplate {
    /// Finds the program of the template `name`: the given one, or one in the usual folders.
    ///
    /// # Errors
    ///
    /// `DeviceError::Unknown`: there is no template of this name. Another variant: its program is not installed, with the remedy.
    pub fn find(name: &str, program: Option<&str>) -> Result<InstalledTemplate, DeviceError> {
        let template = template(name)?;
        let program = program::find(template, program)?;
        let version = program::version(template, Command::new(&program));
        Ok(InstalledTemplate { template, program: program.display().to_string(), version, root: None })
    }

    /// Finds the program of the template `name` in the root of another system, such as a folder that mmdebstrap has made. It runs there by
    /// chroot(8), which needs root.
    ///
    /// # Errors
    ///
    /// As [`InstalledTemplate::find`].
    pub fn find_in(name: &str, root: &Path) -> Result<InstalledTemplate, DeviceError> {
        let template = template(name)?;
        let program = program::find_in(template, root)?;
        let mut command = Command::new("chroot");
        command.arg(root).arg(&program);
        let version = program::version(template, command);
        Ok(InstalledTemplate { template, program, version, root: Some(root.to_owned()) })
    }

    /// Name of the template.
    pub fn name(&self) -> &'static str {
        self.template.name
    }

    /// Path of the program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Version that the program reports.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Folder in which the folders of devices are made.
    pub fn folders(&self) -> PathBuf {
        self.root.as_ref().map_or_else(std::env::temp_dir, |root| root.join("tmp"))
    }

    /// Makes files and command line from settings whose placeholders are filled. `folder` is the device's own, in
    /// [`InstalledTemplate::folders`].
    pub fn plan(&self, settings: &Settings, folder: &Path) -> LaunchPlan {
        // A device in the root of another system sees its folder under another path.
        let inside = self.root.as_ref().and_then(|root| folder.strip_prefix(root).ok());
        let folder = &inside.map_or_else(|| folder.to_owned(), |inside| Path::new("/").join(inside));
        let input = TemplateInput { settings, program: &self.program, version: &self.version, folder };
        let mut plan = (self.template.plan)(&input);
        if let Some(root) = &self.root {
            plan.command.splice(0..0, ["chroot".to_owned(), root.display().to_string()]);
        }
        LaunchPlan { version: self.version.clone(), ..plan }
    }
}

fn template(name: &str) -> Result<&'static Template, DeviceError> {
    let found = TEMPLATES.into_iter().find(|template| template.name == name);
    found.ok_or_else(|| DeviceError::Unknown(name.to_owned()))
}

/// Turns a recipe into files and a command line for this host.
///
/// # Errors
///
/// The template or its program is missing, the template has no listener for the transport, a placeholder is unknown, the command line
/// is empty, or no certificate can be made.
pub fn plan(recipe: &Recipe, settings: &Settings, folder: &Path) -> Result<LaunchPlan, DeviceError> {
    let settings = placeholder::fill_options(settings, folder)?;
    let mut plan = plan_of_recipe(recipe, &settings, folder)?;
    if settings.transport.is_encrypted() {
        let host = settings.listen.ip().to_string();
        let made = rcgen::generate_simple_self_signed(vec![host])
            .map_err(|error| DeviceError::Certificate(error.to_string()))?;
        plan.files.insert(CERTIFICATE_FILE.to_owned(), made.cert.pem());
        plan.files.insert(KEY_FILE.to_owned(), made.signing_key.serialize_pem());
    }
    Ok(plan)
}

fn plan_of_recipe(recipe: &Recipe, settings: &Settings, folder: &Path) -> Result<LaunchPlan, DeviceError> {
    match recipe {
        Recipe::Template { name, program } => {
            let found = InstalledTemplate::find(name, program.as_deref())?;
            let transport = settings.transport;
            if !PLAIN.contains(&transport) && !found.template.encrypted.contains(&transport) {
                return Err(DeviceError::Transport(name.clone(), transport));
            }
            Ok(found.plan(settings, folder))
        }
        Recipe::Custom { command, files } => {
            let fill = |text: &String| placeholder::fill(text, settings, folder);
            let command = command.iter().map(fill).collect::<Result<_, PlaceholderError>>()?;
            let file = |(name, text): (&String, &String)| match fill(text) {
                Ok(text) => Ok((name.clone(), text)),
                Err(error) => Err(DeviceError::File(name.clone(), error)),
            };
            let files = files.iter().map(file).collect::<Result<_, DeviceError>>()?;
            let plan = LaunchPlan { command, files, ..LaunchPlan::default() };
            if plan.command.is_empty() { Err(DeviceError::NoCommand) } else { Ok(plan) }
        }
    }
}

/// Reasons why a device cannot be started.
#[derive(Debug)]
pub enum DeviceError {
    /// No template has this name.
    Unknown(String),
    /// The template has no listener for this transport.
    Transport(String, Transport),
    /// No certificate could be made.
    Certificate(String),
    /// The command line is empty.
    NoCommand,
    /// The program does not exist.
    Program(ProgramError),
    /// A word in braces is no placeholder.
    Placeholder(PlaceholderError),
    /// A word in braces in the text of a file is no placeholder.
    File(String, PlaceholderError),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Unknown(name) => write!(
                f,
                "no device template is called \"{name}\"; the templates are {}; start any other server by a command line",
                NAMES.join(", ")
            ),
            DeviceError::Transport(name, transport) => write!(
                f,
                "the template {name} configures no listener for {}; start the server by a command line (--command), whose folder has \
                 {CERTIFICATE_FILE} and {KEY_FILE}, or name one that runs already (--device-address)",
                transport.name()
            ),
            DeviceError::Certificate(why) => {
                write!(
                    f,
                    "no certificate could be made: {why}; make TMPDIR a folder that can be written, or use the transport udp"
                )
            }
            DeviceError::NoCommand => {
                write!(
                    f,
                    "the device's command line is empty; give the program and its arguments (--command, or `device.command`)"
                )
            }
            DeviceError::Program(error) => error.fmt(f),
            DeviceError::Placeholder(error) => error.fmt(f),
            DeviceError::File(name, error) => write!(f, "device.files, \"{name}\": {error}"),
        }
    }
}

impl std::error::Error for DeviceError {}

impl From<ProgramError> for DeviceError {
    fn from(error: ProgramError) -> DeviceError {
        DeviceError::Program(error)
    }
}

impl From<PlaceholderError> for DeviceError {
    fn from(error: PlaceholderError) -> DeviceError {
        DeviceError::Placeholder(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_known_by_its_name() {
        assert_eq!(TEMPLATES.map(|template| template.name), NAMES);
    }

    #[test]
    fn every_template_tells_the_same_task_and_takes_further_options() {
        let further = "a-further-option = \"{value}\"";
        let settings =
            Settings { workers: 3, value: "17".into(), options: vec![further.into()], ..Settings::example() };
        let folder = Path::new("/tmp/folder");
        for listen in ["[::1]:5301", "127.0.0.1:5301"] {
            let settings = Settings { listen: listen.parse().unwrap(), ..settings.clone() };
            let settings = placeholder::fill_options(&settings, folder).unwrap();
            for template in TEMPLATES {
                let input =
                    TemplateInput { settings: &settings, program: "/bin/program", version: "", folder };
                let plan = (template.plan)(&input);
                let mut said: Vec<&str> = plan.command.iter().map(String::as_str).collect();
                said.extend(plan.files.values().chain(plan.environment.values()).map(String::as_str));
                let said = said.join("\n");
                for needed in ["2001:db8:64::", "5301", "5302", "3", "/bin/program", "a-further-option", "17"]
                {
                    assert!(said.contains(needed), "{}: no {needed} in\n{said}", template.name);
                }
                assert!(said.contains(&settings.listen.ip().to_string()), "{}\n{said}", template.name);
            }
        }
    }

    #[test]
    fn an_encrypted_transport_has_a_certificate_and_a_listener_or_is_refused() {
        let folder = Path::new("/tmp/folder");
        for template in TEMPLATES {
            for &transport in template.encrypted {
                let settings = Settings { transport, ..Settings::example() };
                let input =
                    TemplateInput { settings: &settings, program: "/bin/program", version: "", folder };
                let text = (template.plan)(&input).files.into_values().next().unwrap();
                for file in [CERTIFICATE_FILE, KEY_FILE] {
                    assert!(text.contains(&format!("/tmp/folder/{file}")), "{}: {text}", template.name);
                }
                assert!(text.contains("5301"), "{text}");
            }
        }
        let recipe = Recipe::Custom { command: vec!["x".into()], files: BTreeMap::new() };
        let settings = Settings { transport: Transport::Tls, ..Settings::example() };
        let files = plan(&recipe, &settings, folder).unwrap().files;
        assert!(files[CERTIFICATE_FILE].starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(files[KEY_FILE].starts_with("-----BEGIN PRIVATE KEY-----"));
        let error = DeviceError::Transport("powerdns".into(), Transport::Tls).to_string();
        assert!(
            error.contains("powerdns") && error.contains("tls") && error.contains("--command"),
            "{error}"
        );
    }

    #[test]
    fn servers_with_a_setting_for_it_get_the_same_receive_buffer_and_as_shipped_ones_their_own_defaults() {
        let said = |template: &Template, as_shipped| {
            let settings = Settings { as_shipped, ..Settings::example() };
            // Each template reads only its own product's version.
            let version = "BIND 9.18.49 PowerDNS Recursor 5.0.1";
            let folder = Path::new("/tmp/folder");
            let plan = (template.plan)(&TemplateInput {
                settings: &settings,
                program: "/bin/program",
                version,
                folder,
            });
            let files = plan.files.into_values().collect::<Vec<_>>().join("\n");
            format!("{}\n{files}", plan.command.join("\n"))
        };
        let raised = ["6291456", "65536", "8192", "4096", "10000", "reuseport=yes"];
        for template in TEMPLATES {
            let has_setting = matches!(template.name, "unbound" | "bind" | "dnsproxy");
            let tuned = said(template, false);
            assert_eq!(tuned.contains("6291456"), has_setting, "{tuned}");
            let shipped = said(template, true);
            assert!(!raised.iter().any(|value| shipped.contains(value)), "{shipped}");
        }
        let old = TemplateInput {
            settings: &Settings::example(),
            program: "",
            version: "BIND 9.16.50",
            folder: Path::new("/d"),
        };
        assert!(!(bind::TEMPLATE.plan)(&old).files["named.conf"].contains("udp-receive-buffer"));
    }

    #[test]
    fn a_server_that_validates_has_the_trust_anchor_in_its_own_words_and_others_have_none() {
        let anchor =
            TrustAnchor { zone: "test.".into(), key_tag: 4711, algorithm: 13, digest: "AB".repeat(32) };
        for template in TEMPLATES {
            let said = |trust_anchor: Option<TrustAnchor>| {
                let settings = Settings { trust_anchor, ..Settings::example() };
                let folder = Path::new("/tmp/folder");
                let input =
                    TemplateInput { settings: &settings, program: "/bin/program", version: "", folder };
                let files = (template.plan)(&input).files;
                files.into_values().collect::<Vec<_>>().join("\n")
            };
            let validates = !matches!(template.name, "coredns" | "dnsproxy");
            let (with, without) = (said(Some(anchor.clone())), said(None));
            for part in ["4711", &anchor.digest] {
                assert_eq!(with.contains(part), validates, "{}: {with}", template.name);
                assert!(!without.contains(part), "{}: {without}", template.name);
            }
            assert_eq!(with != without, validates, "{}", template.name);
        }
    }

    #[test]
    fn a_device_in_another_root_sees_its_folder_there() {
        let root = Some(PathBuf::from("/roots/trixie"));
        let of = InstalledTemplate {
            template: &unbound::TEMPLATE,
            program: "/usr/sbin/unbound".to_owned(),
            version: String::new(),
            root,
        };
        assert_eq!(of.folders(), Path::new("/roots/trixie/tmp"));
        let plan = of.plan(&Settings::example(), &of.folders().join("x"));
        assert_eq!(plan.command[..3], ["chroot", "/roots/trixie", "/usr/sbin/unbound"]);
        assert_eq!(plan.command.last().unwrap(), "/tmp/x/unbound.conf");
        assert!(plan.files["unbound.conf"].contains("directory: \"/tmp/x\""), "{:?}", plan.files);
        let error = InstalledTemplate::find_in("bind", Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("named is not in /nowhere") && error.contains("--include=bind9"), "{error}");
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_names_that_are_known() {
        let recipe = Recipe::Template { name: "bnid".into(), program: None };
        let error = plan(&recipe, &Settings::example(), Path::new("/x")).unwrap_err().to_string();
        assert!(error.contains("\"bnid\"") && error.contains("knot-resolver"), "{error}");
    }

    #[test]
    fn the_placeholders_of_a_command_line_and_its_files_are_filled() {
        let recipe = Recipe::Custom {
            command: vec!["x".into(), "{dir}/conf".into(), "--threads={workers}".into()],
            files: [("conf".into(), "listen [{listen_address}]:{listen_port}".into())].into(),
        };
        let plan = plan(&recipe, &Settings::example(), Path::new("/tmp/d")).unwrap();
        assert_eq!(plan.command, ["x", "/tmp/d/conf", "--threads=1"]);
        assert_eq!(plan.files["conf"], "listen [::1]:5301");
    }

    #[test]
    fn a_misspelt_placeholder_in_a_file_is_told_with_the_file() {
        let files = [("x.conf".into(), "forward {upstraem}".into())].into();
        let recipe = Recipe::Custom { command: vec!["x".into()], files };
        let error = plan(&recipe, &Settings::example(), Path::new("/tmp/d")).unwrap_err().to_string();
        assert!(error.starts_with("device.files, \"x.conf\": {upstraem} is not a placeholder"), "{error}");
    }
}
