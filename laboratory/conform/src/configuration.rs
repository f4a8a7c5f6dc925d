//! Configuration file of a case: JSON in the case, TOML for the server.

use crate::json::Object;
use serde_json::Value;
use std::fmt::Write;
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
/// A value is null, which TOML does not have, or a list has both tables and values.
pub fn write(config: &Object, parameters: &RunParameters) -> Result<String, String> {
    let mut whole = parameters.base();
    lay_over(&mut whole, config);
    let mut text = String::new();
    write_table(&mut text, &mut Vec::new(), &whole, parameters)?;
    Ok(text)
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

/// Writes values before tables: a value after a table's header would belong to that table.
fn write_table(
    text: &mut String,
    path: &mut Vec<String>,
    table: &Object,
    parameters: &RunParameters,
) -> Result<(), String> {
    let is_table = |value: &Value| value.is_object() || is_array_of_tables(value);
    for (name, value) in table.iter().filter(|(_, value)| !is_table(value)) {
        let value = inline(value, parameters).map_err(|error| format!("{name}: {error}"))?;
        writeln!(text, "{} = {value}", key(name)).expect("a string takes all");
    }
    for (name, value) in table.iter().filter(|(_, value)| is_table(value)) {
        path.push(key(name));
        match value {
            Value::Object(table) => {
                writeln!(text, "\n[{}]", path.join(".")).expect("a string takes all");
                write_table(text, path, table, parameters)?;
            }
            Value::Array(tables) => {
                for table in tables.iter().filter_map(Value::as_object) {
                    writeln!(text, "\n[[{}]]", path.join(".")).expect("a string takes all");
                    write_table(text, path, table, parameters)?;
                }
            }
            _ => unreachable!("filtered above"),
        }
        path.pop();
    }
    Ok(())
}

/// True for a non-empty list of objects. An empty list is an ordinary value, because it cannot be written as an array
/// of tables.
fn is_array_of_tables(value: &Value) -> bool {
    value.as_array().is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_object))
}

fn inline(value: &Value, parameters: &RunParameters) -> Result<String, String> {
    match value {
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::String(value) => Ok(string(&parameters.fill(value))),
        Value::Array(values) => {
            let values: Result<Vec<String>, String> =
                values.iter().map(|value| inline(value, parameters)).collect();
            Ok(format!("[{}]", values?.join(", ")))
        }
        Value::Null => Err("TOML has no null".to_owned()),
        Value::Object(_) => Err("a list has both tables and values".to_owned()),
    }
}

fn key(name: &str) -> String {
    let bare = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { string(name) }
}

/// Writes a basic string (TOML 1.0, "String").
fn string(value: &str) -> String {
    let mut text = String::from('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            control if control.is_control() => {
                write!(text, "\\u{:04X}", u32::from(control)).expect("a string takes all");
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_base_stands_alone() {
        let expected = concat!(
            "\n[control]\nsocket = \"/tmp/a case/control.sock\"\n",
            "\n[metrics]\nlisten = \"127.0.0.1:5303\"\n",
            "\n[server]\nallow = [\"::/0\", \"0.0.0.0/0\"]\nlisten = [\"127.0.0.1:5302\", \"[::1]:5302\"]\n",
            "user = \"someone\"\nworkers = 2\n",
            "\n[upstream]\nforwarders = [\"127.0.0.1:5301\"]\n",
        );
        assert_eq!(file("{}").unwrap(), expected);
    }

    #[test]
    fn keys_of_the_case_win_and_the_others_stay() {
        let text = file(r#"{"server": {"workers": 1}, "upstream": {"timeout": "400ms"}}"#).unwrap();
        assert!(text.contains("workers = 1\n") && !text.contains("workers = 2") && text.contains("allow = "));
        assert!(text.contains("forwarders = [\"127.0.0.1:5301\"]\ntimeout = \"400ms\"\n"));
    }

    #[test]
    fn a_list_of_objects_is_an_array_of_tables_and_an_empty_list_is_a_value() {
        let config = r#"{"dns64": {"rule": [{"names": ["a"], "prefixes": []}, {"ipv4": []}], "clients": [],
                         "on-failure": {"servfail": "pass"}}}"#;
        let expected = concat!(
            "\n[dns64]\nclients = []\n",
            "\n[dns64.on-failure]\nservfail = \"pass\"\n",
            "\n[[dns64.rule]]\nnames = [\"a\"]\nprefixes = []\n",
            "\n[[dns64.rule]]\nipv4 = []\n",
        );
        assert!(file(config).unwrap().contains(expected), "{}", file(config).unwrap());
    }

    #[test]
    fn folder_and_upstream_are_filled_in() {
        let text =
            file(r#"{"filter": {"rpz": ["{dir}/p.rpz"]}, "upstream": {"forwarders": ["{upstream}"]}}"#)
                .unwrap();
        assert!(text.contains("rpz = [\"/tmp/a case/p.rpz\"]"));
        assert!(text.contains("forwarders = [\"127.0.0.1:5301\"]"));
    }

    #[test]
    fn strings_and_keys_are_quoted_where_they_must_be() {
        let text = file(r#"{"a b": {"key": "quote \" backslash \\ line\nend"}}"#).unwrap();
        assert!(text.contains("[\"a b\"]\nkey = \"quote \\\" backslash \\\\ line\\u000Aend\"\n"), "{text}");
    }

    #[test]
    fn a_value_that_toml_lacks_is_refused() {
        assert!(file(r#"{"a": {"b": null}}"#).is_err());
        assert!(file(r#"{"a": {"b": [1, {"c": 2}]}}"#).is_err());
    }
}
