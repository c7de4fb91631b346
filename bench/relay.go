package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	creack "github.com/creack/pty"

	"tether/internal/jsonspan"
	"tether/jsonrpc/wsconn"
	"tether/platform/pty"
)

// The reference peers do the least that a daemon and a host must do for a terminal. The
// daemon reads the pty, quotes the text and sends it to the host; the host checks it,
// keeps a tail and passes it on to each viewer. They have no offsets, scanner, log or
// rights.
//
//	relaywin64-hand-64   frames of at most 64 KiB; at most 64 KiB of messages are in transit to the viewers
//	relaysock64-hand-64  the same, but a holder process copies the output from the pty to a Unix socket of the daemon; keys go straight to the pty
const (
	relayFrame  = 64 << 10             // bytes of text
	relayWindow = 64 << 10             // bytes of messages in transit
	relayTail   = 256 << 10            // bytes that the host keeps of each terminal, as JSON
	relayQueue  = 256                  // messages that wait for one viewer; relayWindow keeps them few
	relayPause  = 2 * time.Millisecond // the longest wait for a fuller frame
)

// The constant parts of a message, around the channel and the quoted text.
var relayHead, relayMiddle, relayEnd = []byte(`{"jsonrpc":"2.0","method":"action","params":{"channel":"`),
	[]byte(`","action":{"type":"terminal/data","data":`), []byte(`}}}`)

func appendRelayed(dst []byte, id string, quoted []byte) []byte {
	dst = append(append(append(dst, relayHead...), id...), relayMiddle...)
	return append(append(dst, quoted...), relayEnd...)
}

// cutRelayed returns the channel and the quoted text of a message.
func cutRelayed(msg []byte) (id string, quoted []byte, err error) {
	rest, ok := bytes.CutPrefix(msg, relayHead)
	channel, rest, found := bytes.Cut(rest, relayMiddle)
	quoted, ended := bytes.CutSuffix(rest, relayEnd)
	if !ok || !found || !ended {
		return "", nil, errors.New("relay: malformed message")
	}
	return string(channel), quoted, nil
}

// relayed is a message on its way to all viewers of a terminal.
type relayed struct {
	msg  []byte
	left atomic.Int32 // viewers that do not have it yet, and the host itself
	ack  func()       // called when all have it
}

func (m *relayed) done() {
	if m.left.Add(-1) == 0 {
		m.ack()
	}
}

type relayTerminal struct {
	viewers []chan *relayed
	tail    []byte // quoted text without the quotes
}

type relayHost struct {
	mu        sync.Mutex
	terminals map[string]*relayTerminal
}

// terminalLocked returns the terminal with that id. It makes a missing one.
func (h *relayHost) terminalLocked(id string) *relayTerminal {
	if h.terminals[id] == nil {
		h.terminals[id] = &relayTerminal{}
	}
	return h.terminals[id]
}

