package change

import "testing"

func TestSignal(t *testing.T) {
	var s Signal
	s.Raise() // nobody waits
	first := s.Next()
	if s.Next() != first || !s.Awaited() {
		t.Error("two who wait for the same change have different channels")
	}
	select {
	case <-first:
		t.Fatal("it is closed before a change")
	default:
	}
	s.Raise()
	<-first
	if s.Awaited() || s.Next() == first {
		t.Error("the next change has the channel of the last one")
	}
}
