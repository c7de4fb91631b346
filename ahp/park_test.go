package ahp_test

import (
	"math"
	"testing"
	"time"

	"tether/ahp"
)

// A terminal may be parked for 30 days from when its machine goes away, so that a loan of
// more than 30 days must end, too.
func TestLoanEnd(t *testing.T) {
	read := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		left time.Duration
		want time.Time
	}{
		"no end":            {-1, time.Time{}},
		"over":              {0, read},
		"an hour":           {time.Hour, read.Add(time.Hour)},
		"as long as parked": {ahp.MaxPark, read.Add(ahp.MaxPark)},
		"longer":            {ahp.MaxPark + day, read.Add(ahp.MaxPark + day)},
		"a year":            {366 * day, read.Add(366 * day)},
	} {
		if got := ahp.NewPark(time.Hour, c.left).LoanEnd(read); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	most := int64(math.MaxInt64)
	if got := (ahp.Park{LoanMs: &most}).LoanEnd(read); !got.IsZero() {
		t.Errorf("of %d ms: %v, want no end", most, got)
	}
}
