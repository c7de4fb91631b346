package host_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/host"
)

// Text that a program has drawn long ago is on the screen, although the host has not kept it, until output is missing.
func TestScreenOfTrimmedText(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot"), Scrollback: 64 << 10})
	agent, err := overHTTP(t, url, "agent-bot", nil)
	if err != nil {
		t.Fatal(err)
	}
	const uri = "ahp-terminal:/dev"
	laptop := as(t, url, "machine-laptop", "laptop-id", viewOptions{})
	laptop.create(uri)
	laptop.output(uri, "\x1b[?1049h\x1b[2J\x1b[HTHE HEADER\x1b[3;1H", -1)
	for i := 0; i < 20_000; {
		var b strings.Builder
		for ; i < 20_000 && b.Len() < 8<<10; i++ {
			fmt.Fprintf(&b, "\x1b[4;1H\x1b[Kcounter %d", i)
		}
		laptop.output(uri, b.String(), -1)
	}
	laptop.ping()
	var all []listed
	use(t, agent, "list_terminals", nil, &all)
	type shown struct {
		History   string
		Truncated bool
	}
	read := func() (s shown) {
		t.Helper()
		use(t, agent, "read_terminal", map[string]any{"terminalId": all[0].ID, "format": "screen"}, &s)
		return s
	}
	if got, want := read(), (shown{History: "THE HEADER\n\n\ncounter 19999"}); got != want {
		t.Errorf("the screen is %+v, want %+v", got, want)
	}
	laptop.output(uri, "after a gap", 1<<30)
	laptop.ping()
	if got := read(); !got.Truncated || !strings.Contains(got.History, "after a gap") {
		t.Errorf("after a gap the screen is %+v, want truncated", got)
	}
	laptop.output(uri, "\x1b[2J\x1b[Hclear", -1)
	laptop.ping()
	if got, want := read(), (shown{History: "clear"}); got != want {
		t.Errorf("after it was cleared the screen is %+v, want %+v", got, want)
	}
}
