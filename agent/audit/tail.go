package audit

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"tether/platform/secret"
)

// Tail reads lines that are added to a log. It is used by one goroutine.
type Tail struct {
	path string
	file *os.File
	rest []byte // the beginning of a line whose end was not read yet
}

// NewTail returns a reader of the lines after the present ones. Close ends it.
func NewTail(path string) (*Tail, error) {
	t := &Tail{path: path}
	f, err := secret.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t.file = f
	return t, nil
}

// Next returns the records that were added since the last call, if any. It does not wait. It skips lines that are not records; Verify
// reports them.
func (t *Tail) Next() ([]Record, error) {
	var all []Record
	for {
		if t.file != nil {
			data, err := io.ReadAll(t.file)
			if err != nil {
				return all, err
			}
			all = append(all, t.records(data)...)
		}
		// Its successor is only looked for after its end was read: nothing is added to a file that was renamed.
		f, err := secret.OpenRead(t.path)
		if errors.Is(err, fs.ErrNotExist) {
			return all, nil // between two files
		}
		if err != nil {
			return all, err
		}
		if t.file != nil && sameFile(f, t.file) {
			return all, f.Close()
		}
		if t.file != nil {
			data, err := io.ReadAll(t.file) // written between the end and the renaming
			if err != nil {
				return all, errors.Join(err, f.Close())
			}
			all = append(all, t.records(data)...)
			t.file.Close()
		}
		t.file, t.rest = f, nil
	}
}

func sameFile(a, b *os.File) bool {
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
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
func (t *Tail) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}
