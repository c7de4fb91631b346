package holder_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/holder"
	"tether/internal/testkit"
)

// A daemon that keeps up with a flood gets it in few pieces, not one for each read of the pty; output after a silence arrives at once.
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

// tryable is a child that is read in bursts.
type tryable struct{ fake }

// TryRead returns output that is there already; a fake has none.
func (tryable) TryRead([]byte) int { return 0 }

// A flood rests between bursts while somebody types at any terminal of the daemon, and only then; the answer to a key never waits.
func TestFloodsRestWhileSomebodyTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flood, other := &bench{t: t, child: fake{Child: testkit.NewChild()}}, newBench(t, holder.Spec{})
		flood.hold(holder.Spec{LogBytes: 1 << 20}, tryable{flood.child})
		typed := new(holder.Typed)
		c, typist := flood.dialAs(typed), other.dialAs(typed)
		stream(t, c, 0)
		off := int64(0)
		print := func(n int64) time.Duration {
			began := time.Now()
			done := flood.print(off, n)
			flood.take(c, off, n)
			<-done
			off += n
			return time.Since(began)
		}
		const much, window = 512 << 10, 256 << 10
		if took := print(much); took > 10*time.Millisecond {
			t.Errorf("a flood beside which nobody types took %v", took)
		}
		if _, err := typist.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		print(window) // an acknowledgement on its way brings the holder the rests
		if took := print(much); took < 40*time.Millisecond {
			t.Errorf("a flood beside which somebody types took %v, without rests", took)
		}
		for range 10 {
			time.Sleep(5 * time.Millisecond)
			if took := print(100); took > 0 {
				t.Errorf("a key's echo waited %v", took)
			}
		}
		time.Sleep(300 * time.Millisecond)
		print(100) // is acknowledged without rests
		if took := print(much); took > 10*time.Millisecond {
			t.Errorf("a flood took %v after somebody had typed", took)
		}
		for _, one := range []*holder.Client{c, typist} {
			one.Close()
		}
		flood.end()
		other.end()
	})
}
