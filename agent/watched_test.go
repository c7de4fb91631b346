package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/policy"
	"tether/vocab"
)

// Watches are recorded with their beginning and end, at most once a minute.
func TestWatchLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		l := watchLog{audit: func(ev policy.Event) {
			lines = append(lines, fmt.Sprintf("%s %s@%s %s", time.Now().UTC().Format("15:04"), ev.Terminal, ev.Host, ev.Detail))
		}}
		ann := vocab.Watcher{Who: "ann", Kind: "person", Since: time.Now()}
		l.note("lab", "pty-a", []vocab.Watcher{ann})
		for range 500 { // comes and goes for some minutes
			time.Sleep(time.Second)
			l.note("lab", "pty-a", nil)
			l.note("lab", "pty-a", []vocab.Watcher{ann})
		}
		time.Sleep(time.Second)
		l.note("lab", "pty-b", nil)
		l.note("lab", "pty-a", nil)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		want := []string{
			"00:00 pty-a@lab ann (person) watches since 2000-01-01T00:00:00Z, as the host says",
			"00:09 pty-a@lab ann (person) watched from 2000-01-01T00:00:00Z until 2000-01-01T00:08:21Z, as the host says",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("written:\n%s", strings.Join(lines, "\n"))
		}
		if len(l.all) > 0 || l.sweeper != nil {
			t.Errorf("%d are remembered", len(l.all))
		}
		lines = nil
		var many []vocab.Watcher
		for i := range 1000 { // a hostile host
			many = append(many, vocab.Watcher{Who: fmt.Sprint("x", i), Since: time.Now()})
		}
		l.note("lab", "pty-a", many)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if len(lines) != maxFresh+1 || !strings.Contains(lines[maxFresh], "872 more") {
			t.Errorf("%d records; %q", len(lines), lines[len(lines)-1])
		}
		lines = nil
		l.close()
		l.note("lab", "pty-a", many)
		if len(lines) != maxFresh || !strings.Contains(lines[0], "until") {
			t.Errorf("%d records at the end", len(lines))
		}
	})
}
