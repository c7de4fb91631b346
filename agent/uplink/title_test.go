package uplink_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/ahp"
	"tether/host"
)

// titles are the titles that a host was sent from a time on.
func (c *capture) titles(since time.Time) (all []string) {
	for _, frame := range c.since(since) {
		if _, rest, ok := strings.Cut(frame, `"`+ahp.ActionTerminalTitleChanged+`"`); ok {
			all = append(all, rest)
		}
	}
	return all
}

// A program that counts in its title costs the host a few actions a second, and the last
// title always arrives.
func TestTitlesArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &capture{}
		w := captured(t, c, term.Options{})
		w.online()
		_, child := w.spawn(term.Spec{Name: "web"})
		began := time.Now()
		prints(child, "\x1b]0;first\a")
		if told := c.titles(began); len(told) != 1 {
			t.Errorf("the first of all: %q, want to be told at once", told)
		}
		const seconds, perSecond = 2, 10_000
		for i := range seconds * 1000 {
			var b strings.Builder
			for j := range perSecond / 1000 {
				fmt.Fprintf(&b, "\x1b]0;%d of %d\a", j, i)
			}
			child.Print(b.String())
			time.Sleep(time.Millisecond)
		}
		child.Print("\x1b]0;last\a")
		time.Sleep(time.Second)
		told := c.titles(began)
		if n := len(told); n < seconds || n > 5*seconds {
			t.Errorf("%d titles in a second for %d s were told as %d", perSecond, seconds, n)
		}
		if got := told[len(told)-1]; !strings.Contains(got, `"last"`) {
			t.Errorf("the last that was told is %s", got)
		}
		// After a pause a title is sent at once, and the next one waits; a change and its
		// reversal are no change.
		quiet := time.Now()
		prints(child, "\x1b]0;again\a")
		prints(child, "\x1b]0;soon\a")
		child.Print("\x1b]0;again\a")
		time.Sleep(time.Second)
		if told := c.titles(quiet); len(told) != 1 || !strings.Contains(told[0], `"again"`) {
			t.Errorf("%q were told, want one", told)
		}
	})
}

// A title that waits is told before the exit, and after a connection was lost.
func TestTheLastTitleIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.online()
		_, child := w.spawn(term.Spec{Name: "web"})
		prints(child, "\x1b]0;one\a")
		prints(child, "\x1b]0;two\a")
		w.cut(false)
		w.online()
		time.Sleep(time.Minute)
		if s := w.only(); s.Title != "two" {
			t.Errorf("after the link came back it shows %q, want two", s.Title)
		}
		prints(child, "\x1b]0;three\a")
		child.Print("\x1b]0;failed\a")
		child.End(1)
		synctest.Wait()
		if s := w.only(); s.Title != "failed" || !s.Lifecycle.Exited() {
			t.Errorf("it ended as %q, %+v; want failed", s.Title, s.Lifecycle)
		}
	})
}

// A title that waits when the connection is lost is sent after it, even if the host has
// all later output, and the next one is compared with the host's title.
func TestATitleThatWaitsOutlivesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.online()
		_, child := w.spawn(term.Spec{Name: "web"})
		prints(child, "\x1b]0;one\a")
		child.Print("\x1b]0;two\aoutput after it")
		time.Sleep(10 * time.Millisecond) // it is acknowledged
		w.cut(false)
		w.online()
		time.Sleep(time.Minute)
		if s := w.only(); s.Title != "two" {
			t.Errorf("after the link came back it shows %q, want two", s.Title)
		}
		child.Print("\x1b]0;one\a")
		time.Sleep(time.Second)
		if s := w.only(); s.Title != "one" {
			t.Errorf("then it shows %q, want one", s.Title)
		}
	})
}
