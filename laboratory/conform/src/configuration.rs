//! Configuration file of a case: JSON in the case, TOML for the server.

use crate::json::Object;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;

/// Parameters of one run: the values that the runner adds to the configuration of a case.
#[derive(Clone, Copy, Debug)]
pub struct RunParameters<'a> {
    /// Folder of the case.
    pub directory: &'a Path,
    /// Address of the scripted upstream.
    pub upstream: SocketAddr,
    /// Port of the server, on both loopback addresses.
    pub port: u16,
    /// Port of the metrics.
    pub metrics_port: u16,
    /// Name of the user who runs this program.
    pub user: &'a str,
}

impl RunParameters<'_> {
    /// Replaces `{dir}` and `{upstream}`.
    pub fn fill(&self, text: &str) -> String {
        text.replace("{dir}", &self.directory.to_string_lossy())
            .replace("{upstream}", &self.upstream.to_string())
    }

    /// Keys that every case gets. Keys of the case override these.
    fn base(&self) -> Object {
        let listen = [format!("127.0.0.1:{}", self.port), format!("[::1]:{}", self.port)];
        let base = serde_json::json!({
            "server": { "listen": listen, "workers": 2, "allow": ["::/0", "0.0.0.0/0"], "user": self.user },
            "upstream": { "forwarders": [self.upstream.to_string()] },
            "metrics": { "listen": format!("127.0.0.1:{}", self.metrics_port) },
            "control": { "socket": self.directory.join("control.sock").to_string_lossy() },
        });
        let Value::Object(base) = base else { unreachable!("it is written as an object") };
        base
    }
}

/// Writes the configuration file of a case.
///
/// # Errors
///
/// A value is null, which TOML does not have.
pub fn write(config: &Object, parameters: &RunParameters) -> Result<String, String> {
    let mut whole = parameters.base();
    lay_over(&mut whole, config);
    whole.values_mut().for_each(|value| fill_in(value, parameters));
    toml::to_string(&whole).map_err(|error| error.to_string())
}

/// Merges objects; other values of `over` replace those of `base`.
fn lay_over(base: &mut Object, over: &Object) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => lay_over(base, over),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Replaces the placeholders in all strings of a value.
fn fill_in(value: &mut Value, parameters: &RunParameters) {
    match value {
        Value::String(text) => *text = parameters.fill(text),
        Value::Array(values) => values.iter_mut().for_each(|value| fill_in(value, parameters)),
        Value::Object(table) => table.values_mut().for_each(|value| fill_in(value, parameters)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(config: &str) -> Result<String, String> {
        let parameters = RunParameters {
            directory: Path::new("/tmp/a case"),
            upstream: SocketAddr::from(([127, 0, 0, 1], 5301)),
            port: 5302,
            metrics_port: 5303,
            user: "someone",
        };
        write(&serde_json::from_str(config).unwrap(), &parameters)
    }

    /// The file as a TOML parser reads it.
    fn read(config: &str) -> Value {
        toml::from_str(&file(config).unwrap()).unwrap()
    }

    #[test]
    fn the_base_stands_alone() {
        let expected = json!({
            "control": { "socket": "/tmp/a case/control.sock" },
            "metrics": { "listen": "127.0.0.1:5303" },
            "server": {
                "allow": ["::/0", "0.0.0.0/0"],
                "listen": ["127.0.0.1:5302", "[::1]:5302"],
                "user": "someone",
                "workers": 2,
            },
            "upstream": { "forwarders": ["127.0.0.1:5301"] },
        });
        assert_eq!(read("{}"), expected);
    }

    #[test]
    fn keys_of_the_case_win_and_the_others_stay() {
        let all = read(r#"{"server": {"workers": 1}, "upstream": {"timeout": "400ms"}}"#);
        assert_eq!((&all["server"]["workers"], &all["server"]["user"]), (&json!(1), &json!("someone")));
        assert_eq!(all["upstream"], json!({ "forwarders": ["127.0.0.1:5301"], "timeout": "400ms" }));
    }

    #[test]
    fn tables_and_values_of_a_case_are_what_they_were() {
        let config = json!({"dns64": {
            "rule": [{"names": ["a"], "prefixes": []}, {"ipv4": []}],
            "clients": [],
            "on-failure": {"servfail": "pass"},
            "a b": "quote \" backslash \\ line\nend",
        }});
        assert_eq!(read(&config.to_string())["dns64"], config["dns64"]);
    }

    #[test]
    fn folder_and_upstream_are_filled_in() {
        let all = read(r#"{"filter": {"rpz": ["{dir}/p.rpz"]}, "upstream": {"forwarders": ["{upstream}"]}}"#);
        assert_eq!(all["filter"]["rpz"], json!(["/tmp/a case/p.rpz"]));
        assert_eq!(all["upstream"]["forwarders"], json!(["127.0.0.1:5301"]));
    }

    #[test]
    fn a_value_that_toml_lacks_is_refused() {
        assert!(file(r#"{"a": {"b": null}}"#).is_err());
    }
}
