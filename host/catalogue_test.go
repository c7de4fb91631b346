package host

import (
	"context"
	"testing"
	"time"
)

// Who waits for changes of the list hears of a machine that goes away and of its
// terminals that go.
func TestCatalogueReportsChanges(t *testing.T) {
	h := New(Options{})
	defer h.Close()
	c := h.terminals.View(nil)
	now, err := c.Changed(t.Context(), 0)
	if err != nil || now == 0 {
		t.Fatalf("the first version is %d, %v", now, err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Changed(short, now); err == nil {
		t.Error("it changed by itself")
	}
	told := make(chan uint64, 1)
	go func() { v, _ := c.Changed(t.Context(), now); told <- v }()
	NewFeed(h, "ahp-terminal:/new")
	if v := <-told; v == now {
		t.Error("the version is what it was")
	}
}
