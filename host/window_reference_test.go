package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/coder/websocket"

	"tether/host"
)

// stranger is a client written from AHP's text alone: JSON as it is, over a WebSocket as it is. It shares no code with this project, so
// that the two cannot be wrong together. A test uses it from one goroutine.
type stranger struct {
	t    *testing.T
	ws   *websocket.Conn
	id   float64
	seq  int
	text string // of the terminal, as far as it is known

	// Of the windowed subscription.
	limits   object // nil: delivery is ordinary
	partial  string
	snapshot bool
	ready    bool
	resets   int
	got      float64 // bytes of whole messages
	given    float64 // of credit
	last     float64 // serverSeq
	clears   int
	exited   bool
}

type object = map[string]any

const strangersTerminal = "ahp-terminal:/strange"

// newStranger connects and initializes.
func newStranger(t *testing.T, url, id string) *stranger {
	t.Helper()
	s := dialStranger(t, url)
	s.call("initialize", object{"channel": "ahp-root://", "protocolVersions": []string{"1.0.0", "0.9.0"}, "clientId": id})
	return s
}

func dialStranger(t *testing.T, url string) *stranger {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(64 << 20)
	t.Cleanup(func() { _ = ws.CloseNow() })
	return &stranger{t: t, ws: ws}
}

func (s *stranger) send(message object) {
	s.t.Helper()
	message["jsonrpc"] = "2.0"
	text, err := json.Marshal(message)
	if err == nil {
		err = s.ws.Write(s.t.Context(), websocket.MessageText, text)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// call waits for the result of a request and takes what comes before it.
func (s *stranger) call(method string, params object) object {
	s.t.Helper()
	s.id++
	s.send(object{"id": s.id, "method": method, "params": params})
	for {
		if m := s.next(); m["id"] == s.id {
			if m["error"] != nil {
				s.t.Fatalf("%s is answered %v", method, m["error"])
			}
			result, _ := m["result"].(object)
			return result
		}
	}
}

func (s *stranger) dispatch(action object) {
	s.t.Helper()
	s.seq++
	s.send(object{"method": "dispatchAction", "params": object{"channel": strangersTerminal, "clientSeq": s.seq, "action": action}})
}

// until reads on as long as it is not so.
func (s *stranger) until(what string, is func() bool) {
	s.t.Helper()
	for !is() {
		s.next()
		if s.t.Failed() {
			s.t.Fatalf("while it waited for %s", what)
		}
	}
}

// next reads a message and takes it, if it is a notification.
func (s *stranger) next() object {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	_, text, err := s.ws.Read(ctx)
	if err != nil {
		s.t.Fatalf("read: %v", err)
	}
	var m object
	if err := json.Unmarshal(text, &m); err != nil {
		s.t.Fatalf("%.200s: %v", text, err)
	}
	params, _ := m["params"].(object)
	switch m["method"] {
	case "channel/frame":
		s.frame(string(text), params)
	case "channel/ready":
		if !s.snapshot || s.partial != "" {
			s.t.Error("channel/ready before the snapshot was whole")
		}
		s.ready = true
	case "channel/reset":
		s.resets++
		s.limits, s.partial, s.snapshot, s.ready, s.got, s.given = nil, "", false, false, 0, 0
	case "action":
		if s.limits != nil && params["channel"] == strangersTerminal {
			s.t.Errorf("an action of a windowed channel came without frames: %.200s", text)
		}
		s.action(params)
	}
	return m
}

// inUnits is a length as flow control counts it: UTF-16 code units, two bytes each.
func inUnits(text string) float64 { return float64(2 * len(utf16.Encode([]rune(text)))) }

func (s *stranger) frame(whole string, params object) {
	s.t.Helper()
	data, _ := params["data"].(string)
	switch {
	case s.limits == nil || params["channel"] != strangersTerminal:
		s.t.Errorf("a frame of a channel that is not windowed: %.200s", whole)
		return
	case data == "":
		s.t.Error("a frame without data")
	case strings.ContainsRune(data, '\uFFFD'):
		s.t.Error("a character was divided")
	case inUnits(whole) > s.limits["maximumFrameBytes"].(float64):
		s.t.Errorf("a frame of %v bytes", inUnits(whole))
	}
	if s.partial == "" && s.got-s.given >= s.limits["windowBytes"].(float64) {
		s.t.Errorf("a message begins while %v bytes are without credit", s.got-s.given)
	}
	s.partial += data
	if params["final"] != true {
		return
	}
	message, text := object{}, s.partial
	s.partial = ""
	if err := json.Unmarshal([]byte(text), &message); err != nil {
		s.t.Fatalf("a message in frames: %v in %.200s", err, text)
	}
	if n := inUnits(text); n > s.limits["maximumMessageBytes"].(float64) {
		s.t.Errorf("a message of %v bytes", n)
	}
	s.got += inUnits(text)
	params, _ = message["params"].(object)
	switch {
	case params["channel"] != strangersTerminal:
		s.t.Errorf("a message of another channel in frames: %.200s", text)
	case message["method"] == "channel/snapshot" && !s.snapshot:
		s.snapshot = true
		s.load(params["snapshot"].(object))
	case message["method"] == "action" && s.ready:
		s.action(params)
	default:
		s.t.Errorf("in frames, after a snapshot %v, ready %v: %.200s", s.snapshot, s.ready, text)
	}
}

func (s *stranger) load(snapshot object) {
	s.text, s.last = "", snapshot["fromSeq"].(float64)
	state := snapshot["state"].(object)
	parts, _ := state["content"].([]any)
	for _, part := range parts {
		p := part.(object)
		for _, member := range []string{"value", "output"} {
			text, _ := p[member].(string)
			s.text += text
		}
	}
	lifecycle, _ := state["lifecycle"].(object)
	s.exited = lifecycle["status"] == "exited"
}

func (s *stranger) action(envelope object) {
	if envelope["channel"] != strangersTerminal || envelope["rejectionReason"] != nil {
		return
	}
	seq := envelope["serverSeq"].(float64)
	if seq <= s.last {
		s.t.Errorf("serverSeq %v after %v", seq, s.last)
	}
	s.last = seq
	action := envelope["action"].(object)
	switch action["type"] {
	case "terminal/data":
		s.text += action["data"].(string)
	case "terminal/cleared":
		s.text = ""
		s.clears++
	case "terminal/exited":
		s.exited = true
	}
}

// follow subscribes, in a window if there are limits.
func (s *stranger) follow(limits object) {
	s.t.Helper()
	params := object{"channel": strangersTerminal}
	if limits != nil {
		params["flowControl"] = object{"receive": limits}
		s.limits = limits // frames may come before the answer is looked at
	}
	result := s.call("subscribe", params)
	if limits == nil {
		s.load(result["snapshot"].(object))
		return
	}
	flow, _ := result["flowControl"].(object)
	if result["snapshot"] != nil || flow["clientReceive"] == nil || flow["hostReceive"] == nil {
		s.t.Fatalf("subscribe is answered %v", result)
	}
	agreed := flow["clientReceive"].(object)
	for name, offered := range limits {
		if n, _ := agreed[name].(float64); n < 1 || n > offered.(float64) {
			s.t.Errorf("%s: %v was offered, %v is taken", name, offered, agreed[name])
		}
	}
	s.limits = agreed
	s.until("the snapshot", func() bool { return s.ready })
}

// credit says that everything which has come was used.
func (s *stranger) credit() {
	s.given = s.got
	s.send(object{"method": "channel/credit", "params": object{"channel": strangersTerminal, "consumedBytes": s.given}})
}

// A client that was written from the specification asks for windows, stalls, and goes on: nothing is lost where the host still has it,
// and where it has not, the client is told.
func TestWindowsAsAStrangerReadsThem(t *testing.T) {
	for name, tt := range map[string]struct {
		logBytes int
		whole    bool
	}{"everything is kept": {16 << 20, true}, "little is kept": {64 << 10, false}} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, host.Options{LogBytes: tt.logBytes})
			machine := newStranger(t, url, "machine")
			machine.call("createTerminal", object{"channel": strangersTerminal, "claim": object{"kind": "client", "clientId": "machine"},
				"name": "dev", "cols": 80, "rows": 24, "executionTarget": "client"})
			machine.dispatch(object{"type": "terminal/output", "data": strings.Repeat("before 🙂 \"\\\x1b[1m目\r\n", 2000)})
			machine.call("ping", object{"channel": "ahp-root://"})
			ordinary, viewer := newStranger(t, url, "ordinary"), newStranger(t, url, "viewer")
			ordinary.follow(nil)
			limits := object{"windowBytes": 96e3, "maximumFrameBytes": 20e3, "maximumMessageBytes": 1e6}
			viewer.follow(limits)
			if viewer.text != ordinary.text || !strings.HasPrefix(viewer.text, "before 🙂") {
				t.Errorf("at the beginning it has %.100q", viewer.text)
			}
			viewer.credit()
			for n := range 100 { // the viewer stalls; the ordinary one is not held up by it
				line := fmt.Sprintf("line %d 🙂\u2028\r\n", n)
				machine.dispatch(object{"type": "terminal/output", "data": strings.Repeat("x", 10_000) + line})
				ordinary.until("line "+fmt.Sprint(n), func() bool { return strings.HasSuffix(ordinary.text, line) })
			}
			for viewer.got-viewer.given < viewer.limits["windowBytes"].(float64) {
				viewer.call("ping", object{"channel": "ahp-root://"}) // controls need no credit
			}
			stalled := viewer.got
			for range 3 {
				viewer.call("ping", object{"channel": "ahp-root://"})
			}
			if viewer.got != stalled || viewer.partial != "" {
				t.Errorf("%v bytes came without credit, then %v more", stalled, viewer.got-stalled)
			}
			for !strings.HasSuffix(viewer.text, "line 99 🙂\u2028\r\n") {
				viewer.credit()
				got := viewer.got
				viewer.until("more for the credit", func() bool { return viewer.got > got })
			}
			if tt.whole && (viewer.text != ordinary.text || viewer.clears != 0) {
				t.Errorf("it has %d bytes of %d, cleared %d times", len(viewer.text), len(ordinary.text), viewer.clears)
			}
			if tail := viewer.text[max(0, len(viewer.text)-5000):]; !tt.whole && (viewer.clears == 0 || !strings.HasSuffix(ordinary.text, tail)) {
				t.Errorf("brought up to date %d times, it ends with %.100q", viewer.clears, tail)
			}
			viewer.credit()
			strangersEnd(t, url, machine, viewer, limits)
		})
	}
}

