package problems_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tether/problems"
)

// benchLog is how many bytes of each log BenchmarkTracker looks at; of the large builds
// as many as the issue of a flood of output has.
const (
	benchLog   = 2 << 20
	benchLarge = 20 << 20
)

// buildLogs are the recorded runs, together and of each tool, and large builds.
func buildLogs(t testing.TB) map[string][]byte {
	all := map[string]*bytes.Buffer{}
	add := func(name string, output []byte) {
		if all[name] == nil {
			all[name] = &bytes.Buffer{}
		}
		all[name].Write(output)
	}
	for _, r := range runs(t) {
		tool, _, _ := strings.Cut(r.name, "-")
		add("recorded", r.output)
		add("recorded/"+tool, r.output)
	}
	logs := map[string][]byte{}
	for name, b := range all {
		logs[name] = bytes.Repeat(b.Bytes(), benchLog/b.Len()+1)
	}
	logs["large/plain"] = large(func(b *bytes.Buffer, i int) {
		fmt.Fprintf(b, "[%d/90000] /usr/bin/c++ -DNDEBUG -I../include -O2 -Wall -Werror -std=c++20 -MD -o obj/module%d.cc.o -c ../src/error/module%d.cc\n", i, i, i)
		fmt.Fprintf(b, "   Compiling crate-%d v1.%d.0 (/src/crates/crate-%d)\n", i, i%7, i)
		fmt.Fprintf(b, "=== RUN   TestModule/%d\n--- PASS: TestModule/%d (0.%02ds)\n", i, i, i%100)
		fmt.Fprintf(b, "ok  \texample.com/app/error/module%d\t0.%03ds\n", i, i%1000)
		fmt.Fprintf(b, "[INFO] Compiling %d source files to /src/target/classes\n", i)
		fmt.Fprintf(b, "dist/assets/index-%x.js  %d.42 kB │ gzip: %d.13 kB\n", i, i%90, i%30)
	})
	logs["large/coloured"] = large(func(b *bytes.Buffer, i int) {
		fmt.Fprintf(b, "\x1b[1m\x1b[32m   Compiling\x1b[0m crate-%d v1.%d.0 (/src/crates/crate-%d)\r\n", i, i%7, i)
		fmt.Fprintf(b, "\x1b[K[%3d%%] \x1b[32mBuilding CXX object src/CMakeFiles/app.dir/module%d.cc.o\x1b[0m\r\n", i%100, i)
		fmt.Fprintf(b, " \x1b[32m✓\x1b[39m src/module%d.test.ts \x1b[2m(\x1b[22m\x1b[2m%d tests\x1b[22m\x1b[2m)\x1b[22m\x1b[32m %d\x1b[2mms\x1b[22m\x1b[39m\r\n", i, i%20, i%9)
	})
	logs["large/errors"] = large(func(b *bytes.Buffer, i int) {
		fmt.Fprintf(b, "g++ -O2 -Wall -c src/module%d.cc\nsrc/module%d.cc: In function ‘int run%d()’:\n", i, i, i)
		fmt.Fprintf(b, "src/module%d.cc:%d:17: error: ‘missing%d’ was not declared in this scope; did you mean ‘present’?\n", i, i%900, i)
		fmt.Fprintf(b, " %4d |         return missing%d(one, two, three);\n      |                ^~~~~~~~\n      |                present\n", i%900, i)
		fmt.Fprintf(b, "src/module%d.cc:%d:9: warning: unused variable ‘n%d’ [-Wunused-variable]\n", i, i%700, i)
		fmt.Fprintf(b, " %4d |     int n%d = 3;\n      |         ^\n", i%700, i)
	})
	logs["large/errors alone"] = large(func(b *bytes.Buffer, i int) {
		fmt.Fprintf(b, "src/pages/module%d.ts(%d,17): error TS2304: Cannot find name 'missing%d'.\n", i, i%900, i)
	})
	return logs
}

func large(round func(b *bytes.Buffer, i int)) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < benchLarge; i++ {
		round(&b, i)
	}
	return b.Bytes()
}

// BenchmarkTracker measures build logs: MB of output for each second of CPU time, which
// depends less on other load than the time that passes.
func BenchmarkTracker(b *testing.B) {
	logs := buildLogs(b)
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		output := logs[name]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(output)))
			began := cpuTime()
			for b.Loop() {
				tr := problems.NewTracker(problems.Builtin(), 0)
				for at := 0; at < len(output); at += 32 << 10 {
					tr.Write(int64(at), output[at:min(at+32<<10, len(output))])
				}
			}
			if used := cpuTime() - began; used > 0 {
				b.ReportMetric(float64(len(output))*float64(b.N)/1e6/used.Seconds(), "MB/cpu-s")
			}
		})
	}
}

// cpuTime is how long this process has had a processor, in steps of 10 ms; 0 where the
// system does not say.
func cpuTime() time.Duration {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on: proc_pid_stat(5)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
