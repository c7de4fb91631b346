package installer

import (
	"fmt"
	"net"
	"os"
)

// fromSystemd are the variables that systemd sets for the daemon's process alone. A shell
// in a terminal that inherited them could send messages to systemd in the daemon's name.
var fromSystemd = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
	"JOURNAL_STREAM", "INVOCATION_ID", "SYSTEMD_EXEC_PID", "MANAGERPID"}

// Notifier returns a function that tells the service manager a state, such as "READY=1"
// (sd_notify(3)). If no service manager listens, the function does nothing. Notifier
// removes the variables that are meant for this process alone from the environment, so
// call it before starting another process.
func Notifier() func(state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	for _, name := range fromSystemd {
		os.Unsetenv(name)
	}
	if address == "" {
		return func(string) error { return nil }
	}
	return func(state string) error {
		conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			return fmt.Errorf("tell the service manager %s: %w", state, err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(state)); err != nil {
			return fmt.Errorf("tell the service manager %s: %w", state, err)
		}
		return nil
	}
}
