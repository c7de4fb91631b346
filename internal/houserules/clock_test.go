package houserules

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// monotonicPlaces are the packages whose waits, deadlines and orders must not change when
// somebody sets the machine's clock. Their times must keep the monotonic reading.
var monotonicPlaces = []string{"agent/uplink", "agent/term", "agent/ring", "agent/holder", "jsonrpc", "jsonrpc/wsconn", "ahp/client", "host"}

// wallClock are functions and methods of package time that drop the monotonic reading, or
// make a time without one. Those that format times for people are not among them.
var wallClock = []string{"Unix", "UnixNano", "UnixMicro", "UnixMilli", "Round", "Truncate"}

// wallClockUses lists the exceptions by file, and why no wait depends on the wall clock
// there.
var wallClockUses = map[string]string{
	"agent/uplink/actions.go":   "when a command ran, for people to read",
	"agent/uplink/lentports.go": "when a port is lent until, for people to read",
	"agent/term/adopt.go":       "when a terminal started, for people to read",
	"agent/term/loan.go":        "a lending that ends at a time of the clock ends then, and also after the time that was asked for",
	"agent/term/meta.go":        "what outlives the daemon can hold no monotonic reading",
	"agent/holder/messages.go":  "when a child started and ended, for people to read",
	"host/rows.go":              "when a terminal was made, for people to read",
}

// checkClock returns the places where a file uses the wall clock. It compares names, so
// it also finds other functions with these names.
func checkClock(f *file) []string {
	if f.isTest() || !f.isIn(monotonicPlaces) || wallClockUses[f.name] != "" {
		return nil
	}
	var bad []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if ok && slices.Contains(wallClock, sel.Sel.Name) && !isDuration(call) {
			bad = append(bad, fmt.Sprintf("%s: %s drops the monotonic reading: setting the clock would change what waits", f.at(n), sel.Sel.Name))
		}
		return true
	})
	return bad
}

// isDuration reports whether the only argument of a call of Round or Truncate is
// time.Millisecond: such a call rounds a duration.
func isDuration(call *ast.CallExpr) bool {
	return len(call.Args) == 1 && isSelector(call.Args[0], "time", "Millisecond")
}

// Setting the clock changes no wait, deadline or order.
func TestNothingWaitsForTheClock(t *testing.T) {
	t.Chdir(root)
	used := map[string]bool{}
	for _, f := range parseTree(t) {
		used[f.name] = true
		for _, bad := range checkClock(f) {
			t.Error(bad)
		}
	}
	for name := range wallClockUses {
		if !used[name] {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestCheckClock(t *testing.T) {
	t.Chdir(root)
	const head = "package uplink\nimport \"time\"\n"
	for source, want := range map[string]string{
		"var x = time.Now().Add(time.Second)":                 "",
		"var x = time.Since(y).Round(time.Millisecond)":       "",
		"var x = time.Now().UnixNano()":                       "UnixNano",
		"var x = time.Unix(1, 2)":                             "Unix",
		"func f(t time.Time) bool { return t.Round(0) != t }": "Round",
	} {
		got := strings.Join(checkClock(mustParse(t, "agent/uplink/x.go", head+source)), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}
