package notify_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"tether/agent/config"
	"tether/agent/notify"
)

// collected gathers a rule's messages.
type collected struct {
	mu   sync.Mutex
	sent []notify.Message
}

func (c *collected) send(m notify.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, m)
}

func (c *collected) all() []notify.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

func (c *collected) texts() (all []string) {
	for _, m := range c.all() {
		all = append(all, m.Text)
	}
	return all
}

// A burst is one message, and the next one comes a while after.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got collected
		r := notify.NewRule(config.Notify{Name: "a"}, got.send)
		began := time.Now()
		for n := range 40 {
			r.Add(fmt.Sprint("news ", n))
		}
		time.Sleep(notify.Gather - time.Millisecond)
		synctest.Wait()
		if len(got.all()) != 0 {
			t.Fatalf("sent before the burst was over: %v", got.texts())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if want := "news 0\nnews 1\nnews 2\nnews 3\n(35 left out)\nnews 39"; len(got.all()) != 1 || got.all()[0].Text != want || got.all()[0].Count != 40 {
			t.Fatalf("got %q", got.texts())
		}
		r.Add("one more")
		time.Sleep(notify.Apart)
		synctest.Wait()
		if len(got.all()) != 2 || got.all()[1].Text != "one more" || got.all()[1].At.Sub(began) != notify.Gather+notify.Apart {
			t.Errorf("the next is %q after %v", got.texts(), got.all()[len(got.all())-1].At.Sub(began))
		}
	})
}

// Beyond the messages of an hour, one says how much was left out.
func TestPerHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got collected
		r := notify.NewRule(config.Notify{Name: "a", PerHour: 3}, got.send)
		for n := range 30 {
			r.Add(fmt.Sprint("news ", n))
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if len(got.all()) != 3 {
			t.Fatalf("%d messages in the first half hour: %q", len(got.all()), got.texts())
		}
		time.Sleep(31 * time.Minute)
		synctest.Wait()
		if len(got.all()) != 4 || got.all()[3].Count != 27 || !strings.Contains(got.all()[3].Text, "(22 left out)") {
			t.Errorf("after the hour: %+v", got.all()[3:])
		}
	})
}

// In quiet hours nothing is sent; afterwards, one message tells all of it.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins on the first of January 2000 at midnight UTC
		begin := time.Now().Local()
		quiet := begin.Add(-time.Hour).Format("15:04") + "-" + begin.Add(2*time.Hour).Format("15:04")
		var got collected
		r := notify.NewRule(config.Notify{Name: "a", Quiet: quiet}, got.send)
		r.Add("one")
		time.Sleep(time.Hour)
		r.Add("two")
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if len(got.all()) != 0 {
			t.Fatalf("sent in quiet hours: %q", got.texts())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(got.texts(), []string{"one\ntwo"}) {
			t.Errorf("after them: %q", got.texts())
		}
	})
}

// The next daemon sends what was gathered, at its time, and knows how much was sent.
func TestNextDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got collected
		rule := config.Notify{Name: "a", PerHour: 1}
		r, next := notify.NewRule(rule, got.send), notify.NewRule(rule, got.send)
		r.Add("one")
		time.Sleep(notify.Gather)
		synctest.Wait()
		for n := range 9 {
			r.Add(fmt.Sprint("news ", n))
		}
		synctest.Wait()
		r.Hand(next)
		r.Add("too late")
		time.Sleep(time.Hour - notify.Gather)
		synctest.Wait()
		if len(got.all()) != 1 {
			t.Fatalf("the next daemon forgets the hour: %q", got.texts())
		}
		time.Sleep(notify.Gather)
		synctest.Wait()
		if len(got.all()) != 2 || got.all()[1].Count != 9 || !strings.HasPrefix(got.all()[1].Text, "news 0\n") || !strings.HasSuffix(got.all()[1].Text, "(4 left out)\nnews 8") {
			t.Errorf("it sends %+v", got.all()[1:])
		}
	})
}

// A message is at most 500 characters, cut between two of them.
func TestLength(t *testing.T) {
	for n := range 12 {
		synctest.Test(t, func(t *testing.T) {
			var got collected
			r := notify.NewRule(config.Notify{Name: "a"}, got.send)
			for range n + 1 {
				r.Add(strings.Repeat("日本é", 400))
			}
			time.Sleep(notify.Gather)
			synctest.Wait()
			text := got.all()[0].Text
			if !utf8.ValidString(text) || utf8.RuneCountInString(text) > notify.MaxText || utf8.RuneCountInString(text) < notify.MaxText/3 {
				t.Errorf("%d events: %d characters: %q", n+1, utf8.RuneCountInString(text), text)
			}
			if n > 5 && !strings.Contains(text, fmt.Sprintf("(%d left out)", n+1-5)) {
				t.Errorf("%d events: %q", n+1, text)
			}
		})
	}
}