// serveRelayHost serves a daemon at /daemon and viewers at /view?id=ID, prints its
// address, and returns at the end of its standard input.
func serveRelayHost() error {
	h := &relayHost{terminals: map[string]*relayTerminal{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/daemon", h.daemon)
	mux.HandleFunc("/view", h.view)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, mux) }() // ends with the process
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (h *relayHost) daemon(w http.ResponseWriter, r *http.Request) {
	ctx := context.Background()
	conn, err := wsconn.Accept(w, r, wsconn.Options{})
	if err != nil {
		return
	}
	acks := make(chan string, relayQueue)
	go func() {
		for ack := range acks {
			if conn.Send(ctx, []byte(ack)) != nil {
				return
			}
		}
	}()
	for {
		msg, err := conn.Recv(ctx)
		if err != nil {
			return
		}
		id, quoted, err := cutRelayed(msg)
		if err == nil {
			_, err = jsonspan.CheckString(quoted)
		}
		if err != nil || !utf8.Valid(quoted) {
			conn.Close()
			return
		}
		m := &relayed{msg: bytes.Clone(msg), ack: func() { acks <- id + " " + strconv.Itoa(len(msg)) }}
		h.mu.Lock()
		t := h.terminalLocked(id)
		if t.tail = append(t.tail, quoted[1:len(quoted)-1]...); len(t.tail) > 2*relayTail {
			t.tail = append(t.tail[:0], t.tail[len(t.tail)-relayTail:]...)
		}
		viewers := t.viewers
		m.left.Store(int32(len(viewers)) + 1)
		h.mu.Unlock()
		for _, v := range viewers {
			v <- m
		}
		m.done()
	}
}

// view sends a viewer the tail and later output. It never returns: after the viewer has
// gone, it goes on to acknowledge messages until the process ends.
func (h *relayHost) view(w http.ResponseWriter, r *http.Request) {
	ctx := context.Background()
	conn, err := wsconn.Accept(w, r, wsconn.Options{})
	if err != nil {
		return
	}
	id, queue := r.FormValue("id"), make(chan *relayed, relayQueue)
	h.mu.Lock()
	t := h.terminalLocked(id)
	first := appendRelayed(nil, id, append(append([]byte{'"'}, t.tail...), '"'))
	t.viewers = append(t.viewers[:len(t.viewers):len(t.viewers)], queue)
	h.mu.Unlock()
	err = conn.Send(ctx, first)
	for m := range queue {
		if err == nil {
			err = conn.Send(ctx, m.msg)
		}
		m.done()
	}
}

// relayDaemon runs a terminal for each connection to its loopback port. The client sends
// a line with the argv as JSON, the daemon answers with a line with the id, and then the
// client sends keys.
type relayDaemon struct {
	socket string // directory for the sockets of holders; "" for no holders

	sending sync.Mutex
	host    *wsconn.Conn

	mu    sync.Mutex
	acked sync.Cond      // under has changed
	under map[string]int // bytes of messages in transit, by terminal
	ids   int
}

// serveRelayDaemon connects to the host at url, prints its address, and returns at the
// end of its standard input.
func serveRelayDaemon(url string, held bool) error {
	conn, err := wsconn.Dial(context.Background(), url+"/daemon", wsconn.Options{})
	if err != nil {
		return err
	}
	d := &relayDaemon{host: conn, under: map[string]int{}}
	d.acked.L = &d.mu
	if held {
		dir, err := os.MkdirTemp(shortTemp(), "tb")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		d.socket = dir
	}
	go d.readAcks()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.serve(c)
		}
	}()
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (d *relayDaemon) readAcks() {
	for {
		msg, err := d.host.Recv(context.Background())
		if err != nil {
			return
		}
		id, count, _ := bytes.Cut(msg, []byte{' '})
		n, _ := strconv.Atoi(string(count))
		d.mu.Lock()
		d.under[string(id)] -= n
		d.mu.Unlock()
		d.acked.Broadcast()
	}
}

func (d *relayDaemon) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	var argv []string
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &argv)
	}
	if err != nil || len(argv) == 0 {
		return
	}
	d.mu.Lock()
	d.ids++
	id := strconv.Itoa(d.ids)
	d.mu.Unlock()
	out, keys, end, err := d.spawn(id, argv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer end()
	go d.carry(id, out)
	if _, err := io.WriteString(c, id+"\n"); err == nil {
		_, _ = io.Copy(keys, in) // until the bench closes it
	}
}

