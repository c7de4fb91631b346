package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit/check"
)

func TestPlaces(t *testing.T) {
	env := map[string]string{
		"ProgramFiles": `C:\Program Files`, "SystemRoot": `C:\Windows\`, "ComSpec": `D:\cmd.exe`, "LOCALAPPDATA": `C:\Users\u\AppData\Local`,
		"PATH": `C:\Windows;"D:\ps 7\";relative;;\\server\tools;D:\Git\cmd`,
	}
	getenv := func(name string) string { return env[name] }
	for _, c := range []struct {
		name, git string
		want      []string
	}{
		{"pwsh", "", []string{`C:\Program Files\PowerShell\7\pwsh.exe`, `C:\Windows\pwsh.exe`, `D:\ps 7\pwsh.exe`, `\\server\tools\pwsh.exe`,
			`D:\Git\cmd\pwsh.exe`, `C:\Users\u\AppData\Local\Microsoft\WindowsApps\pwsh.exe`}},
		{"PowerShell.exe", "", []string{`C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`}},
		{"cmd", "", []string{`D:\cmd.exe`, `C:\Windows\System32\cmd.exe`}},
		{"bash", `E:\Git\`, []string{`E:\Git\bin\bash.exe`, `C:\Program Files\Git\bin\bash.exe`,
			`C:\Users\u\AppData\Local\Programs\Git\bin\bash.exe`, `D:\Git\bin\bash.exe`}},
		{"zsh", `E:\Git`, nil},
		{"", "", nil},
	} {
		got := places(c.name, getenv, c.git)
		got = slices.DeleteFunc(got, func(p string) bool { return strings.Contains(p, "Windows\\bin") || strings.Contains(p, "tools\\bin") })
		check.Equal(t, fmt.Sprintf("%q:", c.name), c.want, got)
	}
	if got := places("pwsh", func(string) string { return "" }, ""); len(got) > 0 {
		t.Errorf("without an environment: %q", got)
	}
	for _, kind := range windowsKinds {
		if len(places(kind, getenv, "")) == 0 {
			t.Errorf("%s is nowhere", kind)
		}
	}
}

func TestFindLeavesOthersAlone(t *testing.T) {
	for _, name := range []string{"", "zsh", "/bin/sh", "./sh", `C:\x\sh.exe`, "bash -l"} {
		if got := Find(name); got != name {
			t.Errorf("Find(%q) = %q", name, got)
		}
	}
}
