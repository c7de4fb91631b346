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

// Questions about earlier runs are recorded, one a minute for who asks and the terminal.
func TestQuestionsAboutRunsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		l := watchLog{audit: func(ev policy.Event) { lines = append(lines, fmt.Sprint(ev.Terminal, "@", ev.Host, " ", ev.Detail)) }}
		for range 3 {
			l.asked("lab", "", "agent:bot")
			l.asked("lab", "pty-a", "agent:bot")
			l.asked("lab", "", "")
			time.Sleep(10 * time.Second)
		}
		want := []string{"@lab agent:bot asks about earlier runs, as the host says", "pty-a@lab agent:bot asks about earlier runs, as the host says", "@lab somebody asks about earlier runs, as the host says"}
		if !slices.Equal(lines, want) {
			t.Errorf("written:\n%s", strings.Join(lines, "\n"))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(l.all) > 0 || l.sweeper != nil || len(lines) != len(want) {
			t.Errorf("%d are remembered; %q", len(l.all), lines)
		}
		l.asked("lab", "", "agent:bot")
		for i := range 1000 { // a hostile host
			l.asked("lab", "", fmt.Sprint("x", i))
		}
		if len(lines) != len(want)+maxFresh {
			t.Errorf("%d records", len(lines))
		}
		l.close()
		l.asked("lab", "", "late")
		if len(lines) != len(want)+maxFresh {
			t.Errorf("at the end: %q", lines[len(want)+maxFresh:])
		}
	})
}

// Requests to lent ports are recorded once, and then counted once a minute.
func TestWatchLogOfPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		l := watchLog{audit: func(ev policy.Event) {
			lines = append(lines, fmt.Sprintf("%s %s %s@%s %s", time.Now().UTC().Format("15:04:05"), ev.Type, ev.Terminal, ev.Host, ev.Detail))
		}}
		l.fetched("lab", "pty-a", 3000, "ann")
		time.Sleep(time.Second)
		for range 60 { // 2 min
			l.fetched("lab", "pty-a", 3000, "ann")
			time.Sleep(2 * time.Second)
		}
		l.fetched("lab", "pty-a", 3001, "")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		l.fetched("lab", "pty-a", 3000, "ann")
		l.fetched("lab", "pty-a", 3000, "ann")
		l.close()
		want := []string{
			"00:00:00 fetch pty-a@lab ann asks port 3000, as the host says",
			"00:01:00 fetch pty-a@lab ann has asked port 3000 30 more times since 2000-01-01T00:00:00Z, as the host says",
			"00:02:00 fetch pty-a@lab ann has asked port 3000 30 more times since 2000-01-01T00:01:00Z, as the host says",
			"00:02:01 fetch pty-a@lab somebody asks port 3001, as the host says",
			"00:07:01 fetch pty-a@lab ann asks port 3000, as the host says",
			"00:07:01 fetch pty-a@lab ann has asked port 3000 1 more times since 2000-01-01T00:07:01Z, as the host says",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("written:\n%s", strings.Join(lines, "\n"))
		}
		if len(l.all) > 0 {
			t.Errorf("%d are remembered", len(l.all))
		}
	})
}
