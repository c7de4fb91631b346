package installer

import "strings"

// RunKey is the registry key, below HKEY_CURRENT_USER, whose values are run when the user logs on to Windows. RunValue is the name of ours.
const (
	RunKey   = `Software\Microsoft\Windows\CurrentVersion\Run`
	RunValue = Name
)

// LogonCommand returns the command line that starts the daemon of s at logon. The daemon goes on without a window of its own. A home
// directory is handed over as an argument, because a logon entry has no environment. s must have passed Check.
func LogonCommand(s Service) string {
	args := append([]string{s.Program, "service", "logon"}, s.homeArgs()...)
	for i, arg := range args {
		args[i] = windowsWord(arg)
	}
	return strings.Join(args, " ")
}

// windowsWord quotes one argument as CommandLineToArgvW takes it apart: a backslash is one unless it stands before a quote.
func windowsWord(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\"") {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			slashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, slashes+1))
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteByte(s[i])
	}
	b.WriteString(strings.Repeat(`\`, slashes))
	b.WriteByte('"')
	return b.String()
}

// homeArgs hand TETHER_HOME over where there is no environment to put it in.
func (s *Service) homeArgs() []string {
	if s.Home == "" {
		return nil
	}
	return []string{"--home", s.Home}
}
