package output_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"tether/host/output"
)

// header is the screen of the terminals below: a line that was printed long ago.
const header = "\x1b[HTHE HEADER\x1b[4;1H"

// A screen is drawn without the lock while its terminal goes on printing, and shows the
// moment at which it was taken.
func TestScreenIsDrawnWhileItsTerminalPrints(t *testing.T) {
	var mu sync.Mutex
	d := output.NewDropped(64 << 10)
	d.Text(header)
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 2000 {
			d.TextLocking(&mu, strings.Repeat("\x1b[4;1H\x1b[Kcounter", 50)+fmt.Sprint(i))
		}
	})
	for range 4 {
		all.Go(func() {
			for range 100 {
				text, after, doubtful := d.Shown(&mu)
				if doubtful || after && !strings.HasPrefix(text, "THE HEADER") {
					t.Errorf("the screen shows %.40q, doubtful %t", text, doubtful)
					return
				}
			}
		})
	}
	all.Wait()
}

// Text that is printed after all earlier text was dropped for memory leaves, too.
func TestTextAfterDroppedText(t *testing.T) {
	d := output.NewDropped(64 << 10)
	d.Text(header)
	d.Drop()
	for range 2000 {
		d.Text(strings.Repeat("\x1b[4;1H\x1b[Kcounter", 50))
	}
	if text, _, doubtful := d.Shown(&sync.Mutex{}); !doubtful || !strings.Contains(text, "counter") {
		t.Errorf("the screen shows %.40q, doubtful %t", text, doubtful)
	}
}
