package notify

import (
	"context"
	"fmt"
	"os/exec"
)

func available() bool { return true }

func send(ctx context.Context, title, body string) error {
	script := []string{"-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run"}
	if err := exec.CommandContext(ctx, "/usr/bin/osascript", append(script, title, body)...).Run(); err != nil {
		return fmt.Errorf("osascript: %w", err)
	}
	return nil
}
