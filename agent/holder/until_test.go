package holder_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/flow"
	"tether/agent/holder"
	"tether/internal/testkit/must"
)

// flooded returns a holder whose daemon reads all output at once and lets the child print
// up to the offset until.
func flooded(t *testing.T, until int64) (*bench, *holder.Client) {
	b := newBench(t, holder.Spec{LogBytes: 8 * logBytes})
	c := b.stream(0)
	b.tasks.Go(func() { _, _ = io.Copy(io.Discard, c) })
	if !c.Paces() {
		t.Fatal("the holder does not pace")
	}
	must.Do(t, c.Until(until))
	synctest.Wait()
	return b, c
}

// after is how long it takes until done is closed.
func after(done <-chan struct{}) time.Duration {
	began := time.Now()
	<-done
	return time.Since(began)
}

func TestUntilHoldsTheChildOnlyALittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := flooded(t, 2*logBytes)
		defer b.end()
		defer c.Close()
		if took := after(b.print(0, 2*logBytes)); took != 0 {
			t.Errorf("the child waited %v before the offset", took)
		}
		if took := after(b.print(2*logBytes, logBytes)); took != flow.Hold {
			t.Errorf("it waited %v beyond it, want %v", took, flow.Hold)
		}
		time.Sleep(2 * flow.Window)
		if took := after(b.print(3*logBytes, logBytes)); took != 0 {
			t.Errorf("it waited %v more for readers that have not caught up", took)
		}
		if err := c.Until(9 * logBytes); err != nil { // they have
			t.Fatal(err)
		}
		must.Do(t, c.Until(4*logBytes))
		synctest.Wait()
		if took := after(b.print(4*logBytes, logBytes)); took != flow.Hold {
			t.Errorf("it waited %v for those that have caught up before, want %v", took, flow.Hold)
		}
	})
}

// A reader that moves lets the child continue at once; only the time that it waited is
// used up.
func TestUntilMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := flooded(t, logBytes)
		defer b.end()
		defer c.Close()
		done := b.print(0, 2*logBytes)
		for step, next := range []int64{logBytes + logBytes/2, holder.NoOffset} {
			time.Sleep(50 * time.Millisecond)
			if isDone(done) {
				t.Fatalf("step %d: the child did not wait", step)
			}
			must.Do(t, c.Until(next))
		}
		if !isDone(done) {
			t.Error("the child waits for nobody")
		}
		must.Do(t, c.Until(2*logBytes))
		synctest.Wait()
		if took, want := after(b.print(2*logBytes, logBytes)), flow.Hold-100*time.Millisecond; took != want {
			t.Errorf("the child waited %v more, want %v", took, want)
		}
	})
}

// Neither the readers of a disconnected daemon nor a kill in progress make the child
// wait.
func TestUntilEnds(t *testing.T) {
	for name, end := range map[string]func(*bench, *holder.Client){
		"daemon": func(_ *bench, c *holder.Client) { c.Close() },
		"kill": func(b *bench, c *holder.Client) {
			b.child.tough = true
			_ = c.Kill(b.t.Context(), 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, c := flooded(t, logBytes)
				defer b.end()
				defer c.Close()
				done := b.print(0, 2*logBytes)
				time.Sleep(50 * time.Millisecond)
				end(b, c)
				if !isDone(done) {
					t.Error("the child still waits")
				}
			})
		})
	}
}
