//! Devices under test: templates for servers as a package or their own build tool installs them. All get the same task: DNS64 with
//! one prefix; everything is forwarded to the authority; no validation, except with [`Settings::trust_anchor`], which CoreDNS and
//! dnsproxy, who do not validate, leave out; no log of queries, room for many outstanding queries; the same receive buffer
//! ([`RECEIVE_BUFFER`]); each server's default cache; in the foreground, without control sockets, as the user who starts them. With
//! [`Settings::as_shipped`] buffers and limits are each server's own.
//!
//! A template is the recipe of a server (crate `servers`): it makes files and a command line of the task that `settings.rs` describes. The
//! agent starts them.

pub mod placeholder;
mod recipe;
mod settings;

pub use placeholder::{PLACEHOLDERS, PlaceholderError};
pub use recipe::Recipe;
pub use settings::Settings;

use measure::order::Transport;
use servers::{CERTIFICATE_FILE, KEY_FILE, LaunchPlan, NAMES, Place, ProgramError, Task, program};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Receive buffer of the listening sockets in octets, which the kernel doubles: that of Sixfold, which has no setting for it.
/// Unbound (`so-rcvbuf`), BIND since 9.18 (`udp-receive-buffer`) and dnsproxy (`--udp-buf-size`) have one; PowerDNS Recursor, Knot
/// Resolver, CoreDNS and older versions of BIND have none. For these, and where the kernel cuts the size, the run raises the buffer
/// from outside ([`crate::sockets`]).
pub const RECEIVE_BUFFER: i32 = datapath::limits::RECEIVE_BUFFER;

/// A template whose program has been found.
#[derive(Clone, Debug)]
pub struct InstalledTemplate {
    template: &'static servers::Recipe,
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

    /// Recipe of the server.
    pub fn recipe(&self) -> &'static servers::Recipe {
        self.template
    }

    /// Makes files and command line for a task. `folder` is the device's own, in [`InstalledTemplate::folders`].
    pub fn plan(&self, task: &Task, folder: &Path) -> LaunchPlan {
        // A device in the root of another system sees its folder under another path.
        let inside = self.root.as_ref().and_then(|root| folder.strip_prefix(root).ok());
        let folder = &inside.map_or_else(|| folder.to_owned(), |inside| Path::new("/").join(inside));
        let place = Place { program: &self.program, version: &self.version, folder };
        let mut plan = self.template.plan(task, &place);
        if let Some(root) = &self.root {
            plan.command.splice(0..0, ["chroot".to_owned(), root.display().to_string()]);
        }
        plan
    }
}

fn template(name: &str) -> Result<&'static servers::Recipe, DeviceError> {
    servers::find(name).ok_or_else(|| DeviceError::Unknown(name.to_owned()))
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
            let task = settings.task();
            if task.encrypted.is_some_and(|transport| !found.template.encrypted.contains(&transport)) {
                return Err(DeviceError::Transport(name.clone(), settings.transport));
            }
            Ok(found.plan(&task, folder))
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
    use servers::{RECIPES, TrustAnchor};

    /// Files and command line of a template, one text, and its name.
    fn said(template: &servers::Recipe, settings: &Settings, version: &str) -> String {
        let place = Place { program: "/bin/program", version, folder: Path::new("/tmp/folder") };
        let plan = template.plan(&settings.task(), &place);
        let mut said = plan.command;
        said.extend(plan.files.into_values().chain(plan.environment.into_values()));
        format!("{}:\n{}", template.name, said.join("\n"))
    }

    #[test]
    fn every_template_is_known_by_its_name() {
        assert_eq!(RECIPES.map(|template| template.name), NAMES);
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
            for template in RECIPES {
                let said = said(template, &settings, "");
                for needed in ["2001:db8:64::", "5301", "5302", "3", "/bin/program", "a-further-option", "17"]
                {
                    assert!(said.contains(needed), "no {needed} in {said}");
                }
                assert!(said.contains(&settings.listen.ip().to_string()), "{said}");
            }
        }
    }

    #[test]
    fn an_encrypted_transport_has_a_certificate_and_a_listener_or_is_refused() {
        let folder = Path::new("/tmp/folder");
        for transport in [Transport::Tls, Transport::Https, Transport::Quic] {
            let settings = Settings { transport, ..Settings::example() };
            let encrypted = settings.task().encrypted.unwrap();
            for template in RECIPES.into_iter().filter(|template| template.encrypted.contains(&encrypted)) {
                let said = said(template, &settings, "");
                for needed in ["/tmp/folder/certificate.pem", "/tmp/folder/key.pem", "5301"] {
                    assert!(said.contains(needed), "no {needed} in {said}");
                }
            }
        }
        let recipe = Recipe::Custom { command: vec!["x".into()], files: [].into() };
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
        // Each template reads only its own product's version.
        let said = |template, as_shipped| {
            let settings = Settings { as_shipped, ..Settings::example() };
            said(template, &settings, "BIND 9.18.49 PowerDNS Recursor 5.0.1")
        };
        let raised = ["6291456", "65536", "8192", "4096", "10000", "reuseport=yes"];
        for template in RECIPES {
            let has_setting = matches!(template.name, "unbound" | "bind" | "dnsproxy");
            let tuned = said(template, false);
            assert_eq!(tuned.contains("6291456"), has_setting, "{tuned}");
            let shipped = said(template, true);
            assert!(!raised.iter().any(|value| shipped.contains(value)), "{shipped}");
        }
        let old = super::tests::said(servers::find("bind").unwrap(), &Settings::example(), "BIND 9.16.50");
        assert!(!old.contains("udp-receive-buffer"), "{old}");
    }

    #[test]
    fn a_server_that_validates_has_the_trust_anchor_in_its_own_words_and_others_have_none() {
        let anchor = TrustAnchor {
            zone: "test.".into(),
            key_tag: 4711,
            algorithm: 13,
            digest_type: 2,
            digest: "AB".repeat(32),
        };
        for template in RECIPES {
            let said = |trust_anchor| said(template, &Settings { trust_anchor, ..Settings::example() }, "");
            let validates = !matches!(template.name, "coredns" | "dnsproxy");
            let (with, without) = (said(Some(anchor.clone())), said(None));
            for part in ["4711", &anchor.digest] {
                assert_eq!(with.contains(part), validates, "{with}");
                assert!(!without.contains(part), "{without}");
            }
            assert_eq!(with != without, validates, "{}", template.name);
        }
    }

    #[test]
    fn a_device_in_another_root_sees_its_folder_there() {
        let root = Some(PathBuf::from("/roots/trixie"));
        let of = InstalledTemplate {
            template: template("unbound").unwrap(),
            program: "/usr/sbin/unbound".to_owned(),
            version: String::new(),
            root,
        };
        assert_eq!(of.folders(), Path::new("/roots/trixie/tmp"));
        let plan = of.plan(&Settings::example().task(), &of.folders().join("x"));
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
