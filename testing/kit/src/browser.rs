//! Chromium in headless mode, controlled by the DevTools protocol over two pipes: messages are JSON, each ended by a
//! zero octet.
//!
//! The shell passes its own standard input and output as descriptors 3 and 4, where Chromium expects the pipes.

use data_encoding::BASE64;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time after which a browser without an answer has failed; its start may take a while on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(90);

/// A browser with one page. Dropping the value ends the browser.
pub struct Browser {
    process: Child,
    orders: Option<ChildStdin>,
    messages: Receiver<Value>,
    session: String,
    last: u64,
    profile: PathBuf,
    /// Events of the page since it was opened: exceptions, console messages, requests.
    pub events: Vec<Value>,
}

/// Settings for the display of a page.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// `screen` or `print`.
    pub media: &'static str,
    /// `light` or `dark`, as the system prefers.
    pub scheme: &'static str,
    /// Width of the window in CSS pixels.
    pub width: u32,
    /// True if the page's script runs.
    pub script: bool,
}

impl Browser {
    /// Finds the program.
    pub fn program() -> Option<&'static str> {
        ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|program| on_path(program))
    }

    /// Starts a browser, or skips the test.
    pub fn or_skip(name: &str) -> Option<Browser> {
        let Some(program) = Browser::program() else {
            crate::missing("chromium", "apt-get install chromium");
            return None;
        };
        Browser::start(program, name).map_err(|why| crate::skip(&why)).ok()
    }

    /// Checks for exceptions, logged errors or warnings, and requests other than those of the page.
    ///
    /// # Panics
    ///
    /// If there is one.
    #[track_caller]
    pub fn expect_no_complaints(&self, is_own: impl Fn(&str) -> bool, look: Look) {
        for event in &self.events {
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown"
                | "Log.entryAdded"
                | "Runtime.consoleAPICalled"
                | "Network.loadingFailed" => panic!("{look:?}: {event}"),
                "Network.requestWillBeSent" => {
                    let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
                    assert!(is_own(url), "{look:?}: {url}");
                }
                _ => {}
            }
        }
    }

    /// Starts a browser.
    ///
    /// # Errors
    ///
    /// The program cannot be started, does not answer in time, or opens no page.
    pub fn start(program: &str, name: &str) -> Result<Browser, String> {
        let profile = std::env::temp_dir().join(format!("sixfold-browser-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&profile);
        std::fs::create_dir_all(&profile).map_err(|error| error.to_string())?;
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 >/dev/null";
        let mut process = Command::new("sh")
            .args(["-c", script, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
            .args([
                "--disable-sync",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let orders = process.stdin.take();
        let answers = process.stdout.take().ok_or("no pipe")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut answers = BufReader::new(answers);
            let mut message = Vec::new();
            while matches!(answers.read_until(0, &mut message), Ok(octets) if octets > 0) {
                message.pop();
                if serde_json::from_slice(&message).is_ok_and(|value| sender.send(value).is_err()) {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Browser {
            process,
            orders,
            messages,
            session: String::new(),
            last: 0,
            profile,
            events: Vec::new(),
        };
        let target = browser.order("Target.createTarget", json!({"url": "about:blank"}))?;
        let attached = browser
            .order("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}))?;
        browser.session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.order(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Opens a file and waits until it is loaded.
    ///
    /// # Errors
    ///
    /// As [`Browser::visit`].
    pub fn open(&mut self, file: &Path, look: Look) -> Result<(), String> {
        self.visit(&format!("file://{}", file.display()), look)
    }

    /// Opens an address and waits until the page is loaded.
    ///
    /// # Errors
    ///
    /// The browser has ended, does not answer in time, or refuses a command; or the page is not loaded in time.
    pub fn visit(&mut self, url: &str, look: Look) -> Result<(), String> {
        let features = json!([{"name": "prefers-color-scheme", "value": look.scheme}]);
        self.order("Emulation.setEmulatedMedia", json!({"media": look.media, "features": features}))?;
        self.order("Emulation.setScriptExecutionDisabled", json!({"value": !look.script}))?;
        self.resize(look.width, 900)?;
        self.events.clear();
        self.order("Page.navigate", json!({"url": url}))?;
        let end = Instant::now() + TIME_LIMIT;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.next(end)?;
            self.events.push(message);
        }
        Ok(())
    }

    /// Gives the window a size in CSS pixels.
    ///
    /// # Errors
    ///
    /// As [`Browser::visit`].
    pub fn resize(&mut self, width: u32, height: u32) -> Result<(), String> {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.order("Emulation.setDeviceMetricsOverride", size).map(drop)
    }

    /// The value of an expression in the page.
    ///
    /// # Errors
    ///
    /// As [`Browser::visit`], or the expression throws an exception.
    pub fn value(&mut self, expression: &str) -> Result<Value, String> {
        let answer =
            self.order("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}))?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(format!("{expression}: {details}")),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Prints the page to PDF, in base64.
    ///
    /// # Errors
    ///
    /// As [`Browser::visit`].
    pub fn print(&mut self) -> Result<String, String> {
        let answer =
            self.order("Page.printToPDF", json!({"printBackground": true, "preferCSSPageSize": true}))?;
        Ok(answer["data"].as_str().unwrap_or_default().to_owned())
    }

    /// A picture of the whole page (PNG).
    ///
    /// # Errors
    ///
    /// As [`Browser::visit`], or the browser gave no picture.
    pub fn picture(&mut self) -> Result<Vec<u8>, String> {
        self.capture(true)
    }

    /// A picture of what the window shows (PNG).
    ///
    /// # Errors
    ///
    /// As [`Browser::visit`], or the browser gave no picture.
    pub fn screen(&mut self) -> Result<Vec<u8>, String> {
        self.capture(false)
    }

    fn capture(&mut self, whole_page: bool) -> Result<Vec<u8>, String> {
        let order = json!({"format": "png", "captureBeyondViewport": whole_page});
        let answer = self.order("Page.captureScreenshot", order)?;
        let data = answer["data"].as_str().unwrap_or_default();
        BASE64.decode(data.as_bytes()).map_err(|error| error.to_string())
    }

    /// Presses and releases a key, by its name in the DOM and its code, like `Tab` and 9.
    ///
    /// # Errors
    ///
    /// As [`Browser::visit`].
    pub fn press(&mut self, key: &str, code: u32) -> Result<(), String> {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            // A button is pressed by the character of the key.
            if kind == "keyDown" && key == "Enter" {
                event["text"] = json!("\r");
            }
            self.order("Input.dispatchKeyEvent", event)?;
        }
        Ok(())
    }

    /// Sends a command and waits for its response. Keeps the events that arrive meanwhile.
    fn order(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut octets = message.to_string().into_bytes();
        octets.push(0);
        let orders = self.orders.as_mut().ok_or("the browser is gone")?;
        orders.write_all(&octets).map_err(|error| format!("{method}: {error}"))?;
        let end = Instant::now() + TIME_LIMIT;
        loop {
            let message = self.next(end).map_err(|error| format!("{method}: {error}"))?;
            match message.get("id").and_then(Value::as_u64) {
                Some(id) if id == self.last => {
                    return match message.get("error") {
                        Some(error) => Err(format!("{method}: {error}")),
                        None => Ok(message["result"].clone()),
                    };
                }
                Some(_) => {}
                None => self.events.push(message),
            }
        }
    }

    fn next(&mut self, end: Instant) -> Result<Value, String> {
        self.messages.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(|error| match error
        {
            RecvTimeoutError::Timeout => "the browser does not answer".to_owned(),
            RecvTimeoutError::Disconnected => "the browser has ended".to_owned(),
        })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // On this command the browser also ends its own children. It gets some seconds for that.
        self.session.clear();
        let _ = self.order("Browser.close", json!({}));
        drop(self.orders.take());
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end && matches!(self.process.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// Width and height of a picture (PNG); none if the octets are no picture of this kind.
pub fn size_of(picture: &[u8]) -> Option<(u32, u32)> {
    // The signature, then the chunk IHDR, which begins with both.
    let rest = picture.strip_prefix(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR")?;
    let (width, rest) = rest.split_first_chunk()?;
    let (height, _) = rest.split_first_chunk()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*height)))
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_picture_is_read_and_other_files_are_none() {
        let picture = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x05\0\0\0\x03\x20\x08";
        assert_eq!(size_of(picture), Some((1280, 800)));
        assert_eq!(size_of(&picture[..20]), None);
        assert_eq!(size_of(b"GIF89a"), None);
    }
}
