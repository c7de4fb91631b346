package installer

import (
	"encoding/xml"
	"strings"
)

// PlistName is the file name of the launchd property list.
const PlistName = Label + ".plist"

// LaunchdPlist returns the property list of s: a LaunchAgent of the user, or with
// s.System a LaunchDaemon that runs as s.User. log is the absolute path of a file for the
// daemon's output before it has its own log. s must have passed Check.
//
// AbandonProcessGroup lets the processes that hold terminals outlive the daemon,
// KeepAlive starts it again after a crash and not after tether stop, and ProcessType
// keeps macOS from slowing down programs in the terminals.
func LaunchdPlist(s Service, log string) string {
	p := plist{}
	p.open(s.record())
	p.entry("Label", text(Label))
	p.entry("ProgramArguments", array(append([]string{s.Program}, s.args()...)))
	if env := s.environment(); len(env) > 0 {
		p.entry("EnvironmentVariables", dict(env))
	}
	if s.System {
		p.entry("UserName", text(s.User))
		p.entry("WorkingDirectory", text(s.UserHome))
	}
	p.entry("RunAtLoad", "<true/>")
	p.entry("KeepAlive", "<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>")
	p.entry("ThrottleInterval", "<integer>1</integer>")
	p.entry("ExitTimeOut", "<integer>10</integer>")
	p.entry("AbandonProcessGroup", "<true/>")
	p.entry("ProcessType", text("Interactive"))
	p.entry("StandardOutPath", text(log))
	p.entry("StandardErrorPath", text(log))
	return p.close()
}

type plist struct{ strings.Builder }

func (p *plist) open(record string) {
	p.WriteString(xml.Header)
	p.WriteString(`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n")
	p.WriteString("<!-- " + madeBy + " -->\n")
	p.WriteString("<!-- " + strings.ReplaceAll(record, "-", `\u002d`) + " -->\n") // XML has no -- in comments
	p.WriteString("<plist version=\"1.0\">\n<dict>\n")
}

func (p *plist) entry(key, value string) {
	p.WriteString("\t<key>" + key + "</key>\n\t" + value + "\n")
}

func (p *plist) close() string {
	p.WriteString("</dict>\n</plist>\n")
	return p.String()
}

func text(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return "<string>" + b.String() + "</string>"
}

func array(all []string) string {
	var b strings.Builder
	b.WriteString("<array>\n")
	for _, s := range all {
		b.WriteString("\t\t" + text(s) + "\n")
	}
	b.WriteString("\t</array>")
	return b.String()
}

func dict(entries []string) string {
	var b strings.Builder
	b.WriteString("<dict>\n")
	for _, e := range entries {
		name, value, _ := strings.Cut(e, "=")
		b.WriteString("\t\t<key>" + name + "</key>\n\t\t" + text(value) + "\n")
	}
	b.WriteString("\t</dict>")
	return b.String()
}
