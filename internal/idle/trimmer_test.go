package idle

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func forcedCollections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
}

// The process returns memory once each time it becomes idle, not while it is active, and
// not again while it stays idle.
func TestMemoryIsHandedBackOncePerPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = time.Second
		trimmer, before := New(after), forcedCollections()
		go trimmer.Run(t.Context())
		time.Sleep(time.Hour)
		if n := forcedCollections() - before; n != 0 {
			t.Errorf("%d collections although nothing happened", n)
		}
		for range 10 {
			trimmer.Stir()
			time.Sleep(after / 2)
		}
		if n := forcedCollections() - before; n != 0 {
			t.Errorf("%d collections while the process was busy", n)
		}
		time.Sleep(time.Hour)
		if n := forcedCollections() - before; n != 2 {
			t.Errorf("%d collections after the pause, want two", n)
		}
	})
}
