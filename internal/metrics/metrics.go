// Package metrics writes metrics in version 0.0.4 of Prometheus's text format.
package metrics

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strings"
)

// Text is a page of metrics. The zero value is an empty one.
type Text struct {
	bytes.Buffer
	name string // of the last metric, to which More adds a value
}

// Gauge begins a metric whose value goes up and down.
func (m *Text) Gauge(name, help string, value float64, labels ...string) {
	m.Metric(name, help, "gauge", value, labels...)
}

// Counter begins a metric whose value only grows.
func (m *Text) Counter(name, help string, value float64, labels ...string) {
	m.Metric(name, help, "counter", value, labels...)
}

// Metric begins a metric of a kind of Prometheus, such as "gauge". labels are alternately
// names and values.
func (m *Text) Metric(name, help, kind string, value float64, labels ...string) {
	m.name = name
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	m.More(value, labels...)
}

// More adds another value to the last metric.
func (m *Text) More(value float64, labels ...string) {
	m.WriteString(m.name)
	for i := 0; i+1 < len(labels); i += 2 {
		fmt.Fprintf(m, "%s%s=\"%s\"", map[bool]string{true: "{", false: ","}[i == 0], labels[i], labelEscapes.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		m.WriteByte('}')
	}
	fmt.Fprintf(m, " %g\n", value)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Runtime adds metrics of the Go runtime. All names but go_gc_cycles_total are those of
// Prometheus's client library for Go.
func (m *Text) Runtime() {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	m.Gauge("go_goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	m.Gauge("go_memstats_heap_alloc_bytes", "Heap in use.", float64(mem.HeapAlloc))
	m.Gauge("go_memstats_sys_bytes", "Memory from the system.", float64(mem.Sys))
	m.Counter("go_gc_cycles_total", "Collections of garbage.", float64(mem.NumGC))
}

// Answer sends the page as the answer to an HTTP request.
func (m *Text) Answer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(m.Bytes()) // fails if the client is gone
}

// Yes returns the value of a boolean metric: 1 for true, 0 for false.
func Yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
