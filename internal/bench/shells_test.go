package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShellRows(t *testing.T) {
	const out = `goos: linux
BenchmarkEnter/bash/10-2         	       9	   5000000 ns/op	         4.100 ms-to-prompt	         3.600 ms-to-start	         2.000 plain-ms-to-prompt
BenchmarkEnter/nu/10-2           	       9	   5000000 ns/op	         9.000 ms-to-start
BenchmarkStart/zsh-2             	       9	   5000000 ns/op	         6.500 added-ms	        20.00 ms	        13.50 plain-ms
BenchmarkOther/zsh-2             	       9	   5000000 ns/op
PASS
`
	want := []row{
		{Part: "shells", Name: "bash: Enter to the start mark, line of 10", Value: 3.6, Unit: "ms", Bound: atMost, Limit: 3.5},
		{Part: "shells", Name: "nu: Enter to the start mark, line of 10", Value: 9, Unit: "ms"},
		{Part: "shells", Name: "zsh: added to the start", Value: 6.5, Unit: "ms", Bound: atMost, Limit: 10, Note: "13.5 ms without"},
	}
	if diff := cmp.Diff(want, shellRows(out)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
