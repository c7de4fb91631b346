package holder_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/holder"
)

// A daemon that keeps up with a flood gets it in few pieces, not one for each
// read of the pty; what comes after a silence it gets at once.
func TestFloodComesInFewPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{LogBytes: 1 << 20})
		c := b.stream(0)
		const piece, pieces = 1500, 400
		go func() {
			for i := range int64(pieces) {
				<-b.print(i*piece, piece)
				time.Sleep(75 * time.Microsecond) // 20 MB/s
			}
		}()
		reads, got := 0, int64(0)
		buf := make([]byte, 64<<10)
		for got < piece*pieces {
			n, err := c.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := checkCount(buf[:n], got); wrong >= 0 {
				t.Fatalf("wrong at %d", wrong)
			}
			got += int64(n)
			reads++
		}
		if most := pieces / 10; reads > most {
			t.Errorf("%d pieces for %d reads of the pty, want at most %d", reads, pieces, most)
		}

		for range 10 {
			time.Sleep(5 * time.Millisecond)
			began := time.Now()
			<-b.print(got, 10)
			b.take(c, got, 10)
			got += 10
			if waited := time.Since(began); waited > 0 {
				t.Errorf("a key's echo waited %v", waited)
			}
		}
		c.Close()
		b.end()
	})
}
