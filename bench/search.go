package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"tether/agent/history"
)

// recorded has output of tools: colours, carriage returns, cursor moves. make bench runs
// at the top.
const recorded = "problems/testdata"

// Floors of a search, in ms.
const (
	floorLiteral    = 300
	floorExpression = 600  // that demands a literal
	floorAny        = 6000 // that demands none
	floorRecent     = 200  // until the first hit of recent text; its newest hits are all that is asked for
)

// searchPart searches a history of recorded output for what tools have printed, and for
// nearly that.
func searchPart(ctx context.Context, s settings) ([]row, error) {
	texts, err := recordings()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tether-bench-search-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	h, err := history.Open(history.Options{Dir: filepath.Join(dir, "history"), Keep: 24 * time.Hour})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	if err := record(ctx, h, texts, s.searched<<20, rng); err != nil {
		return nil, err
	}
	q, words := quest{h: h}, regexp.MustCompile(`[\w./:-]{4,40}( [\w./:-]{2,20}){0,3}`)
	for range 40 * s.rounds {
		if err := q.ask(ctx, regexp.QuoteMeta(literal(texts, words, rng))); err != nil {
			return nil, err
		}
	}
	of := fmt.Sprintf("tether search in %d MiB: ", s.searched)
	rows := []row{q.row(of+"a literal, p95", 0.95, floorLiteral)}
	for _, c := range []struct {
		name     string
		most     float64
		patterns []string
	}{
		{"RE2 with a literal, slowest", floorExpression, []string{`error.*no such text`, `warning: \d{9}`, `at .*:\d{9}`}},
		{"RE2 without, slowest", floorAny, []string{`[0-9]{14}x`, `^\w+ \w+ \w+\d{9}$`}},
		{"recent text, slowest", floorRecent, []string{`error`, `[0-9]+ms`, `passed`}},
	} {
		q := quest{h: h}
		for _, p := range c.patterns {
			if err := q.ask(ctx, p); err != nil {
				return nil, err
			}
		}
		rows = append(rows, q.row(of+c.name, 1, c.most))
	}
	return rows, nil
}

// quest is several searches: how long they take, and their CPU time, in ms.
type quest struct {
	h         *history.History
	took, cpu []float64
}

func (q *quest) ask(ctx context.Context, pattern string) error {
	e, err := history.Compile(pattern, false, false)
	if err != nil {
		return err
	}
	began := time.Now()
	before, _ := cpuTime(os.Getpid())
	_, err = q.h.Search(ctx, history.Search{Expression: e}, func(history.Hit) bool { return true })
	after, _ := cpuTime(os.Getpid())
	q.took, q.cpu = append(q.took, millis(time.Since(began))), append(q.cpu, millis(after-before))
	return err
}

func (q *quest) row(name string, share, most float64) row {
	note := fmt.Sprintf("p50 %s; CPU %s", digits(median(q.took)), digits(quantile(q.cpu, share)))
	return row{Part: "search", Name: name, Value: quantile(q.took, share), Unit: "ms", Note: note}.most(most)
}

// recordings are the recorded outputs, with the line ends of a pty.
func recordings() (all [][]byte, err error) {
	err = filepath.WalkDir(recorded, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all = append(all, onTerminal(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
		return err
	})
	return all, err
}

// record fills the history with terminals of 4 MiB each.
func record(ctx context.Context, h *history.History, texts [][]byte, bytes int, rng *rand.Rand) error {
	at := time.Now().Add(-time.Hour)
	for all := 0; all < bytes; {
		id := fmt.Sprintf("pty-%d", all)
		w, err := h.Terminal(history.Run{ID: id, Terminal: id, Started: at, End: -1})
		for end := min(bytes, all+4<<20); all < end; {
			text := texts[rng.IntN(len(texts))]
			for piece := range slices.Chunk(text, 20_000) {
				at = at.Add(time.Millisecond)
				err = errors.Join(err, w.Append(piece, at))
			}
			all += len(text)
		}
		r := w.Run()
		r.Ended = at
		if err = errors.Join(err, w.Finish(r), h.Sync(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// literal is some words that a tool has printed, every other time with another letter in
// them.
func literal(texts [][]byte, words *regexp.Regexp, rng *rand.Rand) string {
	for {
		found := words.FindAll(texts[rng.IntN(len(texts))], -1)
		if len(found) == 0 {
			continue
		}
		text := bytes.Clone(found[rng.IntN(len(found))])
		if rng.IntN(2) == 0 {
			text[rng.IntN(len(text))] = 'a' + byte(rng.IntN(26))
		}
		return string(text)
	}
}
