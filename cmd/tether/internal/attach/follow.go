package attach

import (
	"context"
	"errors"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
)

// Output reads a terminal's output and, if the daemon is killed or replaced, goes on with the next one at the same byte. It is for one
// goroutine.
type Output struct {
	ctx    context.Context
	client *localclient.Client
	id     string
	o      localclient.ReadOptions
	notice func(format string, args ...any)

	body   *localclient.Output
	masked int // of former bodies
}

// OpenOutput opens the output of the terminal with that id, and follows it. notice tells the person of a reconnection. The caller must Close
// the Output.
func OpenOutput(ctx context.Context, client *localclient.Client, id string, o localclient.ReadOptions, notice func(string, ...any)) (*Output, error) {
	o.Follow = true
	body, err := client.Read(ctx, id, o)
	if err != nil {
		return nil, err
	}
	return &Output{ctx: ctx, client: client, id: id, o: o, notice: notice, body: body}, nil
}

// Read implements io.Reader. The error is localclient.ErrDropped if the daemon is gone for good.
func (f *Output) Read(p []byte) (int, error) {
	for {
		n, err := f.body.Read(p)
		at, ok := f.body.At()
		if !ok || n > 0 || !errors.Is(err, localclient.ErrDropped) {
			return n, err
		}
		f.o.From = at
		took, err := comeBack(f.ctx, f.id, func() error {
			body, err := f.client.Read(f.ctx, f.id, f.o)
			if err == nil {
				f.masked += f.body.Masked()
				f.body.Close()
				f.body = body
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		f.notice("reconnected after %s; the terminal kept running", display.Round(took))
	}
}

// Masked returns the number of masked places in what was read, for an agent.
func (f *Output) Masked() int { return f.masked + f.body.Masked() }

// Close ends the reading.
func (f *Output) Close() error { return f.body.Close() }

// Events reads a terminal's events and, if the daemon is killed or replaced, goes on with the next one behind the last event. It is for one
// goroutine.
type Events struct {
	client *localclient.Client
	id     string
	o      localclient.FollowOptions
	notice func(format string, args ...any)

	in *localclient.Follower
}

// OpenEvents opens the events of the terminal with that id. notice tells the person of a reconnection. The caller must Close the Events.
func OpenEvents(ctx context.Context, client *localclient.Client, id string, o localclient.FollowOptions, notice func(string, ...any)) (*Events, error) {
	in, err := client.Follow(ctx, id, o)
	if err != nil {
		return nil, err
	}
	return &Events{client: client, id: id, o: o, notice: notice, in: in}, nil
}

// Next waits for the next event; localapi.EventExit is the last. A change of size may be told again after a reconnection. The error is ctx's,
// which is the one that OpenEvents got, or localclient.ErrDropped if the daemon is gone for good.
func (f *Events) Next(ctx context.Context) (localapi.Event, error) {
	for {
		e, err := f.in.Next()
		if err == nil && e.Type != localapi.EventDropped {
			if e.Raw > 0 {
				f.o.From = e.Raw
			}
			return e, nil
		}
		if err != nil && (ctx.Err() != nil || !errors.Is(err, localclient.ErrDropped)) {
			return e, err
		}
		took, err := comeBack(ctx, f.id, func() error {
			in, err := f.client.Follow(ctx, f.id, f.o)
			if err == nil {
				f.in.Close()
				f.in = in
			}
			return err
		})
		if err != nil {
			return e, err
		}
		f.notice("reconnected after %s; the terminal kept running", display.Round(took))
	}
}

// Close ends the following.
func (f *Events) Close() { f.in.Close() }
