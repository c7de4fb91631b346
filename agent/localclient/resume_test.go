package localclient_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/localapi"
	"tether/agent/localclient"
)

var errAway = errors.New("nobody answers")

// comeback tries until open succeeds, and returns how often it tried and how long that
// took.
func comeback(b *localclient.Comeback, cause error, open func(after time.Duration) error) (tries int, took time.Duration, err error) {
	began := time.Now()
	err = b.Do(context.Background(), cause, func() error {
		tries++
		return open(time.Since(began))
	})
	return tries, time.Since(began), err
}

func within(took, least, most time.Duration) bool { return took >= least && took <= most }

func TestComeback(t *testing.T) {
	missing := &localapi.Error{Code: localapi.CodeNoTerminal, Message: "no such terminal"}
	for _, c := range []struct {
		name        string
		id          string
		open        func(after time.Duration) error
		least, most time.Duration
		want        string // of the error
	}{
		{"it is back", "pty-a", func(after time.Duration) error {
			if after < 3*time.Second {
				return errAway
			}
			return nil
		}, 3 * time.Second, 3100 * time.Millisecond, ""},
		{"nobody comes", "pty-a", func(time.Duration) error { return errAway }, localclient.AwayTimeout, localclient.AwayTimeout + 200*time.Millisecond,
			"no daemon has started within 10s; pty-a keeps running"},
		{"nobody comes for what is no terminal", "", func(time.Duration) error { return errAway }, localclient.AwayTimeout, localclient.AwayTimeout + 200*time.Millisecond,
			"no daemon has started within 10s"},
		{"the next one is about to go", "pty-a", func(after time.Duration) error {
			if after < 8*time.Second {
				return &localapi.Error{Code: localapi.CodeClosing}
			}
			return nil
		}, 8 * time.Second, 8100 * time.Millisecond, ""},
		{"the terminal is there late", "pty-a", func(after time.Duration) error {
			if after < 4*time.Second {
				return missing
			}
			return nil
		}, 4 * time.Second, 4100 * time.Millisecond, ""},
		{"the terminal is gone", "pty-a", func(time.Duration) error { return missing }, localclient.MissingTimeout, localclient.MissingTimeout + 200*time.Millisecond,
			"the next daemon does not have pty-a: no such terminal"},
		{"nobody wants it any more", "pty-a", func(time.Duration) error { return localclient.ErrDropped }, 0, 0, localclient.ErrDropped.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := -time.Second
				b := &localclient.Comeback{ID: c.id, Told: func(took time.Duration) { told = took }}
				_, took, err := comeback(b, localclient.ErrDropped, c.open)
				if !within(took, c.least, c.most) {
					t.Errorf("it took %v", took)
				}
				if c.want == "" {
					if err != nil || told != took {
						t.Errorf("%v, told of %v instead of %v", err, told, took)
					}
				} else if !errors.Is(err, localclient.ErrDropped) || !strings.HasSuffix(err.Error(), c.want) {
					t.Errorf("%v, want %s", err, c.want)
				}
			})
		})
	}
}

// The pauses double up to a tenth of a second, and a stream that breaks at once has no
// new time.
func TestComebackPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &localclient.Comeback{}
		tries := 0
		n, took, err := comeback(b, localclient.ErrDropped, func(time.Duration) error {
			if tries++; tries < 6 {
				return errAway
			}
			return nil
		})
		if err != nil || n != 6 || took != 155*time.Millisecond {
			t.Errorf("%d tries in %v: %v", n, took, err)
		}
		began := time.Now()
		for err == nil {
			time.Sleep(100 * time.Millisecond)
			_, _, err = comeback(b, localclient.ErrDropped, func(time.Duration) error {
				if time.Since(began) > localclient.AwayTimeout {
					return errAway
				}
				return nil
			})
		}
		if took := time.Since(began); took > localclient.AwayTimeout+time.Second {
			t.Errorf("streams that break at once were opened for %v", took)
		}
		time.Sleep(localclient.AwayTimeout)
		if _, took, _ := comeback(b, localclient.ErrDropped, func(time.Duration) error { return errAway }); took < localclient.AwayTimeout {
			t.Errorf("later it waits for %v", took)
		}
	})
}

// A daemon that has crashed is started again, one that was shut down is waited for.
func TestComebackRevives(t *testing.T) {
	for cause, want := range map[error]bool{localclient.ErrDropped: true, localclient.ErrStopped: false} {
		synctest.Test(t, func(t *testing.T) {
			up := false
			b := &localclient.Comeback{Timeout: 20 * time.Second, Revive: func(context.Context) error { up = true; return nil }}
			_, took, err := comeback(b, cause, func(time.Duration) error {
				if up {
					return nil
				}
				return errAway
			})
			if (err == nil) != want || !want && took < 20*time.Second {
				t.Errorf("%v: %v after %v", cause, err, took)
			}
		})
	}
}

func TestComebackEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := new(localclient.Comeback).Do(ctx, localclient.ErrDropped, func() error { return errAway })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
