package local_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

// optioned are the client's methods with options. full has all of them, where one
// excludes no other.
var optioned = map[string]struct {
	full any
	call func(context.Context, *localclient.Client, any) error
}{
	"wait": {localclient.WaitOptions{}, func(ctx context.Context, c *localclient.Client, o any) error {
		return second(c.Wait(ctx, "a", o.(localclient.WaitOptions)))
	}},
	"read": {localclient.ReadOptions{View: "raw", Follow: true, Marks: true}, func(ctx context.Context, c *localclient.Client, o any) error {
		out, err := c.Read(ctx, "a", o.(localclient.ReadOptions), nil)
		if err == nil {
			out.Close()
		}
		return err
	}},
	"attach": {localclient.AttachOptions{Tail: 7}, func(ctx context.Context, c *localclient.Client, o any) error {
		a, err := c.Attach(ctx, "a", o.(localclient.AttachOptions))
		if err == nil {
			a.Close()
		}
		return err
	}},
	"problems": {localclient.ProblemOptions{}, func(ctx context.Context, c *localclient.Client, o any) error {
		return second(c.Problems(ctx, "a", o.(localclient.ProblemOptions)))
	}},
}

// with returns the options with a value in one more field.
func with(options any, field int) any {
	o := reflect.New(reflect.TypeOf(options)).Elem()
	o.Set(reflect.ValueOf(options))
	switch f := o.Field(field); f.Kind() {
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.String:
		f.SetString(map[bool]string{true: "screen", false: "http://localhost:1"}[f.String() != ""])
	default:
		f.SetInt(f.Int() + int64(3*time.Millisecond)/map[bool]int64{true: 1, false: 1e6}[f.Type() == reflect.TypeFor[time.Duration]()])
	}
	return o.Interface()
}

// Every option of the client changes its request, and the daemon reads every parameter:
// it refuses those that it does not read.
func TestEveryOptionIsSentAndRead(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	_, child := w.spawn("a")
	child.End(0)
	asked := make(chan string, 1)
	socket := filepath.Join(testkit.Home(t), "s")
	l := must.Get(ipc.Listen(socket))(t)
	recorder := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		w.WriteHeader(http.StatusTeapot)
	})}
	go func() { _ = recorder.Serve(l) }() // until it is closed
	t.Cleanup(func() { recorder.Close() })
	recorded := localclient.New(socket)
	t.Cleanup(recorded.Close)
	for name, c := range optioned {
		sent := func(o any) string {
			t.Helper()
			if err := c.call(t.Context(), recorded, o); err == nil {
				t.Fatalf("%s is answered", name)
			}
			return <-asked
		}
		before := sent(c.full)
		for i := range reflect.TypeOf(c.full).NumField() {
			o := with(c.full, i)
			if sent(o) == before {
				t.Errorf("%s does not send %s", name, reflect.TypeOf(o).Field(i).Name)
			}
			err := c.call(t.Context(), w.client, o)
			if e, ok := errors.AsType[*localapi.Error](err); ok && strings.Contains(e.Message, "does not know") {
				t.Errorf("%s %+v: %v", name, o, err)
			}
		}
	}
	resp := ask(t, w, "GET /v1/terminals/a/wait?verifed=1 HTTP/1.1\r\nHost: tether\r\n\r\n")
	if got := codeOf(t, resp); got != localapi.CodeBadRequest {
		t.Errorf("a parameter that does not exist: %s", got)
	}
}
