package term_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/vocab"
)

var update = flag.Bool("update", false, "write what holders are given to testdata")

// A terminal outlives the daemon with what its holder keeps: another version reads and
// writes the same.
func TestFormatsOfHoldersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, _ := keeping(t, v, term.Options{
			Secrets: func([]string) []string { return []string{"s3cr3t"} },
			Checkout: func(_ string, _ time.Time, tell func(vocab.Checkout)) {
				go tell(vocab.Checkout{Repository: "/src", Branch: "main"})
			},
		}, term.Spec{
			Env: []string{"TOKEN=s3cr3t"}, Nonce: "n", Name: "build", Door: "cli", LendTo: []string{"lab"}, Audience: []string{"user:ann"}, Ports: []int{8080},
			OnSlow: term.Hold, Leased: true, Unsigned: true, Port: 4321,
		})
		until := time.Now().Add(time.Hour)
		check.OK(t, h.LendTo("lab", loans.Change{Until: &until, Share: &loans.Share{ID: "one", SecretHash: "abcd", Until: until, Once: true}}))
		check.OK(t, must.Get(pool.As(term.Host("lab")).Find("pty-held"))(t).SaveLinkState(t.Context(), "state"))
		check.OK(t, h.Resize(term.Size{Cols: 100, Rows: 30}))
		v.print("\x1b]2;a title\a\x1b]7;file:///dir\a\x1b]633;A;n\a$ \x1b]633;B;n\a\x1b]633;E;make;n\a\x1b]633;C;n\amade\r\n\x1b]633;D;2;n\a")
		synctest.Wait()
		check.OK(t, h.Resize(term.Size{Cols: 120, Rows: 40}))
		v.print("\x1b]633;A;n\a$ \x1b]633;B;n\a\x1b]633;E;ssh away;n\a\x1b]633;C;n\a\xff")
		time.Sleep(time.Second)
		synctest.Wait()
		must.Get(pool.Detach(t.Context()))(t)
		synctest.Wait()
		same := func() {
			t.Helper()
			golden(t, "meta.json", v.meta)
			golden(t, "note.json", v.notes[len(v.notes)-1].Text)
		}
		same()
		pool, _, _ = adopting(t, v, term.Options{})
		synctest.Wait()
		must.Get(pool.Detach(t.Context()))(t)
		synctest.Wait()
		same()
	})
}

// golden compares what a holder was given with a file, or writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got = bytes.ReplaceAll(got, []byte(strconv.Quote(testkit.Abs("/"))), []byte(`"/"`))
	if *update {
		check.OK(t, os.WriteFile(path, append(got, '\n'), 0o644))
	}
	if want := must.Get(os.ReadFile(path))(t); string(want) != string(got)+"\n" {
		t.Errorf("%s: a holder is given\n%s\nnot\n%s", name, got, want)
	}
}
