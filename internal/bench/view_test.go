package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

// frameOf is a text frame of a server.
func frameOf(payload string) []byte {
	n := len(payload)
	head := []byte{0x81}
	switch {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	return append(head, payload...)
}

func TestViewerReadsFrames(t *testing.T) {
	var wire bytes.Buffer
	attached := `{"type":"pty:attached","history":"` + strings.Repeat("x", 70_000) + `"}`
	output := `{"type":"pty:output","data":"` + strings.Repeat("y", 1000) + `"}`
	for _, payload := range []string{`{"type":"terminal"}`, attached, output, `{}`} {
		wire.Write(frameOf(payload))
	}
	var v viewing
	in := bufio.NewReader(&wire)
	for i, want := range []bool{true, false, false, false} {
		if event, err := v.frame(in); err != nil || event != want {
			t.Errorf("frame %d: event %v, %v", i, event, err)
		}
	}
	if v.attached.Load() != 1 || v.messages.Load() != 4 || v.bytes.Load() != int64(19+len(attached)+len(output)+2) {
		t.Errorf("%d attached, %d messages, %d bytes", v.attached.Load(), v.messages.Load(), v.bytes.Load())
	}
	if _, err := v.frame(in); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if _, err := v.frame(bufio.NewReader(bytes.NewReader(frameOf(output)[:500]))); err == nil {
		t.Error("half a frame was taken")
	}
}

func TestViewRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"socket", "id", "1"}, {"socket", "id", "x", "false"}, {"/nowhere", "id", "1", "false"}} {
		if err := view(args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("view %q runs", args)
		}
	}
}
