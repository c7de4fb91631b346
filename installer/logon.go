package installer

import "strings"

// RunKey is the registry key, below HKEY_CURRENT_USER, whose values Windows runs when the
// user logs on. RunValue is the name of tether's value.
const (
	RunKey   = `Software\Microsoft\Windows\CurrentVersion\Run`
	RunValue = Name
)

// LogonCommand returns the command line that starts the daemon of s at logon. The daemon
// then runs without a window of its own. s.Home is passed as an argument, because a logon
// entry cannot set environment variables. s must have passed Check.
func LogonCommand(s Service) string {
	args := append([]string{s.Program, "service", "logon"}, s.homeArgs()...)
	for i, arg := range args {
		args[i] = windowsWord(arg)
	}
	return strings.Join(args, " ")
}

// windowsWord quotes one argument for CommandLineToArgvW, which takes a backslash
// literally unless a quote follows it.
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

// homeArgs returns the arguments that pass TETHER_HOME where the environment cannot be
// set.
func (s *Service) homeArgs() []string {
	if s.Home == "" {
		return nil
	}
	return []string{"--home", s.Home}
}
