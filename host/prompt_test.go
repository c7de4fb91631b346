package host_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/host"
	"tether/internal/testkit"
)

// Short output reaches observers in order however it is sent, between long output and
// other short output, and an observer that reads nothing holds up neither the machine nor
// the others.
func TestShortOutputIsSentInOrder(t *testing.T) {
	_, url := serve(t, host.Options{LogBytes: 8 << 20, Scrollback: 8 << 20}) // no observer falls behind, however slow
	owner := dial(t, url, "laptop", viewOptions{resume: true})
	owner.create(uri)
	unread(t, url)
	var observers []*viewer
	for i := range 6 { // more than the reading goroutine writes to
		observers = append(observers, dial(t, url, fmt.Sprint("observer-", i), viewOptions{subs: []string{uri}}))
	}
	owner.await("the observers", func() bool { return owner.observers[uri] == 7 })
	var want strings.Builder
	for i := range testkit.Load(2000, 700) {
		text := fmt.Sprintf("%d ", i)
		if i%100 == 50 {
			text += strings.Repeat("x", 20<<10)
		}
		owner.output(uri, text, int64(want.Len()))
		want.WriteString(text)
		if i%10 == 0 {
			owner.await("an acknowledgement", func() bool { return owner.acks[uri] >= int64(want.Len())-64<<10 })
		}
	}
	for _, v := range observers {
		v.await("everything", func() bool { return v.text[uri].Len() == want.Len() })
		if v.textOf(uri) != want.String() {
			t.Errorf("observer %s has other text", v.id)
		}
	}
}
