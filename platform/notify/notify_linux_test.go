package notify_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/notify"
)

// fake puts a program first on PATH. The program writes its arguments to a file, one per
// line.
func fake(t *testing.T, name string) (said func() string) {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	script := "#!/bin/sh\n/usr/bin/printf '%s\\n' \"$@\" >'" + out + "'\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	t.Setenv("PATH", dir)
	return func() string {
		data, _ := os.ReadFile(out)
		return string(data)
	}
}

func TestSend(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	said := fake(t, "notify-send")
	must.Do(t, notify.Send(context.Background(), "title", `-a <b> "c" & d`))
	if got, want := said(), "--app-name=tether\n--icon=dialog-question\n--\ntitle\n-a &lt;b&gt; \"c\" &amp; d\n"; got != want {
		t.Errorf("notify-send was told %q, want %q", got, want)
	}
	said = fake(t, "gdbus")
	must.Do(t, notify.Send(context.Background(), "title", `a "b"`))
	if got, want := said(), "\"title\"\n\"a \\\"b\\\"\"\n[]\n{}\n-1\n"; len(got) < len(want) || got[len(got)-len(want):] != want {
		t.Errorf("gdbus was told %q, want the end %q", got, want)
	}
}

func TestSendWithoutADesktop(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	t.Setenv("PATH", t.TempDir())
	if err := notify.Send(context.Background(), "title", "body"); !errors.Is(err, notify.ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
}
