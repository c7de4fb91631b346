package notify

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// send uses a program that desktops include: notify-send, or gdbus if that is missing.
func send(ctx context.Context, title, body string) error {
	bus := busAddress()
	if bus == "" {
		return ErrUnsupported
	}
	for _, argv := range [][]string{
		{"notify-send", "--app-name=tether", "--icon=dialog-question", "--", title, markup(body)},
		{"gdbus", "call", "--session", "--dest=org.freedesktop.Notifications", "--object-path=/org/freedesktop/Notifications",
			"--method=org.freedesktop.Notifications.Notify", "--", gvariant("tether"), "0", gvariant("dialog-question"), gvariant(title), gvariant(markup(body)), "[]", "{}", "-1"},
	} {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			continue
		}
		cmd := exec.CommandContext(ctx, path, argv[1:]...)
		cmd.Env = append(os.Environ(), "DBUS_SESSION_BUS_ADDRESS="+bus)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %.200s", argv[0], err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	return ErrUnsupported
}

func available() bool {
	return busAddress() != "" && slices.ContainsFunc([]string{"notify-send", "gdbus"}, func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	})
}

// busAddress returns the address of the session's bus, or "" if there is none. Without an
// address, programs would start a bus.
func busAddress() string {
	if bus := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); bus != "" {
		return bus
	}
	path := filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "bus")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return "unix:path=" + path
}

// markup returns text in the markup language of notifications' bodies.
func markup(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// gvariant returns text as a string in the format that gdbus reads.
func gvariant(text string) string { return strconv.Quote(text) }
