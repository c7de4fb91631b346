package attach

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

// serveQuestions is a daemon that has only questions. Once a client waits for others, it
// ends.
func serveQuestions(t *testing.T, socket string, version uint64, ids ...string) (ended <-chan struct{}) {
	t.Helper()
	l := must.Get(ipc.Listen(socket))(t)
	list := localapi.ApprovalList{Version: version}
	for _, id := range ids {
		list.Approvals = append(list.Approvals, localapi.Approval{ID: id, State: localapi.ApprovalWaiting, Summary: "asks " + id})
	}
	waits := make(chan struct{}, 1) // 1: one client
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("since") == strconv.FormatUint(version, 10) {
			_, _ = w.Write([]byte("{")) // it is killed before it has written the rest
			waits <- struct{}{}
			return
		}
		_ = json.NewEncoder(w).Encode(list)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-waits:
		case <-t.Context().Done():
		}
		_ = server.Shutdown(context.Background()) // which sends the answer
		<-done
	}()
	return gone
}

// A session hears of questions that come after the daemon was killed, and of no question
// twice.
func TestBellAfterAnotherDaemon(t *testing.T) {
	socket := filepath.Join(testkit.Home(t), "run", "daemon.sock")
	out := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	defer out.Close()
	client := localclient.New(socket)
	defer client.Close()
	s := &Session{opts: Options{Out: out}, client: client}
	first := serveQuestions(t, socket, 7, "q-1")
	ended := make(chan struct{})
	go func() { defer close(ended); s.listen(t.Context()) }()
	<-first
	select {
	case <-serveQuestions(t, socket, 1, "q-1", "q-2"):
	case <-ended:
		t.Fatal("it no longer listens")
	}
	got, err := os.ReadFile(out.Name())
	if err != nil || strings.Count(string(got), "\x1b]9;") != 1 || !strings.Contains(string(got), "asks q-2") {
		t.Errorf("it printed %q, %v", got, err)
	}
}

// A bell waits for the end of the control sequence that is being printed.
func TestBellWaitsForASequence(t *testing.T) {
	out := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	defer out.Close()
	s := &Session{opts: Options{Out: out}, interactive: true, own: true}
	must.Do(t, s.print([]byte("a\x1b[")))
	s.ring("<bell>")
	must.Do(t, s.print([]byte("1mb")))
	s.ring("<again>")
	if got, _ := os.ReadFile(out.Name()); string(got) != "a\x1b[1mb<bell><again>" {
		t.Errorf("printed %q", got)
	}
}

// The person's terminal is restored while a question may ring. It is a test for the race
// detector.
func TestBellWhileTheTerminalIsRestored(t *testing.T) {
	out := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	defer out.Close()
	s := &Session{opts: Options{Out: out}, interactive: true, own: true}
	rung := make(chan struct{})
	go func() {
		defer close(rung)
		for range 100 {
			s.ring("\a")
		}
	}()
	for range 100 {
		s.tidy()
	}
	<-rung
}
