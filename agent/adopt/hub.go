package adopt

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tether/platform/ipc"
	"tether/platform/proc"
)

// hub reads the panes of one tmux server. It is a process of its own, so that neither the
// daemon nor one of the readers may end without harm to the others.
type hub struct {
	socket  string
	waiting atomic.Int64 // see view

	mu      sync.Mutex // held while a client attaches or detaches, see client.close
	clients []*client
}

// join returns a view of a pane that is in a session. The caller leaves it.
func (h *hub) join(session, pane string, gone <-chan struct{}, idle func()) (*view, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients = slices.DeleteFunc(h.clients, func(c *client) bool {
		select {
		case <-c.ended:
			c.close() // its views will leave it
			return true
		default:
			return false
		}
	})
	var c *client
	for _, o := range h.clients {
		if o.session == session && !o.has(pane) { // each view of one pane pauses it for itself
			c = o
		}
	}
	if c == nil {
		var err error
		if c, err = attach(h.socket, session); err != nil {
			return nil, err
		}
		h.clients = append(h.clients, c)
	}
	v := &view{c: c, pane: pane, gone: gone, idle: idle, waiting: &h.waiting, more: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views[pane] = v
	return v, nil
}

func (c *client) has(pane string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.views[pane] != nil
}

// leave ends a view, and detaches its client if nobody else needs it.
func (h *hub) leave(v *view) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := v.c
	c.mu.Lock()
	delete(c.views, v.pane)
	last := len(c.views) == 0
	c.mu.Unlock()
	h.waiting.Add(-int64(v.size)) // nobody adds to it any more
	if i := slices.Index(h.clients, c); last && i >= 0 {
		h.clients = slices.Delete(h.clients, i, i+1)
		c.close()
	}
}

// A reader sends one line with a request, and then what is typed. It gets frames: their
// length (u32) and as many bytes of output. The last one has the length 0 and the status
// to exit with (u8).

// request says what to read.
type request struct {
	Args  []string `json:"args"` // see ReaderArgs
	Nonce string   `json:"nonce"`
	Shown bool     `json:"shown"` // another hub has shown the pane to this reader
}

const (
	hubVersion  = "1" // of requests and frames
	maxRequest  = 16 << 10
	maxFrame    = 1 << 20
	requestTime = 5 * time.Second
	lingerTime  = time.Second // how long a hub waits for another reader
)

// hubPath is where the hub for a tmux server listens.
func hubPath(dir, socket string) string {
	sum := sha256.Sum256([]byte(hubVersion + socket))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".sock")
}

// serveHub serves readers until there has been none for a while, or until it is asked to
// end. It survives hang-ups: detach-client -P sends them to the parents of all clients.
func serveHub(path, socket string) int {
	stop := proc.StopSignals()
	l, err := ipc.Listen(path)
	if err != nil {
		return 1 // another hub was faster
	}
	defer l.Close()
	h := &hub{socket: socket}
	var stopped atomic.Bool
	go func() {
		<-stop
		stopped.Store(true)
		l.Close()
	}()
	var readers atomic.Int64
	idle := time.AfterFunc(lingerTime, func() {
		if readers.Load() == 0 {
			l.Close()
		}
	})
	var serving sync.WaitGroup
	for {
		conn, err := l.Accept()
		if err != nil {
			if !stopped.Load() {
				serving.Wait()
			}
			return 0
		}
		readers.Add(1)
		serving.Go(func() {
			h.serve(conn)
			if readers.Add(-1) == 0 {
				idle.Reset(lingerTime)
			}
		})
	}
}

// serve reads a pane for one reader.
func (h *hub) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, maxRequest)
	_ = conn.SetReadDeadline(time.Now().Add(requestTime))
	line, err := in.ReadSlice('\n')
	var q request
	if err != nil || json.Unmarshal(line, &q) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	r, err := parseArgs(q.Args)
	if err != nil || r.socket != h.socket {
		return
	}
	gone := make(chan struct{})
	r.hub, r.nonce, r.shown, r.gone, r.out = h, q.Nonce, q.Shown, gone, frames{conn}
	go func() {
		defer close(gone)
		r.keys(in)
	}()
	status := r.run()
	_, _ = conn.Write([]byte{0, 0, 0, 0, byte(status)})
}

// frames writes output as frames.
type frames struct{ w io.Writer }

func (f frames) Write(p []byte) (n int, err error) {
	for piece := range slices.Chunk(p, maxFrame) {
		b := net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(len(piece))), piece}
		if _, err := b.WriteTo(f.w); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

var errFrame = errors.New("the hub has ended")

// unframe writes the output of frames, and returns the status at their end.
func unframe(w io.Writer, r io.Reader) (status int, wrote bool, err error) {
	in := bufio.NewReaderSize(r, readSize)
	buf := make([]byte, readSize)
	for {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return 0, wrote, errFrame
		}
		n := int(binary.BigEndian.Uint32(head[:]))
		if n == 0 {
			last, err := in.ReadByte()
			if err != nil {
				err = errFrame
			}
			return int(last), wrote, err
		}
		for n > 0 {
			k, err := in.Read(buf[:min(n, len(buf))])
			if err != nil {
				return 0, wrote, errFrame
			}
			if _, err := w.Write(buf[:k]); err != nil {
				return 1, wrote, nil // the terminal has gone
			}
			n, wrote = n-k, true
		}
	}
}
