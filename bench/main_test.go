package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// TestMain lets the test's binary be the children that bench starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		if err := child(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestChildPrintsTheExpectedText(t *testing.T) {
	for _, c := range corpora {
		w := newWork(c, 3)
		var out bytes.Buffer
		if err := c.print(w.blocks, strings.NewReader("\n"), &out); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		ready, rest, _ := strings.Cut(out.String(), "\n")
		var got text
		got.add(onTerminal([]byte(ready + "\n\n" + rest))) // with the echo of the line in between
		if got != w.want {
			t.Errorf("%s: the terminal shows %+v, expected is %+v", c.name, got, w.want)
		}
		if w.blocks != 2 {
			t.Errorf("%s: %d blocks make 3 MB, want 2 of a little more than 1 MiB", c.name, w.blocks)
		}
	}
}

// The functions that part screens leaves out are still there.
func TestScreensCanBeLeftOut(t *testing.T) {
	for name, f := range withoutScreens {
		text, err := withoutBody(filepath.Join("..", filepath.FromSlash(name)), f.function, f.end)
		if err != nil || !strings.Contains(text, f.function+f.end) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChildRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"plain"}, {"nothing", "1"}, {"plain", "-1"}, {"plain", "x"}} {
		if err := child(args, strings.NewReader("\n"), new(bytes.Buffer)); err == nil {
			t.Errorf("child %q runs", args)
		}
	}
	if err := child([]string{"plain", "1"}, strings.NewReader(""), new(bytes.Buffer)); err == nil {
		t.Error("a child prints although no line was typed")
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		row  row
		want string
	}{
		{row{Value: 1}, ""},
		{row{Value: 1}.least(1), "ok"},
		{row{Value: 0.99}.least(1), "MISS"},
		{row{Value: 1}.most(1), "ok"},
		{row{Value: 1.01}.most(1), "MISS"},
		{row{Value: 1.01}.slower(1, 0.05, 0.06), "MISS"}, // no stricter, no milder on a faster machine
		{row{Value: 1}.slower(1, 0.05, 0.06), "ok"},
		{row{Value: 2}.slower(1, 0.12, 0.06), "ok"},
		{row{Value: 2.01}.slower(1, 0.12, 0.06), "MISS"},
		{row{Unjudged: "why"}.most(1), "not judged"},
	} {
		if got := c.row.verdict(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.row, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	r := report{
		Machine: machine{CPU: "a CPU", Cores: 2, Go: "go1"},
		Rows: []row{
			row{Part: "speed", Name: "of something", Value: 0.756, Note: "why"}.least(0.8),
			row{Part: "speed", Name: "of another", Value: 1234, Unit: "MB/s"},
			row{Part: "size", Name: "small", Value: 12.34, Unit: "MiB"}.most(15),
			row{Part: "size", Name: "hidden", Unit: "MiB", Unjudged: "unknown here"}.most(15),
		},
		Failed: []string{"echo: no terminal"},
	}
	var out bytes.Buffer
	must.Do(t, r.table(&out))
	want := []string{
		"a CPU, 2 cores, go1", "",
		"SPEED", "of something 0.76 ≥ 0.80 MISS why", "of another 1234 MB/s", "",
		"SIZE", "small 12.3 MiB ≤ 15 ok", "hidden – MiB ≤ 15 not judged unknown here", "",
		"not measured: echo: no terminal", "", "1 of 2 floors missed, 1 not judged", "",
	}
	var got []string
	for line := range strings.SplitSeq(out.String(), "\n") {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	check.Equal(t, "table", want, got)
}

func TestJSON(t *testing.T) {
	want := report{Machine: machine{CPU: "x", Cores: 2, Go: "go1"}, Rows: []row{row{Part: "a", Name: "b", Value: 2, Unit: "ms"}.most(3)}}
	var out bytes.Buffer
	must.Do(t, want.json(&out))
	var got report
	must.Do(t, json.Unmarshal(out.Bytes(), &got))
	check.Equal(t, "read back", want, got)
}

func TestQuantiles(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for _, c := range []struct{ q, want float64 }{{0, 1}, {0.5, 3}, {0.99, 5}, {1, 5}} {
		if got := quantile(values, c.q); got != c.want {
			t.Errorf("quantile %v of %v: %v, want %v", c.q, values, got, c.want)
		}
	}
	if values[0] != 5 {
		t.Error("the values were put in another order")
	}
	if got := median(nil); got != 0 {
		t.Errorf("median of nothing: %v", got)
	}
}

func TestParseStatus(t *testing.T) {
	got, err := parseStatus("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t7\n")
	if want := (memory{rss: 1 << 20, peak: 2 << 20, threads: 7}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "VmRSS: x kB\nThreads: 7\n", "VmRSS: 1024 kB\n"} {
		if got, err := parseStatus(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

// viewOf is an envelope of the terminal as the connection hands it to an observer.
func viewOf(t *testing.T, seq int64, a ahp.Action) ahp.EnvelopeView {
	t.Helper()
	params := must.Get(json.Marshal(map[string]any{"channel": "ahp-terminal:/1", "serverSeq": seq, "action": json.RawMessage(ahp.AppendAction(nil, a))}))(t)
	var v ahp.EnvelopeView
	must.Do(t, v.Decode(params))
	return v
}

func TestObserverOrder(t *testing.T) {
	var seen string
	o := &observer{uri: "ahp-terminal:/1", ended: make(chan struct{}), show: func(p []byte) { seen += string(p) }}
	o.envelope(viewOf(t, 4, ahp.TerminalData{Data: "in the snapshot "}))
	o.envelope(viewOf(t, 6, ahp.TerminalData{Data: "early "}))
	o.begin(5, ahp.TerminalState{Content: []ahp.ContentPart{{Type: ahp.PartUnclassified, Value: "snapshot "}}})
	o.envelope(viewOf(t, 7, ahp.TerminalData{Data: "late\x1b[m"}))
	if want := "snapshot early late\x1b[m"; seen != want {
		t.Errorf("shown %q, want %q", seen, want)
	}
	o.envelope(viewOf(t, 8, ahp.TerminalExited{}))
	o.envelope(viewOf(t, 9, ahp.TerminalExited{}))
	<-o.ended
	if err := o.problem(); err != nil {
		t.Errorf("after the exit: %v", err)
	}
}

func TestObserverMissesOutput(t *testing.T) {
	o := &observer{uri: "ahp-terminal:/1", ended: make(chan struct{}), show: func([]byte) {}}
	o.begin(0, ahp.TerminalState{})
	o.envelope(viewOf(t, 1, ahp.TerminalCleared{}))
	<-o.ended
	if o.problem() == nil {
		t.Error("skipped output is no problem")
	}
}

func TestAwait(t *testing.T) {
	send := func(texts ...string) chan arrival {
		came := make(chan arrival, len(texts))
		for _, s := range texts {
			came <- arrival{s, time.Unix(1, 0)}
		}
		close(came)
		return came
	}
	if at, err := await(send("re", "ady"), "ready"); err != nil || at != time.Unix(1, 0) {
		t.Errorf("in two pieces: %v, %v", at, err)
	}
	for _, bad := range []chan arrival{send("rex"), send("re"), send("ready!")} {
		if _, err := await(bad, "ready"); err == nil {
			t.Error("something else was taken for it")
		}
	}
}

func TestPoll(t *testing.T) {
	n := 0
	got, err := poll(t.Context(), func() (int, error) {
		if n++; n < 3 {
			return 0, errNotYet
		}
		return n, nil
	})
	if got != 3 || err != nil {
		t.Errorf("%d, %v; want the third", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := poll(ctx, func() (int, error) { return 0, errNotYet }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestComplaints(t *testing.T) {
	var c complaints
	plain := errors.New("it broke")
	if err := c.explain(plain); err != plain {
		t.Errorf("without complaints: %v", err)
	}
	c.Write(bytes.Repeat([]byte("x"), maxComplaints))
	c.Write([]byte("last words"))
	err := c.explain(plain)
	if !errors.Is(err, plain) || !strings.HasSuffix(err.Error(), "xlast words") || len(err.Error()) > maxComplaints+100 {
		t.Errorf("with complaints: %.100v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"-bin", t.TempDir()}, {"-only", "nothing"}} {
		if err := run(args, new(bytes.Buffer)); err == nil {
			t.Errorf("%q runs", args)
		}
	}
}

// buildAll makes the programs.
func buildAll(t *testing.T) programs {
	bin := t.TempDir()
	must.Do(t, testkit.Build(bin))
	return built(bin)
}

// The real processes, with little work.
func TestParts(t *testing.T) {
	if runtime.GOOS == "windows" { // Wine has a /proc, with other processes' numbers
		t.Skip("what processes use is measured through /proc")
	}
	if _, err := cpuTime(os.Getpid()); err != nil {
		t.Skip(err)
	}
	testkit.Leaks(t)
	own := must.Get(profiled(t.TempDir()))(t)
	small := settings{programs: buildAll(t), rounds: 1, megabytes: 1, keys: 10, starts: 1, settle: 10 * time.Millisecond, idle: 10 * time.Millisecond, viewers: 3,
		viewing: 100 * time.Millisecond, machines: 3, watchers: 2, flow: 50 * time.Millisecond, searched: 1}
	for _, part := range parts {
		if slices.Contains([]string{"memory", "screens"}, part.name) {
			continue // too long for a test, with no logic of its own; or it compiles programs
		}
		t.Run(part.name, func(t *testing.T) {
			small := small
			if part.name == "search" {
				t.Chdir("..")
			}
			if part.group == ofNodes {
				t.Chdir("..")
				if _, err := os.Stat(natsServer); err != nil {
					t.Skip("nats-server is not installed: scripts/nats-server.sh installs it")
				}
			}
			if slices.Contains([]string{"key", "fanout"}, part.name) {
				small.programs = own // the others start programs that are not in this binary
			}
			rows := must.Get(part.measure(t.Context(), small))(t)
			for _, r := range rows {
				// A difference may be negative or, of memory, nothing; a time less than a
				// clock tells. On a busy machine a row may be not judged.
				if r.Value == 0 && r.Unjudged == "" && !slices.Contains([]string{"ms", "KiB"}, r.Unit) || r.Part == "" || r.Name == "" {
					t.Errorf("nothing was measured: %+v", r)
				}
			}
		})
	}
}

// Without a NATS server, as in this directory, a cluster does not start, and nothing of
// it is left.
func TestClusterWithoutServers(t *testing.T) {
	testkit.Leaks(t)
	if c, err := newClusterRig(t.Context(), programs{}); err == nil {
		c.close()
		t.Fatal("a cluster has started")
	} else if !strings.Contains(err.Error(), natsServer) {
		t.Errorf("%v", err)
	}
}

// Values equal to the reference peers' meet their floors, and worse ones miss each.
func TestPathRows(t *testing.T) {
	paths := []namedPath{{name: asInstalled}, {name: relayPlain}, {name: relayHeld}, {name: besideVSCode}}
	same := walked{plain: 10, coloured: 20, cpu: 30, alone: []float64{1}, beside: []float64{2}, quiet: 10, typed: 9}
	all := map[string][]walked{}
	for _, p := range paths {
		all[p.name] = []walked{same}
	}
	if r := (report{Rows: pathRows(paths, []float64{0.5}, all)}); r.missed() != 2 || r.floors() != 9 { // half of VS Code's, twice
		t.Errorf("%d of %d floors are missed by equals", r.missed(), r.floors())
	}
	bad := same
	bad.plain, bad.coloured, bad.alone, bad.beside, bad.typed = 5, 5, []float64{3}, []float64{5}, 5
	all[asInstalled] = []walked{bad}
	if r := (report{Rows: pathRows(paths, []float64{0.5}, all)}); r.missed() != r.floors() {
		t.Errorf("%d of %d floors are missed by one that is worse", r.missed(), r.floors())
	}
}

// On a busy machine the bare pty's p99 may exceed a reference peer's. Nothing is then
// above it, and the row says so.
func TestPathRowsBelowTheBarePty(t *testing.T) {
	paths := []namedPath{{name: asInstalled}, {name: relayPlain}, {name: relayHeld}}
	same := walked{plain: 10, coloured: 20, alone: []float64{1}, beside: []float64{2}, quiet: 10, typed: 9}
	all := map[string][]walked{asInstalled: {same}, relayPlain: {same}, relayHeld: {same}}
	bare := append(slices.Repeat([]float64{0.5}, 98), 3, 3) // p50 0.5, p99 3
	r := report{Rows: pathRows(paths, bare, all)}
	if r.missed() != 0 || r.floors() != 6 || r.unjudged() != 1 {
		t.Errorf("%d of %d floors are missed, %d not judged; want 0 of 6, 1", r.missed(), r.floors(), r.unjudged())
	}
	for _, row := range r.Rows {
		p99 := row.Name == "echo, p99, above the bare pty, of "+relayHeld
		if p99 != (row.Unjudged != "") || p99 && (row.Value != 0 || !strings.Contains(row.Unjudged, "the bare pty took 3 ms")) {
			t.Errorf("%+v", row)
		}
	}
}

func TestRollup(t *testing.T) {
	const text = "00400000-7ffe [rollup]\nRss:               10740 kB\nPss:                1646 kB\nPss_Dirty:          1000 kB\n"
	for name, want := range map[string]float64{"Rss:": 10.99776, "Pss:": 1.685504, "Swap:": 0} {
		if got := rollup(text, name); got != want {
			t.Errorf("%s %v MB, want %v", name, got, want)
		}
	}
}
