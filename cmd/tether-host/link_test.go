package main

import (
	"io"
	"strings"
	"testing"

	"tether/internal/testkit"
)

// Who asks for a link without a token is told how to give one.
func TestLinkWithoutAToken(t *testing.T) {
	r := start(t)
	var stderr testkit.Output
	if status := run(t.Context(), []string{"link", "--url", r.url}, io.Discard, &stderr); status != exitFailure || !strings.Contains(stderr.String(), "--token-file FILE") {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}
