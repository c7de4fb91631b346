package holder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"tether/platform/proc"
	"tether/platform/pty"
)

// SetMeta replaces the meta, at most 64 KiB, and returns when the holder has it.
func (c *Client) SetMeta(p []byte) error {
	if len(p) > maxBlob {
		return tooLarge("meta", len(p), maxBlob)
	}
	err := c.askSoon(kindSetMeta, func(frame []byte) []byte { return append(frame, p...) })
	if err != nil {
		return fmt.Errorf("set meta: %w", err)
	}
	c.mu.Lock()
	c.meta = slices.Clone(p)
	c.mu.Unlock()
	return nil
}

// Checkpoint stores a note of at most 64 KiB about the stream at off, which must be in
// the holder's log, and returns when the holder has it. The holder keeps the oldest note
// in its log and the newest of all. Of those in between it keeps, evenly spread, at most
// 64 notes or 1 MiB in all.
func (c *Client) Checkpoint(off int64, blob []byte) error {
	if len(blob) > maxBlob {
		return tooLarge("checkpoint", len(blob), maxBlob)
	}
	err := c.askSoon(kindCheckpoint, func(frame []byte) []byte {
		return append(binary.BigEndian.AppendUint64(frame, uint64(off)), blob...)
	})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// Keep tells the holder the offset from which on output is needed although Read has
// returned it; NoOffset means that none is. Without Keep, the next daemon gets only the
// part of such output that happens to be left. A holder full of needed output makes the
// child wait as it does for output that was not read. Keep does not wait; a holder of an
// older program ignores it.
func (c *Client) Keep(off int64) error {
	if c.features&featureKeep == 0 {
		return nil
	}
	return c.send(endFrame(beginAt(kindKeep, off)))
}

// Drop makes the holder drop the output before an offset, as far as Read has returned it,
// and returns when it is gone. A holder of an older program cannot: [ErrNoDrop].
func (c *Client) Drop(off int64) error {
	if c.features&featureDrop == 0 {
		return ErrNoDrop
	}
	return c.askSoon(kindDrop, func(frame []byte) []byte { return binary.BigEndian.AppendUint64(frame, uint64(off)) })
}

// Until tells the holder up to which offset the child may print without waiting for
// readers that may slow it only a little; beyond it the child waits within the bounds of
// flow.Budget. NoOffset means that it does not wait for them. The setting ends with the
// connection. Until does not wait for the holder; call it only if Paces.
func (c *Client) Until(off int64) error { return c.send(endFrame(beginAt(kindUntil, off))) }

// Paces reports whether the holder knows Until.
func (c *Client) Paces() bool { return c.features&featureUntil != 0 }

// NoOffset is an offset that no output reaches. As the argument of Keep, it means that
// the daemon needs no output that it has taken; as that of Until, that the child waits
// for nobody.
const NoOffset int64 = math.MaxInt64

// Screen stores the screen at an offset, at most 1 MiB, for the next daemon. The holder
// keeps screens whose offset is in its log: the oldest, the newest and, evenly spread, as
// many in between as fit into 1 MiB in all. Screen does not wait for the holder; call it
// only if KeepsScreens.
func (c *Client) Screen(off int64, blob []byte) error {
	if len(blob) > maxShown {
		return tooLarge("screen", len(blob), maxShown)
	}
	return c.send(Checkpoint{off, blob}.frame(kindScreen))
}

// Faults says which limits of the child could not be set, as pty.PTY.Faults does. Only
// the client that Spawn has returned knows.
func (c *Client) Faults() string { return c.faults }

// KeepsScreens reports whether the holder knows Screen.
func (c *Client) KeepsScreens() bool { return c.features&featureScreen != 0 }

// Signal sends a signal, by its name with or without SIG, to the process group in the
// foreground, as pty.PTY.Signal does. ErrNoSignal is returned when the holder is of an
// older program.
func (c *Client) Signal(name string) error {
	if c.features&featureSignal == 0 {
		return ErrNoSignal
	}
	if len(name) > maxSignal {
		return fmt.Errorf("no such signal: %.40q", name)
	}
	err := c.askSoon(kindSignal, func(frame []byte) []byte { return append(frame, name...) })
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	return nil
}

// Look examines the terminal: its settings in this process, and the reader of its
// keyboard in the holder, if the system shows that only to a program's ancestors. It
// waits for the holder for at most 250 ms; errors: os.ErrClosed, errors.ErrUnsupported,
// or the system's error.
func (c *Client) Look() (l pty.Look, err error) {
	if !c.keyboard.Control(func(fd uintptr) { l, err = pty.LookAt(fd, c.state.pid) }) {
		return pty.Look{}, os.ErrClosed
	}
	if err != nil || l.Reading.Waits != proc.WaitsUnknown || c.features&featureReading == 0 {
		return l, err
	}
	l.Reading, l.Late = c.askReading()
	return l, nil
}

// askReading asks the holder who reads the keyboard, unless it still has not answered the
// last time. It reports whether the answer is still to come.
func (c *Client) askReading() (r proc.Reading, late bool) {
	select {
	case c.looking <- struct{}{}:
	default:
		return r, true
	}
	_, answer, err := c.begin(kindReading, nil)
	if err != nil {
		<-c.looking
		return r, false
	}
	seen := make(chan proc.Reading, 1)
	go func() { // ends with the answer, or when the connection ends, which closes answer
		r := <-answer
		reading, _ := decodeReading([]byte(r.text))
		<-c.looking
		seen <- reading
	}()
	timer := time.NewTimer(lookTime)
	defer timer.Stop()
	select {
	case r = <-seen:
		return r, false
	case <-timer.C:
		return r, true
	}
}

// Resize changes the size of the terminal.
func (c *Client) Resize(s pty.Size) error {
	err := c.askSoon(kindResize, func(frame []byte) []byte {
		return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(frame, s.Cols), s.Rows)
	})
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

// TryWrite types as much of p as the terminal has room for now, perhaps nothing; it does
// not wait. It must not be called concurrently with Write, which types the rest.
func (c *Client) TryWrite(p []byte) (int, error) {
	c.inputs.Input(c)
	return c.keyboard.TryWrite(p), nil
}

// Write sends input and returns when the terminal has taken all of it; it blocks while
// the child does not read. Close unblocks it; how much the terminal has taken is not
// known then.
func (c *Client) Write(p []byte) (n int, err error) {
	c.inputs.Input(c)
	select {
	case c.typing <- struct{}{}:
		defer func() { <-c.typing }()
	case <-c.disconnected:
		return 0, c.Err()
	}
	for piece := range slices.Chunk(p, maxInput) {
		err := c.ask(kindInput, func(frame []byte) []byte { return append(frame, piece...) })
		if err != nil {
			return n, fmt.Errorf("write terminal: %w", err)
		}
		n += len(piece)
	}
	return n, nil
}

// Kill ends the child and all its descendants, as pty.PTY.Kill does. The holder does it,
// and continues if the connection ends. Cancelling ctx cuts the grace short; if the
// holder then does not answer within 3 s, Kill fails. If the holder is stopped, Kill
// fails after 5 s with a *StoppedError, and the holder does it when it runs again. An
// exit that it causes is reported like any other. A connection that ends after the exit
// does not make it fail: somebody else may forget the terminal before the answer comes.
func (c *Client) Kill(ctx context.Context, grace time.Duration) error {
	err := c.kill(ctx, grace)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit != nil && c.err != nil && errors.Is(err, c.err) {
		return nil
	}
	return err
}

func (c *Client) kill(ctx context.Context, grace time.Duration) error {
	ms := min(max(grace.Milliseconds(), 0), int64(^uint32(0)))
	id, answer, err := c.begin(kindKill, func(frame []byte) []byte { return binary.BigEndian.AppendUint32(frame, uint32(ms)) })
	if err != nil {
		return fmt.Errorf("kill terminal's processes: %w", err)
	}
	look := time.NewTimer(killTime)
	defer look.Stop()
	for waiting := true; waiting; {
		select {
		case r := <-answer:
			return c.outcome(r)
		case <-look.C:
			if err := c.stopped(); err != nil {
				return err
			}
		case <-ctx.Done():
			waiting = false
		}
	}
	if err := c.send(endFrame(beginRequest(kindCancel, id))); err != nil {
		return err
	}
	return c.await(id, answer, cancelTime)
}

// floodRest is how long a flood rests between bursts while somebody types at another
// terminal, see [holder.rest]. A key and its echo take 0.4 ms. With rests of 2 ms, more
// keys are undisturbed than with rests of 1 ms that take the same share of the time.
const floodRest = 2 * time.Millisecond

// rest returns how long a flood of this terminal must rest between bursts now.
func (c *Client) rest() time.Duration {
	if c.inputs.Elsewhere(c) {
		return floodRest
	}
	return 0
}
