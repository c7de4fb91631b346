package localclient_test

import (
	"encoding/binary"
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

// A piece of output that has not arrived whole when the daemon dies is passed on by no
// reader: it comes again from the next daemon.
func TestHalfAPieceIsNotRead(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	piece := func(raw, masked int, data string) []byte {
		head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(raw)), uint32(masked))
		return append(binary.BigEndian.AppendUint32(head, uint32(len(data))), data...)
	}
	sent := append(append(piece(7, 2, "one"), piece(9, 0, "two")...), piece(20, 1, "three")...)
	for cut := range len(sent) {
		socket := filepath.Join(testkit.Home(t), "s")
		l, err := ipc.Listen(socket)
		must.Do(t, err)
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(localapi.OffsetsHeader, "1")
			_, _ = w.Write(sent[:cut])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		c := localclient.New(socket)
		body := must.Get(c.Read(t.Context(), "x", localclient.ReadOptions{Follow: true, From: 4}, nil))(t)
		var got []byte
		for buf := make([]byte, 2); err == nil; {
			var n int
			n, err = body.Read(buf)
			got = append(got, buf[:n]...)
		}
		at := body.At()
		want, place, masked := "", int64(4), 0
		switch {
		case cut >= len(piece(0, 0, "one"))+len(piece(0, 0, "two")):
			want, place, masked = "onetwo", 9, 2
		case cut >= len(piece(0, 0, "one")):
			want, place, masked = "one", 7, 2
		}
		if string(got) != want || at != place || body.Masked() != masked || !errors.Is(err, localclient.ErrDropped) {
			t.Errorf("cut at %d: %q up to %d, %d masked, %v", cut, got, at, body.Masked(), err)
		}
		body.Close()
		c.Close()
		server.Close()
		<-served
	}
}