// strangersEnd breaks a rule, begins again, loses the connection, and sees the end.
func strangersEnd(t *testing.T, url string, machine, viewer *stranger, limits object) {
	t.Helper()
	viewer.send(object{"method": "channel/credit", "params": object{"channel": strangersTerminal, "consumedBytes": 1e9}})
	viewer.until("the reset", func() bool { return viewer.resets == 1 })
	viewer.follow(limits)
	viewer.credit()
	_ = viewer.ws.CloseNow()
	again := dialStranger(t, url)
	result := again.call("reconnect", object{"channel": "ahp-root://", "clientId": "viewer", "lastSeenServerSeq": viewer.last,
		"subscriptions": []string{strangersTerminal}, "windows": object{"items": []object{{"channel": strangersTerminal, "lastAppliedServerSeq": viewer.last}}}})
	missing, _ := result["missing"].([]any)
	snapshots, _ := result["snapshots"].([]any)
	if result["type"] == "replay" && !slices.Contains(missing, any(strangersTerminal)) || len(snapshots) != 0 {
		t.Errorf("reconnect is answered %v; the channel was windowed, and is to be subscribed to again", result)
	}
	again.follow(limits)
	machine.dispatch(object{"type": "terminal/exited", "exitCode": 3})
	again.credit()
	again.until("the exit", func() bool { return again.exited })
}
