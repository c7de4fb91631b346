package holder_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/flow"
	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A daemon that keeps up with a flood gets it in few pieces, not one for each read of the
// pty; output after a silence arrives at once.
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
			n := must.Get(c.Read(buf))(t)
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

// A flood rests between bursts while somebody types at another terminal of the daemon,
// and only then: it keeps more than half of its throughput. The answer to a key never
// waits.
func TestFloodsRestWhileSomebodyTypesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flood, other := &bench{t: t, child: fake{Child: testkit.NewChild()}}, newBench(t, holder.Spec{})
		flood.hold(holder.Spec{LogBytes: 1 << 20}, tryable{flood.child})
		inputs := new(flow.Typing)
		c, typist := flood.dialAs(inputs), other.dialAs(inputs)
		stream(t, c, 0)
		const piece, window = 4 << 10, 256 << 10
		off := int64(0)
		// print has the child print n bytes at 40 MB/s and returns the time that this
		// takes in all.
		print := func(n int64) time.Duration {
			began, printed := time.Now(), make(chan time.Duration, 1)
			from := off
			off += n
			go func() {
				for at := from; at < from+n; at += piece {
					<-flood.print(at, piece)
					time.Sleep(100 * time.Microsecond)
				}
				printed <- time.Since(began)
			}()
			flood.take(c, from, n)
			return <-printed
		}
		const much, alone = 512 << 10, 128 * 100 * time.Microsecond
		input := func(at *holder.Client) {
			t.Helper()
			must.Get(at.Write([]byte("x")))(t)
			print(window) // an acknowledgement on its way brings the holder the rests
		}
		if took := print(much); took > alone {
			t.Errorf("a flood beside which nobody types took %v, want %v", took, alone)
		}
		input(c)
		if took := print(much); took > alone {
			t.Errorf("a flood at whose terminal somebody types took %v, want %v", took, alone)
		}
		input(typist)
		if took := print(much); took < alone*3/2 || took > alone*2+alone/2 {
			t.Errorf("a flood beside which somebody types took %v, want about %v", took, alone*2)
		}
		for range 10 {
			time.Sleep(5 * time.Millisecond)
			began := time.Now()
			<-flood.print(off, 100)
			flood.take(c, off, 100)
			off += 100
			if took := time.Since(began); took > 0 {
				t.Errorf("a key's echo waited %v", took)
			}
		}
		time.Sleep(300 * time.Millisecond)
		print(piece) // is acknowledged without rests
		if took := print(much); took > alone {
			t.Errorf("a flood took %v after somebody had typed, want %v", took, alone)
		}
		for _, one := range []*holder.Client{c, typist} {
			one.Close()
		}
		flood.end()
		other.end()
	})
}
