//! The user that a server started as root becomes, once all sockets are bound.

use crate::bind::ControlSocket;
use crate::config::Config;
use crate::demo::warn_unless;
use datapath::privileges;

/// The user that a server started as root becomes.
pub struct Identity {
    user: String,
    /// Numeric ID of the user.
    pub uid: u32,
    /// Numeric ID of the user's primary group.
    pub gid: u32,
}

impl Identity {
    /// The user of the configuration; none if the server stays what it is. A demonstration needs no user of its own.
    ///
    /// # Errors
    ///
    /// The system has no user of the name in `server.user`. A missing user `sixfold`, which nobody has configured, is only a warning.
    pub fn of(config: &Config, demo: bool) -> Result<Option<Identity>, String> {
        let user = config.server.user.as_deref().unwrap_or("sixfold");
        if !privileges::is_root() || user == "root" {
            return Ok(None);
        }
        match privileges::lookup(user) {
            Ok((uid, gid)) => Ok(Some(Identity { user: user.to_owned(), uid, gid })),
            Err(privileges::PrivilegeError::NoSuchUser(user)) if config.server.user.is_none() => {
                let warning =
                    format!("running as root: there is no user {user}; create it or set `server.user`");
                warn_unless(demo, &warning);
                Ok(None)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Becomes this user, for good.
    ///
    /// # Errors
    ///
    /// As `become_user` of the crate `datapath`: the process may not change its user. A control socket that keeps its owner is only a
    /// warning.
    pub fn assume(&self, control: Option<&ControlSocket>) -> Result<(), String> {
        // Without this only root could use the control socket. lchown does not follow a symbolic link: the directory may
        // belong to another user.
        if let Some(ControlSocket { path, .. }) = control
            && let Err(error) = std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))
        {
            let user = &self.user;
            tracing::warn!(
                event = "control_socket_owner",
                "cannot give {} to {user}: {error}; only root may use it: use `sudo sixfold ctl`, or put it into a directory of {user} with \
                 `control.socket`",
                path.display()
            );
        }
        privileges::become_user(&self.user).map_err(|error| error.to_string())
    }
}
