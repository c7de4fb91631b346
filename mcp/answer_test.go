package mcp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agenttools"
	"tether/mcp"
)

// recorder is a writer that a test may look at while an answer is written.
type recorder struct {
	mu sync.Mutex
	*httptest.ResponseRecorder
}

func newRecorder() *recorder { return &recorder{ResponseRecorder: httptest.NewRecorder()} }

func (r *recorder) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ResponseRecorder.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(p)
}

func (r *recorder) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ResponseRecorder.Flush()
}

func (r *recorder) flushed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Flushed
}

// A call that takes long has its headers after 2 s, and then a comment every 5 s. Proxies
// close answers that are silent.
func TestLongAnswersAreNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTerminals{}
		f.add("pty-a", agenttools.OwnerUser)
		s := mcp.New(mcp.Options{Tools: toolsOver(f)})
		defer s.Close()
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"pty-a","timeoutMs":11000},`+modern+`}}`))
		for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "wait_terminal"} {
			r.Header.Set(k, v)
		}
		r.Host = "localhost"
		w, done := newRecorder(), make(chan bool)
		go func() { s.ServeHTTP(w, r); close(done) }()
		time.Sleep(time.Second)
		synctest.Wait()
		if w.flushed() {
			t.Error("it has begun after 1 s")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !w.flushed() || w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("X-Accel-Buffering") != "no" {
			t.Errorf("after 3 s: %v", w.Header())
		}
		<-done
		if got := w.Body.String(); !regexp.MustCompile(`^: waiting\n\n: waiting\n\nevent: message\ndata: \{.*\}\n\n$`).MatchString(got) {
			t.Errorf("the answer is %q", got)
		}
	})
}

// What the SDK answers after the headers of frames were sent is a frame of JSON, too.
func TestLateErrorsAreFrames(t *testing.T) {
	for written, want := range map[string]string{
		`{"error":1}`: `{"error":1}`,
		"no luck\n":   `{"error":{"code":-32600,"message":"no luck"},"id":null,"jsonrpc":"2.0"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			r.Header.Set("Accept", "application/json, text/event-stream")
			w := newRecorder()
			a := mcp.NewAnswer(w, r)
			time.Sleep(3 * time.Second)
			a.Header().Set("Content-Type", "application/json")
			a.WriteHeader(http.StatusNotFound)
			if _, err := a.Write([]byte(written)); err != nil {
				t.Error(err)
			}
			a.End()
			whole := ": waiting\n\nevent: message\ndata: " + want + "\n\n"
			if got := w.Body.String(); w.Code != http.StatusOK || got != whole {
				t.Errorf("%d %q", w.Code, got)
			}
			time.Sleep(time.Minute)
			if got := w.Body.Len(); got > len(whole) {
				t.Errorf("%d bytes after the end", got)
			}
			if err := a.Send([]byte("{}")); err == nil || !errors.Is(err, mcp.ErrStreamOver) {
				t.Errorf("a frame after the end: %v", err)
			}
		})
	}
}

// A request that comes slowly and is refused has the status of its refusal.
func TestSlowRequestsHaveTheirStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mcp.New(mcp.Options{Tools: toolsOver(&fakeTerminals{})})
		defer s.Close()
		for body, want := range map[string]int{"{bad": 400, strings.Repeat("x", 5<<20): 413} {
			from, to := io.Pipe()
			go func() {
				time.Sleep(time.Minute)
				_, _ = io.WriteString(to, body)
				to.Close()
			}()
			r := httptest.NewRequest(http.MethodPost, "/mcp", from)
			for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28"} {
				r.Header.Set(k, v)
			}
			r.Host = "localhost"
			w := newRecorder()
			s.ServeHTTP(w, r)
			from.Close() // what it has not read
			if w.Code != want {
				t.Errorf("%.10s is answered %d, %.100s", body, w.Code, w.Body)
			}
		}
	})
}

// A client that takes no frames waits for its answer as ever.
func TestAnswersWithoutFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set("Accept", "application/json")
		w := newRecorder()
		a := mcp.NewAnswer(w, r)
		time.Sleep(time.Minute)
		http.Error(a, "no", http.StatusBadRequest)
		a.End()
		if got := w.Body.String(); w.Code != http.StatusBadRequest || got != "no\n" || w.Header().Get("X-Accel-Buffering") != "" {
			t.Errorf("%d %q %v", w.Code, got, w.Header())
		}
	})
}

func TestAtPath(t *testing.T) {
	for in, want := range map[string]string{"/mcp": "/mcp", "/mcp/": "/mcp", "/mcp//": "/mcp//", "/": "/", "/mcp/x": "/mcp/x"} {
		if got := mcp.AtPath(httptest.NewRequest(http.MethodPost, in, nil)).URL.Path; got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
