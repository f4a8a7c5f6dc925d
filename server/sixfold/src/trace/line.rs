//! One trace as a line of JSON. The names of the fields are fixed and documented in
//! docs/reference/explanations-and-traces.md; fields may be added. Times of
//! steps are microseconds since the query arrived.

use crate::escape::{self, name};
use crate::explain::{records, rule_source};
use engine::explain::Answer;
use engine::explain::live::{Step, Trace, UpstreamEvent};
use engine::{ClientTransport, Span, Transport};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use wire::{Class, Message, Section};

/// A trace, with its fields in the order of the line.
#[derive(Serialize)]
struct Line {
    time: Option<String>,
    client: String,
    port: u16,
    transport: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<String>,
    name: Option<String>,
    #[serde(rename = "type")]
    qtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    steps: Vec<StepOf>,
    #[serde(skip_serializing_if = "is_zero")]
    steps_omitted: usize,
    answer: Option<AnswerOf>,
}

/// A step: its time and code, then what belongs to it.
#[derive(Serialize)]
struct StepOf {
    us: u64,
    step: &'static str,
    #[serde(flatten)]
    details: Value,
}

/// The answer.
#[derive(Serialize)]
struct AnswerOf {
    us: u64,
    octets: usize,
    rcode: Option<String>,
    flags: Vec<&'static str>,
    records: Vec<String>,
    extended_errors: Vec<Value>,
}

/// Queries that were left out, or the end of the trace.
#[derive(Serialize)]
struct Notice<'n> {
    notice: &'static str,
    omitted: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'n str>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The line of a trace.
pub fn of(trace: &Trace) -> String {
    let asked = Message::parse(&trace.query).ok();
    let class = asked.map(|asked| asked.qclass()).filter(|class| *class != Class::IN);
    write(&Line {
        time: time(trace.unix),
        client: trace.client.address.to_canonical().to_string(),
        port: trace.client.port,
        transport: match trace.client.transport {
            ClientTransport::Udp => "udp",
            ClientTransport::Tcp => "tcp",
            ClientTransport::Tls => "tls",
            ClientTransport::Https => "https",
            ClientTransport::Quic => "quic",
        },
        proxy: trace.client.proxy.map(|proxy| proxy.address.to_canonical().to_string()),
        name: asked.map(|asked| asked.question_name().to_string()),
        qtype: asked.map(|asked| asked.qtype().to_string()),
        class: class.map(|class| class.to_string()),
        steps: trace.steps.iter().map(|(after, one)| step(*after, one)).collect(),
        steps_omitted: trace.steps_omitted,
        answer: trace.answer.as_ref().map(answer),
    })
}

/// The line that tells of queries that were left out since the last notice, and why the trace ends, if it does.
pub fn notice(omitted: u64, end: Option<&str>) -> String {
    write(&Notice { notice: if end.is_some() { "end" } else { "omitted" }, omitted, why: end })
}

/// Names and texts of clients and upstreams are escaped: no octet of theirs ends the line or controls a terminal.
fn write(line: &impl Serialize) -> String {
    let text = serde_json::to_string(line).unwrap_or_default();
    escape::json(&text) + "\n"
}

/// Time of day (RFC 3339), to the microsecond.
fn time(unix: Span) -> Option<String> {
    let timestamp = Timestamp::from_microsecond(i64::try_from(unix.as_micros()).ok()?).ok()?;
    Some(format!("{timestamp:.6}"))
}

fn step(after: Span, step: &Step) -> StepOf {
    let (step, details) = match step {
        Step::Decided(decision) => {
            let mut details = json!({ "text": decision.to_string(), "requirement": decision.requirement() });
            if let Some(source) = decision.rule_source() {
                details["policy"] = rule_source(source);
            }
            (decision.code(), details)
        }
        Step::Waits { name: asked, qtype, is_shared } => (
            if *is_shared { "joins" } else { "asks" },
            json!({ "name": name(asked), "type": qtype.to_string() }),
        ),
        Step::Upstream { name: asked, qtype, event } => {
            let (step, mut details) = upstream(event);
            details["name"] = name(asked).into();
            details["type"] = qtype.to_string().into();
            (step, details)
        }
    };
    StepOf { us: after.as_micros(), step, details }
}

fn upstream(event: &UpstreamEvent) -> (&'static str, Value) {
    match event {
        UpstreamEvent::Sent(upstream, transport) => {
            let transport = match transport {
                Transport::Udp => "udp",
                Transport::Tcp => "tcp",
                Transport::Tls => "tls",
            };
            ("sent", json!({ "upstream": upstream.to_string(), "transport": transport }))
        }
        UpstreamEvent::SendFailed => ("not_sent", json!({})),
        UpstreamEvent::Replied { rcode, is_truncated, answers } => {
            ("reply", json!({ "rcode": rcode.to_string(), "truncated": is_truncated, "answers": answers }))
        }
        UpstreamEvent::NoReply => ("no_reply", json!({})),
        UpstreamEvent::LinkFailed => ("link_failed", json!({})),
        UpstreamEvent::Untrusted(reason) => ("untrusted", json!({ "reason": reason.code() })),
    }
}

fn answer(answer: &Answer) -> AnswerOf {
    let message = Message::parse(&answer.message).ok();
    // A response to a message that cannot be read has no question, so it does not parse.
    let rcode = (answer.message.len() >= wire::HEADER).then(|| wire::header::flags(&answer.message).rcode());
    let errors = message.map(|message| records::extended_errors(&message)).unwrap_or_default();
    AnswerOf {
        us: answer.after.as_micros(),
        octets: answer.message.len(),
        rcode: rcode.map(|rcode| rcode.to_string()),
        flags: message.map(|message| records::flags(&message)).unwrap_or_default(),
        records: records::lines(&answer.message, Section::Answer),
        extended_errors: errors
            .into_iter()
            .map(|(code, text)| json!({ "code": code, "text": text }))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_to_the_microsecond() {
        // `date -u -d @1700000000 --rfc-3339=seconds`
        let text = time(Span(1_700_000_000_000_042_999));
        assert_eq!(text.as_deref(), Some("2023-11-14T22:13:20.000042Z"));
    }

    #[test]
    fn a_notice_tells_the_number_and_the_reason() {
        assert_eq!(notice(7, None), "{\"notice\":\"omitted\",\"omitted\":7}\n");
        assert_eq!(
            notice(0, Some("trace off")),
            "{\"notice\":\"end\",\"omitted\":0,\"why\":\"trace off\"}\n"
        );
    }
}
