//go:build unix

package installer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// show returns the unit's properties.
func (m *systemd) show(ctx context.Context) (map[string]string, error) {
	out, err := m.systemctl(ctx, "show", "--property=LoadState,ActiveState,SubState,UnitFileState,FragmentPath,MainPID,Result", UnitName)
	shown := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		shown[name] = value
	}
	return shown, err
}

// Status implements Manager.
func (m *systemd) Status(ctx context.Context) (Status, error) {
	path, err := m.path(ctx)
	if err != nil {
		return Status{}, err
	}
	shown, err := m.show(ctx)
	if err != nil {
		return Status{}, err
	}
	st := Status{
		Installed: shown["LoadState"] != "not-found", Path: shown["FragmentPath"],
		Enabled: strings.HasPrefix(shown["UnitFileState"], "enabled"), Running: shown["ActiveState"] == "active",
		State: shown["ActiveState"] + " (" + shown["SubState"] + ")",
	}
	_, s, found, err := installed(path)
	if errors.Is(err, fs.ErrPermission) {
		err = nil // everything else is known from show
	}
	if _, ok := errors.AsType[*Problem](err); ok {
		err = nil // a unit of another program
	}
	if found {
		st.Installed, st.Path, st.Service = true, path, s
	}
	m.advise(&st, shown)
	return st, err
}

func (m *systemd) advise(st *Status, shown map[string]string) {
	if !st.Installed {
		return
	}
	if result := shown["Result"]; st.State != "" && result != "" && result != "success" && !st.Running {
		st.State += ", " + result
		st.Advice = append(st.Advice, "tether service logs says why it failed")
	}
	if !st.Enabled {
		st.Advice = append(st.Advice, "the service does not start by itself: tether service install")
	}
	if name := st.Service.User; name != "" && !m.lingers(name) {
		st.Advice = append(st.Advice, "it starts when "+name+" logs in and ends with the last logout; to have it from the start of the machine on: loginctl enable-linger "+name)
	}
}

// Printed implements Manager.
func (m *systemd) Printed(lines int, follow bool) []string {
	argv := []string{"journalctl", "--no-pager", "--output=cat", "--lines=" + strconv.Itoa(lines)}
	if m.system {
		argv = append(argv, "--unit="+UnitName)
	} else {
		argv = append(argv, "--user", "--user-unit="+UnitName)
	}
	if follow {
		argv = append(argv, "--follow")
	}
	return argv
}

// lastLines is the number of lines shown of a service that does not start. wordsPatience
// is how long the journal may take to have them, because it writes with a delay;
// wordsPause is the time between two looks.
const (
	lastLines     = 6
	wordsPatience = 5 * time.Second
	wordsPause    = 50 * time.Millisecond
)

// lastLogLines returns the last lines that the service itself, not systemd, has printed
// since then, or "" if there are none.
func (m *systemd) lastLogLines(ctx context.Context, since time.Time) string {
	argv := []string{"--no-pager", "--quiet", "--output=cat", "--lines=" + strconv.Itoa(lastLines), fmt.Sprintf("--since=@%d", since.Unix())}
	if m.system {
		argv = append(argv, "_SYSTEMD_UNIT="+UnitName)
	} else {
		// The journal does not know the unit of a program that ended before the journal
		// looked it up, but always the program's name.
		argv = append(argv, "--user", "_SYSTEMD_USER_UNIT="+UnitName, "+", "SYSLOG_IDENTIFIER="+strings.TrimSuffix(UnitName, ".service"))
	}
	for end := time.Now().Add(wordsPatience); ; {
		said, err := m.run(ctx, "journalctl", argv...)
		said = strings.TrimSpace(said)
		if said != "" || err != nil || time.Now().After(end) {
			return said
		}
		time.Sleep(wordsPause)
	}
}
