package qr_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tether/internal/qr"
	"tether/internal/testkit/must"
)

// read returns the texts that jsQR, an independent reader, finds in the codes. Modules
// are three pixels wide, with the quiet zone around.
func read(t *testing.T, codes []*qr.Code) (texts []string) {
	t.Helper()
	modules := os.Getenv("TETHER_TEST_NODE_MODULES")
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(modules + "/jsqr")
	}
	if modules == "" || err != nil {
		t.Skip("TETHER_TEST_NODE_MODULES does not name jsQR, or node is missing")
	}
	const scale, border = 3, 2
	var images []map[string]any
	for _, c := range codes {
		n := (c.Size + 2*border) * scale
		pixels := make([]byte, n*n)
		for y := range n {
			for x := range n {
				if !c.Dark(x/scale-border, y/scale-border) {
					pixels[y*n+x] = 255
				}
			}
		}
		images = append(images, map[string]any{"n": n, "pixels": pixels})
	}
	in := must.Get(json.Marshal(images))(t)
	const script = `const jsQR = require(process.argv[1] + '/jsqr'); let all = ''; process.stdin.on('data', d => all += d).on('end', () =>
		console.log(JSON.stringify(JSON.parse(all).map(i => { const rgba = new Uint8ClampedArray(i.n * i.n * 4), grey = Buffer.from(i.pixels, 'base64');
			for (let p = 0; p < grey.length; p++) { rgba.fill(grey[p], 4 * p, 4 * p + 3); rgba[4 * p + 3] = 255 }
			const c = jsQR(rgba, i.n, i.n); return c ? c.data : '' }))))`
	c := exec.CommandContext(t.Context(), node, "-e", script, modules)
	c.Stdin = bytes.NewReader(in)
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &texts)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return texts
}

// Texts of all sizes are read correctly, including the longest text of each version.
func TestEncode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var texts []string
	var codes []*qr.Code
	sizes := []struct{ bytes, size int }{{1, 21}, {17, 21}, {18, 25}, {32, 25}, {33, 29}, {53, 29}, {54, 33}, {78, 33}, {79, 37}, {98, 37}, {106, 37}, {107, 41}, {120, 41}, {134, 41},
		{135, 45}, {154, 45}, {155, 49}, {192, 49}, {193, 53}, {230, 53}, {231, 57}, {250, 57}, {271, 57}}
	for _, s := range sizes {
		n := s.bytes
		text := make([]byte, n)
		for i := range text {
			text[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/#"[random.IntN(67)]
		}
		c, err := qr.Encode(string(text))
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if texts, codes = append(texts, string(text)), append(codes, c); c.Size != s.size {
			t.Errorf("%d bytes take %d modules, want %d", n, c.Size, s.size)
		}
	}
	if c, err := qr.Encode(strings.Repeat("a", 272)); !errors.Is(err, qr.ErrTooLong) || c != nil {
		t.Errorf("272 bytes: %v", err)
	}
	got := read(t, codes)
	for i, want := range texts {
		if i >= len(got) || got[i] != want {
			t.Errorf("%d bytes are not read as they were: %q", len(want), got)
		}
	}
}

// This code was read by jsQR. It tests systems without jsQR.
func TestEncodeIsAsItWas(t *testing.T) {
	c := must.Get(qr.Encode("https://host.example/s/#abcdefgh.ijklmnop"))(t)
	sum := sha256.Sum256([]byte(c.Text(false)))
	if got := hex.EncodeToString(sum[:8]); got != "dee3afe52ec334a4" {
		t.Errorf("%s\n%s", got, c.Text(false))
	}
}

// Text draws the code's modules with a light border, in the lines and columns that Cells
// returns.
func TestText(t *testing.T) {
	c := must.Get(qr.Encode("https://host.example"))(t)
	cols, rows := c.Cells()
	for _, colours := range []bool{true, false} {
		lines := strings.Split(strings.TrimSuffix(c.Text(colours), "\n"), "\n")
		if len(lines) != rows {
			t.Fatalf("%d lines, want %d", len(lines), rows)
		}
		for row, line := range lines {
			if colours {
				line = strings.TrimSuffix(strings.TrimPrefix(line, "\x1b[38;5;16;48;5;231m"), "\x1b[m")
			}
			cells := []rune(line)
			if len(cells) != cols {
				t.Fatalf("line %d has %d columns, want %d", row, len(cells), cols)
			}
			for x, cell := range cells {
				for half, filled := range []string{"▀█", "▄█"} {
					is := strings.ContainsRune(filled, cell)
					if want := c.Dark(x-2, 2*row+half-2) == colours; is != want {
						t.Fatalf("colours %t, line %d, column %d, half %d: %q", colours, row, x, half, cell)
					}
				}
			}
		}
	}
}

func ExampleEncode() {
	c, err := qr.Encode("https://host.example/s/#x")
	if err != nil {
		return
	}
	cols, rows := c.Cells()
	fmt.Println(c.Size, cols, rows)
	// Output: 25 29 15
}
