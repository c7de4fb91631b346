package terminals

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// display is an X server whose screen is a file.
type display struct {
	name string // as in DISPLAY
	file string
}

// newDisplay starts an X server for the test.
func newDisplay(t *testing.T) *display {
	t.Helper()
	dir := t.TempDir()
	c := exec.Command("Xvfb", "-displayfd", "1", "-screen", "0", "1800x600x24", "-fbdir", dir, "-nolisten", "tcp", "-noreset")
	out := must.Get(c.StdoutPipe())(t)
	testkit.StartTree(t, c)
	number := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	d := &display{name: ":" + strings.TrimSpace(number), file: filepath.Join(dir, "Xvfb_screen0")}
	must.Get(d.do("setxkbmap", "us", "-option", "compose:menu"))(t)
	return d
}

// do runs a program on the display and returns what it prints.
func (d *display) do(argv ...string) (string, error) {
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append(os.Environ(), "DISPLAY="+d.name, "LC_ALL=C.UTF-8")
	out, err := c.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%q: %w: %s", argv, err, failed.Stderr)
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// The header of an XWD file: big-endian words (X11/XWDFile.h).
const (
	xwdHeaderSize   = 0
	xwdBytesPerLine = 12
	xwdColours      = 19
	xwdColourSize   = 12 // bytes
)

// picture returns a part of the screen.
func (d *display) picture(part image.Rectangle) (*image.RGBA, error) {
	data, err := os.ReadFile(d.file)
	if err != nil {
		return nil, err
	}
	word := func(n int) int { return int(binary.BigEndian.Uint32(data[4*n:])) }
	pixels := data[word(xwdHeaderSize)+word(xwdColours)*xwdColourSize:]
	p := image.NewRGBA(image.Rectangle{Max: part.Size()})
	for y := range part.Dy() {
		line := pixels[(part.Min.Y+y)*word(xwdBytesPerLine)+4*part.Min.X:]
		for x := range part.Dx() {
			p.SetRGBA(x, y, color.RGBA{line[4*x+2], line[4*x+1], line[4*x], 255})
		}
	}
	return p, nil
}

// place returns where a window is on the screen.
func (d *display) place(id string) (image.Rectangle, error) {
	out, err := d.do("xdotool", "getwindowgeometry", "--shell", id)
	if err != nil {
		return image.Rectangle{}, err
	}
	at := map[string]int{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		at[name], _ = strconv.Atoi(value)
	}
	return image.Rect(at["X"], at["Y"], at["X"]+at["WIDTH"], at["Y"]+at["HEIGHT"]), nil
}

// selects makes text the selection, primary or clipboard, until it is called off.
func (d *display) selects(t *testing.T, which, text string) (stop func()) {
	t.Helper()
	c := exec.Command("xclip", "-quiet", "-in", "-selection", which)
	c.Env = append(os.Environ(), "DISPLAY="+d.name, "LC_ALL=C.UTF-8")
	c.Stdin = strings.NewReader(text)
	must.Do(t, c.Start())
	testkit.Eventually(t, testkit.Patience, "the selection", func() bool { return d.selected(which) == strings.TrimSuffix(text, "\n") })
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// selected returns the selection; "" if there is none.
func (d *display) selected(which string) string {
	out, _ := d.do("xclip", "-out", "-selection", which)
	return out
}
