package local_test

import (
	"testing"

	"tether/agent/local"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The size of a user interface's window counts as that of an attached person does, until
// it detaches or disconnects.
func TestSizesOfWindows(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, _ := w.spawn("a")
	is := func(what string, cols, rows int) {
		t.Helper()
		testkit.Eventually(t, patience, what, func() bool {
			now, err := w.client.Find(t.Context(), "a")
			return err == nil && now.Cols == cols && now.Rows == rows
		})
	}
	u := w.ui()
	u.ask("pty:attach", tm.ID)
	u.ask("pty:resize", tm.ID, "cols", 120, "rows", 40)
	is("the window's size", 120, 40)

	a := w.attach("a", localclient.AttachOptions{})
	must.Do(t, a.Resize(t.Context(), 80, 50))
	is("what fits both", 80, 40)
	a.Close()
	is("the window's size after the person has left", 120, 40)

	b := w.attach("a", localclient.AttachOptions{})
	must.Do(t, b.Resize(t.Context(), 200, 60))
	is("the window's size beside a larger screen", 120, 40)
	u.ask("pty:detach", tm.ID)
	is("the screen's size after the window has detached", 200, 60)
	u.ask("pty:resize", tm.ID, "cols", 100, "rows", 30)
	is("the size of a window that is not attached", 100, 30)
	u.conn.CloseNow()
	is("the screen's size after the window is closed", 200, 60)
}