// spawn starts argv on a pty. A holder reads the output if there is a directory for its
// socket, otherwise this process does.
func (d *relayDaemon) spawn(id string, argv []string) (out io.Reader, keys io.Writer, end func(), err error) {
	if d.socket == "" {
		p, err := pty.Start(pty.Command{Path: argv[0], Args: argv, Env: os.Environ()})
		if err != nil {
			return nil, nil, nil, err
		}
		return p, p, func() { _ = p.Kill(context.Background(), 0); p.Close() }, nil
	}
	l, err := net.Listen("unix", filepath.Join(d.socket, id))
	if err != nil {
		return nil, nil, nil, err
	}
	defer l.Close()
	child := exec.Command(argv[0], argv[1:]...)
	master, err := creack.Start(child)
	if err != nil {
		return nil, nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	holder := exec.Command(self, childArg, "relay-holder", l.Addr().String())
	holder.Env, holder.ExtraFiles = append(os.Environ(), "GOMAXPROCS=1"), []*os.File{master}
	if err := holder.Start(); err != nil {
		return nil, nil, nil, err
	}
	conn, err := l.Accept()
	return conn, master, func() {
		_ = child.Process.Kill()
		_ = child.Wait()
		_ = holder.Process.Kill()
		_ = holder.Wait()
		master.Close()
	}, err
}

// relayHolder copies the output of the pty, descriptor 3, to the socket. It returns when
// the connection ends, not when the output does, so that its CPU time can be read until
// then.
func relayHolder(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	go func() {
		buf, master := make([]byte, relayFrame), os.NewFile(3, "pty")
		for {
			n, err := master.Read(buf)
			if n > 0 {
				_, err = conn.Write(buf[:n])
			}
			if err != nil { // the child has ended
				_ = conn.(*net.UnixConn).CloseWrite()
				return
			}
		}
	}()
	_, err = io.Copy(io.Discard, conn)
	return err
}

// carry sends out in frames. Each frame has all output since the last one; in a flood it
// waits up to relayPause for a fuller frame.
func (d *relayDaemon) carry(id string, out io.Reader) {
	p := &relayPump{full: make(chan struct{}, 1)}
	p.cond.L = &p.mu
	go p.run(out)
	var text, rest, quoted, frame []byte
	for {
		if len(text) >= relayFrame/32 {
			select {
			case <-p.full:
			case <-time.After(relayPause):
			}
		}
		var err error
		if text, err = p.take(text); err != nil {
			return
		}
		whole := append(rest, text...)
		n := wholeRunes(whole)
		quoted = jsonspan.AppendQuote(quoted[:0], whole[:n])
		rest = append([]byte(nil), whole[n:]...)
		frame = appendRelayed(frame[:0], id, quoted)
		d.mu.Lock()
		for d.under[id] > relayWindow {
			d.acked.Wait()
		}
		d.under[id] += len(frame)
		d.mu.Unlock()
		d.sending.Lock()
		err = d.host.Send(context.Background(), frame)
		d.sending.Unlock()
		if err != nil {
			return
		}
	}
}

// wholeRunes returns the length of p without an incomplete character at its end.
func wholeRunes(p []byte) int {
	for n := len(p) - 1; n >= max(0, len(p)-utf8.UTFMax); n-- {
		if utf8.RuneStart(p[n]) {
			if !utf8.FullRune(p[n:]) {
				return n
			}
			break
		}
	}
	return len(p)
}

// relayPump gathers output while a frame is being sent.
type relayPump struct {
	full chan struct{} // one slot, filled when buf has half a frame
	mu   sync.Mutex
	cond sync.Cond // buf has changed
	buf  []byte
	err  error
}

func (p *relayPump) run(out io.Reader) {
	scratch := make([]byte, relayFrame)
	for {
		n, err := out.Read(scratch)
		p.mu.Lock()
		for len(p.buf) > 0 && len(p.buf)+n > relayFrame {
			p.cond.Wait()
		}
		p.buf = append(p.buf, scratch[:n]...)
		p.err = err
		if err != nil || 2*len(p.buf) >= relayFrame {
			select {
			case p.full <- struct{}{}:
			default:
			}
		}
		p.cond.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// take waits for output and returns all of it. The pump uses spare as its next buffer.
func (p *relayPump) take(spare []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && p.err == nil {
		p.cond.Wait()
	}
	out := p.buf
	p.buf = spare[:0]
	p.cond.Broadcast()
	if len(out) == 0 {
		return nil, p.err
	}
	return out, nil
}
