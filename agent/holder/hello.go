package holder

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"tether/platform/ipc"
)

// VersionError is returned when the two sides know no common version of the framing.
type VersionError struct{ Min, Max int } // the other side's versions

func (e *VersionError) Error() string {
	return fmt.Sprintf("holder speaks versions %d to %d, this program %d to %d", e.Min, e.Max, minVersion, maxVersion)
}

// RefusedError is returned when a holder does not serve this process, or when the
// socket's server is not a holder of this directory.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// hello is the first message of both sides.
type hello struct {
	min, max uint16
	features uint64
	nonce    []byte // random, for the proofs of this connection; nil if it is missing
}

func ourHello() hello {
	nonce := make([]byte, nonceBytes)
	_, _ = rand.Read(nonce) // never fails, by its documentation
	return hello{minVersion, maxVersion, features, nonce}
}

func (h hello) encode() []byte {
	dst := []byte(magic)
	dst = binary.BigEndian.AppendUint16(dst, uint16(helloBody))
	dst = binary.BigEndian.AppendUint16(dst, h.min)
	dst = binary.BigEndian.AppendUint16(dst, h.max)
	dst = binary.BigEndian.AppendUint64(dst, h.features)
	return append(dst, h.nonce...)
}

// readHello reads the other side's hello. It skips additions of later versions.
func readHello(r io.Reader) (hello, error) {
	var head [helloHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return hello{}, err
	}
	n := int(binary.BigEndian.Uint16(head[len(magic):]))
	if string(head[:len(magic)]) != magic || n > maxHello {
		return hello{}, errFrame
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return hello{}, err
	}
	f := fields{b: body}
	h := hello{min: f.u16(), max: f.u16(), features: f.u64()}
	if f.bad || h.min > h.max || h.min == 0 {
		return hello{}, errFrame
	}
	h.nonce = f.take(nonceBytes)
	return h, nil
}

// agree checks that both sides know a common version, and that the other side has sent a
// nonce for the proof of the key.
func (h hello) agree() error {
	if h.max < minVersion || h.min > maxVersion {
		return &VersionError{int(h.min), int(h.max)}
	}
	if h.nonce == nil {
		return errFrame
	}
	return nil
}

// Labels that make the proofs of the two sides differ.
const (
	daemonLabel = "tether daemon"
	holderLabel = "tether holder"
)

// prove computes the proof that a side has the key, without revealing it. The proof is
// valid for one connection to the holder with that id, and for one side.
func prove(key []byte, label, id string, daemon, holder hello) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{[]byte(label), []byte(id), daemon.nonce, holder.nonce} {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part)))
		mac.Write(size[:])
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// greet is the holder's side of the handshake. It accepts a daemon that has the key and
// passes check, passes it the descriptor of c's terminal, and returns the features that
// both sides have.
func greet(conn net.Conn, r *bufio.Reader, key []byte, id string, check func(net.Conn) error, c child) (agreed uint64, err error) {
	if err := conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return 0, err
	}
	theirs, err := readHello(r)
	if err != nil {
		return 0, err
	}
	ours := ourHello()
	if _, err := conn.Write(ours.encode()); err != nil {
		return 0, err
	}
	if err := theirs.agree(); err != nil {
		return 0, err
	}
	proof, err := readWhole(r, kindProof, proofBytes)
	if err != nil {
		return 0, err
	}
	refused := error(nil)
	if !hmac.Equal(proof, prove(key, daemonLabel, id, theirs, ours)) {
		refused = &RefusedError{"the holder refused a program without its key"}
	} else if check != nil {
		refused = check(conn)
	}
	if refused != nil {
		text := refused.Error()
		_, _ = conn.Write(bytesFrame(kindRefused, []byte(text[:min(len(text), maxText)])))
		return 0, refused
	}
	terminal, _ := c.(ipc.Passable)
	if err := ipc.WritePassing(conn, bytesFrame(kindProven, prove(key, holderLabel, id, theirs, ours)), terminal); err != nil {
		return 0, err
	}
	return theirs.features & features, conn.SetDeadline(time.Time{})
}

// introduce is the daemon's side of the handshake. It returns the features that both
// sides have, after the holder has proved that it has the key as well.
func introduce(conn net.Conn, r *bufio.Reader, key []byte, id string) (agreed uint64, err error) {
	ours := ourHello()
	if _, err := conn.Write(ours.encode()); err != nil {
		return 0, err
	}
	theirs, err := readHello(r)
	if err != nil {
		return 0, err
	}
	if err := theirs.agree(); err != nil {
		return 0, err
	}
	if _, err := conn.Write(bytesFrame(kindProof, prove(key, daemonLabel, id, ours, theirs))); err != nil {
		return 0, err
	}
	if head, err := r.Peek(1); err == nil && kind(head[0]) == kindRefused {
		why, err := readWhole(r, kindRefused, maxText)
		if err != nil {
			return 0, err
		}
		return 0, &RefusedError{string(why)}
	}
	proof, err := readWhole(r, kindProven, proofBytes)
	if err != nil {
		return 0, err
	}
	if !hmac.Equal(proof, prove(key, holderLabel, id, ours, theirs)) {
		return 0, &RefusedError{"the process behind the socket does not have the holders' key"}
	}
	return theirs.features & features, nil
}
