package shellint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/shellint"
)

// The measures of integration: go test -run=NONE -bench='Enter|Start' ./shellint They are
// medians; the machine should have nothing else to do.

// BenchmarkEnter prints the time from Enter to the mark that a line starts, and to the
// next prompt with and without integration.
func BenchmarkEnter(b *testing.B) {
	for _, k := range kinds {
		for _, length := range []int{10, 200, 1500} {
			b.Run(fmt.Sprintf("%s/%d", k.name, length), func(b *testing.B) {
				sh := shell{argv: []string{shellPath(b, k.name)}, files: map[string]string{k.rc: k.prompt}}
				integrated := startShell(b, sh)
				sh.plain = true
				plain := startShell(b, sh)
				integrated.waitPrompt(0)
				plain.waitPrompt(0)
				line := ": " + strings.Repeat("x", length-2)
				var start, prompt, without []time.Duration
				for b.Loop() || len(start) < 9 {
					c, p := integrated.enter(line)
					start, prompt = append(start, c), append(prompt, p)
					_, p = plain.enter(line)
					without = append(without, p)
				}
				report(b, "ms-to-start", start)
				report(b, "ms-to-prompt", prompt)
				report(b, "plain-ms-to-prompt", without)
			})
		}
	}
}

// BenchmarkStart prints the time to the first prompt with and without integration.
func BenchmarkStart(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			sh := shell{argv: []string{shellPath(b, k.name)}, files: map[string]string{k.rc: k.prompt}}
			var with, without []time.Duration
			for b.Loop() || len(with) < 9 {
				for _, sh.plain = range []bool{false, true} {
					began := time.Now()
					s := startShell(b, sh)
					s.waitPrompt(0)
					if sh.plain {
						without = append(without, time.Since(began))
					} else {
						with = append(with, time.Since(began))
					}
					s.stop()
				}
			}
			report(b, "ms", with)
			report(b, "plain-ms", without)
			b.ReportMetric(milliseconds(median(with)-median(without)), "added-ms")
		})
	}
}

// enter types the line, waits until it is echoed, then Enter, and returns the times to
// the start mark and to the next prompt.
func (s *session) enter(line string) (start, prompt time.Duration) {
	from := s.offset()
	s.send(line)
	s.wait("echo", func() bool { return strings.Count(string(s.clean[from:]), "x") >= strings.Count(line, "x") })
	from = s.offset()
	s.mu.Lock()
	seen := len(s.marks)
	s.mu.Unlock()
	began := time.Now()
	s.send("\r")
	if s.marked {
		s.wait("start", func() bool {
			return slices.ContainsFunc(s.marks[seen:], func(m shellint.Mark) bool { return m.Kind == shellint.KindOutputStart })
		})
		start = time.Since(began)
	}
	s.waitPrompt(from)
	return start, time.Since(began)
}

func report(b *testing.B, unit string, times []time.Duration) {
	b.ReportMetric(milliseconds(median(times)), unit)
	b.ReportMetric(0, "ns/op") // says nothing here
}

func median(times []time.Duration) time.Duration {
	times = slices.Clone(times)
	slices.Sort(times)
	return times[len(times)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
