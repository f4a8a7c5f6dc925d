//! Queries by `kdig`, an independent client, and its answers as values.

use crate::namespace::Namespace;

/// Timeout of `kdig` for an answer, in seconds: longer than Sixfold may take to give up (RFC 1035 section 4.2.1).
const WAIT_SECS: u32 = 20;

/// Client of one server.
#[derive(Clone)]
pub struct Kdig<'a> {
    namespace: &'a Namespace,
    program: Vec<String>,
    server: String,
    options: Vec<String>,
}

impl<'a> Kdig<'a> {
    /// A client that queries `server` from `namespace`: once, without EDNS, over UDP, and over TCP after truncation.
    pub fn new(namespace: &'a Namespace, server: &str) -> Kdig<'a> {
        Kdig::of_program(namespace, server, vec!["kdig".into()])
    }

    /// Such a client that is another `kdig`, started by this command line.
    pub(crate) fn of_program(namespace: &'a Namespace, server: &str, program: Vec<String>) -> Kdig<'a> {
        // Names stay as they are written: with IDN, kdig converts letters to lower case.
        let options = vec![format!("+timeout={WAIT_SECS}"), "+retry=0".into(), "+noidn".into()];
        Kdig { namespace, program, server: server.into(), options }
    }

    /// Adds an option of `kdig`, like `+dnssec`.
    pub fn with(mut self, option: &str) -> Kdig<'a> {
        self.options.extend(option.split(' ').map(str::to_owned));
        self
    }

    /// Sends one query, which must be answered.
    pub fn ask(&self, name: &str, kind: &str) -> Answer {
        let mut answers = self.ask_all(&[(name, kind)]);
        assert_eq!(answers.len(), 1, "{name} {kind}: {answers:?}");
        answers.remove(0)
    }

    /// Sends queries one after the other. The result leaves out queries without an answer.
    pub fn ask_all(&self, questions: &[(&str, &str)]) -> Vec<Answer> {
        let server = format!("@{}", self.server);
        let mut argv: Vec<&str> = self.program.iter().map(String::as_str).chain([server.as_str()]).collect();
        argv.extend(self.options.iter().map(String::as_str));
        argv.extend(questions.iter().flat_map(|&(name, kind)| [name, kind]));
        let text = self.namespace.run(&argv).stdout;
        text.split(";; ->>HEADER<<- ").skip(1).map(Answer::read).collect()
    }
}

/// Record of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Owner.
    pub name: String,
    /// Time to live, in seconds.
    pub ttl: u32,
    /// Type.
    pub kind: String,
    /// Data, fields separated by one space.
    pub data: String,
}

/// Output of `kdig` for one message.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// RCODE.
    pub status: String,
    /// Header flags.
    pub flags: Vec<String>,
    /// Name and type of the question, like `www.example. AAAA`.
    pub question: String,
    /// Records of the answer section.
    pub answer: Vec<Record>,
    /// Records of the authority section.
    pub authority: Vec<Record>,
    /// `UDP` or `TCP`; of kdig 3.4 also `TLS`, `HTTPS` or `QUIC`.
    pub transport: String,
    /// Complete output, for messages of failed assertions and for parts without a field here.
    pub text: String,
}

impl Answer {
    fn read(text: &str) -> Answer {
        let mut answer = Answer { text: text.into(), ..Answer::default() };
        let mut section = "";
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if line.is_empty() {
                section = "";
            } else if let Some(named) =
                line.strip_prefix(";; ").and_then(|line| line.strip_suffix(" SECTION:"))
            {
                section = named;
            } else if line.starts_with("opcode: ") {
                let status = line.split("status: ").nth(1).and_then(|rest| rest.split(';').next());
                answer.status = status.unwrap_or_default().into();
            } else if let Some(flags) = line.strip_prefix(";; Flags: ") {
                let flags = flags.split(';').next().unwrap_or_default();
                answer.flags = flags.split_whitespace().map(str::to_owned).collect();
            } else if let Some(from) = line.strip_prefix(";; From ") {
                let transport = from.split(['(', ')']).nth(1);
                answer.transport = transport.unwrap_or_default().into();
            } else if section == "QUESTION" && line.starts_with(";; ") && words.len() == 4 {
                answer.question = format!("{} {}", words[1], words[3]);
            } else if !line.starts_with(';') && words.len() >= 5 {
                let record = Record {
                    name: words[0].into(),
                    ttl: words[1].parse().unwrap_or_else(|_| panic!("no TTL in {line:?}")),
                    kind: words[3].into(),
                    data: words[4..].join(" "),
                };
                match section {
                    "ANSWER" => answer.answer.push(record),
                    "AUTHORITY" => answer.authority.push(record),
                    _ => {}
                }
            }
        }
        answer
    }

    /// True if a header flag is set.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|set| set == flag)
    }

    /// Data of the records of one type in the answer section, sorted.
    pub fn data(&self, kind: &str) -> Vec<&str> {
        let records = self.answer.iter().filter(|record| record.kind == kind);
        let mut data: Vec<_> = records.map(|record| record.data.as_str()).collect();
        data.sort_unstable();
        data
    }

    /// Types in the authority section, each once, sorted.
    pub fn authority_kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<_> = self.authority.iter().map(|record| record.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_kdig_is_read() {
        let answer = Answer::read(
            "opcode: QUERY; status: NOERROR; id: 1\n;; Flags: qr rd ra; QUERY: 1; ANSWER: 1; AUTHORITY: 1\n\n\
             ;; QUESTION SECTION:\n;; www.example.\t\tIN\tAAAA\n\n;; ANSWER SECTION:\n\
             www.example.  60\tIN\tAAAA\t2001:db8::1\n\n;; AUTHORITY SECTION:\nexample. 60 IN NS  ns.example.\n\n\
             ;; Received 68 B\n;; From ::1@53(TCP) in 0.2 ms\n",
        );
        assert_eq!((answer.status.as_str(), answer.transport.as_str()), ("NOERROR", "TCP"));
        assert_eq!(answer.question, "www.example. AAAA");
        assert!(answer.has("ra") && !answer.has("tc"));
        assert_eq!(answer.data("AAAA"), ["2001:db8::1"]);
        assert_eq!(answer.answer[0].ttl, 60);
        assert_eq!(answer.authority_kinds(), ["NS"]);
    }

    #[test]
    fn the_question_of_an_answer_without_records_is_read() {
        let answer = Answer::read(
            "opcode: QUERY; status: SERVFAIL; id: 1\n;; Flags: qr rd ra; QUERY: 1; ANSWER: 0; AUTHORITY: 0\n\n\
             ;; QUESTION SECTION:\n;; www.example.\t\tIN\tAAAA\n\n;; Received 29 B\n;; From ::1@53(UDP) in 0.2 ms\n",
        );
        assert_eq!((answer.status.as_str(), answer.question.as_str()), ("SERVFAIL", "www.example. AAAA"));
        assert_eq!(answer.transport, "UDP");
    }
}
