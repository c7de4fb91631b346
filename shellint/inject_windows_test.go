package shellint_test

import (
	"slices"
	"testing"

	"tether/shellint"
)

// Paths of Windows survive the quoting of each shell.
func TestInjectPlansOnWindows(t *testing.T) {
	const dir = `C:\Users\o'neill`
	for _, c := range []struct {
		program, want string
		kind          shellint.Shell
	}{
		{`C:\Program Files\Git\bin\bash.exe`, `C:\Users\o'neill\bashrc`, shellint.ShellBash},
		{`C:\Program Files\PowerShell\7\pwsh.exe`, "if ($ExecutionContext.SessionState.LanguageMode -eq 'FullLanguage') " +
			`{ . ([ScriptBlock]::Create([IO.File]::ReadAllText('C:\Users\o''neill\tether.ps1'))) }`, shellint.ShellPowerShell},
		{`nu.exe`, `source "C:\\Users\\o'neill\\tether.nu"`, shellint.ShellNu},
		{`C:\Windows\System32\cmd.exe`, `C:\Windows\System32\cmd.exe`, shellint.ShellCmd},
	} {
		plan, err := shellint.Inject([]string{c.program}, shellint.InjectOptions{Nonce: testNonce, Dir: dir})
		if err != nil || plan.Kind != c.kind || !slices.Contains(plan.Argv, c.want) {
			t.Errorf("%s: %s, %q, %v; want %s with %q", c.program, plan.Kind, plan.Argv, err, c.kind, c.want)
		}
	}
}
