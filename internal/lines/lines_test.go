package lines_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"tether/internal/lines"
	"tether/internal/testkit/must"
)

// piece is a piece that a Reader hands out.
type piece struct {
	Data  string
	Whole bool
}

// pieces reads everything there is, with lines of up to limit bytes in one piece.
func pieces(r io.Reader, limit int) (all []piece, err error) {
	l := lines.NewReader(r, limit)
	for {
		data, whole, err := l.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, piece{string(data), whole})
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 300_000)
	for _, c := range []struct {
		name, in string
		limit    int
		want     []piece
	}{
		{"nothing", "", 100, nil},
		{"lines", "a\nb\r\n\nc\n", 100, []piece{{"a\n", true}, {"b\r\n", true}, {"\n", true}, {"c\n", true}}},
		{"half a line at the end", "a\nb", 100, []piece{{"a\n", true}, {"b", true}}},
		{"longer than a read", long + "\nb\n", 1 << 20, []piece{{long + "\n", true}, {"b\n", true}}},
	} {
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)), "with EOF": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			got, err := pieces(r, c.limit)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s, read %s: %v (-want +got):\n%.500s", c.name, name, err, diff)
			}
		}
	}
}

// A line longer than the bound passes in pieces, and so does its rest; the next lines are
// whole.
func TestLongLinesPassInPieces(t *testing.T) {
	in := "short\n" + strings.Repeat("y", 1<<20) + "\nnext\n"
	got := must.Get(pieces(strings.NewReader(in), 128<<10))(t)
	var all strings.Builder
	for i, p := range got {
		all.WriteString(p.Data)
		if edge := i == 0 || i == len(got)-1; p.Whole != edge {
			t.Errorf("piece %d of %d, %d bytes: whole is %v", i, len(got), len(p.Data), p.Whole)
		}
	}
	if all.String() != in || len(got) < 5 {
		t.Errorf("%d pieces that hold %d bytes, want %d", len(got), all.Len(), len(in))
	}
}

// A read from a file fills any buffer, but a whole line is at most 64 KiB longer than the
// limit.
func TestBoundOfAWholeLine(t *testing.T) {
	const limit, most = 1<<20 + 1, 1<<20 + 1 + 64<<10
	for _, n := range []int{limit, most, most + 1, 2 << 20} {
		got := must.Get(pieces(strings.NewReader(strings.Repeat("y", n-1)+"\n"), limit))(t)
		for _, p := range got {
			if len(p.Data) > most || p.Whole && n > most || !p.Whole && n <= limit {
				t.Errorf("of a line of %d bytes come %d, whole: %v", n, len(p.Data), p.Whole)
			}
		}
	}
}

func TestReadErrors(t *testing.T) {
	broken := errors.New("broken")
	got, err := pieces(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 100)
	if diff := cmp.Diff([]piece{{"a\n", true}, {"b", true}}, got); diff != "" || !errors.Is(err, broken) {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := pieces(emptyReader{}, 100); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

// Any chunking gives the same bytes, and only whole lines where they fit.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n\nccc"), uint8(2), uint16(4))
	f.Add([]byte(strings.Repeat("z", 1000)+"\n"), uint8(100), uint16(10))
	f.Fuzz(func(t *testing.T, in []byte, chunk uint8, limit uint16) {
		got := must.Get(pieces(&chunks{bytes.NewReader(in), int(chunk) + 1}, int(limit)+1))(t)
		var all []byte
		for _, p := range got {
			if n := strings.Count(p.Data, "\n"); n > 1 || n == 1 && !strings.HasSuffix(p.Data, "\n") {
				t.Errorf("piece %.80q holds more than a line", p.Data)
			}
			all = append(all, p.Data...)
			if ended := p.Data[len(p.Data)-1] == '\n' || len(all) == len(in); p.Whole && !ended {
				t.Errorf("piece %.80q is no whole line", p.Data)
			}
		}
		if !bytes.Equal(all, in) {
			t.Errorf("%d bytes became %d", len(in), len(all))
		}
	})
}

// chunks reads at most n bytes at a time.
type chunks struct {
	r io.Reader
	n int
}

func (c *chunks) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), c.n)]) }
