//! The server of the encrypted rows: Sixfold in the right namespace, in front of the authority.

use super::super::paper::{QUESTION, check};
use crate::agent::protocol::Start;
use crate::agent_client::AgentClient;
use crate::device::{InstalledTemplate, Recipe, Settings};
use crate::exchange;
use crate::lab::context::Context;
use crate::lab::device::end_of;
use crate::ttcp_dns::testbed::{KERNELS, PORT, Testbed};
use measure::experiment::Program;
use measure::order::Transport;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Name in the certificate.
pub const NAME: &str = "table1.test";

/// Port of UDP: the authority has port 53.
const UDP_PORT: u16 = 5353;

/// Longest wait for the first answer. A start takes some tens of milliseconds.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Time between two questions to a server that starts.
const START_POLL: Duration = Duration::from_millis(20);

/// Wait for an answer to one question.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// File of the private key, which is not in the record.
const KEY_FILE: &str = "key.pem";

/// A running server. It ends with this value, at once: no client is left that its drain of connections would serve.
pub struct EncryptedServer {
    /// PEM file of its certificate.
    pub certificate: PathBuf,
    agent: AgentClient,
    device: u32,
}

impl Drop for EncryptedServer {
    fn drop(&mut self) {
        // A server that has ended by itself is fine, too.
        let _ = self.agent.stop(self.device, Duration::ZERO);
    }
}

/// The template of Sixfold, if the program is there.
///
/// # Errors
///
/// The program is not installed, with the remedy.
pub fn installed(context: &Context) -> Result<InstalledTemplate, String> {
    let given = context.options.programs.iter().find(|(name, _)| name == "sixfold");
    let given = given.map(|(_, path)| path.display().to_string());
    InstalledTemplate::find("sixfold", given.as_deref()).map_err(|error| error.to_string())
}

/// Address of the server for a transport, in the right namespace.
pub fn address(transport: Transport) -> SocketAddr {
    let port = match transport {
        Transport::Udp => UDP_PORT,
        other => other.default_port(),
    };
    SocketAddr::from((KERNELS[1], port))
}

impl EncryptedServer {
    /// Starts the program and waits until it answers, from its cache from then on.
    ///
    /// # Errors
    ///
    /// The certificate cannot be made or written, or the server cannot be started or does not answer in time.
    pub fn start(
        context: &mut Context,
        testbed: &Testbed,
        template: &InstalledTemplate,
    ) -> Result<EncryptedServer, String> {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()])
            .map_err(|error| format!("a certificate: {error}"))?;
        let certificate = context.out.join("certificate.pem");
        std::fs::write(&certificate, made.cert.pem())
            .map_err(|error| format!("{}: {error}", certificate.display()))?;
        let files = BTreeMap::from([
            ("sixfold.toml".to_owned(), configuration()),
            ("certificate.pem".to_owned(), made.cert.pem()),
            (KEY_FILE.to_owned(), made.signing_key.serialize_pem()),
        ]);
        let command =
            [template.program(), "serve", "--config", "{dir}/sixfold.toml"].map(str::to_owned).to_vec();
        let authority = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let prefix = ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0].into(), 96);
        let settings = Settings::new(address(Transport::Udp), authority, prefix, "");
        let recipe = Recipe::Custom { command, files };
        let order = Start { recipe, settings, cores: String::new(), environment: BTreeMap::new() };
        let mut agent = testbed
            .right()
            .run(|| AgentClient::connect("laboratory", None).map_err(|error| error.to_string()))?;
        let started = agent.start(&order).map_err(|error| format!("sixfold: {error}"))?;
        let files = started.files.into_iter().filter(|(name, _)| name != KEY_FILE).collect();
        context.program(Program {
            name: "sixfold".to_owned(),
            version: template.version().to_owned(),
            command: started.command,
            files,
        });
        await_answer(testbed).map_err(|why| {
            let log = agent.log(started.device).unwrap_or_default();
            format!("sixfold: {why}; {}", end_of(&log))
        })?;
        Ok(EncryptedServer { certificate, agent, device: started.device })
    }
}

/// Configuration of the server.
fn configuration() -> String {
    let listen = address(Transport::Udp);
    let [server, client] = [KERNELS[1], KERNELS[0]];
    format!(
        "[server]\nlisten = [\"{listen}\"]\nallow = [\"{client}/32\", \"{server}/32\"]\nworkers = 1\n\
         [upstream]\nforwarders = [\"127.0.0.1:{PORT}\"]\n\
         [tls]\ncertificate = \"{{dir}}/certificate.pem\"\nkey = \"{{dir}}/{KEY_FILE}\"\n\
         listen-dot = [\"{server}\"]\nlisten-doh = [\"{server}\"]\nlisten-doq = [\"{server}\"]\n\
         [control]\nsocket = \"{{dir}}/control.sock\"\n[log]\nlevel = \"error\"\n"
    )
}

/// Asks within the server's namespace until an answer comes.
fn await_answer(testbed: &Testbed) -> Result<(), String> {
    let end = Instant::now() + START_TIMEOUT;
    testbed.right().run(|| {
        let failed = |error: std::io::Error| format!("the first question: {error}");
        let socket = exchange::socket_to(address(Transport::Udp)).map_err(failed)?;
        loop {
            match exchange::ask(&socket, &QUESTION, ANSWER_WAIT, |_| true) {
                Ok(Some(answer)) => return check(&answer, 0),
                Err(error) if Instant::now() > end => return Err(failed(error)),
                Ok(None) if Instant::now() > end => return Err("the first question: no answer".to_owned()),
                // No process listens yet.
                _ => std::thread::sleep(START_POLL),
            }
        }
    })
}
