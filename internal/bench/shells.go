package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// floorsEnter are the floors from Enter to the start mark of a command, in ms, by shell.
var floorsEnter = map[string]float64{"bash": 3.5, "zsh": 1.5, "fish": 2.5}

const floorShellStart = 10.0 // ms that shell integration adds to a shell's start

// shellsPart runs the benchmarks of shellint, which drive real shells. A shell that is not installed is missing from the table.
func shellsPart(ctx context.Context, _ settings) ([]row, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run=NONE", "-bench=^Benchmark(Enter|Start)$", "-benchtime=9x", "tether/shellint")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return shellRows(string(out)), nil
}

// shellRows parses lines such as "BenchmarkEnter/zsh/200-2  9  1 ns/op  0.9 ms-to-start".
func shellRows(out string) []row {
	var rows []row
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(words[0], "-")
		path := strings.Split(strings.TrimPrefix(name, "Benchmark"), "/")
		values := map[string]float64{}
		for i := 2; i+1 < len(words); i += 2 {
			values[words[i+1]], _ = strconv.ParseFloat(words[i], 64) // other words are not numbers
		}
		switch {
		case path[0] == "Enter" && len(path) == 3:
			r := row{Part: "shells", Name: fmt.Sprintf("%s: Enter to the start mark, line of %s", path[1], path[2]), Value: values["ms-to-start"], Unit: "ms"}
			if limit, ok := floorsEnter[path[1]]; ok {
				r = r.most(limit)
			}
			rows = append(rows, r)
		case path[0] == "Start" && len(path) == 2:
			r := row{Part: "shells", Name: path[1] + ": added to the start", Value: values["added-ms"], Unit: "ms", Note: digits(values["plain-ms"]) + " ms without"}
			rows = append(rows, r.most(floorShellStart))
		}
	}
	return rows
}
