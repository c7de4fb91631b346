package mcp_test

import (
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit/must"
)

// Hidden parts of the stream count in offsets but are not in the text. A client that
// continues to read, in pages of any size, still gets all text once.
func TestReadOnOverHiddenParts(t *testing.T) {
	f, x := withTerminal("pty-a")
	var want strings.Builder
	for i := range 300 {
		x.hide(int64(10 + i%7))
		line := fmt.Sprintf("prompt %d$ ", i)
		x.print(line)
		x.hide(33)
		x.print("ls\r\n")
		want.WriteString(line + "ls\n")
	}
	x.print("end")
	x.hide(5)
	want.WriteString("end")
	session := one(t, f)
	for _, size := range []int{1, 20, 64, 100, 1000, 5000, 64 << 10} {
		var got strings.Builder
		cursor := int64(0)
		for more := true; more; {
			r := read(t, session, m{"terminalId": "pty-a", "since": cursor, "maxBytes": size})
			if r.More && r.Cursor <= cursor {
				t.Fatalf("pages of %d: stuck at %d", size, cursor)
			}
			if size >= 64 {
				got.WriteString(r.History)
			}
			cursor, more = r.Cursor, r.More
		}
		if cursor != x.Info().End {
			t.Errorf("pages of %d end at %d of %d", size, cursor, x.Info().End)
		}
		if size >= 64 && got.String() != want.String() { // a page smaller than a reader's buffer is a part of it
			t.Errorf("pages of %d: %d bytes, want %d", size, got.Len(), want.Len())
		}
	}
	if r := read(t, session, m{"terminalId": "pty-a"}); r.History != want.String() || r.Cursor != x.Info().End {
		t.Errorf("all at once: %d bytes, cursor %d", len(r.History), r.Cursor)
	}
}

// The terminal's size decides where its lines break. The size changes between the two
// outputs.
func TestReadOverResizes(t *testing.T) {
	f, x := withTerminal("pty-a")
	x.print(strings.Repeat("a", 80) + "b\r\n")
	x.add(agenttools.Event{Resized: &[2]int{40, 10}})
	x.print(strings.Repeat("c", 40) + "\rd\r\n")
	session := one(t, f)
	want := strings.Repeat("a", 80) + "b\nd" + strings.Repeat("c", 39) + "\n"
	if r := read(t, session, m{"terminalId": "pty-a"}); r.History != want {
		t.Errorf("got %q, want %q", r.History, want)
	}
	if r := read(t, session, m{"terminalId": "pty-a", "format": "raw"}); !strings.Contains(r.History, "\rd\r\n") {
		t.Errorf("raw: %q", r.History)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	f := &fakeTerminals{}
	for i := range 300 {
		f.add(fmt.Sprintf("pty-%d", i), agenttools.OwnerUser)
	}
	session := one(t, f)
	subscribe := func(i int) error {
		return session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: fmt.Sprintf("terminal:///pty-%d", i)})
	}
	for i := range 256 {
		must.Do(t, subscribe(i))
	}
	if err := subscribe(256); err == nil || !strings.Contains(err.Error(), "256 terminals are subscribed, the maximum") {
		t.Errorf("one more: %v", err)
	}
	if err := subscribe(3); err != nil {
		t.Errorf("one of them again: %v", err)
	}
	must.Do(t, session.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: "terminal:///pty-0"}))
	if err := subscribe(256); err != nil {
		t.Errorf("in the place of another: %v", err)
	}
	if err := session.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: "terminal:///pty-nosuch"}); err != nil {
		t.Errorf("leaving what one was never in: %v", err)
	}
}
