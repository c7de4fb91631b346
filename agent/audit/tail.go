package audit

import (
	"bytes"
	"errors"
	"io"
	"io/fs"

	"tether/internal/rotated"
	"tether/platform/secret"
)

// Tail reads lines that are added to a log. It is used by one goroutine.
type Tail struct {
	log  *rotated.Follower
	rest []byte // the beginning of a line whose end was not read yet
}

// NewTail returns a reader of the lines after the present ones. Close ends it.
func NewTail(path string) (*Tail, error) {
	f, err := secret.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Tail{log: rotated.New(path, nil)}, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Tail{log: rotated.New(path, f)}, nil
}

// Next returns the records that were added since the last call, if any. It does not wait.
// It skips lines that are not records; Verify reports them.
func (t *Tail) Next() (all []Record, err error) {
	err = t.log.Next(func(added io.Reader, fresh bool) error {
		data, err := io.ReadAll(added)
		if fresh {
			t.rest = nil
		}
		all = append(all, t.records(data)...)
		return err
	})
	return all, err
}

func (t *Tail) records(data []byte) []Record {
	var all []Record
	t.rest = append(t.rest, data...)
	for {
		line, after, found := bytes.Cut(t.rest, []byte("\n"))
		if !found {
			return all
		}
		t.rest = after
		if r, err := Parse(bytes.Clone(line)); err == nil {
			all = append(all, r)
		}
	}
}

// Close closes the file.
func (t *Tail) Close() error { return t.log.Close() }
