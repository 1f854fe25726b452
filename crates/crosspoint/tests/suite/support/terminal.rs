//! Terminals in which tests type what the documentation shows.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::server::until;

/// A shell in a process group of its own. Everything that was started in it ends with it.
pub(crate) struct Terminal {
    pub(crate) shell: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Terminal {
    /// Its output goes to files: a process in the background may hold it open for longer than the shell runs.
    pub(crate) fn open(directory: &Path, listen: &str, name: &str, lines: &str) -> Terminal {
        let output = |end: &str| directory.join(format!("{name}.{end}"));
        let (stdout, stderr) = (output("stdout"), output("stderr"));
        let file = |path| File::create(path).expect("it can be made");
        let mut bash = Command::new("bash");
        bash.args(["-c", lines]).current_dir(directory).process_group(0);
        bash.env("CROSSPOINT_SERVER_LISTEN", listen).env("NO_COLOR", "1");
        bash.env_remove("CROSSPOINT_SERVER").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        bash.stdin(Stdio::null()).stdout(file(&stdout)).stderr(file(&stderr));
        Terminal { shell: bash.spawn().expect("there is bash"), stdout, stderr }
    }

    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(&self.stdout).expect("it can be read")
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).expect("it can be read")
    }

    /// Waits until the shell has ended. What it started in the background may still run.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("the shell ends", || self.shell.try_wait().expect("it can be asked"))
    }

    /// What the lines printed, once they have ended well.
    pub(crate) fn printed(&mut self) -> String {
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "{}{}", self.stdout(), self.stderr());
        self.stdout()
    }

    /// Kills everything that was started in it.
    pub(crate) fn end(&mut self) {
        if let Some(group) = Pid::from_raw(self.shell.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.shell.wait();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}
