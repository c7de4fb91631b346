package installer

import (
	"fmt"
	"strings"
)

// UnitName is the file name of the systemd unit.
const UnitName = Name + ".service"

// madeBy is in every file that Install writes. A file without it belongs to another
// program and is never overwritten.
const madeBy = "Made by tether service install. Removed by tether service uninstall."

// unit is written so that:
//   - the processes that hold terminals outlive a restart of the daemon: only
//     the daemon is killed (KillMode), and a holder that the kernel kills for
//     lack of memory does not stop the service (OOMPolicy);
//   - a crash is followed by a restart within two seconds, a wrong
//     configuration (exit code 2) does not cause a restart;
//   - no restriction affects programs in terminals: every restriction
//     of the daemon also applies to every shell in it.
const unit = `# ` + madeBy + `
# %[5]s
[Unit]
Description=tether: lends terminals of this machine to agent hosts
Documentation=man:tether(1)
%[1]sStartLimitIntervalSec=60
StartLimitBurst=20

[Service]
Type=notify
NotifyAccess=main
%[2]sExecStart=%[3]s
Restart=on-failure
RestartSec=500ms
RestartPreventExitStatus=2
KillMode=process
TimeoutStopSec=10
OOMPolicy=continue

[Install]
WantedBy=%[4]s
`

// SystemdUnit returns the unit of s: of the user's own manager, or of the machine if
// s.System. s must have passed Check.
func SystemdUnit(s Service) string {
	var after, settings strings.Builder
	target := "default.target"
	if s.System {
		// The daemon's socket is in the user's runtime directory, where shells of that
		// user look for it. So the unit waits for that directory.
		target = "multi-user.target"
		fmt.Fprintf(&after, "Wants=user-runtime-dir@%d.service\nAfter=user-runtime-dir@%d.service\n", s.UID, s.UID)
		fmt.Fprintf(&settings, "User=%s\n", s.User)
		fmt.Fprintf(&settings, "WorkingDirectory=%s\n", unitPath(s.UserHome))
		fmt.Fprintf(&settings, "Environment=XDG_RUNTIME_DIR=/run/user/%d\n", s.UID)
	}
	for _, e := range s.environment() {
		fmt.Fprintf(&settings, "Environment=%s\n", unitWord(e))
	}
	command := append([]string{unitWord(s.Program)}, s.args()...)
	return fmt.Sprintf(unit, after.String(), settings.String(), strings.Join(command, " "), target, s.record())
}

// unitWord quotes one word by the rules of systemd.syntax(7). It does not quote dollar
// signs: systemd takes them literally in Environment= and in the path of a program, and
// unitWord is used only for these.
func unitWord(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(s)
	if s == "" || strings.ContainsAny(s, " \t'\"\\;") {
		return `"` + s + `"`
	}
	return s
}

// unitPath quotes the value of a setting that is a single path, which systemd does not
// split into words.
func unitPath(s string) string { return strings.ReplaceAll(s, "%", "%%") }
